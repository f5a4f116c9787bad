"""The layouts of entity-linking data. Each yields documents, and dropped labels are counted.

A layout is a function of a text, its name for messages and a `Reading` that gets the documents. It is registered in
`READERS`; `recognise` detects it.
"""

import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from ebert._io import records
from ebert.errors import EbertError
from ebert.text import titles

READERS = {
    "zelda": "jsonl.read_zelda", "elevant": "jsonl.read_elevant", "jsonl": "jsonl.read_own", "kilt": "kilt.read_kilt",
    "aida": "aida.read_yago", "knowbert": "aida.read_knowbert", "nif": "nif.read_nif",
}  # fmt: skip
"""Module and function that read a layout."""


@dataclass(frozen=True, slots=True)
class Label:
    """A gold mention: its place, and the names of its entity (titles, URLs, Wikidata ids), best first."""

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
    title: str | None = None  # of the article, if the text is one


@dataclass
class Reading:
    """The contents of a file, and how much was left out, by reason."""

    layout: str
    documents: list[Labelled] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)

    def add(
        self, id: Any, text: str, labels: Iterable[Label], *, ignore: Iterable[tuple[int, int]] = (),  # noqa: A002
        sentences: Iterable[int] = (), title: str | None = None,
    ) -> None:  # fmt: skip
        """Add a document. Labels that no linker could find are dropped and counted; of nested ones the outer is kept.

        A label that overlaps another is still a name, so it is not taught or judged as nothing.
        """
        kept: list[Label] = []
        left_out = set(ignore)
        for label in sorted(self._sound(text, labels), key=lambda label: (label.start, -label.end)):
            if not kept or label.start >= kept[-1].end:
                kept.append(label)
                continue
            self.dropped["label that overlaps another"] += 1
            if (label.start, label.end) != (kept[-1].start, kept[-1].end):  # if it is given twice, it hides nothing
                left_out.add((label.start, label.end))
        name = titles.as_text(str(id))
        self.documents.append(Labelled(name, text, tuple(kept), tuple(sorted(left_out)), tuple(sentences), title))

    def _sound(self, text: str, labels: Iterable[Label]) -> Iterable[Label]:
        for label in labels:
            surface = text[label.start : label.end] if label.start >= 0 else ""  # a label that runs past the end is cut
            names = tuple(name for name in label.names if name.strip())
            if not surface.strip():
                self.dropped["label outside the text or without words"] += 1
            elif not names:
                self.dropped["label without an entity"] += 1
            else:
                # Blanks at the edges are mistakes in the file; nobody would mark them.
                start = label.start + len(surface) - len(surface.lstrip())
                yield Label(start, start + len(surface.strip()), names)

    def problem(self, where: str, why: str) -> EbertError:
        """Return the error for a file that is not as expected."""
        return EbertError(f"{where}: {why}; does it have another layout than {self.layout!r}? (--layout)")


def read(path: str | Path, layout: str | None = None) -> Reading:
    """Read a file of any of the layouts, compressed or not; the layout is detected if it is not named."""
    return parse(records.read_text(Path(path)), Path(path).name, layout)


def parse(text: str, name: str, layout: str | None = None) -> Reading:
    """Read data of any of the layouts; `name` is for messages."""
    layout = layout or recognise(text, name)
    if layout not in READERS:
        raise EbertError(f"{layout!r} is not a layout of entity-linking data; choose one of {', '.join(READERS)}")
    module, _, function = READERS[layout].partition(".")
    reading = Reading(layout)
    getattr(import_module(f"{__package__}.{module}"), function)(text, name, reading)
    if not reading.documents:
        raise EbertError(f"{name} has no documents (read as layout {layout!r}; --layout names another)")
    return reading


def recognise(text: str, name: str = "the data") -> str:
    """Detect the layout of data by its beginning."""
    try:
        line, row = _head(text)
    except EbertError as error:
        raise EbertError(f"{name} begins like JSON, a document a line, but line 1 is not ({error})") from None
    found = {
        "zelda": "wikipedia_titles" in row,
        "elevant": "labels" in row,
        "kilt": "input" in row,
        "jsonl": "text" in row,
        "aida": line.startswith("-DOCSTART-"),
        "knowbert": line.startswith("DOCSTART_"),
        "nif": not row and "nif-core#" in text,
    }
    if not any(found.values()):
        why = "has JSON, but none with 'text' or 'input'" if row else "has no layout that is known here"
        raise EbertError(f"{name} {why}; name one of {', '.join(READERS)} (--layout)")
    return next(layout for layout, it_is in found.items() if it_is)


def is_labelled(text: str) -> bool:
    """Return whether this is labelled data that cannot be mistaken for a text to link, or for JSON with one."""
    try:
        layout = recognise(text)
    except EbertError:
        return False
    if layout == "nif":  # and not a text about it
        lines = (line.strip() for line in io.StringIO(text))
        first = next((line for line in lines if line and not line.startswith("#")), "")
        return first.lower().startswith(("@prefix", "@base", "prefix ", "base ", "<http"))
    return layout in ("aida", "knowbert") or (layout == "kilt" and "text" not in _head(text)[1])


def _head(text: str) -> tuple[str, dict[str, Any]]:
    """Return the first line that is not blank, and its JSON object, or an empty one."""
    first = next((line.strip() for line in io.StringIO(text) if line.strip()), "")
    return first, records.parse_object(first) if first.startswith("{") else {}
