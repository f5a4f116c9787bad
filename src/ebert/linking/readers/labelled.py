"""What a file of entity-linking data holds before its entities are looked up in a store."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ebert.errors import EbertError
from ebert.text import titles


@dataclass(frozen=True, slots=True)
class Label:
    """A gold mention: where it stands, and the names its entity goes by (titles, URLs, Wikidata ids), best first."""

    start: int
    end: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text with its labels, in the order of the text and not overlapping."""

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
        self,
        id: Any,  # noqa: A002
        text: str,
        labels: Iterable[Label],
        *,
        ignore: Iterable[tuple[int, int]] = (),
        sentences: Sequence[int] = (),
        title: str | None = None,
    ) -> None:
        """Add a document. Labels that no linker could find are dropped and counted; of nested ones the outer stays.

        What overlaps another is a name all the same: it is neither taught nor judged as none.
        """
        kept: list[Label] = []
        left_out = set(ignore)
        end = -1
        for label in sorted(self._sound(text, labels), key=lambda label: (label.start, -label.end)):
            if label.start < end:
                self.dropped["label that overlaps another"] += 1
                if (label.start, label.end) != (kept[-1].start, kept[-1].end):  # given twice, it hides nothing
                    left_out.add((label.start, label.end))
                continue
            kept.append(label)
            end = label.end
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


def problem(where: str, why: str, layout: str) -> EbertError:
    """Make the error for a file that is not what it should be."""
    return EbertError(f"{where}: {why}; is it of another layout than {layout!r}? (--layout)")
