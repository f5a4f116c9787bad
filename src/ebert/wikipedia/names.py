"""Many names (words, titles, surfaces) as bytes in one array, and the words of a text found and numbered, compiled.

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

# Compiled once and kept on disk; other threads run meanwhile.
jit = numba.njit(nogil=True, cache=True)

Array = NDArray[Any]

LINE = ord("\n")


@dataclass(frozen=True, slots=True)
class NameList:
    """Names, each with a line end behind it."""

    data: Array  # bytes, UTF-8
    ends: Array  # (names) where each ends: the place of its line end

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> str:
        start = self.ends[number - 1] + 1 if number else 0
        return self.data[start : self.ends[number]].tobytes().decode("utf-8", "replace")

    @classmethod
    def of(cls, lines: bytes) -> "NameList":
        """Take lines apart."""
        data = np.frombuffer(lines, np.uint8)
        return cls(data, np.flatnonzero(data == LINE))

    @property
    def starts(self) -> Array:
        """Where each name begins."""
        starts = np.zeros(len(self.ends), np.int64)
        starts[1:] = self.ends[:-1] + 1
        return starts

    def take(self, order: Array) -> "NameList":
        """Return some of the names, in the order given."""
        starts, ends = self.starts[order], self.ends[order]
        places = np.cumsum(ends - starts + 1) - 1
        data = np.empty(int(places[-1]) + 1 if len(places) else 0, np.uint8)
        _copy(self.data, starts, ends, data)
        return NameList(data, places)

    def write(self, path: Path) -> None:
        """Write the names, one a line."""
        with path.open("wb") as file:
            file.write(self.data.data)

    def by_count(self, counts: Array) -> Array:
        """Return the order of the names by falling count, then by name."""
        starts, ends = self.starts, self.ends
        order = np.argsort(-counts, kind="stable")
        group = _groups(-counts[order])
        tied = np.flatnonzero(_ties(group))  # places in the order that are not settled
        offset = 0
        while len(tied):
            # Eight bytes at a time, of those names only that are equal so far.
            names = order[tied]
            key = np.zeros(len(names), np.uint64)
            for place in range(offset, offset + 8):
                inside = starts[names] + place < ends[names]
                letter = self.data[np.where(inside, starts[names] + place, 0)]
                key = key << np.uint64(8) | np.where(inside, letter, 0).astype(np.uint64)
            within = np.lexsort((key, group[tied]))
            order[tied], key = names[within], key[within]
            finer = _groups(group[tied], key)
            group[tied] = tied[0] + finer  # unequal to its neighbours is all that counts
            tied = tied[_ties(finer)]
            offset += 8
        return order


class Numbering:
    """Numbers names in the order in which they first come."""

    def __init__(self) -> None:
        self._data, self._ends = np.empty(1 << 16, np.uint8), np.empty(1 << 12, np.int64)
        self._table = np.full(1 << 13, -1, np.int32)
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
        self._make_room(len(lines), len(out))
        self._count = _number(lines, self._data, self._ends, self._table, self._count, out)
        return out

    def _make_room(self, letters: int, names: int) -> None:
        used = int(self._ends[self._count - 1]) + 1 if self._count else 0
        self._data = _larger(self._data, used, used + letters)
        self._ends = _larger(self._ends, self._count, self._count + names)
        if 2 * (self._count + names) > len(self._table):
            self._table = np.full(1 << (2 * (self._count + names)).bit_length(), -1, np.int32)
            _fill(self._data, self._ends, self._table, self._count)


def _larger(array: Array, used: int, needed: int) -> Array:
    if needed <= len(array):
        return array
    grown = np.empty(max(needed, len(array) * 3 // 2), array.dtype)
    grown[:used] = array[:used]
    return grown


def _groups(*columns: Array) -> Array:
    """Number the runs of equal rows."""
    new = np.zeros(len(columns[0]), bool)
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return np.cumsum(new)


def _ties(group: Array) -> Array:
    """Return which rows are in a run with others."""
    same = group[1:] == group[:-1]
    tied = np.zeros(len(group), bool)
    tied[1:] |= same
    tied[:-1] |= same
    return tied


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
def _hash(data: Array, start: int, end: int) -> Any:
    hashed = np.uint64(14695981039346656037)
    for place in range(start, end):
        hashed = (hashed ^ np.uint64(data[place])) * np.uint64(1099511628211)
    return hashed ^ (hashed >> np.uint64(29))


@jit
def _find(data: Array, start: int, end: int, known: Array, ends: Array, table: Array) -> Any:
    """Return the place in the table of a name, or the free one where it belongs."""
    mask = np.uint64(len(table) - 1)
    place = np.int64(_hash(data, start, end) & mask)
    while table[place] >= 0:
        name = table[place]
        begin = ends[name - 1] + 1 if name > 0 else 0
        if ends[name] - begin == end - start:
            same = True
            for offset in range(end - start):
                if known[begin + offset] != data[start + offset]:
                    same = False
                    break
            if same:
                break
        place = (place + 1) & np.int64(mask)
    return place


@jit
def _number(lines: Array, known: Array, ends: Array, table: Array, count: int, out: Array) -> int:
    start = found = 0
    used = ends[count - 1] + 1 if count > 0 else 0
    for end in range(len(lines)):
        if lines[end] != LINE:
            continue
        place = _find(lines, start, end, known, ends, table)
        if table[place] < 0:
            table[place] = count
            for offset in range(end - start + 1):
                known[used + offset] = lines[start + offset]
            used += end - start + 1
            ends[count] = used - 1
            count += 1
        out[found] = table[place]
        found += 1
        start = end + 1
    return count


@jit
def _fill(known: Array, ends: Array, table: Array, count: int) -> None:
    """Put all names into a new table."""
    for name in range(count):
        start = ends[name - 1] + 1 if name > 0 else 0
        table[_find(known, start, ends[name], known, ends, table)] = name


# The tokeniser

_LETTER, _END, _ALONE, _REMOVED = 0, 1, 2, 3  # classes of characters


class Scan(NamedTuple):
    """The words of a text."""

    words: Array  # bytes: the different words in the order in which they first come, a line end behind each
    different: int  # words
    tokens: Array  # (tokens) numbers of words
    start: Array  # (tokens) character where each begins
    end: Array  # (tokens) character behind its last
    lines: Array  # (lines) character where each line ends


def scan(text: str, tokeniser: Tokeniser) -> Scan:
    """Find all words of a text, as its tokeniser does."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    lines = np.flatnonzero(codes == LINE)
    if tokeniser.cut:
        spans = np.array(tokeniser.spans(text), np.int64).reshape(-1, 2)
        numbering = Numbering()
        found = "".join(f"{word}\n" for word in tokeniser.words(text)).encode()
        numbers = numbering.add(np.frombuffer(found, np.uint8))
        return Scan(numbering.names.data, len(numbering), numbers, spans[:, 0], spans[:, 1], lines)
    room = len(codes)
    numbers, start, end = (np.empty(room, np.int32) for _ in range(3))
    letters, first = np.empty(2 * room, np.uint32), np.empty(room + 1, np.int32)
    table = np.full(1 << max(4, room.bit_length()), -1, np.int32)  # more places than there can be words
    count, words = _scan(codes, _classes(tokeniser), numbers, start, end, letters, first, table)
    written = letters[: first[words]].tobytes().decode("utf-32-le").encode()
    return Scan(np.frombuffer(written, np.uint8), words, numbers[:count], start[:count], end[:count], lines)


@jit
def _scan(
    codes: Array, classes: Array, numbers: Array, start: Array, end: Array, letters: Array, first: Array, table: Array
) -> tuple[int, int]:
    """Fill the arrays; return how many tokens and how many different words there are.

    The different words stand one after another in `letters`, a line end behind each; word `w` begins at `first[w]`.
    """
    # The look-up is that of `_find`, written out: a call, even one that is inlined, doubles the time of a scan.
    mask = len(table) - 1
    count = words = used = 0  # `used` letters
    first[0] = 0
    position = 0
    while position < len(codes):
        kind = classes[codes[position]]
        if kind == _END:
            position += 1
            continue
        begin, fill = position, used
        hashed = np.uint64(14695981039346656037)
        while position < len(codes):
            code = codes[position]
            kind = classes[code]
            if kind == _END or (kind == _ALONE and position > begin):
                break
            position += 1
            if kind != _REMOVED:
                letters[fill] = code
                fill += 1
                hashed = (hashed ^ np.uint64(code)) * np.uint64(1099511628211)
            if kind == _ALONE:
                break
        if fill == used:  # nothing but removed characters
            continue
        place = np.int64((hashed ^ (hashed >> np.uint64(29))) & np.uint64(mask))
        while True:
            word = table[place]
            if word < 0:
                table[place] = word = words
                words += 1
                letters[fill] = LINE
                used = fill + 1
                first[words] = used
                break
            if first[word + 1] - first[word] - 1 == fill - used:
                same = True
                for offset in range(fill - used):
                    if letters[first[word] + offset] != letters[used + offset]:
                        same = False
                        break
                if same:
                    break
            place = (place + 1) & mask
        numbers[count] = word
        start[count] = begin
        end[count] = position
        count += 1
    return count, words


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
