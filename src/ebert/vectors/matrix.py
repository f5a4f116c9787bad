"""Matrices on disk: one tensor named ``vectors`` in a safetensors file, written row by row and read by memory map.

The safetensors library writes arrays that are whole in memory and reads contiguous slices. A store is larger than
memory while it is made, and single rows are all that is wanted of it later, so the header (a length and a line of JSON)
is read and written here. The files are ordinary safetensors files.
"""

import contextlib
import json
import mmap
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError

# How safetensors calls each kind of number that a store can have (`layout.StorageDtype`), and how numpy reads it.
DTYPES: dict[str, tuple[str, np.dtype[Any]]] = {
    "float32": ("F32", np.dtype("<f4")),
    "float16": ("F16", np.dtype("<f2")),
}
LARGEST = 1 << 48  # bytes of data, or rows, or numbers in a row: no disk has more
LONGEST_HEADER = 1 << 20  # bytes: others may have put a text into it, but hardly a book
_HEADER_BYTES = 248  # room for any shape, padded with blanks: the data begins at byte 256, aligned


class MatrixWriter:
    """Writes a matrix whose number of rows is known only at the end."""

    def __init__(self, path: Path, *, dimension: int, dtype: str) -> None:
        if dtype not in DTYPES:
            raise EbertError(f"vectors cannot be stored as {dtype!r}; choose one of {', '.join(DTYPES)}")
        self.path, self.dimension, self.rows, self._dtype = path, dimension, 0, dtype
        self._file = path.open("wb")
        self._file.write(b" " * (8 + _HEADER_BYTES))

    def append(self, rows: NDArray[Any], names: Sequence[object]) -> NDArray[Any]:
        """Add rows, shape (names, dimension), and return them as they are stored; the names are for messages."""
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise EbertError(f"vectors of shape {rows.shape} do not fit a store of dimension {self.dimension}")
        with np.errstate(over="ignore"):  # seen below
            stored = np.ascontiguousarray(rows, dtype=DTYPES[self._dtype][1])
        if not np.isfinite(stored).all():
            bad = int(np.flatnonzero(~np.isfinite(stored).all(axis=1))[0])
            reason = f"too large for {self._dtype}" if np.isfinite(rows[bad]).all() else "not a number or infinite"
            raise EbertError(f"the vector of {names[bad]!r} has a value that is {reason}")
        self._file.write(stored.data)
        self.rows += len(stored)
        return stored

    def finish(self) -> None:
        """Finish the file and flush it to the disk."""
        code, dtype = DTYPES[self._dtype]
        size = self.rows * self.dimension * dtype.itemsize
        tensor = {"dtype": code, "shape": [self.rows, self.dimension], "data_offsets": [0, size]}
        header = json.dumps({"vectors": tensor}, separators=(",", ":")).encode().ljust(_HEADER_BYTES)
        self._file.seek(0)
        self._file.write(struct.pack("<Q", len(header)) + header)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def close(self) -> None:
        """Let go of the file, finished or not."""
        with contextlib.suppress(OSError):  # on a full disk, what is left in the buffer fails once more
            self._file.close()


def open_matrix(path: Path, *, scattered: bool = False) -> NDArray[Any]:
    """Map a matrix into memory: no row is read until it is used.

    The system reads far ahead, which is right for whoever goes through all rows. `scattered` tells it not to, for
    single rows here and there.
    """
    if not path.is_file():  # nor a pipe, which would be waited for
        raise EbertError(f"{path} is missing; restore it or make the store again")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            length = int.from_bytes(file.read(8), "little") if size >= 8 else size
            if length > min(size - 8, LONGEST_HEADER):
                raise ValueError("the header is too long")
            tensor = json.loads(file.read(length), object_pairs_hook=_once)["vectors"]
            dtype = dict(DTYPES.values())[tensor["dtype"]]
            rows, dimension = tensor["shape"]
            begin, end = tensor["data_offsets"]
            if not all(type(number) is int and 0 <= number < LARGEST for number in (rows, dimension, begin, end)):
                raise ValueError("these are not sizes")  # but numbers such as Infinity and true, or no numbers
            if begin != 0 or end != rows * dimension * dtype.itemsize:
                raise ValueError("the data is not where it should be")
        except (KeyError, TypeError, ValueError, RecursionError):
            raise EbertError(f"{path} is not a matrix of vectors: restore it or make the store again") from None
        if size != 8 + length + end:
            raise EbertError(
                f"{path} is truncated: {size:,} bytes where {8 + length + end:,} are needed for "
                f"{rows:,} x {dimension}; restore it or make the store again"
            )
        if rows == 0:  # an empty file cannot be mapped
            return np.empty((0, dimension), dtype)
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if scattered and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(mapped, dtype, count=rows * dimension, offset=8 + length).reshape(rows, dimension)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of some keys and values, unless a key is given twice: others may read the other one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found
