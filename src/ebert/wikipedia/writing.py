"""Writing the arrays of a corpus bit by bit."""

import os
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert.wikipedia.corpus import ARRAYS

Array = NDArray[Any]


class ArrayWriter:
    """Writes an array of known length, some values at a time."""

    def __init__(self, folder: Path, name: str, length: int) -> None:
        self._kind = np.dtype(ARRAYS[name])
        self._file = (folder / f"{name}.npy").open("wb")
        header = {"descr": np.lib.format.dtype_to_descr(self._kind), "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(self._file, header)

    def append(self, values: Array) -> None:
        """Write some more values."""
        self._file.write(np.ascontiguousarray(values, self._kind).data)

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())


def write_array(folder: Path, name: str, values: Array) -> None:
    """Write a whole array."""
    with ArrayWriter(folder, name, len(values)) as file:
        file.append(values)
