"""Exporting a store's vectors to Wikipedia2Vec's text format."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert.vectors.entity import whole
from ebert.vectors.formats.binary import ENTITY
from ebert.vectors.store import Vectors


def export_text(vectors: Vectors, out: str | Path, *, decimals: int | None = None, advance: Advance = silent) -> int:
    """Write a store in Wikipedia2Vec's text format (``name TAB numbers``); return the number of lines.

    `decimals` are significant; by default as many as it takes to read the very same numbers again. The format has no
    place for counts, redirects and Wikidata ids, nor for a tab or a line's end in a word: they become blanks.
    """
    digits = decimals or _digits(np.float32 if len(vectors.overlay) else vectors.entity_matrix.dtype)
    line = "%s\t" + " ".join([f"%.{digits}g"] * vectors.dimension) + "\n"
    blanks = str.maketrans("\t\n\r", "   ")
    written = 0
    with files.replacing(Path(out)) as file:
        for prefix, block, numbers in _blocks(vectors):
            rows = zip(block, whole(numbers, block).tolist(), strict=True)
            file.write("".join(line % (prefix + name.translate(blanks), *row) for name, row in rows).encode())
            written += len(block)
            advance(len(block))
    return written


def _blocks(vectors: Vectors) -> Iterator[tuple[str, Sequence[str], NDArray[np.float32]]]:
    """Yield words, entities and added entities: prefix, names, numbers."""
    for names, block in vectors.chunks("words"):
        yield "", names, np.asarray(block, np.float32)
    for names, block in vectors.entities():
        yield ENTITY, names, np.asarray(block, np.float32)


def _digits(dtype: DTypeLike) -> int:
    """Return the significant digits that tell all numbers of a type apart."""
    return 1 + math.ceil((np.finfo(np.dtype(dtype)).nmant + 1) * math.log10(2))
