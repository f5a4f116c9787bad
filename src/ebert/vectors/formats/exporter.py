"""Exporting a store's vectors to Wikipedia2Vec's text format."""

import math
from pathlib import Path

import numpy as np

from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert.vectors.entity import whole
from ebert.vectors.formats.binary import ENTITY
from ebert.vectors.store import Vectors


def export_text(vectors: Vectors, out: str | Path, *, decimals: int | None = None, advance: Advance = silent) -> int:
    """Write a store in Wikipedia2Vec's text format (``name TAB numbers``); return the number of lines.

    `decimals` are significant digits; the default is enough to read back exactly the same numbers. The format has no
    place for counts, redirects and Wikidata ids. A tab or a line end in a word becomes a blank.
    """
    stored = np.finfo(np.float32 if len(vectors.overlay) else vectors.entity_matrix.dtype)
    digits = decimals or 1 + math.ceil((stored.nmant + 1) * math.log10(2))  # enough to tell all its numbers apart
    line = "%s\t" + " ".join([f"%.{digits}g"] * vectors.dimension) + "\n"
    blanks = str.maketrans("\t\n\r", "   ")
    written = 0
    with files.replacing(Path(out)) as file:
        for prefix, blocks in (("", vectors.chunks("words")), (ENTITY, vectors.entities())):
            for names, numbers in blocks:
                rows = zip(names, whole(np.asarray(numbers, np.float32), names).tolist(), strict=True)
                file.write("".join(line % (prefix + name.translate(blanks), *row) for name, row in rows).encode())
                written += len(names)
                advance(len(names))
    return written
