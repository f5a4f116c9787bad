"""Reading the formats that word and entity vectors come in, batch by batch, in bounded memory.

Every reader yields batches of names and vectors. A name that begins with ``ENTITY/`` is an entity's, as Wikipedia2Vec
writes it; all others are words.
"""

import bz2
import gzip
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.progress import Advance, silent

ENTITY = "ENTITY/"
BATCH = 2048
HEADER = re.compile(rb"^\s*(\d+)\s+(\d+)\s*$")


@dataclass(frozen=True, slots=True)
class Batch:
    """Some names, as they are written in the file, with their vectors, shape (names, dimension)."""

    names: Sequence[str]
    vectors: NDArray[Any]
    counts: Sequence[int] | None = None


def open_file(path: Path) -> IO[bytes]:
    """Open a file, decompressing by its ending."""
    if path.suffix == ".bz2":
        return bz2.open(path, "rb")
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    return path.open("rb")


def read_text(path: Path, advance: Advance = silent) -> Iterator[Batch]:
    """Read Wikipedia2Vec's and word2vec's text formats and GloVe's: a line a name, then its numbers.

    Names and numbers are parted by a tab or a blank; a first line with two whole numbers is a header.
    """
    with open_file(path) as file:
        lines = _lines(file, path)
        number, first = next(lines, (0, b""))
        dimension = 0
        if header := HEADER.match(first):
            dimension = int(header[2])
            number, first = next(lines, (0, b""))
        if not first:
            raise EbertError(f"{path} has no vectors in it")
        dimension = dimension or _fields(first)
        if dimension < 1:
            raise EbertError(f"{path}, line {number}: no numbers after the name")
        names: list[str] = []
        rows: list[tuple[int, bytes]] = []
        position = 0
        for at, line in chain([(number, first)], lines):
            name, numbers = _split(line, dimension, path, at)
            names.append(name)
            rows.append((at, numbers))
            position += len(line) + 1
            if len(rows) == BATCH:
                yield Batch(names, _numbers(rows, dimension, path))
                advance(position)
                names, rows, position = [], [], 0
        if rows:
            yield Batch(names, _numbers(rows, dimension, path))
            advance(position)


def read_word2vec_binary(path: Path, advance: Advance = silent) -> Iterator[Batch]:
    """Read word2vec's binary format: a header line, then names and raw float32 numbers."""
    with open_file(path) as raw, io.BufferedReader(raw, 1 << 20) as file:  # type: ignore[type-var]
        header = HEADER.match(file.readline(100))
        if not header:
            raise EbertError(f"{path} does not begin with the two numbers of word2vec's binary format")
        count, dimension = int(header[1]), int(header[2])
        for start in range(0, count, BATCH):
            names, rows = [], []
            for index in range(start, min(count, start + BATCH)):
                name = _until_blank(file)
                data = file.read(4 * dimension)
                if name is None or len(data) < 4 * dimension:
                    raise EbertError(f"{path} is truncated: it ends in vector {index + 1:,} of {count:,}")
                names.append(name)
                rows.append(data)
            advance(sum(len(name) + 1 + 4 * dimension for name in names))
            yield Batch(names, np.frombuffer(b"".join(rows), dtype="<f4").reshape(-1, dimension))


def read_numpy(path: Path, names_file: Path | None = None, advance: Advance = silent) -> Iterator[Batch]:
    """Read a ``.npy`` matrix, memory-mapped, with a text file of names, one a line (default: ``.txt`` beside it)."""
    names_file = names_file or path.with_suffix(".txt")
    if not names_file.is_file():
        raise EbertError(f"{path} needs a file with the names of its rows, one a line: {names_file} (or --names FILE)")
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise EbertError(f"{path} is not a numpy array of numbers, or is truncated: {error}") from None
    if matrix.ndim != 2:
        raise EbertError(f"{path} has shape {matrix.shape}; (names, dimension) is needed")
    with names_file.open(encoding="utf-8") as file:
        lines = (line.rstrip("\r\n") for line in file)
        for start in range(0, len(matrix), BATCH):
            block = matrix[start : start + BATCH]
            names = [name for _, name in zip(range(len(block)), lines, strict=False)]
            if len(names) < len(block):
                break
            yield Batch(names, block)
            advance(block.nbytes)
        rest = sum(1 for _ in lines) + (len(names) - len(block) if len(matrix) and len(names) < len(block) else 0)
    if rest:
        raise EbertError(f"{names_file} has {len(matrix) + rest:,} names for the {len(matrix):,} vectors of {path}")


def _lines(file: IO[bytes], path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        for number, line in enumerate(file, 1):
            if stripped := line.rstrip(b"\r\n"):
                yield number, stripped
    except (EOFError, OSError) as error:
        raise EbertError(f"{path} is truncated or damaged after line {number}: {error}") from None


def _fields(line: bytes) -> int:
    _, tab, numbers = line.partition(b"\t")
    return len(numbers.split()) if tab else len(line.split()) - 1


def _split(line: bytes, dimension: int, path: Path, number: int) -> tuple[str, bytes]:
    name, tab, numbers = line.partition(b"\t")
    if not tab:
        parts = line.rstrip().rsplit(b" ", dimension)
        name, numbers = parts[0], b" ".join(parts[1:])
    found = len(numbers.split())
    if found != dimension:
        raise EbertError(f"{path}, line {number}: {found} numbers where {dimension} are expected: {line[:60]!r}")
    try:
        return name.decode("utf-8"), numbers
    except UnicodeDecodeError:
        raise EbertError(f"{path}, line {number}: the name is not UTF-8: {name[:60]!r}") from None


def _numbers(rows: list[tuple[int, bytes]], dimension: int, path: Path) -> NDArray[np.float32]:
    """Parse all rows at once; only if that fails look for the line that is to blame."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            values = np.fromstring(b" ".join(row for _, row in rows).decode("ascii"), dtype=np.float32, sep=" ")
            if len(values) == len(rows) * dimension:
                return values.reshape(-1, dimension)
        except (ValueError, DeprecationWarning):
            pass
    for number, row in rows:
        try:
            [float(value) for value in row.split()]
        except ValueError as error:
            raise EbertError(f"{path}, line {number}: {error}") from None
    raise EbertError(f"{path}, lines {rows[0][0]} to {rows[-1][0]}: numbers cannot be read")


def _until_blank(file: io.BufferedReader) -> str | None:
    """Read a name up to the blank that ends it, past the line end that some writers put before it."""
    name = bytearray()
    while (byte := file.read(1)) != b" ":
        if not byte or len(name) > 10_000:
            return None
        if byte != b"\n" or name:
            name += byte
    return name.decode("utf-8", "replace")
