"""Reading other people's pickles without running them.

A pickle is a program. This reader refuses every name but the few that build arrays and plain containers, so a hostile
file ends in an error and not in a shell. It also understands how joblib lays arrays into the stream, and maps them from
the file instead of reading them, so a model larger than memory opens.
"""

import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError


class JoblibArray:
    """Stands in for joblib's array wrapper, whose raw data follows it in the file."""

    subclass: Any
    shape: tuple[int, ...]
    order: str
    dtype: np.dtype[Any]
    numpy_array_alignment_bytes: int | None = None

    def map(self, path: Path, position: int) -> tuple[NDArray[Any], int]:
        """Map the array that begins at a position of the file; give it and where it ends."""
        if self.dtype.hasobject:
            raise EbertError(f"{path} holds an array of Python objects, which is not read")
        shape = tuple(int(size) for size in self.shape)
        size = int(np.prod(shape, dtype=np.int64)) * self.dtype.itemsize
        end = position + size
        if end > path.stat().st_size:
            raise EbertError(f"{path} is truncated: an array of {size:,} bytes at {position:,} runs past its end")
        if size == 0:
            return np.empty(shape, self.dtype), end
        order = "F" if self.order == "F" else "C"
        return np.memmap(path, dtype=self.dtype, mode="r", offset=position, shape=shape, order=order), end


def _encode(text: str, encoding: str = "latin1") -> bytes:
    """Old pickles write bytes as text in Latin-1; nothing else is asked of a codec."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"refused codec {encoding!r}")
    return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("joblib.numpy_pickle", "NumpyArrayWrapper"): JoblibArray,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "memmap"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("collections", "OrderedDict"): OrderedDict,
    ("_codecs", "encode"): _encode,
}
# numpy's own constructors, under the names of numpy 1 and 2
_RECONSTRUCT = np.zeros(0).__reduce__()[0]
_SCALAR = np.float32(0).__reduce__()[0]
for _module in ("numpy.core.multiarray", "numpy._core.multiarray"):
    _ALLOWED[_module, "_reconstruct"] = _RECONSTRUCT  # type: ignore[assignment]
    _ALLOWED[_module, "scalar"] = _SCALAR  # type: ignore[assignment]


# The C unpickler cannot be told where an array follows, the Python one can; the standard library keeps it for this.
class _Reader(pickle._Unpickler):  # type: ignore[name-defined,misc]
    dispatch: ClassVar[dict[int, Callable[..., Any]]] = dict(pickle._Unpickler.dispatch)  # type: ignore[attr-defined]

    def __init__(self, path: Path, file: Any) -> None:
        super().__init__(file)
        self._path, self._stream = path, file

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not array data") from None

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError(f"it refers to something outside the file ({pid!r})")

    def load_build(self) -> None:
        target = self.stack[-2]
        if isinstance(target, type) or callable(target):
            raise pickle.UnpicklingError("it tries to change a class or function")
        super().load_build()
        wrapper = self.stack[-1]
        if isinstance(wrapper, JoblibArray):
            position = self._stream.tell()
            if wrapper.numpy_array_alignment_bytes is not None:
                position += 1 + self._stream.read(1)[0]
            array, end = wrapper.map(self._path, position)
            self._stream.seek(end)
            self.stack[-1] = array

    dispatch[pickle.BUILD[0]] = load_build


class _Unbuffered:
    """Gives the unpickler exactly the bytes it asks for, so that `tell` says where an array begins."""

    def __init__(self, file: Any) -> None:
        self.read, self.readline, self.tell, self.seek = file.read, file.readline, file.tell, file.seek


def load(path: Path) -> Any:
    """Read a pickle of arrays and plain containers, arrays memory-mapped."""
    with path.open("rb") as file:
        try:
            return _Reader(path, _Unbuffered(file)).load()
        except EbertError:
            raise
        except Exception as error:  # a damaged or hostile pickle can fail in any way; none of them ran anything
            raise EbertError(f"{path} cannot be read as a model file: {error or type(error).__name__}") from None
