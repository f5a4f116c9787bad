"""The layouts of entity-linking data: documents come out of all of them, and what was dropped is counted.

A layout is a `Layout` in the tuple `LAYOUTS` of a module of this package; the module is registered in `MODULES`.
"""

import io
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ebert._io import records
from ebert.errors import EbertError
from ebert.text import titles

MODULES = ("jsonl", "kilt", "aida", "nif")


@dataclass(frozen=True, slots=True)
class Label:
    """A gold mention: where it stands, and the names its entity goes by (titles, URLs, Wikidata ids), best first."""

    start: int
    end: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text with its labels, in the order of the text and not overlapping, before they are looked up in a store."""

    id: str
    text: str
    labels: tuple[Label, ...] = ()
    ignore: tuple[tuple[int, int], ...] = ()
    sentences: tuple[int, ...] = ()
    title: str | None = None  # of the article that it is, if it is one


@dataclass
class Reading:
    """All that a file holds, and how much of it was left out, by reason."""

    layout: str
    documents: list[Labelled] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)

    def add(
        self, id: Any, text: str, labels: Iterable[Label], *, ignore: Iterable[tuple[int, int]] = (),  # noqa: A002
        sentences: Iterable[int] = (), title: str | None = None,
    ) -> None:  # fmt: skip
        """Add a document. Labels that no linker could find are dropped and counted; of nested ones the outer stays.

        What overlaps another is a name all the same: it is neither taught nor judged as none.
        """
        kept: list[Label] = []
        left_out = set(ignore)
        for label in sorted(self._sound(text, labels), key=lambda label: (label.start, -label.end)):
            if not kept or label.start >= kept[-1].end:
                kept.append(label)
                continue
            self.dropped["label that overlaps another"] += 1
            if (label.start, label.end) != (kept[-1].start, kept[-1].end):  # given twice, it hides nothing
                left_out.add((label.start, label.end))
        name = titles.as_text(str(id))
        self.documents.append(Labelled(name, text, tuple(kept), tuple(sorted(left_out)), tuple(sentences), title))

    def _sound(self, text: str, labels: Iterable[Label]) -> Iterable[Label]:
        for label in labels:
            surface = text[label.start : label.end] if label.start >= 0 else ""  # one that runs over the end is cut
            names = tuple(name for name in label.names if name.strip())
            if not surface.strip():
                self.dropped["label outside the text or without words"] += 1
            elif not names:
                self.dropped["label without an entity"] += 1
            else:
                # Blanks at the edges are slips of whoever made the file, and nobody would mark them.
                start = label.start + len(surface) - len(surface.lstrip())
                yield Label(start, start + len(surface.strip()), names)

    def problem(self, where: str, why: str) -> EbertError:
        """Return the error for a file that is not what it should be."""
        return EbertError(f"{where}: {why}; is it of another layout than {self.layout!r}? (--layout)")


class Head(NamedTuple):
    """What a layout is recognised by."""

    line: str  # the first one that is not blank
    row: dict[str, Any]  # its JSON object, empty if it is none
    text: str  # the whole


class Layout(NamedTuple):
    """A layout of data."""

    name: str
    recognises: Callable[[Head], bool]
    read: Callable[[str, str, Reading], None]  # adds the documents of a text; its name is for messages
    labelled: Callable[[Head], bool]  # whether what is recognised cannot be a text to link, or JSON that has one


@cache
def layouts() -> dict[str, Layout]:
    """Return all layouts by their names."""
    modules = (import_module(f"{__package__}.{name}") for name in MODULES)
    return {layout.name: layout for module in modules for layout in module.LAYOUTS}


def read(path: str | Path, layout: str | None = None) -> Reading:
    """Read a file of any of the layouts, compressed or not; the layout is recognised if it is not named."""
    return parse(records.read_text(Path(path)), Path(path).name, layout)


def parse(text: str, name: str, layout: str | None = None) -> Reading:
    """Read data of any of the layouts; `name` is for messages."""
    layout = layout or recognise(text, name)
    if layout not in layouts():
        raise EbertError(f"{layout!r} is no layout of entity-linking data; choose one of {', '.join(layouts())}")
    reading = Reading(layout)
    layouts()[layout].read(text, name, reading)
    if not reading.documents:
        raise EbertError(f"{name} has no documents (read as layout {layout!r}; --layout names another)")
    return reading


def recognise(text: str, name: str = "the data") -> str:
    """Find out the layout of data, by what it begins with."""
    try:
        head = _head(text)
    except EbertError as error:
        raise EbertError(f"{name} begins like JSON, a document a line, but line 1 is not ({error})") from None
    found = next((layout.name for layout in layouts().values() if layout.recognises(head)), None)
    if found is None:
        why = "has JSON, but none with 'text' or 'input'" if head.row else "has no layout that is known here"
        raise EbertError(f"{name} {why}; name one of {', '.join(layouts())} (--layout)")
    return found


def is_labelled(text: str) -> bool:
    """Return whether this is data of a layout that cannot be taken for a text to link, or for JSON that has one."""
    try:
        head = _head(text)
    except EbertError:
        return False
    return any(layout.recognises(head) and layout.labelled(head) for layout in layouts().values())


def _head(text: str) -> Head:
    first = next((line.strip() for line in io.StringIO(text) if line.strip()), "")
    return Head(first, records.parse_object(first) if first.startswith("{") else {}, text)
