"""The person-name filter of LAMA-UHN (Section 4.2): does the name alone give the answer away?

For every part of a person's name BERT is asked "[X] is a common name in the following city: [MASK].", or country or
language, as the relation has it. If the answer is among the first three of the whole vocabulary of wordpieces, the
question says little about what a model knows of that person.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ebert._io.progress import Advance, silent
from ebert.model.ebert import EBert
from ebert.probing.questions import Question

KINDS = {
    "P19": "city", "P20": "city", "place_of_birth": "city", "place_of_death": "city", "P27": "country",
    "P103": "language", "P1412": "language",
}  # fmt: skip
TOP = 3
WINDOW = 1024  # names asked between two saves


@dataclass(frozen=True, slots=True)
class NameCheck:
    """For every part of a subject's name the place of the answer among the first three, or None."""

    id: str
    parts: tuple[int | None, ...]

    @property
    def dropped(self) -> bool:
        """Whether the name gives the answer away."""
        return any(part is not None for part in self.parts)


Key = tuple[str, str]  # a part of a name, and what it is asked about
Guesses = dict[Key, list[str]]  # the first three wordpieces for each


def parts_of(question: Question) -> list[Key]:
    """Give the parts of a subject's name with what they are asked about; none if the relation is not about persons."""
    kind = KINDS.get(question.relation)
    return [(part, kind) for part in question.subject.split()] if kind else []


def sentence(key: Key) -> str:
    """Ask about a name."""
    return f"{key[0]} is a common name in the following {key[1]}: [MASK]."


def wanted(questions: Iterable[Question]) -> list[Key]:
    """Give all that has to be asked about some questions, each once, in a fixed order."""
    return sorted({key for question in questions for key in parts_of(question)})


def ask(
    model: EBert, keys: Sequence[Key], advance: Advance = silent, *, known: Guesses | None = None
) -> Iterator[Guesses]:
    """Give the first three wordpieces for each name, a window of names at a time.

    Windows that are `known` are not asked again. They are the same ones each time, and so are the batches.
    """
    for start in range(0, len(keys), WINDOW):
        window = keys[start : start + WINDOW]
        if known is None or any(key not in known for key in window):
            filled = model.fill(map(sentence, window), mode="bert", top=TOP)
            yield {key: [a.token for a in one.answers] for key, one in zip(window, filled, strict=True)}
        advance(len(window))


def guess(model: EBert, questions: Iterable[Question], advance: Advance = silent) -> Guesses:
    """Give the guesses for all names of some questions."""
    return {key: tokens for window in ask(model, wanted(questions), advance) for key, tokens in window.items()}


def check(question: Question, guesses: Guesses, *, lower: bool = False) -> NameCheck:
    """See whether a question's answer is among the guesses for its subject's name.

    `lower` is for guesses of an encoder that knows no capitals.
    """
    answers = {answer.lower() if lower else answer for answer in question.answers}
    ranks = []
    for key in parts_of(question):
        places = [place for place, guess in enumerate(guesses[key], 1) if guess in answers]
        ranks.append(min(places, default=None))
    return NameCheck(question.id, tuple(ranks))
