"""A part: a worker's result for a piece of a dump, in one file; words and links are numbers in its own dictionaries.

Parts are small corpora. They are written while a build runs, so that a stopped build can continue with them; merging
puts them together.
"""

import itertools
import json
import zipfile
from array import array
from collections import defaultdict
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io import files
from ebert.errors import EbertError
from ebert.wikipedia import passages
from ebert.wikipedia.dump import Page
from ebert.wikipedia.names import Scan, scan
from ebert.wikipedia.options import CorpusOptions
from ebert.wikipedia.site import Site
from ebert.wikipedia.tokens import lower, tokeniser
from ebert.wikipedia.wikitext import Anchor, Plain, to_plain

EXAMPLES = 5  # of what was skipped for one reason

Array = NDArray[Any]


class Skipped:
    """What was left out: how often, by reason, and a few examples."""

    def __init__(self) -> None:
        self._reasons: dict[str, tuple[int, list[str]]] = {}

    def note(self, reason: str, *examples: str, count: int = 1) -> None:
        """Count something."""
        before, kept = self._reasons.get(reason, (0, []))
        self._reasons[reason] = before + count, list(dict.fromkeys([*kept, *filter(None, examples)]))[:EXAMPLES]

    def add(self, value: dict[str, Any]) -> None:
        """Add the counts of another one."""
        for reason, (count, examples) in value.items():
            self.note(reason, *examples, count=count)

    def summary(self) -> str:
        """Return how much was left out for which reason."""
        return ", ".join(f"{count:,} {reason}" for reason, (count, _) in sorted(self._reasons.items())) or "nothing"

    def value(self) -> dict[str, Any]:
        """Return counts and examples by reason."""
        return {reason: list(self._reasons[reason]) for reason in sorted(self._reasons)}


@dataclass
class CorpusPart:
    """Pages with their words and links, by numbers in `words` and `titles`."""

    words: Array  # bytes: UTF-8 with a line end after each word
    titles: Array  # likewise
    tokens: Array
    paragraph_length: Array  # tokens
    page_title: Array
    page_paragraphs: Array  # how many
    page_opening: Array  # tokens
    page_anchors: Array  # how many
    anchor_start: Array  # tokens from the beginning of the part
    anchor_length: Array
    anchor_title: Array
    redirects: Array  # (redirects, 2): from, to
    passages: Array  # bytes: JSON lines
    info: dict[str, Any]  # pages read, skipped by reason, whether any page begins here, what cannot be read
    head: bytes  # the end of a page that began in the part before
    tail: bytes  # the beginning of a page that ends in the part after

    def save(self, path: Path) -> None:
        """Write the part; the file appears when it is complete."""
        info = json.dumps(self.info, ensure_ascii=False).encode("utf-8", "replace")
        data = {"info": info, "head": self.head, "tail": self.tail}
        arrays: dict[str, Any] = {name: np.frombuffer(value, np.uint8) for name, value in data.items()}
        with files.replacing(path, sweep=False) as file:  # the folder is cleaned once for all parts
            np.savez(file, **{**vars(self), **arrays})

    @classmethod
    def load(cls, path: Path) -> "CorpusPart":
        """Read a part."""
        return cls(**_load(path, [field.name for field in fields(cls)]))


def load_ends(path: Path) -> tuple[dict[str, Any], bytes, bytes]:
    """Read only the description of a part and the fragments at its two ends."""
    values = _load(path, ["info", "head", "tail"])
    return values["info"], values["head"], values["tail"]


def _load(path: Path, names: list[str]) -> dict[str, Any]:
    try:
        with path.open("rb") as file, np.load(file) as arrays:
            values = {name: arrays[name] for name in names}
        values["info"] = json.loads(values["info"].tobytes())
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise EbertError(f"{path} is damaged ({error}); remove it and run the same command again") from None
    return values | {name: values[name].tobytes() for name in ("head", "tail")}


class PartMaker:
    """Takes pages one after another and makes a part of them: all their words are found at once, at the end."""

    def __init__(self, site: Site, options: CorpusOptions) -> None:
        self._site, self._options, self._namespaces = site, options, options.numbers
        self._titles: defaultdict[str, int] = defaultdict()  # numbers its keys in the order in which they come
        self._titles.default_factory = self._titles.__len__
        self._texts: list[str] = []
        self._length = 0  # characters of all texts, with a line end after each
        self._pages = array("q")  # four numbers a page: title, first character, end of the opening, anchors
        self._anchors = array("q")  # three numbers an anchor: first character, end, title
        self._redirects = array("q")  # two numbers a redirect
        self._passages: list[str] = []  # JSON lines
        self.skipped, self._read = Skipped(), 0

    def add(self, page: Page) -> None:
        """Add a page."""
        self._read += 1
        title = self._site.title(page.title)
        if not title:
            return self.skipped.note("page without a title", page.title)
        namespace = self._site.namespace(title) if page.namespace is None else page.namespace
        if namespace not in self._namespaces:
            return self.skipped.note("page in another namespace", title)
        if page.text is None:
            return self.skipped.note("page without text", title)
        if page.model != "wikitext":
            return self.skipped.note("page that is not wikitext", title)
        source = page.source()
        target = page.redirect if page.redirect is not None else self._site.redirect(source)
        if target is not None:
            return self._redirect(title, self._site.title(target))
        if not source.strip():
            return self.skipped.note("page with empty text", title)
        return self._add_text(title, to_plain(source, self._site))

    def part(self, *, head: bytes, tail: bytes, **info: Any) -> CorpusPart:
        """Return the part, with the fragments of pages before and after those that were added."""
        found = scan("".join(self._texts), tokeniser(self._options.tokeniser))
        # In tokens; pages without any are dropped.
        paragraphs = np.unique(np.searchsorted(found.start, np.append(0, found.lines)))
        title, first, opening, anchors = _columns(self._pages, 4)
        tokens_before = np.searchsorted(found.start, np.append(first, self._length))
        names = list(self._titles)
        for page in np.flatnonzero(np.diff(tokens_before) == 0).tolist():
            self.skipped.note("page without words", names[title[page]])
        return CorpusPart(
            words=found.words.data,
            titles=np.frombuffer("".join(f"{name}\n" for name in names).encode("utf-8", "replace"), np.uint8),
            tokens=found.tokens.astype(np.uint16 if len(found.words) <= 1 << 16 else np.uint32),
            paragraph_length=np.diff(paragraphs).astype(np.uint32),
            page_title=title.astype(np.uint32),
            page_paragraphs=np.diff(np.searchsorted(paragraphs, tokens_before)).astype(np.uint32),
            page_opening=(np.searchsorted(found.start, opening) - tokens_before[:-1]).astype(np.uint32),
            page_anchors=anchors.astype(np.uint32),
            **_place(found, *_columns(self._anchors, 3)),
            redirects=np.array(self._redirects, np.uint32).reshape(-1, 2),
            passages=np.frombuffer("".join(self._passages).encode("utf-8", "replace"), np.uint8),
            info={"read": self._read, "skipped": self.skipped.value(), **info},
            head=head,
            tail=tail,
        )

    def _redirect(self, title: str, target: str) -> None:
        if not target:
            return self.skipped.note("redirect without a target", title)
        if self._site.namespace(target) not in self._namespaces:
            return self.skipped.note("redirect to another namespace", title)
        self._redirects.extend((self._titles[title], self._titles[target]))
        return None

    def _add_text(self, title: str, plain: Plain) -> None:
        if self._options.passages:
            self._passages.append(passages.to_lines(title, plain))
        if any(one.end == other.start for one, other in itertools.pairwise(plain.anchors)):
            plain = _apart(plain)
        text, anchors, opening = _lower(plain) if self._options.lowercase else plain
        before = self._length
        self._pages.extend((self._titles[title], before, before + opening, len(anchors)))
        titles, numbers = self._titles, self._anchors
        for start, end, target in anchors:
            numbers.extend((before + start, before + end, titles[target]))
        self._texts += (text, "\n")
        self._length += len(text) + 1


def _columns(numbers: "array[int]", columns: int) -> Array:
    return np.array(numbers, np.int64).reshape(-1, columns).T


def _place(found: Scan, start: Array, end: Array, title: Array) -> dict[str, Array]:
    """Return the tokens of links. A link covers every word that it touches, but ends with its paragraph."""
    end = np.minimum(end, np.append(found.lines, 0)[np.searchsorted(found.lines, start)])
    first = np.searchsorted(found.end, start, side="right")
    length = np.where(end > start, np.searchsorted(found.start, end) - first, 0)
    order = np.argsort(first, kind="stable")
    return {
        "anchor_start": first[order].astype(np.uint32),
        "anchor_length": np.maximum(length, 0)[order].astype(np.uint32),
        "anchor_title": title[order].astype(np.uint32),
    }


def _apart(plain: Plain) -> Plain:
    """Put a blank between links that touch, as in lists that lost their line ends: they are two words."""
    pieces, anchors, opening = [], [], plain.opening
    copied = end = 0
    for anchor in plain.anchors:
        if anchor.start == end > 0:
            pieces.append(plain.text[copied:end])
            copied = end
            opening += end < plain.opening
        end = anchor.end
        anchors.append(Anchor(anchor.start + len(pieces), anchor.end + len(pieces), anchor.title))
    return Plain(" ".join([*pieces, plain.text[copied:]]), anchors, opening)


def _lower(plain: Plain) -> Plain:
    """Lower the case of a text, which may change its length."""
    if plain.text.isascii():
        return plain._replace(text=lower(plain.text))
    marks = sorted({0, plain.opening, *(mark for anchor in plain.anchors for mark in anchor[:2]), len(plain.text)})
    texts = [lower(plain.text[start:end]) for start, end in itertools.pairwise(marks)]
    places = dict(zip(marks, np.cumsum([0, *map(len, texts)]).tolist(), strict=True))
    anchors = [Anchor(places[start], places[end], title) for start, end, title in plain.anchors]
    return Plain("".join(texts), anchors, places[plain.opening])
