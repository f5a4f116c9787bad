"""Find titles of one page without a redirect between them, as far as the corpus and the mention table show it.

A dump without its redirects has links to UN and to United Nations, and dumps of several years have one page as NFL and
as National Football League. The title of one, as the words of a link, then often means the other, their vectors are
similar, and either one of them has no page, or both pages begin with the same words.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from ebert.vectors.lookup import surface_of
from ebert.vectors.store import Vectors
from ebert.wikipedia.corpus import Corpus
from ebert.wikipedia.tokens import surface_key

# Chosen by reading dozens of pairs of a store of 1.1 million entities, by ranges of the values. Then 25 pairs within
# the limits were drawn for each rule and read. Where one title had no page, four were wrong, mostly broader pages
# (Ne-waza and Grappling, Black Hawk and Black Hawk County). Where both titles had one, no pair was wrong.
ALIKE = {"no page": 0.5, "same opening": 0.45}  # the least cosine
MEANT = {"no page": 0.25, "same opening": 0.05}  # the least share of the links with these words that mean the other
SAME = 0.8  # the least share of words that two openings have in common
OPENING, SHORTEST = 20, 8  # words of an opening, and the fewest that are enough to compare
MOST = 3  # entities that a title may mean

Pair = tuple[int, int, str]


class Openings:
    """The first words of the pages of a corpus."""

    def __init__(self, corpus: Corpus) -> None:
        titles = corpus.entities
        self._tokens = corpus.tokens
        begins = np.asarray(corpus.paragraphs)[np.asarray(corpus.page_paragraphs)].tolist()
        self._places: dict[str, tuple[int, int]] = {}
        for number, entity in enumerate(np.asarray(corpus.page_entity).tolist()):
            begin, end = begins[number], begins[number + 1]
            self._places.setdefault(titles[entity], (begin, min(end, begin + OPENING)))

    def __contains__(self, title: str) -> bool:
        return title in self._places

    def shared(self, title: str, other: str) -> float:
        """Return the share of words that the openings of two pages have in common; 0 if one is too short."""
        one, two = (set(self._tokens[slice(*self._places[name])].tolist()) for name in (title, other))
        shorter = min(len(one), len(two))
        return len(one & two) / shorter if shorter >= SHORTEST else 0.0


def same_pages(vectors: Vectors, made: Sequence[tuple[str, int]], openings: Openings) -> Iterator[Pair]:
    """Yield rows of entities that are one page if they are `ALIKE`, the less linked one first, and the evidence.

    `made` has the titles and counts of the entities, by row.
    """
    keyed: dict[str, list[int]] = defaultdict(list)
    for row, (title, _) in enumerate(made):
        if "(" not in title and not any(map(str.isdigit, title)):
            keyed[surface_key(surface_of(title))].append(row)
    meant: dict[str, Counter[int]] = defaultdict(Counter)
    query = "SELECT s.surface, m.row, m.count FROM surfaces s JOIN mentions m ON m.surface = s.id"
    for surface, row, count in vectors.catalogue.rows(query):
        if (key := surface_key(surface)) in keyed:
            meant[key][row] += count
    for key, rows in keyed.items():
        for row in rows:
            yield from ((row, other, how) for other, how in _other(row, made, meant[key], openings))


def _other(
    row: int, made: Sequence[tuple[str, int]], meant: Counter[int], openings: Openings
) -> Iterator[tuple[int, str]]:
    """Yield the page that the title of an entity means as words, if there is one, and the evidence."""
    title, count = made[row]
    total = meant.total()
    for other, links in meant.most_common(MOST):
        name, more = made[other]
        if other == row or more <= count or name not in openings or any(map(str.isdigit, name)):
            continue
        how = "same opening" if title in openings else "no page"
        ambiguous = how == "no page" and "(" in name and surface_of(name) == title  # of whom there may be several
        if links < MEANT[how] * total or ambiguous:
            continue
        if how == "no page" or openings.shared(title, name) >= SAME:
            yield other, how
            return
