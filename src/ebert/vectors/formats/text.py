"""Reading vectors in text: Wikipedia2Vec's own format, word2vec's and GloVe's. A line is a name, then its numbers.

Wikipedia2Vec separates the name from the numbers with a tab, the others with a blank, though a name may contain blanks.
word2vec writes a first line with the number of vectors and their dimension.
"""

import re
import warnings
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ebert._io.compressed import open_measured
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.vectors.formats.binary import BATCH, BATCH_BYTES, HEADER, Batch

AHEAD = 100  # lines that tell the dimension where no header does
LINE_BYTES = 4 << 20  # a longer one is not a line of text

_NUMBER = re.compile(rb" -?\d*\.\d{3,}(?:e[-+]?\d+)?$")  # at the end of a name, it is an extra number

Line = tuple[int, bytes]  # its number, counted from 1, and the line


def read_text(path: Path, advance: Advance = silent) -> Generator[Batch, None, None]:
    """Read a file of text, which may be compressed (``.gz``, ``.bz2``)."""
    with open_measured(path) as opened:
        lines = _lines(opened.stream, path)
        first = next(_batches(lines, AHEAD), [])
        header = HEADER.match(first[0][1]) if first else None
        if header:
            del first[0]
        if not first:
            raise EbertError(f"{path} has no vectors in it")
        dimension = int(header[2]) if header else _dimension(first)
        if dimension < 1:
            raise EbertError(f"{path}, line {first[0][0]}: no numbers after the name: {first[0][1][:60]!r}")
        count = 0
        for batch in _batches(chain(first, lines)):
            yield _parse(batch, dimension, path)
            count += len(batch)
            opened.report(advance)
        if header and count != int(header[1]):
            raise EbertError(
                f"{path} has {count:,} vectors where its first line announces {int(header[1]):,}; get the file "
                f"again, or remove the first line if the file is complete"
            )


def _lines(file: IO[bytes], path: Path) -> Iterator[Line]:
    """Yield the lines that are not empty."""
    number = 0
    while line := file.readline(LINE_BYTES):
        number += 1
        if len(line) == LINE_BYTES:
            raise EbertError(f"{path}, line {number}: longer than {LINE_BYTES:,} bytes; is this a file of text?")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")  # the mark that some editors put before UTF-8
        if line.strip():
            yield number, line.rstrip(b"\r\n")


def _batches(lines: Iterator[Line], most: int = BATCH) -> Iterator[list[Line]]:
    batch: list[Line] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line[1])
        if len(batch) == most or size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _dimension(lines: Sequence[Line]) -> int:
    """Return the dimension that most lines have, so that one bad line or a name with blanks misleads nobody."""
    return Counter(_count(line) for _, line in lines).most_common(1)[0][0]


def _count(line: bytes) -> int:
    _, tab, numbers = line.partition(b"\t")
    return len(numbers.split()) if tab else len(line.split()) - 1


def _parse(lines: Sequence[Line], dimension: int, path: Path) -> Batch:
    names, rows = [], []
    for number, line in lines:
        name, row = _split(line, dimension)
        if b" " in name and b"\t" not in line and _NUMBER.search(name):
            raise EbertError(f"{path}, line {number}: more than {dimension} numbers: {line[:60]!r}")
        try:
            names.append(name.decode())
        except UnicodeDecodeError:
            raise EbertError(f"{path}, line {number}: the name is not UTF-8: {name[:60]!r}") from None
        rows.append(row)
    vectors = parse_numbers(rows, dimension)
    if vectors is None:
        raise _blame(lines, rows, dimension, path)
    return Batch(names, vectors)


def _split(line: bytes, dimension: int) -> tuple[bytes, bytes]:
    """Split a line into name and numbers."""
    name, tab, numbers = line.partition(b"\t")
    if tab:
        return name, numbers
    name, _, numbers = line.rstrip(b" ").partition(b" ")
    if numbers.count(b" ") == dimension - 1:
        return name, numbers
    parts = line.rsplit(None, dimension)  # the name contains blanks
    return parts[0], b" ".join(parts[1:])


def _blame(lines: Sequence[Line], rows: Sequence[bytes], dimension: int, path: Path) -> EbertError:
    """Return the error for the line that made a batch unreadable."""
    for (number, line), row in zip(lines, rows, strict=True):
        parts = row.split()
        for part in parts:
            if parse_numbers([part], 1) is None:
                what = f"{part[:60]!r} is not a number that can be stored, in the vector of"
                return EbertError(f"{path}, line {number}: {what} {_split(line, dimension)[0].decode()[:60]!r}")
        if len(parts) != dimension:
            return EbertError(
                f"{path}, line {number}: {len(parts)} numbers where {dimension} are expected: {line[:60]!r}"
            )
    return EbertError(f"{path}, lines {lines[0][0]} to {lines[-1][0]}: numbers cannot be read")


_ZERO, _POINT, _MINUS, _BLANK = (np.uint8(ord(character)) for character in "0.- ")
_DECIMALS = 7  # at most, so that a number without its point is a 32-bit integer


def parse_numbers(rows: list[bytes], dimension: int) -> NDArray[np.float32] | None:
    """Return the numbers in rows of text, shape (rows, dimension), or None if they contain anything else."""
    text = b" ".join(rows)
    values = _fixed(b" " + text + b" ", len(rows) * dimension)
    if values is None and all(len(row.split()) == dimension for row in rows):
        values = _any(text)
    if values is None or len(values) != len(rows) * dimension or not np.isfinite(values).all():
        return None
    return values.reshape(-1, dimension)


def _fixed(text: bytes, count: int) -> NDArray[np.float32] | None:
    """Read numbers that all have the same few decimals and one digit before the point, as Wikipedia2Vec writes.

    Every digit then has a fixed place before the blank that ends its number, and numpy takes the same digit of all
    numbers at once. The integer without its point, divided, is the same float that strtod gives.
    """
    data = np.frombuffer(text, np.uint8)
    blanks = np.flatnonzero(data == _BLANK)
    if len(blanks) != count + 1:
        return None
    widths = np.diff(blanks) - 1  # of the numbers
    decimals = int(blanks[1]) - 1 - text.find(b".")
    if not 1 <= decimals <= _DECIMALS or widths.min() < decimals + 2 or widths.max() > decimals + 3:
        return None
    position = blanks[1:] - 1  # of the digit looked at
    digits = np.zeros(count, np.int32)
    largest = np.zeros(count, np.uint8)
    for place in range(decimals + 1):
        if place == decimals:
            if (data[position] != _POINT).any():
                return None
            position -= 1
        digit = data[position] - _ZERO  # other characters wrap around to more than 9
        np.maximum(largest, digit, out=largest)
        digits += np.multiply(digit, 10**place, dtype=np.int32)
        position -= 1
    signed = np.flatnonzero(widths == decimals + 3)
    if largest.max() > 9 or (data[position[signed]] != _MINUS).any():
        return None
    values = digits / np.float64(10**decimals)
    values[signed] = -values[signed]
    return values.astype(np.float32)


def _any(text: bytes) -> NDArray[np.float32] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy only warns of what it cannot read
        try:
            return np.fromstring(text.decode("ascii"), dtype=np.float32, sep=" ")
        except (ValueError, DeprecationWarning):
            return None
