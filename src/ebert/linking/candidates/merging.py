"""One page, one entity: find titles of a store that name the same page, by rules that can each be wrong.

Dumps of several years have the same page under several titles, and links of one year point to a title that has no page
in another year. So Apple Inc., Apple Inc and Apple Computer are three entities, each with a part of the links. Entities
are merged

- if a redirect leads from the title of one to that of the other;
- if the title of one, as the words of a link, often means the other, and one of them has no page in the corpus or both
  pages begin alike (`ebert.linking.candidates.same_page`);
- if an outside dictionary of surfaces sends the title of one, as a surface, almost surely to the other;
- if their titles have the same letters and digits, and differ only in kinds of dashes and quotes, or in accents, case,
  blanks, dots, commas, apostrophes and hyphens and have similar vectors (`ALIKE`).

A note in brackets, other marks ("C++", "Yahoo!"), marks between digits, and capitals ("WHO", "Who") tell titles apart.
The entity with the most links stays; the other titles find it, and their links count as its own. Nothing is removed
from the store: `Catalogue.merged` says what was merged into what, and by which rule.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ebert.linking.candidates import same_page
from ebert.linking.candidates.same_page import Openings, same_pages
from ebert.text import titles
from ebert.vectors.catalogue import Merge
from ebert.vectors.store import Vectors

SURE = 0.95  # the least score of a dictionary's entry
# The least cosine of titles of one, two and more words that differ in more than kinds of marks. Chosen by reading pairs
# of a store of 1.1 million entities, up to sixty for each tenth of cosine. Below these limits there are too many pairs
# like Lac and Laç, or Black Panther and Black panther; of a hundred merged pairs, four to six were wrong.
ALIKE = (0.4, 0.3, 0.2)
SENT = 0.5  # the least cosine of a title and the one that a dictionary sends it to
SHORTEST = 3  # letters of titles that are merged for their spelling
BATCH = 4096  # pairs whose vectors are compared at a time
MADE = "SELECT row, title, count FROM entities WHERE row > ? ORDER BY row"

# Kinds of dashes and quotes; people who type a title choose one or another.
_KINDS = str.maketrans(dict.fromkeys("‐‑‒–—―−", "-") | dict.fromkeys("‘’‛ʼʻ`´′", "'") | dict.fromkeys("“”„″", '"'))
_LOOSE = re.compile(r"[ .,'-]+")  # optional marks


def merges(
    vectors: Vectors, *, redirects: Iterable[tuple[str, str]] = (),
    dictionary: Iterable[tuple[str, int, float]] = (), openings: Openings | None = None, apart: Collection[str] = (),
) -> list[Merge]:  # fmt: skip
    """Return which entities of a store should be merged, in the order of their rows.

    Redirects are pairs of titles, from and to. An entry of a dictionary, whose titles may be older, is a surface, the
    row of its most likely entity, and the probability; the surface should not have a page of its own. With the
    `openings` of pages, titles of the same page are found too. Titles in `apart` are never merged.
    """
    made = [(title, count or 0) for _, title, count in vectors.catalogue.pages(MADE, -1)]
    rows = {title: row for row, (title, _) in enumerate(made)}
    alone = vectors.overlay.hidden() | {rows[title] for title in map(titles.clean, apart) if title in rows}
    into: dict[int, int] = {}
    why: dict[int, str] = {}

    def last(row: int) -> int:
        while row in into:
            row = into[row]
        return row

    def rank(row: int) -> tuple[int, int]:
        return made[row][1], -row

    def merge(pair: Sequence[int | None], rule: str, *, directed: bool = False) -> None:
        if None in pair or alone.intersection(pair):
            return
        first, second = (last(row) for row in pair if row is not None)
        if not directed and rank(first) > rank(second):
            first, second = second, first
        if first != second:
            into[first], why[first] = second, rule

    for source, target in redirects:
        merge([rows.get(titles.clean(title)) for title in (source, target)], "redirect", directed=True)
    for row, other in _sent(vectors, dictionary, rows):
        merge((row, other), "dictionary")
    for row, other, how in _one_page(vectors, made, openings) if openings else ():
        merge((row, other), how)
    for row, other, how in _spelt_alike(vectors, [title for title, _ in made], rank):
        merge((row, other), how)
    return [Merge(row, last(row), why[row]) for row in sorted(into)]


def _sent(
    vectors: Vectors, dictionary: Iterable[tuple[str, int, float]], rows: dict[str, int]
) -> Iterator[tuple[int, int]]:
    """Yield entities whose titles a dictionary sends to others with similar vectors. It also sends to broader pages."""
    named = ((rows.get(titles.clean(surface)), other) for surface, other, score in dictionary if score >= SURE)
    pairs = [(row, other, "") for row, other in named if row is not None and row != other]
    for start in range(0, len(pairs), BATCH):
        batch = pairs[start : start + BATCH]
        cosines = _cosines(vectors, batch)
        yield from ((row, other) for (row, other, _), cosine in zip(batch, cosines, strict=True) if cosine >= SENT)


def _one_page(vectors: Vectors, made: Sequence[tuple[str, int]], openings: Openings) -> Iterator[tuple[int, int, str]]:
    """Yield entities whose titles, as words, mean others with similar vectors."""
    pairs = list(same_pages(vectors, made, openings))
    for start in range(0, len(pairs), BATCH):
        batch = pairs[start : start + BATCH]
        cosines = _cosines(vectors, batch)
        yield from (pair for pair, cosine in zip(batch, cosines, strict=True) if cosine >= same_page.ALIKE[pair[2]])


def key_of(title: str) -> str:
    """Return a key that is the same for titles that differ only in accents, case, blanks and light punctuation.

    A mark between digits tells numbers apart, and one at the beginning or a hyphen at the end is part of a name.

    >>> key_of("Washington, D.C."), key_of("Mercury (planet)"), key_of("Pelé"), key_of("Meta-"), key_of(".cat")
    ('washingtondc', 'mercury(planet)', 'pele', 'meta-', '.cat')
    """
    return _tight(_bare(_typed(title)).casefold())


def difference(title: str, other: str) -> str:
    """Return how two titles with the same key differ.

    >>> difference("Cent–mètre", "Cent-mètre"), difference("Pelé", "PELE"), difference("Apple Inc", "Apple Inc.")
    ('kind of mark', 'accents, case', 'punctuation')
    """
    one, two = _typed(title), _typed(other)
    parts = {
        "accents": _tight(one.casefold()) != _tight(two.casefold()),
        "case": _tight(_bare(one)) != _tight(_bare(two)),
        "punctuation": _bare(one).casefold() != _bare(two).casefold(),
    }
    return ", ".join(part for part, differs in parts.items() if differs) or "kind of mark"


def _spelt_alike(
    vectors: Vectors, made: Sequence[str], rank: Callable[[int], tuple[int, int]]
) -> Iterator[tuple[int, int, str]]:
    """Yield entities whose titles are spelt alike, each with the most linked one of them, and how they differ."""
    spelt: dict[str, list[int]] = {}
    for row, title in enumerate(made):
        key = key_of(title)
        if sum(map(str.isalnum, key)) >= SHORTEST:
            spelt.setdefault(key, []).append(row)
    pairs = []
    for rows in spelt.values():
        if len(rows) > 1:
            first = max(rows, key=rank)
            pairs += [(row, first, difference(made[row], made[first])) for row in rows if row != first]
    for start in range(0, len(pairs), BATCH):
        batch = pairs[start : start + BATCH]
        for (row, first, how), cosine in zip(batch, _cosines(vectors, batch), strict=True):
            acronym = " " not in made[row] and made[row].isupper() != made[first].isupper()
            words = min(len(made[one].replace("-", " ").split()) for one in (row, first))
            if how == "kind of mark" or (cosine >= ALIKE[min(words, len(ALIKE)) - 1] and not acronym):
                yield row, first, how


def _cosines(vectors: Vectors, pairs: Sequence[tuple[int, int, str]]) -> NDArray[np.float32]:
    """Return the cosines of the vectors of pairs, shape (pairs,)."""
    sides = [row for row, _, _ in pairs], [other for _, other, _ in pairs]
    left, right = (np.asarray(vectors.entity_matrix[side], np.float32) for side in sides)  # (pairs, dimension)
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines: NDArray[np.float32] = np.einsum("pd,pd->p", left, right) / np.maximum(lengths, 1e-30)
    return cosines


def _typed(title: str) -> str:
    return title.translate(_KINDS)


def _bare(title: str) -> str:
    """Return a title without accents."""
    if title.isascii():
        return title
    return "".join(letter for letter in unicodedata.normalize("NFD", title) if not unicodedata.combining(letter))


def _tight(title: str) -> str:
    """Return a title without optional marks."""

    def kept(found: re.Match[str]) -> str:
        before, marks, after = title[: found.start()], found[0], title[found.end() :]
        if not before or (not after and "-" in marks) or (before[-1].isdigit() and after[:1].isdigit()):
            return marks
        return ""

    return _LOOSE.sub(kept, title)
