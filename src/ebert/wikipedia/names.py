"""Many names (words, titles, surfaces) as bytes in one array, and compiled code that finds and numbers words of a text.

A full Wikipedia has some ten million different words and as many titles. As Python strings in a dictionary they would
take gigabytes and minutes; here they take the bytes they are written with, and about twelve more each. `scan` finds
the words that `tokens.words_of` finds, twenty times faster. Numba is an extra, which only building a corpus needs.
"""

import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.wikipedia import tokens
from ebert.wikipedia.tokens import Tokeniser

try:
    import numba
except ModuleNotFoundError:
    raise EbertError("building a corpus needs numba: pip install 'ebert[train]'") from None

# Compiled once and kept on disk; other threads can run at the same time.
jit = numba.njit(nogil=True, cache=True)

Array = NDArray[Any]

LINE = ord("\n")


@dataclass(frozen=True, slots=True)
class NameList:
    """Names, each followed by a line end."""

    data: Array  # bytes, UTF-8
    ends: Array  # (names) where each ends: the place of its line end

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> str:
        start = self.ends[number - 1] + 1 if number else 0
        return self.data[start : self.ends[number]].tobytes().decode("utf-8", "replace")

    @classmethod
    def of(cls, lines: bytes) -> "NameList":
        """Make a list from lines."""
        data = np.frombuffer(lines, np.uint8)
        return cls(data, np.flatnonzero(data == LINE))

    @classmethod
    def cut(cls, data: Array, starts: Array, ends: Array) -> "NameList":
        """Make a list from pieces of some bytes."""
        places = np.cumsum(ends - starts + 1) - 1
        copied = np.empty(int(places[-1]) + 1 if len(places) else 0, np.uint8)
        _copy(data, starts, ends, copied)
        return cls(copied, places)

    @property
    def starts(self) -> Array:
        """Where each name begins."""
        starts = np.zeros(len(self.ends), np.int64)
        starts[1:] = self.ends[:-1] + 1
        return starts

    def take(self, order: Array) -> "NameList":
        """Return some of the names, in the order given."""
        return NameList.cut(self.data, self.starts[order], self.ends[order])

    def write(self, path: Path) -> None:
        """Write the names, one per line."""
        with path.open("wb") as file:
            file.write(self.data.data)

    def by_count(self, counts: Array) -> Array:
        """Return the order of the names by falling count, then by name."""
        starts, lengths = self.starts, self.ends - self.starts
        by_length = np.argsort(lengths, kind="stable")
        order = by_length[-1:]  # a single longest name needs no sorting
        reached = len(by_length) - len(order)
        # Eight bytes at a time, the last ones first: every sort keeps what was sorted before among its equals.
        for offset in range(int(lengths[by_length[:-1]].max(initial=0)) // 8 * 8, -1, -8):
            first = int(np.searchsorted(lengths, offset, sorter=by_length))
            order, reached = np.concatenate([by_length[first:reached], order]), first
            key = np.zeros(len(order), np.uint64)
            for place in range(offset, offset + 8):
                inside = place < lengths[order]
                letter = self.data[np.where(inside, starts[order] + place, 0)]
                key = key << np.uint64(8) | np.where(inside, letter, 0).astype(np.uint64)
            order = order[np.argsort(key, kind="stable")]
        return order[np.argsort(-counts[order], kind="stable")]


class Numbering:
    """Numbers names in the order in which they first come."""

    def __init__(self) -> None:
        self._data, self._ends, self._table = (np.empty(0, kind) for kind in (np.uint8, np.int64, np.int32))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def names(self) -> NameList:
        """All names so far, in the order of their numbers."""
        ends = self._ends[: self._count]
        return NameList(self._data[: ends[-1] + 1 if self._count else 0], ends)

    def add(self, lines: Array) -> Array:
        """Return the numbers of names, known or new; `lines` are bytes with a line end behind each name."""
        out = np.empty(int(np.count_nonzero(lines == LINE)), np.int32)
        known = self.names.data
        letters, names = len(known) + len(lines), self._count + len(out)
        if letters > len(self._data) or names > len(self._ends):
            self._data = np.empty(letters * 3 // 2, np.uint8)
            self._ends = np.empty(names * 3 // 2, np.int64)
            self._table = np.full(1 << (2 * len(self._ends)).bit_length(), -1, np.int32)  # at most half full
            _number(known, self._data, self._ends, self._table, 0, np.empty(self._count, np.int32))
        self._count = _number(lines, self._data, self._ends, self._table, self._count, out)
        return out


@jit
def _copy(data: Array, starts: Array, ends: Array, out: Array) -> None:
    used = 0
    for name in range(len(starts)):
        for place in range(starts[name], ends[name]):
            out[used] = data[place]
            used += 1
        out[used] = LINE
        used += 1


@jit
def _number(lines: Array, known: Array, ends: Array, table: Array, count: int, out: Array) -> int:
    """Put the numbers of names into `out`, and new names after the known ones; return the number of known names."""
    # In one function, because a call, even one that is inlined, doubles the time.
    mask = np.uint64(len(table) - 1)
    used = ends[count - 1] + 1 if count > 0 else 0
    start = 0
    for number in range(len(out)):
        hashed = np.uint64(14695981039346656037)
        end = start
        while lines[end] != LINE:
            hashed = (hashed ^ np.uint64(lines[end])) * np.uint64(1099511628211)
            end += 1
        place = np.int64((hashed ^ (hashed >> np.uint64(29))) & mask)
        while True:
            name = table[place]
            if name < 0:
                table[place] = name = count
                for letter in range(start, end + 1):
                    known[used] = lines[letter]
                    used += 1
                ends[count] = used - 1
                count += 1
                break
            begin = ends[name - 1] + 1 if name > 0 else 0
            offset = 0
            while known[begin + offset] == lines[start + offset] and start + offset < end:
                offset += 1
            if start + offset == end and begin + offset == ends[name]:
                break
            place = (place + 1) & np.int64(mask)
        out[number] = name
        start = end + 1
    return count


# The tokeniser

_LETTER, _END, _ALONE, _REMOVED = 0, 1, 2, 3  # classes of characters


class Scan(NamedTuple):
    """The words of a text."""

    words: NameList  # the different words in the order in which they first come
    tokens: Array  # (tokens) numbers of words
    start: Array  # (tokens) character where each begins
    end: Array  # (tokens) character after its last
    lines: Array  # (lines) character where each line ends


def scan(text: str, tokeniser: Tokeniser) -> Scan:
    """Find all words of a text, as its tokeniser does."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    if tokeniser.cut:
        start, end = np.array(tokeniser.spans(text), np.int32).reshape(-1, 2).T
        written = "".join(f"{word}\n" for word in tokeniser.words(text)).encode()
    else:
        start, end = np.empty((2, len(codes)), np.int32)
        letters = np.empty(2 * len(codes), np.uint32)
        count, used = _split(codes, _classes(tokeniser), start, end, letters)
        start, end = start[:count], end[:count]
        written = letters[:used].tobytes().decode("utf-32-le").encode()
    numbering = Numbering()
    tokens = numbering.add(np.frombuffer(written, np.uint8))
    return Scan(numbering.names, tokens, start, end, np.flatnonzero(codes == LINE))


@jit
def _split(codes: Array, classes: Array, start: Array, end: Array, letters: Array) -> tuple[int, int]:
    """Find words and write their letters, with a line end after each; return the numbers of words and letters."""
    count = used = position = 0
    while position < len(codes):
        begin, before = position, used
        while position < len(codes):
            kind = classes[codes[position]]
            if kind == _END or (kind == _ALONE and position > begin):
                break
            if kind != _REMOVED:
                letters[used] = codes[position]
                used += 1
            position += 1
            if kind == _ALONE:
                break
        if used > before:  # not empty, and not only removed characters
            letters[used] = LINE
            used += 1
            start[count] = begin
            end[count] = position
            count += 1
        if position == begin:
            position += 1
    return count, used


@cache
def _classes(tokeniser: Tokeniser) -> Array:
    """Return the class of every character."""
    classes = np.full(sys.maxunicode + 1, _LETTER, np.uint8)
    for kind, characters in ((_REMOVED, tokens.removed()), (_END, tokens.word_ends())):
        for match in re.finditer(r"\\?(.)(?:-\\?(.))?", characters, re.DOTALL):
            classes[ord(match[1]) : ord(match[2] or match[1]) + 1] = kind
    for begin, last in tokeniser.alone:
        classes[begin : last + 1] = _ALONE
    return classes
