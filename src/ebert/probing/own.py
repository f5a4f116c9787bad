"""Reading people's own questions: JSON lines, each a question (docs/howto/probe.md shows the format).

A line has ``answers`` (or one ``answer``) and either

* a ``text`` with one ``[MASK]``, its subject written ``[[Title|surface]]`` or given by ``subject``:
  ``{"start": 15, "end": 21, "entity": "France"}``, or
* a ``template`` with ``[X]`` and ``[Y]``, a ``subject`` and, if it is not the subject itself, its ``entity``.

``id`` and ``relation`` (questions of a kind, over which scores are averaged) may be left out.
"""

from pathlib import Path
from typing import Any

from ebert._io import files
from ebert._io.records import read_table
from ebert.errors import EbertError
from ebert.probing.questions import MASK, Question, Questions, Skipped, fault_of, from_template
from ebert.text import Passage

FIELDS = {"id", "relation", "text", "template", "subject", "entity", "answers", "answer"}


def read_questions(path: str | Path) -> Questions:
    """Read questions of one's own; lines that are none are listed with the reason."""
    path = Path(path)
    if not path.is_file():
        raise EbertError(f"{path} is not a file; questions of one's own are a file of JSON lines")
    read = Questions("questions", [], hashes={path.name: files.sha256(path)})
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
            read.skipped.append(Skipped(where, str(error)))
        else:
            seen.add(question.id)
            read.questions.append(question)
    if not read.questions:
        some = "; ".join(f"{row.where}: {row.reason}" for row in read.skipped[:3]) or "it is empty"
        raise EbertError(f"no question of {path} can be asked: {some}")
    return read


def question_of(row: dict[str, Any], number: int, where: str) -> Question:
    """Read a line; the number is its id if it has none, and an error says why it is no question."""
    if unknown := row.keys() - FIELDS:
        raise EbertError(f"it has {', '.join(map(repr, sorted(unknown)))}, which mean nothing here")
    answers = row["answers"] if "answers" in row else row.get("answer")
    answers = [answers] if isinstance(answers, str) else answers
    if not isinstance(answers, list) or not answers or not all(isinstance(a, str) and a.strip() for a in answers):
        raise EbertError("it has no answers: a list of words is needed")
    text, subject, start, entity = _from_template(row) if "template" in row else _from_text(row)
    if text.count(MASK) != 1:
        raise EbertError(f"the text has {text.count(MASK)} {MASK}, one is needed")
    return Question(
        id=_name(row, "id") or str(number),
        relation=_name(row, "relation") or "all",
        text=text,
        answers=tuple(dict.fromkeys(answer.strip() for answer in answers)),
        subject=subject,
        start=start,
        entity=entity,
        where=where,
    )


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
    if fault := fault_of(template):
        raise EbertError(fault)
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
