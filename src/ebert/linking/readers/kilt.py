"""KILT's layout: one JSON object and one mention per line, between marks in its text.

Lines that differ only in their marks are one document. But their blanks differ too: most files have a blank on either
side of a mark, whether the text had one there or not. So lines are compared without blanks, and mentions are placed by
counting characters. At a mark, the blank is taken from another line of the document; if no other line helps, the blank
outside the mark counts, as long as the rest of the text has blanks in such places.
"""

import re
from dataclasses import dataclass, field
from itertools import accumulate, zip_longest
from typing import Any

from ebert.linking.readers import jsonl
from ebert.linking.readers.layouts import Label, Reading

_START, _END = "[START_ENT]", "[END_ENT]"
_CHARACTER = re.compile(r"(\s*)(\S)")
_CLOSING, _OPENING = ".,;:!?)]}%'’", "([{"  # marks without a blank before or after them, except in tokenised texts


@dataclass(slots=True)
class _KiltDocument:
    """The lines of a text so far."""

    id: Any
    blanks: list[str]  # before each character that is not a blank, and after the last
    unsure: set[int]  # places where all lines so far have a mark
    mentions: list[tuple[int, int, tuple[str, ...]]] = field(default_factory=list)


def read_kilt(text: str, name: str, reading: Reading) -> None:
    """Read KILT's layout: a line has one mention between marks. Lines with the same text are one document."""
    documents: dict[str, _KiltDocument] = {}
    for number, (where, row) in enumerate(jsonl.rows(text, name, reading.layout), 1):
        marked = jsonl.text_of(where, row, "input", reading)
        if _END not in marked.partition(_START)[2]:
            raise reading.problem(where, f"'input' has no {_START} ... {_END}")
        characters, blanks, first, stop = _split(marked)
        try:
            names = [jsonl.name_of(output["answer"]) for output in row.get("output") or [] if "answer" in output]
        except jsonl.UNREADABLE as error:
            raise reading.problem(where, f"'output' cannot be read ({error!r})") from None
        document = documents.setdefault(characters, _KiltDocument(jsonl.id_of(row, number), blanks, {first, stop}))
        document.mentions.append((first, stop, tuple(names)))
        for place in document.unsure - {first, stop}:  # this line has no mark there
            document.blanks[place] = blanks[place]
        document.unsure &= {first, stop}
    for characters, document in documents.items():
        _settle(characters, document.blanks, document.unsure)
        starts = [before + place for place, before in enumerate(accumulate(map(len, document.blanks)))]
        labels = [
            Label(starts[first], starts[stop - 1] + 1 if stop > first else starts[first], names)
            for first, stop, names in document.mentions
        ]
        pairs = zip_longest(document.blanks, characters, fillvalue="")
        reading.add(document.id, "".join(part for pair in pairs for part in pair), labels)


def _split(marked: str) -> tuple[str, list[str], int, int]:
    """Return the characters of a line, the blanks before each and after the last, and the ends of its mention."""
    before, _, rest = marked.partition(_START)
    inside, _, after = rest.partition(_END)
    left, middle, right = (_CHARACTER.findall(part.rstrip()) for part in (before, inside.lstrip(), after))
    found = [*left, *middle, *right]
    first, stop = len(left), len(left) + len(middle)
    blanks = [blank for blank, _ in found] + [after[len(after.rstrip()) :] if right else ""]
    # Outside the marks, less the blank that was put before or after the mark if there are more.
    head, tail = after[: len(after) - len(after.lstrip())], before[len(before.rstrip()) :]
    blanks[stop] = head.removeprefix(" ") or head
    blanks[first] = tail.removesuffix(" ") or tail
    return "".join(character for _, character in found), blanks, first, stop


def _settle(characters: str, blanks: list[str], unsure: set[int]) -> None:
    """Choose the blanks of places where all lines have a mark.

    There is no blank at the ends, nor beside punctuation, unless the text is known to have blanks there. If nothing is
    known, it may have them.
    """
    inner = range(1, len(characters))
    beside = {place for place in inner if characters[place] in _CLOSING or characters[place - 1] in _OPENING}
    known = [bool(blanks[place]) for place in beside - unsure]
    apart = 2 * sum(known) >= len(known)
    for place in unsure:
        if place in (0, len(characters)):
            blanks[place] = blanks[place].strip(" ")
        elif blanks[place] == " " and place in beside and not apart:
            blanks[place] = ""
