"""The mention table of a corpus counted again: without some of its articles, and with honest link probabilities.

The table must learn nothing from articles that are test documents, so their links and words are left out. A corpus may
also hold pages without any links (openings of articles, say), where an unlinked name tells nothing. So the link
probability of a surface is counted only in pages that have links.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io import records
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.linking.candidates.dictionary import Dictionary
from ebert.linking.candidates.dictionary_counts import Counted, MergeOptions, merge
from ebert.linking.readers.layouts import parse, recognise
from ebert.text import titles
from ebert.vectors.catalogue import Surface
from ebert.vectors.lookup import surface_of
from ebert.vectors.store import Vectors
from ebert.wikipedia.corpus import WORDS, Corpus
from ebert.wikipedia.mentions import LONGEST, Trie
from ebert.wikipedia.names import NameList
from ebert.wikipedia.tokens import WordsOf, words_of

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
    """Leave out articles by their titles, and find which of the others have links."""
    out = page_numbers(corpus, leave_out)
    kept = np.ones(len(corpus.page_entity), bool)
    kept[list(out)] = False
    words = np.diff(np.asarray(corpus.paragraphs)[np.asarray(corpus.page_paragraphs)])  # (pages)
    links = np.diff(np.asarray(corpus.page_anchors))
    linked = kept & (links >= MIN_LINKS) & (links * WORDS_A_LINK >= words)
    return PageChoice(kept, linked, tuple(dict.fromkeys(out.values())))  # a title may have several pages


def page_numbers(corpus: Corpus, names: Collection[str]) -> dict[int, str]:
    """Return the pages of a corpus with one of these titles, or with a title that redirects to or from one."""
    wanted = {form for name in names for form in titles.spellings(name)}
    for source, target in corpus.redirects:
        if source in wanted:
            wanted.add(target)
    entities = corpus.entities
    pages = enumerate(corpus.page_entity.tolist() if wanted else [])
    return {page: entities[entity] for page, entity in pages if entities[entity] in wanted}


def recount(
    corpus: Corpus, vectors: Vectors, choice: PageChoice, *, threads: int = 1, advance: Advance = silent
) -> Iterator[Surface]:
    """Count the mention table for a store: surfaces, how often their words occur, and how often they mean what.

    The title of an entity and its redirects name it too, as if each had been linked once.
    """
    count = _Count(corpus, vectors, choice, NameList.of((corpus.path / WORDS).read_bytes()))
    occurrences = count.trie.count(*_text(corpus, choice.linked), threads, advance)
    elsewhere = count.surface[: count.anchors][~count.in_linked]
    occurrences += np.bincount(elsewhere[elsewhere >= 0], minlength=len(count.trie))
    occurrences += np.bincount(count.by_title >> 32, minlength=len(count.trie))
    return count.surfaces(*count.meanings(), occurrences)


def recount_with(
    corpus: Corpus, vectors: Vectors, choice: PageChoice, dictionary: Dictionary, dropped: Counter[str], *,
    options: MergeOptions | None = None, threads: int = 1, advance: Advance = silent,
) -> Iterator[Surface]:  # fmt: skip
    """Count the mention table as `recount` does, and merge it with a dictionary; `dropped` counts what is left out.

    All mentions of the dictionary are looked for in the text of the corpus, linked or not.
    """
    count = _Count(corpus, vectors, choice, dictionary.words, dictionary)
    given = count.surface[-len(dictionary.lengths) :].astype(np.int64) << 32 | dictionary.rows
    links = count.surface[: count.anchors][count.in_linked]
    pairs, counts = count.meanings()
    order = np.argsort(pairs)
    counted = Counted(
        *count.trie.words(count.tokens), pairs[order], counts[order],
        count.trie.count(*_text(corpus, choice.linked), threads, advance),
        np.bincount(links[links >= 0], minlength=len(count.trie)),
    )  # fmt: skip
    return count.surfaces(
        *merge(counted, given, dictionary.scores, dictionary.words, dropped, options or MergeOptions())
    )


class _Count:
    """The links of a corpus, the titles of a store and the mentions of a dictionary as surfaces of one trie."""

    def __init__(
        self, corpus: Corpus, vectors: Vectors, choice: PageChoice, words: NameList, more: Dictionary | None = None
    ) -> None:
        page = np.repeat(np.arange(len(choice.kept)), np.diff(np.asarray(corpus.page_anchors)))  # (anchors)
        anchors = np.flatnonzero(choice.kept[page])
        lengths = np.asarray(corpus.anchor_length)[anchors]
        starts = np.asarray(corpus.anchor_start)[anchors] - (np.cumsum(lengths) - lengths)
        linked = np.asarray(corpus.tokens)[np.repeat(starts, lengths) + np.arange(int(lengths.sum()))]
        of_titles, title_lengths, title_rows = _titles(corpus, vectors)
        # Of all surfaces, concatenated.
        self.tokens = np.concatenate([linked, of_titles] + ([more.tokens] if more else []))
        sizes = np.concatenate([lengths, title_lengths] + ([more.lengths] if more else []))
        self.anchors, self.in_linked = len(anchors), choice.linked[page[anchors]]
        self.trie, self._words = Trie(len(words)), words
        # (anchors, titles, mentions) -1 where there is none
        self.surface = self.trie.insert(self.tokens, np.cumsum(sizes) - sizes, sizes, LONGEST)
        entity_rows = _rows(corpus, vectors)[np.asarray(corpus.anchor_entity)[anchors]]
        rows = np.concatenate([entity_rows, title_rows])
        surface = self.surface[: len(rows)]
        known = (surface >= 0) & (rows >= 0)
        keys = surface.astype(np.int64) << 32 | rows
        by_title = np.arange(len(surface)) >= len(anchors)
        self._pairs, self._counts = np.unique(keys[known & ~by_title], return_counts=True)
        self.by_title = np.setdiff1d(keys[known & by_title], self._pairs)  # titles that nobody linked

    def meanings(self) -> tuple[Array, Array]:
        """Return surfaces and the rows that they mean, packed into one number, and how often they mean them."""
        ones = np.ones(len(self.by_title), np.int64)
        return np.concatenate([self._pairs, self.by_title]), np.concatenate([self._counts, ones])

    def surfaces(self, pairs: Array, counts: Array, occurrences: Array) -> Iterator[Surface]:
        """Yield the surfaces that mean something, in the order of their bytes, which the catalogue takes fastest."""
        order = np.lexsort((pairs & 0xFFFFFFFF, -counts, pairs >> 32))
        pairs, counts = pairs[order], counts[order]
        offsets = np.searchsorted(pairs >> 32, np.arange(len(self.trie) + 1))
        occurrences = np.maximum(occurrences, np.add.reduceat(np.append(counts, 0), offsets[:-1]))
        words = self.trie.names(self.tokens, self._words)
        rows, often = (pairs & 0xFFFFFFFF).tolist(), counts.tolist()
        for number in words.by_count(np.zeros(len(words), np.int64)).tolist():
            first, last = offsets[number], offsets[number + 1]
            if first < last:
                yield (
                    words[number],
                    int(occurrences[number]),
                    list(zip(rows[first:last], often[first:last], strict=True)),
                )


def title_surfaces(title: str, words_of: WordsOf = words_of) -> set[str]:
    """Return the words that a title has in running text.

    >>> sorted(title_surfaces("Story paper (magazine)")), sorted(title_surfaces("Denton, Texas"))
    (['Story paper', 'story paper'], ['Denton', 'Denton Texas'])
    """
    whole = surface_of(title, words_of)
    surfaces = {whole, surface_of(title.partition(", ")[0], words_of)}
    if " " in whole and whole[1:].islower():  # not a name but a noun
        surfaces.add(whole[0].lower() + whole[1:])
    return surfaces - {""}


def _titles(corpus: Corpus, vectors: Vectors) -> tuple[Array, Array, Array]:
    """Return the surfaces of all titles as words of a corpus: the words, how many of them each has, and its row.

    A title with a word that the corpus does not have cannot occur in the counted text, and is skipped.
    """
    numbers = {word: number for number, word in enumerate(corpus.words)}
    words, lengths, rows = array("i"), array("i"), array("q")
    for title, row in vectors.titles():
        for surface in title_surfaces(title, vectors.words_of):
            found = [numbers.get(word, -1) for word in surface.split(" ")]
            if len(found) <= LONGEST and min(found) >= 0:
                words.extend(found)
                lengths.append(len(found))
                rows.append(row)
    return np.array(words, np.int32), np.array(lengths, np.int32), np.array(rows, np.int64)


def _text(corpus: Corpus, pages: Array) -> tuple[Array, Array]:
    """Return the words of some pages in one array, and where their paragraphs begin."""
    paragraph = np.repeat(pages, np.diff(np.asarray(corpus.page_paragraphs)))  # (paragraphs) whether it is in
    lengths = np.diff(np.asarray(corpus.paragraphs))
    tokens = np.asarray(corpus.tokens)[np.repeat(paragraph, lengths)]
    return tokens, np.concatenate([[0], np.cumsum(lengths[paragraph])])


def _rows(corpus: Corpus, vectors: Vectors) -> Array:
    """Return the row of each entity of a corpus in a store, -1 where it has none."""
    titles = (title for names, _ in vectors.chunks("entities") for title in names)
    rows = {title: row for row, title in enumerate(titles)}
    return np.array([rows.get(title, -1) for title in corpus.entities], np.int64)


def titles_of(sources: Iterable[str | Path], say: Callable[[str], object]) -> list[str]:
    """Return the titles of the articles that files of test data hold, or lists of titles.

    A file that names no article is an error: the caller would believe that its articles were left out.
    """
    found: list[str] = []
    for source in map(Path, sources):
        text = records.read_text(source)
        try:
            layout = recognise(text, source.name)
        except EbertError:
            if text.lstrip().startswith("{"):
                raise
            listed = [line.strip() for line in text.split("\n") if line.strip()]
            if not listed:
                raise EbertError(
                    f"{source} has no titles, so nothing would be left out; write one title per line into it"
                ) from None
            found += listed
            continue
        documents = parse(text, source.name, layout).documents
        named = [document.title for document in documents if document.title]
        if not named:
            raise EbertError(
                f"{source} does not say which articles it is made of: none of its {len(documents):,} documents has a "
                f"title (read as layout {layout!r}), so nothing would be left out. Give a file with one title per line "
                "instead; if its documents are not Wikipedia articles, you do not have to leave anything out"
            )
        if len(named) < len(documents):
            missing = len(documents) - len(named)
            say(f"{source}: {missing:,} of {len(documents):,} documents have no title, and are not left out")
        found += named
    return found
