"""Autocomplete of entities: by the beginning of a name, whatever the case and accents, the most frequent first.

The names of a store are kept folded and sorted in a few arrays, some thirty bytes a name: names that begin with given
letters are a contiguous range, found by binary search, and its most linked ones are found without sorting it. (A prefix
query of FTS5 would have to read the whole range to find them.)
"""

import threading
import unicodedata
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ebert.text import letters, titles
from ebert.vectors.entity import Entity
from ebert.vectors.lookup import ADDED_AT, MADE_AT, Lookup, words_in

LOOKED_AT = 200  # titles that have the typed words somewhere; a hundred thousand have "of the"
SIMILAR = 60  # titles compared letter by letter, for each way of missing one
SHORTEST = 3  # letters of a word that is searched for inside titles
LONGEST = 200  # letters that are compared; no title has more


def fold(name: str) -> str:
    """Return a name in small letters, without accents, underscores and double blanks.

    >>> fold("Beyoncé_Knowles")
    'beyonce knowles'
    """
    name = name if name.isascii() and "_" not in name and "  " not in name else titles.clean(name)
    if not name.isascii():
        apart = unicodedata.normalize("NFKD", name)
        name = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return name.casefold()


class Beginnings:
    """Names sorted by their folded letters, with what each stands for and how frequent it is."""

    def __init__(self, names: Iterable[tuple[str, int, int]]) -> None:
        keys: list[bytes] = []
        rows: list[int] = []
        counts: list[int] = []
        for name, row, count in names:
            keys.append(fold(name).encode("utf-8", "surrogatepass"))
            rows.append(row)
            counts.append(count)
        order = sorted(range(len(keys)), key=keys.__getitem__)
        self._letters = b"".join(keys[number] for number in order)
        lengths = np.fromiter((len(keys[number]) for number in order), np.int64, len(keys))
        self._ends: NDArray[np.int64] = np.concatenate([[0], lengths.cumsum()])
        self._rows = np.array(rows, np.int32)[order]
        self._counts = np.array(counts, np.int32)[order]

    def __len__(self) -> int:
        """Count the names."""
        return len(self._rows)

    def best(self, start: str, count: int) -> list[int]:
        """Return the rows of the names that begin with folded letters: the exact name first, then the most frequent."""
        key = start.encode("utf-8", "surrogatepass")
        first, stop = self._place(key), self._place(key + b"\xff")  # larger than any byte of UTF-8
        size = stop - first
        if size <= 0:
            return []
        whole = np.diff(self._ends[first : stop + 1]) == len(key)
        weight = self._counts[first:stop] + whole * np.int64(1 << 32)
        kept = np.argpartition(-weight, count)[:count] if size > count else np.arange(size)
        kept = kept[np.lexsort((kept, -weight[kept]))]
        return [int(row) for row in self._rows[first + kept]]

    def _place(self, key: bytes) -> int:
        """Return the index of the first name that does not sort before a key."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._letters[self._ends[middle] : self._ends[middle + 1]] < key:
                low = middle + 1
            else:
                high = middle
        return low


class Autocomplete:
    """Suggests the entities of a store. Additions count at once."""

    def __init__(self, names: Lookup) -> None:
        self._names = names
        self._lock = threading.Lock()
        self._made: tuple[Beginnings, Beginnings] | None = None
        self._later: tuple[Beginnings, Beginnings] | None = None
        self._stamp: tuple[int, int] | None = None

    def __call__(self, typed: str, count: int) -> list[Entity]:
        """Return what may be meant: titles that begin with the text, then redirects, then titles with its words.

        Titles that look like others (`Entity.oddity`) come last, unless the typed text looks so too.

        Titles are compared letter by letter only if no name begins with the text: that takes longer, and while somebody
        is still typing, titles that merely resemble the text so far do not help.
        """
        typed = typed[:LONGEST]
        key = fold(typed).lstrip()
        if not key.strip():
            return []
        exact = self._names.find(typed)
        found = {entity.title: entity for entity in ([exact] if exact else [])}
        found |= {entity.title: entity for entity in self._begin(key, count) if entity.title not in found}
        begun = bool(found)
        if len(found) < count:
            found |= {entity.title: entity for entity in self._within(key) if entity.title not in found}
        if not begun and len(found) < count:
            similar = self._names.similar(typed, typed, count, SIMILAR)
            found |= {entity.title: entity for entity in similar if entity.title not in found}
        if letters.oddity(typed):  # it is intended
            return list(found.values())[:count]
        return sorted(found.values(), key=lambda entity: entity.oddity is not None)[:count]

    def prepare(self) -> None:
        """Sort the names now, so that the first query need not wait."""
        self._indexes()

    def _begin(self, key: str, count: int) -> Iterator[Entity]:
        made, later = self._indexes()
        for number in (0, 1):  # titles, then redirects
            for query, index in ((ADDED_AT, later), (MADE_AT, made)):
                found = (self._names.first(query, row) for row in index[number].best(key, count))
                yield from (entity for entity in found if entity is not None)

    def _within(self, key: str) -> list[Entity]:
        """Return entities whose titles have all the words, frequent ones first. The last word may be incomplete."""
        words = words_in(key)
        if not words or max(map(len, words)) < SHORTEST:
            return []
        if len(words[-1]) < SHORTEST:
            words = words[:-1]  # a letter or two would match half of Wikipedia
        match = " ".join([*(f'"{word}"' for word in words[:-1]), f'"{words[-1]}"*'])
        found = self._names.matching(match, LOOKED_AT)
        return sorted(found, key=lambda one: (not one.added, -(one.count or 0), len(one.title), one.title))

    def _indexes(self) -> tuple[tuple[Beginnings, Beginnings], tuple[Beginnings, Beginnings]]:
        with self._lock:
            if self._made is None:
                self._made = self._sort("")
            if self._later is None or self._stamp != self._names.stamp:
                self._stamp, self._later = self._names.stamp, self._sort("added.")
            return self._made, self._later

    def _sort(self, tables: str) -> tuple[Beginnings, Beginnings]:
        """Sort titles and redirects."""
        titles = f"SELECT row, title, coalesce(count, 0) FROM {tables}entities WHERE row > ? ORDER BY row"
        redirects = (
            f"SELECT r.title, e.row, coalesce(count, 0) FROM {tables}redirects r"
            f" JOIN {tables}entities e ON e.row = r.row WHERE r.title > ? ORDER BY r.title"
        )
        pages = self._names.catalogue.pages
        return Beginnings((title, row, count) for row, title, count in pages(titles, -1)), Beginnings(
            pages(redirects, "")
        )
