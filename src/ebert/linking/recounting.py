"""The mention table of a corpus counted anew: without some of its articles, and with honest link probabilities.

Articles that are test documents must not have taught the table anything, so their links and words are left out. And a
corpus may hold pages without any links (openings of articles, say), where a name that stands unlinked tells nothing: the
share of a surface's occurrences that are links is counted in pages that have links.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert.progress import Advance, silent
from ebert.text import titles
from ebert.vectors import Vectors
from ebert.vectors.catalogue import Surface
from ebert.wikipedia.corpus import WORDS, Corpus
from ebert.wikipedia.mentions import LONGEST
from ebert.wikipedia.names import Names
from ebert.wikipedia.surfaces import Trie

MIN_LINKS = 5  # of a page that counts as linked
WORDS_A_LINK = 60  # in such a page, at most

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class PageChoice:
    """Which pages of a corpus count, and for what."""

    kept: Array  # (pages) whether links of the page count
    linked: Array  # (pages) whether its words do
    left_out: tuple[str, ...]  # titles of pages that are there and do not count


def choose_pages(corpus: Corpus, leave_out: Collection[str] = ()) -> PageChoice:
    """Leave articles out, by their titles, and find those of the others that have links."""
    out = page_numbers(corpus, leave_out)
    kept = np.ones(len(corpus.page_entity), bool)
    kept[list(out)] = False
    words = np.diff(np.asarray(corpus.paragraphs)[np.asarray(corpus.page_paragraphs)])  # (pages)
    links = np.diff(np.asarray(corpus.page_anchors))
    linked = kept & (links >= MIN_LINKS) & (links * WORDS_A_LINK >= words)
    return PageChoice(kept, linked, tuple(out.values()))


def page_numbers(corpus: Corpus, names: Collection[str]) -> dict[int, str]:
    """Give the pages of a corpus that have one of these titles, or a title that redirects to one or from one."""
    wanted = {form for name in names for form in titles.spellings(name)}
    for source, target in corpus.redirects:
        if source in wanted:
            wanted.add(target)
    if not wanted:
        return {}
    entities = corpus.entities
    return {
        page: entities[entity] for page, entity in enumerate(corpus.page_entity.tolist()) if entities[entity] in wanted
    }


def recount(
    corpus: Corpus, vectors: Vectors, choice: PageChoice, *, threads: int = 1, advance: Advance = silent
) -> Iterator[Surface]:
    """Count the mention table for a store: surfaces, how often their words occur, what they mean how often."""
    tokens, names = np.asarray(corpus.tokens), Names.of((corpus.path / WORDS).read_bytes())
    page = np.repeat(np.arange(len(choice.kept)), np.diff(np.asarray(corpus.page_anchors)))  # (anchors)
    anchors = np.flatnonzero(choice.kept[page])
    trie = Trie(len(names))
    starts, lengths = np.asarray(corpus.anchor_start)[anchors], np.asarray(corpus.anchor_length)[anchors]
    surface = trie.insert(tokens, starts, lengths, LONGEST)  # (anchors) -1 where there is none
    elsewhere = np.bincount(surface[(surface >= 0) & ~choice.linked[page[anchors]]], minlength=len(trie))
    occurrences = trie.count(*_text(corpus, choice.linked), threads, advance) + elsewhere
    rows = _rows(corpus, vectors)
    meant = rows[np.asarray(corpus.anchor_entity)[anchors]]
    known = (surface >= 0) & (meant >= 0)
    keys, counts = np.unique(surface[known].astype(np.int64) << 32 | meant[known], return_counts=True)
    offsets = np.searchsorted(keys >> 32, np.arange(len(trie) + 1))
    words = trie.names(tokens, names)
    meant, counts = keys & 0xFFFFFFFF, counts.astype(np.int64)
    for number in range(len(trie)):
        first, last = offsets[number], offsets[number + 1]
        if first < last:
            pairs = sorted(zip(meant[first:last].tolist(), counts[first:last].tolist(), strict=True), key=_by_count)
            yield words[number], max(int(occurrences[number]), sum(count for _, count in pairs)), pairs


def _by_count(pair: tuple[int, int]) -> tuple[int, int]:
    return -pair[1], pair[0]


def _text(corpus: Corpus, pages: Array) -> tuple[Array, Array]:
    """Give the words of some pages in one array, and where their paragraphs begin."""
    paragraphs = np.asarray(corpus.paragraphs)
    paragraph = np.repeat(pages, np.diff(np.asarray(corpus.page_paragraphs)))  # (paragraphs) whether it is in
    lengths = np.diff(paragraphs)
    tokens = np.asarray(corpus.tokens)[np.repeat(paragraph, lengths)]
    return tokens, np.concatenate([[0], np.cumsum(lengths[paragraph])])


def _rows(corpus: Corpus, vectors: Vectors) -> Array:
    """Give the row of each entity of a corpus in a store, -1 where it has none."""
    numbers = {title: number for number, title in enumerate(corpus.entities)}
    rows: NDArray[np.int64] = np.full(len(numbers), -1, np.int64)
    row = 0
    for names, _ in vectors.chunks("entities"):
        for name in names:
            number = numbers.get(name)
            if number is not None:
                rows[number] = row
            row += 1
    return rows
