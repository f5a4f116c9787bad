"""Linking for many clients: texts that are linked in the same way go through the encoder together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ebert.linking.document import Document, Linked, LinkedMention
from ebert.linking.linker import Linker
from ebert.linking.output import mention_value
from ebert.serve.lane import Pause

PIECE = 3  # letters of a wordpiece, about


@dataclass(frozen=True, slots=True)
class LinkJob:
    """A text to link. If mentions are `given`, these are linked, each to its likeliest candidate."""

    document: Document
    rounds: int  # of refinement
    given: bool = False

    @property
    def tokens(self) -> int:
        """What the job costs, about: blocks for spans are about as many as the words."""
        return self.rounds * (2 * (len(self.document.text) // PIECE) + 2)


Steps = tuple[Linked, ...]  # what was linked after each round of refinement


class LinkWork:
    """Links texts and writes down what was found."""

    def __init__(self, linker: Linker, *, budget: int | None = None) -> None:
        self.linker, self._budget = linker, budget

    @property
    def rounds(self) -> int:
        """The linker's own rounds of refinement."""
        return self.linker.options.rounds

    def run(self, jobs: Sequence[LinkJob], pause: Pause) -> list[Steps]:
        """Link texts; return for each what was linked after each round. `pause` is called between batches."""
        groups: dict[tuple[int, bool], list[int]] = {}
        for number, job in enumerate(jobs):
            groups.setdefault((job.rounds, job.given), []).append(number)
        results: dict[int, Steps] = {}
        for (rounds, given), numbers in groups.items():
            documents = [jobs[number].document for number in numbers]
            results.update(zip(numbers, self._together(documents, rounds, pause, given=given), strict=True))
        return [results[number] for number in range(len(jobs))]

    def _together(self, documents: list[Document], rounds: int, pause: Pause, *, given: bool) -> list[Steps]:
        how: dict[str, Any] = {"rounds": rounds, "budget": self._budget, "between": pause}
        if not given:
            return list(self.linker.trace(documents, threshold=0.0, **how))
        return [(linked,) for linked in self.linker.disambiguate(documents, **how)]

    def sure(self, linked: Linked, threshold: float | None = None) -> list[LinkedMention]:
        """Give the mentions that are probable enough."""
        least = self.linker.threshold if threshold is None else threshold
        return [mention for mention in linked.mentions if mention.probability >= least]

    def write(self, steps: Steps, *, threshold: float | None, trace: bool) -> dict[str, Any]:
        """Give what the client gets."""
        rounds = [[mention_value(one) for one in self.sure(step, threshold)] for step in steps]
        value: dict[str, Any] = {"text": steps[-1].document.text, "mentions": rounds[-1]}
        if trace:
            value["rounds"] = rounds
        return value
