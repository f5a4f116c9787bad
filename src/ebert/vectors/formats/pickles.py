"""Reading other people's pickles without running them.

A pickle is a program for a small machine that calls whatever the pickle names. The machine here knows a handful of
names. Each stands for a function of this file that makes an array or a plain container out of checked parts: neither
numpy's own unpickling nor any other constructor is called. All other ways to name, call or change something are
refused.

It is written by hand because joblib runs what it loads, scanners of pickles only look for what is known to be bad, and
an allow-list of names for `pickle.Unpickler` would still call numpy's constructors with whatever the file says.

joblib puts the data of arrays into the stream, after their descriptions. The data is mapped, not read, so even a model
larger than memory opens.
"""

import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError

ROOM = 1 << 20  # bytes that may be copied from any file, in addition to its size
_NUMBERS = re.compile(r"[<>|=]?(?:[iu][1248]|f[248]|b1)")  # the element types that are read


class Refused(pickle.UnpicklingError):
    """Something in a pickle that arrays and plain containers do not need."""


class _ElementType:
    """An element type: made from a code such as ``f4``, then told its byte order."""

    def __init__(self, code: str) -> None:
        self.dtype: np.dtype[Any] = np.dtype(code)

    def build(self, state: Any) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
        if order not in ("<", ">", "|", "="):
            raise Refused("it has an element type that is not plain")
        self.dtype = self.dtype.newbyteorder(order)


class _InlineArray:
    """An array whose data is in the pickle itself."""

    value: NDArray[Any]

    def build(self, state: Any) -> None:
        _, shape, kind, fortran, data = state
        self.value = _from_buffer(data, kind, shape, "F" if fortran else "C")


class _JoblibArray:
    """A joblib array, whose data follows in the file."""

    def build(self, state: Any) -> None:
        self._dtype, self._shape = _dtype(state["dtype"]), _shape(state["shape"])
        self._order = state.get("order")
        self._aligned = state.get("numpy_array_alignment_bytes") is not None  # since joblib 1.2

    def map(self, file: IO[bytes], path: Path) -> NDArray[Any]:
        """Map the data at the file's position, and move the position to the end of the data."""
        if self._aligned:
            file.seek(file.read(1)[0], 1)  # a byte says how many padding bytes follow before the data
        position, size = file.tell(), math.prod(self._shape) * self._dtype.itemsize
        if position + size > path.stat().st_size:
            raise EbertError(f"{path} is truncated: an array of {size:,} bytes at {position:,} runs past its end")
        file.seek(position + size)
        if size == 0:
            return np.empty(self._shape, self._dtype)
        flat = np.asarray(np.memmap(path, dtype=self._dtype, mode="r", offset=position, shape=math.prod(self._shape)))
        return flat.reshape(self._shape, order="F" if self._order == "F" else "C")


def _dtype(kind: Any) -> np.dtype[Any]:
    if not isinstance(kind, _ElementType):
        raise Refused("it has an array without an element type")
    return kind.dtype


def _shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, tuple) or not all(isinstance(extent, int) and extent >= 0 for extent in shape):
        raise Refused("it has an array without a shape")
    return shape


# What the names that a pickle may use stand for


def _type(code: Any, *_: Any) -> _ElementType:
    if not isinstance(code, str) or not _NUMBERS.fullmatch(code):
        raise Refused(f"it has an array of {code!r}, not of numbers")
    return _ElementType(code)


def _reconstruct(*_: Any) -> _InlineArray:
    return _InlineArray()  # empty so far; its contents follow


def _from_buffer(data: Any, kind: Any, shape: Any, order: Any, *_: Any) -> NDArray[Any]:
    if not isinstance(data, bytes | bytearray):
        raise Refused("it has an array of Python objects")
    return np.frombuffer(data, _dtype(kind)).reshape(_shape(shape), order="F" if order == "F" else "C")


def _scalar(kind: Any, data: Any) -> int | float | bool:
    number: int | float | bool = _from_buffer(data, kind, (1,), "C")[0].item()
    return number


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):  # how old pickles write bytes
        raise Refused(f"it asks for the codec {encoding!r}")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    return b""  # otherwise it is encoded text of an old pickle


def _mapping(pairs: Any = ()) -> dict[Any, Any]:
    if not isinstance(pairs, list | tuple):
        raise Refused("it has a mapping of something strange")
    _check_keys([pair[0] for pair in pairs])
    return dict(pairs)


def _check_keys(keys: list[Any]) -> None:
    """Refuse keys that are containers: the hash of a tuple of tuples of tuples can take forever."""
    if not all(isinstance(key, str | bytes | int) for key in keys):
        raise Refused("it has a mapping with strange keys")


_SUBCLASS = object()  # the class of an array does not matter here
_NAMES: dict[tuple[str, str], Any] = {
    ("joblib.numpy_pickle", "NumpyArrayWrapper"): _JoblibArray,
    ("numpy", "ndarray"): _SUBCLASS,
    ("numpy", "memmap"): _SUBCLASS,
    ("numpy", "dtype"): _type,
    ("collections", "OrderedDict"): _mapping,
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): _no_bytes,
}
for _numpy in ("numpy.core", "numpy._core"):  # numpy 1 and 2
    _NAMES[f"{_numpy}.multiarray", "_reconstruct"] = _reconstruct
    _NAMES[f"{_numpy}.multiarray", "scalar"] = _scalar
    _NAMES[f"{_numpy}.numeric", "_frombuffer"] = _from_buffer
_FUNCTIONS = (_type, _reconstruct, _from_buffer, _scalar, _encode, _no_bytes, _mapping)

# Numbers, text, bytes, containers, the memo, and those that are defined below.
_OPCODES = """
    PROTO FRAME MARK STOP POP POP_MARK NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
    STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8
    UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 TUPLE EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3
    LIST EMPTY_LIST APPEND APPENDS DICT EMPTY_DICT SETITEM SETITEMS
    GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE GLOBAL STACK_GLOBAL REDUCE NEWOBJ BUILD
""".split()  # noqa: SIM905


class _BoundedFile:
    """Hands the unpickler exactly the bytes it asks for, and no more memory than the file has bytes."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._size, self.readline = file, size, file.readline

    def read(self, count: int) -> bytes:
        if count > self._size - self._file.tell():
            raise pickle.UnpicklingError("it is truncated")
        return self._file.read(count)


_STANDARD: dict[int, Any] = dict(pickle._Unpickler.dispatch)


# The C unpickler cannot be told where an array follows. The Python one, which the library keeps for this, can.
class _ArrayUnpickler(pickle._Unpickler):
    stack: list[Any]
    memo: dict[int, Any]

    def __init__(self, file: IO[bytes], path: Path) -> None:
        super().__init__(_BoundedFile(file, path.stat().st_size))
        self._source, self._path = file, path
        self._room = ROOM + path.stat().st_size

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _NAMES[module, name]
        except KeyError:
            raise Refused(f"it asks for {module}.{name}, which is not array data") from None

    def load_refused(self) -> None:
        raise Refused("it does something that array data does not need")

    def load_reduce(self) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if not any(function is allowed for allowed in _FUNCTIONS):
            raise Refused("it calls something that is not a function")
        if function in (_encode, _mapping) and arguments and isinstance(arguments[0], str | list | tuple):
            self._take(len(arguments[0]))
        self.stack.append(function(*arguments))

    def load_newobj(self) -> None:
        _, kind = self.stack.pop(), self.stack.pop()
        if kind is not _JoblibArray:
            raise Refused("it makes an object that is not an array")
        self.stack.append(_JoblibArray())

    def load_build(self) -> None:
        state, thing = self.stack.pop(), self.stack[-1]
        if not isinstance(thing, _ElementType | _InlineArray | _JoblibArray):
            raise Refused("it changes something that is not an array")
        thing.build(state)
        if not isinstance(thing, _ElementType):
            array = thing.value if isinstance(thing, _InlineArray) else thing.map(self._source, self._path)
            self.stack[-1] = array
            self._take(len(self.memo))
            self.memo.update({key: array for key, value in self.memo.items() if value is thing})

    def _take(self, count: int) -> None:
        """Count what is copied or searched: at most the file's size, so that a part is not used a million times."""
        self._room -= count
        if self._room < 0:
            raise Refused("it makes much out of little")

    def load_setitem(self) -> None:
        _check_keys(self.stack[-2:-1])
        _STANDARD[pickle.SETITEM[0]](self)

    def load_setitems(self) -> None:
        _check_keys(self.stack[::2])  # what lies above the mark: keys and values in turn
        _STANDARD[pickle.SETITEMS[0]](self)

    def load_dict(self) -> None:
        _check_keys(self.stack[::2])
        _STANDARD[pickle.DICT[0]](self)

    _own: ClassVar = {
        pickle.REDUCE[0]: load_reduce, pickle.NEWOBJ[0]: load_newobj, pickle.BUILD[0]: load_build,
        pickle.SETITEM[0]: load_setitem, pickle.SETITEMS[0]: load_setitems, pickle.DICT[0]: load_dict,
    }  # fmt: skip
    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = (
        dict.fromkeys(_STANDARD, load_refused)
        | {code: _STANDARD[code] for name in _OPCODES for code in getattr(pickle, name)}
        | _own
    )


def load(path: Path) -> Any:
    """Read a pickle of arrays and plain containers, arrays memory-mapped."""
    with path.open("rb") as file:
        try:
            return _ArrayUnpickler(file, path).load()
        except EbertError:
            raise
        except Refused as error:
            raise EbertError(f"{path} is not a model file: {error}. Nothing of it was run") from None
        except (Exception, RecursionError) as error:  # a damaged pickle can fail in any way
            why = f"{type(error).__name__}: {error}"
            raise EbertError(f"{path} cannot be read as a model file, it is damaged or truncated ({why})") from None
