"""Reading the formats that are not text: word2vec's binary one, and numpy arrays with a file of names.

Every reader yields batches of names and vectors, in bounded memory. A name that begins with ``ENTITY/`` is an entity's,
as Wikipedia2Vec writes it; all others are words.
"""

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io.compressed import open_measured
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError

ENTITY = "ENTITY/"
BATCH = 1024
BATCH_BYTES = 16 << 20
NAME_BYTES = 10_000  # larger than any name
VECTOR_BYTES = 4 << 20  # larger than any vector
HEADER = re.compile(rb"^(\d{1,18}) +(\d{1,9})\s*$")  # a tab would separate a name from its only number


@dataclass(frozen=True, slots=True)
class Batch:
    """Some names, as they are written in the file, with their vectors, shape (names, dimension)."""

    names: Sequence[str]
    vectors: NDArray[Any]
    counts: Sequence[int] | None = None
    mended: int = 0  # names with bytes that are not UTF-8, replaced by U+FFFD
    outputs: NDArray[Any] | None = None  # output vectors of words, where the file has them


def read_word2vec_binary(path: Path, advance: Advance = silent) -> Generator[Batch, None, None]:
    """Read word2vec's binary format: a header line, then names that each end with a blank, and raw float32 numbers."""
    with open_measured(path) as opened:
        header = HEADER.match(opened.stream.readline(100))
        if not header:
            raise EbertError(f"{path} does not begin with the two numbers of word2vec's binary format")
        count, dimension = int(header[1]), int(header[2])
        size = 4 * dimension
        if size > VECTOR_BYTES:
            raise EbertError(f"{path} says that its vectors have dimension {dimension:,}: it is damaged")
        rows_of_batch = max(1, min(BATCH, BATCH_BYTES // max(1, size)))
        block, position = b"", 0
        for start in range(0, count, rows_of_batch):
            names: list[bytes] = []
            rows: list[bytes] = []
            for index in range(start, min(count, start + rows_of_batch)):
                blank = block.find(b" ", position, position + NAME_BYTES)
                if blank < 0 or blank + 1 + size > len(block):
                    block, position = block[position:] + opened.stream.read(BATCH_BYTES + NAME_BYTES + size), 0
                    blank = block.find(b" ", 0, NAME_BYTES)
                if blank < 0 or blank + 1 + size > len(block):
                    raise EbertError(f"{path} is truncated or damaged in vector {index + 1:,} of {count:,}")
                names.append(block[position:blank].lstrip(b"\n"))  # some writers end every vector with a new line
                rows.append(block[blank + 1 : blank + 1 + size])
                position = blank + 1 + size
            vectors = np.frombuffer(b"".join(rows), dtype="<f4").reshape(-1, dimension)
            # Old versions of word2vec cut long names in the middle of a letter.
            decoded = [name.decode("utf-8", "replace") for name in names]
            mended = sum(text.encode() != name for text, name in zip(decoded, names, strict=True))
            yield Batch(decoded, vectors, mended=mended)
            opened.report(advance)
        if (block[position:] + opened.stream.read(100)).strip():
            raise EbertError(f"{path} continues after the {count:,} vectors that its first line announces")


def read_numpy(path: Path, names_file: Path | None = None, advance: Advance = silent) -> Generator[Batch, None, None]:
    """Read a ``.npy`` matrix, memory-mapped, with a text file of names, one per line (default: ``.txt`` beside it)."""
    names_file = names_file or path.with_suffix(".txt")
    if not names_file.is_file():
        raise EbertError(f"{path} needs a file with the names of its rows, one per line: {names_file} or --names")
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise EbertError(f"{path} is not a numpy array of numbers, or is truncated: {error}") from None
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        shape = f"has shape {matrix.shape} of {matrix.dtype}" if isinstance(matrix, np.ndarray) else "is an archive"
        raise EbertError(f"{path} {shape}; an array of numbers, (names, dimension), is needed")
    with names_file.open(encoding="utf-8", newline="\n") as file:
        lines, count = (line.rstrip("\r\n") for line in file), 0
        try:
            for start in range(0, len(matrix), BATCH):
                block = np.asarray(matrix[start : start + BATCH])
                names = list(islice(lines, len(block)))
                count += len(names)
                if len(names) < len(block):
                    break
                yield Batch(names, block)
                advance(block.nbytes)
            count += sum(1 for _ in lines)
        except UnicodeDecodeError as error:
            raise EbertError(f"{names_file} is not UTF-8: {error}") from None
    if count != len(matrix):
        raise EbertError(f"{names_file} has {count:,} names for the {len(matrix):,} vectors of {path}")
