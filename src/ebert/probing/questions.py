"""A question with a mask, its subject and its answers; and what a set of them is."""

import hashlib
from collections import Counter
from dataclasses import dataclass, field, replace

from ebert.text import Mention, Passage

MASK = "[MASK]"


@dataclass(frozen=True, slots=True)
class Question:
    """A text with one mask, and the words that are right there."""

    id: str
    relation: str
    text: str
    answers: tuple[str, ...]
    subject: str = ""
    """The words that name what is asked about, as they stand in the text."""
    start: int = 0
    """Where in the text the subject begins."""
    entity: str | None = None
    """The subject's entity, if the data say so."""
    oracle: str | None = None
    """The subject's Wikidata id in LAMA, which is used on request only."""
    where: str = ""
    """File and line."""

    @property
    def gives_itself_away(self) -> bool:
        """Whether an answer is a part of the subject's name, in capitals or not: the string-match filter."""
        name = self.subject.lower()
        return any(answer.lower() in name for answer in self.answers)

    def passage(self, masks: int = 1) -> Passage:
        """Give the text with its subject marked and so many masks where the answer goes."""
        mentions: tuple[Mention, ...] = ()
        if self.subject and self.entity is not None:
            mentions = (Mention(self.start, self.start + len(self.subject), self.entity),)
        passage = Passage(self.text, mentions)
        if masks == 1:
            return passage
        place = self.text.index(MASK)
        return passage.replace_text([(place, place + len(MASK), " ".join([MASK] * masks))])

    def about(self, entity: str | None) -> "Question":
        """Give the same question with its subject's entity."""
        return replace(self, entity=entity)

    @property
    def lot(self) -> str:
        """Its place in a fixed random order."""
        return hashlib.sha256(self.id.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row that is not asked, and why."""

    where: str
    reason: str
    id: str | None = None


@dataclass
class Questions:
    """A set of questions as read from disk."""

    name: str
    questions: list[Question]
    skipped: list[Skipped] = field(default_factory=list)
    vocabulary: list[str] | None = None
    """The words that answers are chosen from; None if the data name none."""
    hashes: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the files."""

    def reasons(self) -> dict[str, int]:
        """Count the rows that are not asked by reason."""
        return dict(Counter(row.reason for row in self.skipped).most_common())


def limited(questions: list[Question], limit: int) -> list[Question]:
    """Take so many questions of each relation, always the same ones, in their order."""
    taken: dict[str, list[Question]] = {}
    for question in questions:
        taken.setdefault(question.relation, []).append(question)
    kept = {q.id for own in taken.values() for q in sorted(own, key=lambda question: question.lot)[:limit]}
    return [question for question in questions if question.id in kept]


def from_template(template: str, subject: str) -> tuple[str, int]:
    """Put a subject and a mask into a template with ``[X]`` and ``[Y]``; give the text and where the subject begins.

    >>> from_template("The capital of [X] is [Y] .", "France")
    ('The capital of France is [MASK] .', 15)
    """
    before, _, after = template.replace("[Y]", MASK).partition("[X]")
    return before + subject + after, len(before)


def fault_of(template: str) -> str | None:
    """Say what is wrong with a template, if anything."""
    for slot, what in (("[X]", "the subject"), ("[Y]", "the answer")):
        if template.count(slot) != 1:
            return f"the template {template!r} needs one {slot} for {what}, it has {template.count(slot)}"
    return None
