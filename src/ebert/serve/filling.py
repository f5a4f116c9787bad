"""Filling masks for many clients: the sequences of all their texts and modes go through the encoder together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ebert.errors import EbertError
from ebert.model.batching import budget_on, plan
from ebert.model.ebert import EBert
from ebert.model.fill import Answer
from ebert.model.injection import Pieces
from ebert.model.modes import Mode
from ebert.serve.lane import Pause
from ebert.text import Passage


@dataclass(frozen=True, slots=True)
class FillJob:
    """A text to fill: a sequence for each mode, cut and checked."""

    passage: Passage
    sequences: tuple[Pieces, ...]
    missing: tuple[str, ...]
    top: int
    candidates: tuple[int, ...] | None  # wordpieces to choose from

    @property
    def tokens(self) -> int:
        """What the job costs."""
        return sum(map(len, self.sequences))


Masks = list[tuple[Answer, ...]]  # the answers for each mask of a sequence


class FillWork:
    """Prepares texts, fills them and writes the answers down."""

    def __init__(self, model: EBert, *, budget: int | None = None) -> None:
        self._model, self._filler = model, model.filler()
        self.budget = budget or budget_on(model.encoder.device.type)

    def prepare(
        self, passage: Passage, modes: Sequence[Mode], *, top: int, candidates: Sequence[str] | None
    ) -> FillJob:
        """Cut a text into wordpieces, and complain now about all that would be wrong later."""
        sequences = tuple(self._filler.sequences([passage], mode)[0] for mode in modes)
        if not sequences[0].masks:
            raise EbertError(f"the text has no mask; write [MASK] where the answer goes: {passage.text[:60]!r}")
        chosen = None if candidates is None else tuple(self._model.vocabulary.ids(candidates))
        return FillJob(passage, sequences, tuple(self._model.missing(passage)), top, chosen)

    def run(self, jobs: Sequence[FillJob], pause: Pause = lambda: None) -> list[list[Masks]]:
        """Fill the masks of jobs; return for each the answers of its sequences. `pause` is called between batches."""
        sequences = [(number, pieces) for number, job in enumerate(jobs) for pieces in job.sequences]
        found: dict[int, Masks] = {}
        for group in self._groups([len(pieces) for _, pieces in sequences]):
            pause()
            logits = self._filler.logits([sequences[index][1] for index in group], packed=True)  # (masks, vocabulary)
            row = 0
            for index in group:
                number, pieces = sequences[index]
                own = logits[row : row + len(pieces.masks)]
                row += len(pieces.masks)
                found[index] = self._filler.answers(own, top=jobs[number].top, candidates=jobs[number].candidates)
        results: list[list[Masks]] = [[] for _ in jobs]
        for index, (number, _) in enumerate(sequences):
            results[number].append(found[index])
        return results

    def _groups(self, lengths: list[int]) -> list[list[int]]:
        """Cut sequences into batches: as they come where none pads another, else those of like length together."""
        if not self._filler.packs:
            return plan(lengths, self.budget)
        groups: list[list[int]] = []
        room = 0
        for index, length in enumerate(lengths):
            if length > room:
                groups.append([])
                room = self.budget
            groups[-1].append(index)
            room -= length
        return groups

    def write(self, job: FillJob, answers: list[Masks]) -> dict[str, Any]:
        """Give what the client gets."""
        show = self._filler.show
        return {
            "text": job.passage.text,
            "mentions": [
                {"start": m.start, "end": m.end, "text": job.passage.surface(m), "entity": m.entity}
                for m in job.passage.mentions
            ],
            "missing": list(job.missing),
            "results": [
                {
                    "mode": pieces.mode,
                    "pieces": show(pieces),
                    "entities": sorted(pieces.entities),
                    "masks": [[{"token": a.token, "probability": a.probability} for a in mask] for mask in masks],
                }
                for pieces, masks in zip(job.sequences, answers, strict=True)
            ],
        }


def warm_up(work: FillWork) -> None:
    """Fill a mask, so that the first client need not wait for what happens once."""
    with torch.inference_mode():
        work.run([work.prepare(Passage("[MASK]"), ["bert"], top=1, candidates=None)])
