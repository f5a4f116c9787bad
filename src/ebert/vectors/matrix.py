"""Matrices on disk: one tensor named ``vectors`` in a safetensors file, written row by row and memory-mapped.

A quantised matrix has two tensors, ``codebook`` and ``codes`` (`ebert.vectors.quantised`).

The safetensors library writes arrays that are completely in memory, and reads contiguous slices. A store may be larger
than memory while it is made, and later only single rows are needed. So the header (a length and a line of JSON) is read
and written here. The files are ordinary safetensors files.
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
from ebert.vectors.quantised import CENTROIDS, SAMPLE, SEED, Quantised, encode, groups_of, make_codebook

# How safetensors calls each kind of number that a store can have (`layout.StorageDtype`), and how numpy reads it.
DTYPES: dict[str, tuple[str, np.dtype[Any]]] = {
    "float32": ("F32", np.dtype("<f4")),
    "float16": ("F16", np.dtype("<f2")),
    "pq": ("U8", np.dtype("u1")),
}
TENSORS = {"vectors": ("F32", "F16"), "codebook": ("F16",), "codes": ("U8",)}  # and the kinds of number of each
Matrix = NDArray[Any] | Quantised

LARGEST = 1 << 48  # bytes of data, or rows, or numbers in a row: no disk holds more
LONGEST_HEADER = 1 << 20  # bytes: other programs may have added some text, but hardly more than this
_HEADER_BYTES = 248  # room for any shape, padded with blanks: the data begins at byte 256, aligned


class MatrixWriter:
    """Writes a matrix whose number of rows is known only at the end."""

    def __init__(self, path: Path, *, dimension: int, dtype: str) -> None:
        if dtype not in DTYPES:
            raise EbertError(f"vectors cannot be stored as {dtype!r}; choose one of {', '.join(DTYPES)}")
        self.path, self.dimension, self.rows, self._dtype = path, dimension, 0, dtype
        self._file = path.open("wb")
        self._file.write(b" " * (8 + _HEADER_BYTES))

    def append(self, rows: Matrix, names: Sequence[object]) -> NDArray[Any]:
        """Add rows, shape (names, dimension), and return them as they are stored; the names are for messages."""
        stored = self.checked(np.asarray(rows), names)
        self._file.write(stored.data)
        self.rows += len(stored)
        return stored

    def checked(self, rows: NDArray[Any], names: Sequence[object]) -> NDArray[Any]:
        """Return rows as they are stored. Raise `EbertError` if one has an impossible value."""
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise EbertError(f"vectors of shape {rows.shape} do not fit a store of dimension {self.dimension}")
        name = "float16" if self._dtype == "pq" else self._dtype  # like codebooks
        dtype = DTYPES[name][1]
        with np.errstate(over="ignore"):  # seen below
            stored = np.ascontiguousarray(rows, dtype=dtype)
        if not np.isfinite(stored).all():
            bad = int(np.flatnonzero(~np.isfinite(stored).all(axis=1))[0])
            reason = f"too large for {name}" if np.isfinite(rows[bad]).all() else "not a number or infinite"
            raise EbertError(f"the vector of {names[bad]!r} has a value that is {reason}")
        return stored

    def finish(self) -> None:
        """Finish the file and flush it to the disk."""
        code, dtype = DTYPES[self._dtype]
        size = self.rows * self.dimension * dtype.itemsize
        tensor = {"dtype": code, "shape": [self.rows, self.dimension], "data_offsets": [0, size]}
        self._end({"vectors": tensor})

    def _end(self, tensors: dict[str, Any]) -> None:
        header = json.dumps(tensors, separators=(",", ":")).encode().ljust(_HEADER_BYTES)
        self._file.seek(0)
        self._file.write(struct.pack("<Q", len(header)) + header)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def close(self) -> None:
        """Close the file, finished or not."""
        with contextlib.suppress(OSError):  # on a full disk, writing the rest of the buffer fails again
            self._file.close()


class QuantisedWriter(MatrixWriter):
    """Writes the codes of a matrix. Without a codebook, all rows wait in a file beside it, and it is made of a sample.

    Rows that were quantised by the given codebook keep their codes.
    """

    def __init__(self, path: Path, *, dimension: int, codebook: NDArray[np.float16] | None = None) -> None:
        super().__init__(path, dimension=dimension, dtype="pq")
        self._waiting = None
        if codebook is None:
            self._waiting = MatrixWriter(path.with_suffix(".rows"), dimension=dimension, dtype="float16")
        else:
            self._begin(codebook)

    def append(self, rows: Matrix, names: Sequence[object]) -> NDArray[Any]:
        """Add rows, shape (names, dimension), and return them as stored."""
        if self._waiting is not None:
            return self._waiting.append(np.asarray(rows), names)
        if isinstance(rows, Quantised) and rows.codebook is self._codebook:
            codes = np.ascontiguousarray(rows.codes)
        else:
            codes = encode(self.checked(np.asarray(rows), names), self._codebook)
        self._file.write(codes.data)
        self.rows += len(codes)
        return codes

    def finish(self) -> None:
        """Quantise the waiting rows, finish the file and flush it to the disk."""
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            waiting.finish()
            matrix = open_matrix(waiting.path)
            chosen = np.random.default_rng(SEED).permutation(len(matrix))[:SAMPLE]
            self._begin(make_codebook(matrix[np.sort(chosen)]))
            for start in range(0, len(matrix), SAMPLE):
                self.append(matrix[start : start + SAMPLE], range(start, len(matrix)))
            waiting.path.unlink()
        groups = groups_of(self.dimension)
        first = self._codebook.nbytes
        tensors = {
            "codebook": {"dtype": "F16", "shape": [CENTROIDS, self.dimension], "data_offsets": [0, first]},
            "codes": {"dtype": "U8", "shape": [self.rows, groups], "data_offsets": [first, first + self.rows * groups]},
        }
        self._end(tensors)

    def close(self) -> None:
        """Close the files, finished or not."""
        if self._waiting is not None:
            self._waiting.close()
        super().close()

    def _begin(self, codebook: NDArray[np.float16]) -> None:
        self._codebook = codebook
        self._file.write(np.ascontiguousarray(codebook, "<f2").data)


def open_matrix(path: Path, *, scattered: bool = False) -> Matrix:
    """Map a matrix into memory: no row is read until it is used.

    The system reads far ahead, which suits a pass over all rows. `scattered` turns that off, for single rows here and
    there.
    """
    if not path.is_file():  # nor a pipe, which would block
        raise EbertError(f"{path} is missing; restore it or make the store again")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            length = int.from_bytes(file.read(8), "little") if size >= 8 else size
            if length > min(size - 8, LONGEST_HEADER):
                raise ValueError("the header is too long")
            header = json.loads(file.read(length), object_pairs_hook=_once)
            found, end = dict[str, tuple[np.dtype[Any], int, int, int]](), 0
            for name in ("vectors",) if "vectors" in header else ("codebook", "codes"):
                tensor, begin = header[name], end
                if tensor["dtype"] not in TENSORS[name]:
                    raise ValueError("vectors are not made of such numbers")
                dtype = dict(DTYPES.values())[tensor["dtype"]]
                rows, columns = tensor["shape"]
                start, end = tensor["data_offsets"]
                if not all(type(number) is int and 0 <= number < LARGEST for number in (rows, columns, start, end)):
                    raise ValueError("these are not sizes")  # but numbers such as Infinity and true, or no numbers
                if start != begin or end != begin + rows * columns * dtype.itemsize:
                    raise ValueError("the data is not where it should be")
                found[name] = dtype, rows, columns, begin
            if "codes" in found and (found["codebook"][1], groups_of(found["codebook"][2])) != (CENTROIDS, columns):
                raise ValueError("codes and codebook do not fit together")
        except (KeyError, TypeError, ValueError, RecursionError):
            raise EbertError(f"{path} is not a matrix of vectors: restore it or make the store again") from None
        if size != 8 + length + end:
            raise EbertError(
                f"{path} is truncated: {size:,} bytes where {8 + length + end:,} are needed for "
                f"{rows:,} x {columns}; restore it or make the store again"
            )
        if end == 0:  # an empty file cannot be mapped
            return np.empty((0, columns), dtype)
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if scattered and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_RANDOM)
    arrays = {
        name: np.frombuffer(mapped, dtype, rows * columns, 8 + length + begin).reshape(rows, columns)
        for name, (dtype, rows, columns, begin) in found.items()
    }
    return arrays["vectors"] if "vectors" in arrays else Quantised(arrays["codes"], arrays["codebook"])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of some keys and values. Refuse a repeated key: other programs may read its other value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found
