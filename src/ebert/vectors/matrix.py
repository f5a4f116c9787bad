"""Matrices on disk: one tensor named ``vectors`` in a safetensors file, written row by row and read by memory map.

The safetensors library writes arrays that are whole in memory and reads contiguous slices. A store is larger than memory
while it is made, and single rows are all that is wanted of it later, so the header (a length and a line of JSON) is
read and written here. The files are ordinary safetensors files.
"""

import hashlib
import json
import struct
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError

DTYPES: dict[str, tuple[str, np.dtype[Any]]] = {
    "float32": ("F32", np.dtype("<f4")),
    "float16": ("F16", np.dtype("<f2")),
}
_HEADER_BYTES = 248  # room for any shape, padded with blanks: the data begins at byte 256, aligned


class MatrixWriter:
    """Writes a matrix whose number of rows is known only at the end."""

    def __init__(self, path: Path, *, dimension: int, dtype: str) -> None:
        """Begin the file; the header is filled in by `close`."""
        if dtype not in DTYPES:
            raise EbertError(f"vectors cannot be stored as {dtype!r}; choose one of {', '.join(DTYPES)}")
        self.dimension, self.rows, self._dtype = dimension, 0, dtype
        self._hash = hashlib.sha256()
        self._file = path.open("wb")
        self._file.write(b" " * (8 + _HEADER_BYTES))

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows, shape (n, dimension)."""
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise EbertError(f"vectors of shape {rows.shape} do not fit a store of dimension {self.dimension}")
        with np.errstate(over="ignore"):
            stored = np.ascontiguousarray(rows, dtype=DTYPES[self._dtype][1])
        if not np.isfinite(stored).all():
            bad = int(np.flatnonzero(~np.isfinite(stored).all(axis=1))[0])
            raise EbertError(
                f"vector {self.rows + bad} has a value that is not a number or too large for {self._dtype}"
            )
        self._file.write(stored.data)
        self._hash.update(stored.data)
        self.rows += len(stored)

    def close(self) -> str:
        """Finish the file and give the SHA-256 of its data."""
        code, dtype = DTYPES[self._dtype]
        size = self.rows * self.dimension * dtype.itemsize
        tensor = {"dtype": code, "shape": [self.rows, self.dimension], "data_offsets": [0, size]}
        header = json.dumps({"vectors": tensor}, separators=(",", ":")).encode().ljust(_HEADER_BYTES)
        self._file.seek(0)
        self._file.write(struct.pack("<Q", len(header)) + header)
        self._file.close()
        return self._hash.hexdigest()

    def __enter__(self) -> Self:
        """Use the writer in a `with` block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the file, finished or not."""
        self._file.close()


def open_matrix(path: Path) -> NDArray[Any]:
    """Map a matrix into memory: no row is read until it is used."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
            header = json.loads(file.read(length)) if 8 + length <= size else None
    except FileNotFoundError:
        raise EbertError(f"{path} is missing; restore it or make the store again") from None
    except (UnicodeDecodeError, json.JSONDecodeError):
        header = None
    try:
        if header is None:
            raise ValueError("no header")
        tensor = header["vectors"]
        dtype = dict(DTYPES.values())[tensor["dtype"]]
        rows, dimension = tensor["shape"]
    except (KeyError, TypeError, ValueError):
        raise EbertError(f"{path} is not a matrix of vectors: restore it or make the store again") from None
    expected = 8 + length + rows * dimension * dtype.itemsize
    if size != expected:
        raise EbertError(
            f"{path} is truncated: {size:,} bytes where {expected:,} are needed for {rows:,} x {dimension}; "
            "restore it or make the store again"
        )
    if rows == 0:  # an empty file cannot be mapped
        return np.empty((0, dimension), dtype)
    return np.memmap(path, dtype=dtype, mode="r", offset=8 + length, shape=(rows, dimension))
