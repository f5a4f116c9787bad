"""The filters of LAMA: which questions say little about what a model knows of their subjects (Section 4.2).

`FILTERS` is the one list of them, from the mildest to the strictest; commands, scores and reports read it. A filter has
a rule that takes questions out, and applies after the rules of the filters before it. To add a filter, add an entry.

* string-match: the answer is a part of the subject's name.
* uhn ("unhelpful names"): besides, a person's name gives the answer away. For every part of the name BERT is asked
  "[X] is a common name in the following city: [MASK].", or country or language, as the relation has it. If the answer
  is among the first three of the whole vocabulary, the question is out.

`write_uhn` writes LAMA-UHN, which is LAMA without these questions, in LAMA's own format.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert._io.records import write_lines
from ebert.errors import EbertError
from ebert.probing.lama import is_relation, lama_files, read_lama
from ebert.probing.questions import Question, reasons

if TYPE_CHECKING:
    from ebert.model.ebert import EBert

NAME_BERT = "bert-base-cased"  # what the paper asks about names
# What a name is asked about, by relation.
KINDS = {
    "P19": "city", "P20": "city", "place_of_birth": "city", "place_of_death": "city", "P27": "country",
    "P103": "language", "P1412": "language",
}  # fmt: skip
TOP = 3  # guesses among which the answer must not be
WINDOW = 1024  # names asked between two saves
DROPPED = "dropped.jsonl"
UHN = ("string-match", "uhn")  # what LAMA-UHN leaves out

NamePart = tuple[str, str]  # a part of a name, and what it is asked about
Guesses = dict[NamePart, list[str]]  # the first three wordpieces for each


@dataclass(frozen=True, slots=True)
class NameCheck:
    """For every part of a subject's name the place of the answer among the first three guesses, or None."""

    id: str
    parts: tuple[int | None, ...]

    @property
    def dropped(self) -> bool:
        """Whether the name gives the answer away."""
        return any(part is not None for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which questions count."""

    name: str
    """What ``--filter`` and metrics.json call it."""
    help: str
    """What it does, for people."""
    rule: str | None = None
    """What predictions.jsonl says about questions that it takes out."""
    takes_out: Callable[[Question, NameCheck | None], bool] = lambda _question, _check: False
    """Whether the rule takes out a question. The second argument is None unless the filter `asks_names`."""
    asks_names: bool = False
    """Whether a BERT must first be asked about the names of subjects."""
    only_lama: str | None = None
    """What it is for, if it is for LAMA's questions only."""


def string_match(question: Question) -> bool:
    """Return whether an answer is a part of the subject's name, in capitals or not."""
    name = question.subject.lower()
    return any(answer.lower() in name for answer in question.answers)


FILTERS = {one.name: one for one in (
    Filter(name="all", help="every question"),
    Filter(
        name="string-match",
        rule="string-match",
        help="without questions whose answer is part of the subject's name",
        takes_out=lambda question, _: string_match(question),
    ),
    Filter(
        name="uhn",
        rule="name",
        help="also without questions whose answer a person's name gives away",
        takes_out=lambda _, check: check is not None and check.dropped,
        asks_names=True,
        only_lama="relations between persons and places",
    ),
)}  # fmt: skip


def own_filters() -> list[str]:
    """Return the filters that questions of your own can have."""
    return [name for name, one in FILTERS.items() if not one.only_lama]


def check_filters(names: Sequence[str], *, lama: bool = True) -> None:
    """Raise `EbertError` if a filter is unknown, or if it is for LAMA's questions only and these are not."""
    for name in names:
        if name not in FILTERS:
            raise EbertError(f"unknown filter {name!r}; choose from {', '.join(FILTERS)}")
        if (what := FILTERS[name].only_lama) and not lama:
            raise EbertError(f"the filter {name} is for LAMA's {what}; choose {','.join(own_filters())}")


def dropped(question: Question, check: NameCheck | None = None, *, names: Iterable[str]) -> str | None:
    """Return the first rule of these filters that takes a question out, or None."""
    return next((FILTERS[name].rule for name in names if FILTERS[name].takes_out(question, check)), None)


def ask_names(names: Iterable[str]) -> bool:
    """Return whether some of these filters need a BERT to be asked about names."""
    return any(FILTERS[name].asks_names for name in names)


def with_persons(questions: Iterable[Question]) -> list[Question]:
    """Return the questions whose subjects' names must be asked about: those that no milder filter takes out."""
    milder = list(takewhile(lambda name: not FILTERS[name].asks_names, FILTERS))
    return [question for question in questions if question.relation in KINDS and not dropped(question, names=milder)]


def name_parts(question: Question) -> list[NamePart]:
    """Return the parts of a subject's name with what they are asked about; none if it is not about persons."""
    kind = KINDS.get(question.relation)
    return [(part, kind) for part in question.subject.split()] if kind else []


def name_question(part: NamePart) -> str:
    """Return the question about a part of a name."""
    return f"{part[0]} is a common name in the following {part[1]}: [MASK]."


def all_name_parts(questions: Iterable[Question]) -> list[NamePart]:
    """Return all that has to be asked about some questions, each once, in a fixed order."""
    return sorted({part for question in questions for part in name_parts(question)})


def guess_names(
    model: "EBert", parts: Sequence[NamePart], *, known: Mapping[NamePart, Any] | None = None, advance: Advance = silent
) -> Iterator[Guesses]:
    """Yield the first three wordpieces for each part of a name, a window of names at a time.

    Windows that are `known` are not asked again. They are the same ones each time, and so are the batches.
    """
    for start in range(0, len(parts), WINDOW):
        window = parts[start : start + WINDOW]
        if any(part not in (known or {}) for part in window):
            filled = model.fill([name_question(one) for one in window], mode="bert", top=TOP)
            yield {part: [a.token for a in one.answers] for part, one in zip(window, filled, strict=True)}
        advance(len(window))


def check_names(questions: Iterable[Question], guesses: Guesses, *, lower: bool = False) -> dict[str, NameCheck]:
    """Return, by question, where its answer is among the guesses for the parts of its subject's name.

    `lower` is for guesses of an encoder without capitals.
    """
    checks = {}
    for question in questions:
        answers = {answer.lower() if lower else answer for answer in question.answers}
        places = (
            next((place for place, guess in enumerate(guesses[part], 1) if guess in answers), None)
            for part in name_parts(question)
        )
        checks[question.id] = NameCheck(question.id, tuple(places))
    return checks


@dataclass(frozen=True)
class Deleted:
    """How many questions a relation had, and how many each rule took out."""

    relation: str
    questions: int
    by_rule: dict[str, int]


def write_uhn(
    data: str | Path, out: str | Path, model: "EBert", *, overwrite: bool = False, advance: Advance = silent
) -> tuple[list[Deleted], dict[str, int]]:
    """Write LAMA-UHN to a folder, asking `model` about names. Lines are copied as they are.

    ``dropped.jsonl`` says which rule took which question out, and for a person's name which part of it, at which rank.
    Return what was deleted of each relation, and how many lines were copied unjudged, by reason.
    """
    read = read_lama(data)
    files.refuse_existing(Path(out), overwrite=overwrite, marker=DROPPED)
    persons = with_persons(read.questions)
    asked = guess_names(model, all_name_parts(persons), advance=advance)
    guesses = {part: tokens for window in asked for part, tokens in window.items()}
    checks = check_names(persons, guesses, lower=model.vocabulary.lower_cases)
    judged = [_judge(question, checks.get(question.id)) for question in read.questions]
    gone = {row["where"]: row for row in judged if row is not None}
    with files.replacing_folder(Path(out), overwrite=overwrite, marker=DROPPED) as folder:
        for name, lines in lama_files(Path(data)):
            target = folder / name.parent.name / name.name if is_relation(name) else folder / name.name
            target.parent.mkdir(exist_ok=True)
            file_name = f"{name.parent.name}/{name.name}"
            with target.open("wb") as file:
                for number, line in enumerate(lines, 1):
                    if not is_relation(name) or f"{file_name}:{number}" not in gone:
                        file.write(line)
        write_lines(folder / DROPPED, gone.values())
    counts = Counter((row["relation"], row["rule"]) for row in gone.values())
    sizes = Counter(question.relation for question in read.questions)
    deleted = [
        Deleted(relation, size, {rule: counts[relation, rule] for rule in (FILTERS[name].rule for name in UHN) if rule})
        for relation, size in sizes.items()
    ]
    return deleted, reasons(read.skipped)


def _judge(question: Question, check: NameCheck | None) -> dict[str, Any] | None:
    """Return what `dropped.jsonl` says of a question, or None if no rule takes it out."""
    rule = dropped(question, check, names=UHN)
    if rule is None:
        return None
    row = {"id": question.id, "relation": question.relation, "where": question.where, "rule": rule}
    if rule == FILTERS["uhn"].rule and check is not None:
        parts = zip(question.subject.split(), check.parts, strict=True)
        row["parts"] = [{"part": part, "rank": rank} for part, rank in parts]  # type: ignore[assignment]
    return row
