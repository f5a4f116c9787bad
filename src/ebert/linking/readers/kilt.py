"""KILT's layout: one JSON object a line, one mention a line, between marks in its text.

Lines that differ in their marks only are one document, but their blanks differ too: most files have a blank on either
side of a mark, whether the text had one there or not. So lines are compared without blanks, and mentions are placed by
counting characters. Where a line has a mark, the blank is the one that another line of the document has there; if there
is none, it is the one outside the mark, as long as the rest of the text has blanks in such places.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ebert.linking.readers import jsonl
from ebert.linking.readers.layouts import Label, Layout, Reading

_START, _END = "[START_ENT]", "[END_ENT]"
_CHARACTER = re.compile(r"(\s*)(\S)")
_CLOSING, _OPENING = ".,;:!?)]}%'’", "([{"  # what stands without a blank before or after it, but for texts cut in words


@dataclass(slots=True)
class _Line:
    """A line: its characters without blanks, the blanks before each and after the last, and where its mention is."""

    characters: str
    blanks: list[str]
    first: int  # of the mention's characters
    stop: int


@dataclass(slots=True)
class _KiltDocument:
    """The lines of a text so far."""

    id: Any
    blanks: list[str]
    unsure: set[int]  # places where all lines so far have a mark
    mentions: list[tuple[int, int, tuple[str, ...]]] = field(default_factory=list)

    def add(self, line: _Line, names: list[str]) -> None:
        """Take the mention of a line, and the blanks that it knows better."""
        self.mentions.append((line.first, line.stop, tuple(names)))
        for place in self.unsure - {line.first, line.stop}:
            self.blanks[place] = line.blanks[place]
        self.unsure &= {line.first, line.stop}

    def text(self, characters: str) -> tuple[str, list[Label]]:
        """Return the text, and the mentions in it."""
        apart = _apart(characters, self.blanks, self.unsure)
        parts: list[str] = []
        starts: list[int] = []
        length = 0
        for place, blank in enumerate(self.blanks):
            kept = _judged(characters, place, blank, apart) if place in self.unsure else blank
            starts.append(length + len(kept))
            parts += [kept, characters[place : place + 1]]
            length += len(kept) + 1
        labels = [
            Label(starts[first], starts[stop - 1] + 1 if stop > first else starts[first], names)
            for first, stop, names in self.mentions
        ]
        return "".join(parts), labels


def read_kilt(given: Iterable[jsonl.Row], reading: Reading) -> None:
    """Read KILT's layout: a line has one mention between marks. Lines with the same text are one document."""
    documents: dict[str, _KiltDocument] = {}
    for number, (where, row) in enumerate(given, 1):
        line = _line(where, jsonl.text_of(where, row, "input", reading), reading)
        outputs = row.get("output") or []
        try:
            names = [jsonl.name_of(output["answer"]) for output in outputs if "answer" in output]
        except jsonl.UNREADABLE as error:
            raise reading.problem(where, f"'output' cannot be read ({error!r})") from None
        new = _KiltDocument(jsonl.id_of(row, number), line.blanks, {line.first, line.stop})
        documents.setdefault(line.characters, new).add(line, names)
    for characters, document in documents.items():
        text, labels = document.text(characters)
        reading.add(document.id, text, labels)


def _line(where: str, marked: str, reading: Reading) -> _Line:
    before, start, rest = marked.partition(_START)
    inside, end, after = rest.partition(_END)
    if not (start and end):
        raise reading.problem(where, f"'input' has no {_START} ... {_END}")
    left, middle, right = (_CHARACTER.findall(part.rstrip()) for part in (before, inside.lstrip(), after))
    found = [*left, *middle, *right]
    blanks = [blank for blank, _ in found] + [_tail(after) if right else ""]
    first, stop = len(left), len(left) + len(middle)
    # Outside the marks, less the blank that was put before or after the mark if there are more.
    blanks[stop] = _less(_head(after), 0)
    blanks[first] = _less(_tail(before), -1)
    return _Line("".join(character for _, character in found), blanks, first, stop)


def _head(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def _tail(text: str) -> str:
    return text[len(text.rstrip()) :]


def _less(blank: str, which: int) -> str:
    if len(blank) < 2 or blank[which] != " ":
        return blank
    return blank[1:] if which == 0 else blank[:-1]


def _apart(characters: str, blanks: list[str], unsure: set[int]) -> bool:
    """Return whether a text has blanks around its punctuation, as far as that is known; if nothing is, it may have."""
    closing = [p for p in range(1, len(characters)) if characters[p] in _CLOSING or characters[p - 1] in _OPENING]
    known = [bool(blanks[place]) for place in closing if place not in unsure]
    return 2 * sum(known) >= len(known)


def _judged(characters: str, place: int, blank: str, apart: bool) -> str:
    """Return the blank of a place where all lines have a mark."""
    if place in (0, len(characters)):
        return blank.strip(" ")
    punctuation = characters[place] in _CLOSING or characters[place - 1] in _OPENING
    return "" if blank == " " and punctuation and not apart else blank


LAYOUTS = (
    Layout("kilt", lambda head: "input" in head.row, jsonl.by_rows(read_kilt), lambda head: "text" not in head.row),
)
