"""Questions with a mask, their subjects and answers; and the reader of your own questions (docs/howto/probe.md).

A line of your own questions is a JSON object with ``answers`` (or one ``answer``) and either

* a ``text`` with one ``[MASK]``, its subject written ``[[Title|surface]]`` or given by ``subject``:
  ``{"start": 15, "end": 21, "entity": "France"}``, or
* a ``template`` with ``[X]`` and ``[Y]``, a ``subject`` and, if it is not the subject itself, its ``entity``.

``id`` and ``relation`` (questions of a kind, over which scores are averaged) may be left out.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ebert._io import files
from ebert._io.records import read_table
from ebert.errors import EbertError
from ebert.text.passage import Mention, Passage

MASK = "[MASK]"
FIELDS = {"id", "relation", "text", "template", "subject", "entity", "answers", "answer"}


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

    def passage(self, masks: int = 1) -> Passage:
        """Return the text with its subject marked and so many masks where the answer goes."""
        mentions: tuple[Mention, ...] = ()
        if self.subject and self.entity is not None:
            mentions = (Mention(self.start, self.start + len(self.subject), self.entity),)
        passage = Passage(self.text, mentions)
        if masks == 1:
            return passage
        place = self.text.index(MASK)
        return passage.replace_text([(place, place + len(MASK), " ".join([MASK] * masks))])


@dataclass(frozen=True, slots=True)
class SkippedQuestion:
    """A row that is not asked, and why."""

    where: str
    reason: str
    id: str | None = None


@dataclass
class Questions:
    """A set of questions as read from disk."""

    name: str
    questions: list[Question] = field(default_factory=list)
    skipped: list[SkippedQuestion] = field(default_factory=list)
    vocabulary: list[str] | None = None
    """The words that answers are chosen from; None if the data name none."""
    hashes: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the files."""

    @property
    def is_lama(self) -> bool:
        """Whether these are LAMA's questions, not your own."""
        return self.name == "lama"

    def refuse_none(self, path: str | Path) -> None:
        """Raise `EbertError` if there are no questions."""
        if not self.questions:
            some = "; ".join(f"{row.where}: {row.reason}" for row in self.skipped[:3]) or "it is empty"
            raise EbertError(f"no question of {path} can be asked: {some}")


def reasons(skipped: Sequence[SkippedQuestion]) -> dict[str, int]:
    """Count the rows that are not asked, by reason."""
    return dict(Counter(row.reason for row in skipped).most_common())


def shuffled(questions: Sequence[Question]) -> list[Question]:
    """Return questions in a random order that is always the same."""
    return sorted(questions, key=lambda question: hashlib.sha256(question.id.encode()).hexdigest())


def limited(questions: Sequence[Question], limit: int) -> list[Question]:
    """Return so many questions of each relation, always the same ones, in their order."""
    by_relation: dict[str, list[Question]] = {}
    for question in questions:
        by_relation.setdefault(question.relation, []).append(question)
    kept = {question.id for own in by_relation.values() for question in shuffled(own)[:limit]}
    return [question for question in questions if question.id in kept]


def from_template(template: str, subject: str) -> tuple[str, int]:
    """Put a subject and a mask into a template with ``[X]`` and ``[Y]``; return the text and the subject's start.

    >>> from_template("The capital of [X] is [Y] .", "France")
    ('The capital of France is [MASK] .', 15)
    """
    before, _, after = template.replace("[Y]", MASK).partition("[X]")
    return before + subject + after, len(before)


def check_template(template: str) -> None:
    """Raise `EbertError` unless a template has one place for the subject and one for the answer."""
    for slot, what in (("[X]", "the subject"), ("[Y]", "the answer")):
        if template.count(slot) != 1:
            raise EbertError(f"the template {template!r} needs one {slot} for {what}, it has {template.count(slot)}")


def read_questions(path: str | Path) -> Questions:
    """Read your own questions; list other lines with the reason."""
    path = Path(path)
    if not path.is_file():
        raise EbertError(f"{path} is not a file; questions of your own are a file of JSON lines")
    read = Questions("questions", hashes={path.name: files.sha256(path)})
    seen: set[str] = set()
    for number, row in read_table(path, needed="answers"):
        where = f"{path.name}:{number}"
        try:
            if isinstance(row, EbertError):
                raise row
            question = question_of(row, number, where)
            if question.id in seen:
                raise EbertError(f"the id {question.id!r} was there before")
        except EbertError as error:
            read.skipped.append(SkippedQuestion(where, str(error)))
        else:
            seen.add(question.id)
            read.questions.append(question)
    read.refuse_none(path)
    return read


def question_of(row: dict[str, Any], number: int, where: str) -> Question:
    """Return the question of a line; by default its number is the id. Raise `EbertError` if it is not a question."""
    if unknown := row.keys() - FIELDS:
        raise EbertError(f"it has {', '.join(map(repr, sorted(unknown)))}, which have no meaning here")
    answers = row["answers"] if "answers" in row else row.get("answer")
    answers = [answers] if isinstance(answers, str) else answers
    if not isinstance(answers, list) or not answers or not all(isinstance(a, str) and a.strip() for a in answers):
        raise EbertError("it has no answers: a list of words is needed")
    text, subject, start, entity = _from_template(row) if "template" in row else _from_text(row)
    if text.count(MASK) != 1:
        raise EbertError(f"the text has {text.count(MASK)} {MASK}, one is needed")
    given = tuple(dict.fromkeys(answer.strip() for answer in answers))
    name, relation = _name(row, "id") or str(number), _name(row, "relation") or "all"
    return Question(name, relation, text, given, subject, start, entity, where=where)


def _name(row: dict[str, Any], field: str) -> str:
    value = row.get(field)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise EbertError(f"{field} is {value!r}; a name or a number is needed")
    return str(value)


def _from_template(row: dict[str, Any]) -> tuple[str, str, int, str | None]:
    template, subject, entity = row["template"], row.get("subject"), row.get("entity")
    if not isinstance(template, str) or not isinstance(subject, str) or not subject.strip():
        raise EbertError("a template and a subject are strings")
    check_template(template)
    if entity is not None and not isinstance(entity, str):
        raise EbertError("an entity is a title")
    text, start = from_template(template, subject)
    return text, subject, start, entity


def _from_text(row: dict[str, Any]) -> tuple[str, str, int, str | None]:
    text, subject = row.get("text"), row.get("subject")
    if not isinstance(text, str):
        raise EbertError("it has neither a text nor a template")
    if subject is None:
        passage = Passage.parse(text)
        if len(passage.mentions) > 1:
            raise EbertError("the text marks several entities; a question has one subject")
        if not passage.mentions:
            return passage.text, "", 0, None
        mention = passage.mentions[0]
        return passage.text, passage.surface(mention), mention.start, mention.entity
    if not isinstance(subject, dict):
        raise EbertError('with a text, the subject is {"start": ..., "end": ..., "entity": ...}')
    start, end, entity = subject.get("start"), subject.get("end"), subject.get("entity")
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
        raise EbertError(f"the subject's start and end ({start}, {end}) are not a part of the text")
    if MASK in text[start:end] or (entity is not None and not isinstance(entity, str)):
        raise EbertError("the subject covers the mask, or its entity is not a title")
    return text, text[start:end], start, entity
