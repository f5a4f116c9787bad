"""Articles with their links, as linking is trained on: from a corpus, or with all their punctuation from its dumps.

A corpus keeps words only. A linker that never saw a comma reads ordinary text worse, so the dumps that the corpus was
built from are the better source where they are at hand; the corpus then tells which articles to take.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.linking.recounting import PageChoice
from ebert.wikipedia import dump, pages
from ebert.wikipedia.corpus import Corpus
from ebert.wikipedia.pages import PAGE
from ebert.wikipedia.site import Site
from ebert.wikipedia.unpacking import DamagedError, unpacked
from ebert.wikipedia.wikitext import Anchor, to_plain

CROWDED = 0.35  # share of the words of a page that are links, in a page of tables


class Article(NamedTuple):
    """The text of an article, a paragraph a line, and its links."""

    title: str
    text: str
    anchors: tuple[Anchor, ...]


def from_corpus(corpus: Corpus, numbers: Iterable[int]) -> Iterator[Article]:
    """Give articles of a corpus by their page numbers: words, with blanks between them."""
    words, entities = corpus.words, corpus.entities
    for page in numbers:
        first, last = corpus.page_paragraphs[page], corpus.page_paragraphs[page + 1]
        begins = corpus.paragraphs[first : last + 1].tolist()
        place: dict[int, tuple[int, int]] = {}  # of a token, in the text
        lines: list[str] = []
        position = 0
        for begin, end in pairwise(begins):
            line = [words[token] for token in corpus.tokens[begin:end].tolist()]
            for number, word in enumerate(line, begin):
                place[number] = (position, position + len(word))
                position += len(word) + 1
            lines.append(" ".join(line))
        links = slice(int(corpus.page_anchors[page]), int(corpus.page_anchors[page + 1]))
        anchors = []
        for start, length, entity in zip(
            corpus.anchor_start[links].tolist(), corpus.anchor_length[links].tolist(),
            corpus.anchor_entity[links].tolist(), strict=True,
        ):  # fmt: skip
            if length and start + length - 1 in place:
                anchors.append(Anchor(place[start][0], place[start + length - 1][1], entities[entity]))
        yield Article(entities[corpus.page_entity[page]], "\n".join(lines), tuple(anchors))


def from_dumps(paths: Iterable[str | Path], wanted: Collection[str], *, advance: Advance = silent) -> Iterator[Article]:
    """Give the articles of dumps that have one of the titles. The progress is in bytes of the files."""
    left = set(wanted)
    for path in paths:
        file = dump.look(Path(path))
        site = Site.from_siteinfo(file.header)
        for raw in _pages(file, advance):
            page = pages.read(raw)
            title = site.title(page.title)
            if title not in left or page.text is None or page.redirect is not None:
                continue
            plain = to_plain(page.source(), site)
            if plain.anchors:  # the same title may be in another dump, without links
                left.discard(title)
                yield Article(title, plain.text, tuple(plain.anchors))


def _pages(file: dump.Dump, advance: Advance) -> Iterator[bytes]:
    buffer, done = b"", 0
    try:
        for position, block in unpacked(file.path, file.packing):
            buffer += block
            dump.refuse_long(file.path, len(buffer) - dump.PIECE)
            advance(position - done)
            done = position
            if len(buffer) < dump.PIECE or PAGE not in buffer:
                continue
            found = pages.cut(buffer)
            yield from found.pages
            buffer = found.tail
    except DamagedError as error:
        raise EbertError(f"{error}; get the file again") from None
    yield from pages.cut(buffer).pages


def training_pages(corpus: Corpus, choice: PageChoice) -> NDArray[np.int64]:
    """Give the pages whose links stand in running text: at most every third word is linked, as in no table."""
    links = np.diff(np.asarray(corpus.page_anchors))
    words = np.diff(np.asarray(corpus.paragraphs)[np.asarray(corpus.page_paragraphs)])
    page = np.repeat(np.arange(len(links)), links)
    linked = np.bincount(page, weights=np.asarray(corpus.anchor_length), minlength=len(links))
    return np.flatnonzero(choice.linked & (linked <= CROWDED * words))
