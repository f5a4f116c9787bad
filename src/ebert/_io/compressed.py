"""Compressed input: it is read as a stream, and how much may come out of it is limited.

A few kilobytes can unpack to gigabytes. What is held of a compressed file may be `TIMES` as large as the file, `LEAST`
bytes in any case and `MOST` at most. What is not held, as the pages of a dump, has no limit, but one line or page of it
may have `ONE` bytes. EBERT_MAX_UNPACKED, which ``ebert --max-unpacked`` sets, takes the place of all of them.
"""

import bz2
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from ebert._io.progress import Advance
from ebert.errors import EbertError

VARIABLE = "EBERT_MAX_UNPACKED"
TIMES = 100  # text packs to a fifth of its size; answers of a run, which are much alike, to a twentieth
LEAST, MOST = 4 << 20, 1 << 30
ONE = 16 << 20
LINE = 512  # bytes that a line counts as at least: what is made of an "x" takes more memory than one byte

BLOCK = 1 << 16  # bytes unpacked at a time

DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError)  # what the modules raise
UNPACK: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}  # by a file's ending
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def limit(size: int | None = None, most: int = MOST) -> int:
    """Return how many bytes may be held of a file of `size` bytes; without a size, of one line or page."""
    return chosen() or (ONE if size is None else min(most, max(LEAST, TIMES * size)))


def chosen() -> int | None:
    """Return the limit that the user set, if any."""
    text = os.environ.get(VARIABLE)
    return in_bytes(text) if text else None


def in_bytes(text: str) -> int:
    """Read a number of bytes such as 500M or 2G.

    >>> in_bytes("2K")
    2048
    """
    found = re.fullmatch(r"(\d{1,15})([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not found or not int(found[1]):
        raise EbertError(f"{VARIABLE} (--max-unpacked) is {text!r}; give a number of bytes, such as 500M or 2G")
    return int(found[1]) * _UNITS[found[2].upper()]


def too_much(what: str, most: int) -> EbertError:
    """Return the error for something that is too large once it is unpacked."""
    return EbertError(
        f"{what} has more than {most:,} bytes when it is unpacked; if you trust it, allow more: ebert "
        f"--max-unpacked SIZE ... (for example 2G), or {VARIABLE}=SIZE"
    )


class Room:
    """How much may still come out of a file."""

    def __init__(self, path: Path, most: int) -> None:
        self._path, self._most, self._left = path, most, most

    def take(self, count: int) -> None:
        """Count some bytes, or raise an error if there is no room for them."""
        self._left -= count
        if self._left < 0:
            raise too_much(str(self._path), self._most)

    def lines(self, file: IO[bytes]) -> Iterator[bytes]:
        """Read the lines of a file that stay in memory. None has more than a quarter of what a line may have."""
        for line in lines(file, self._path, limit() // 4):
            self.take(max(LINE, len(line)))
            yield line


class _Bounded(io.RawIOBase):
    def __init__(self, file: IO[bytes], room: Room) -> None:
        self._file, self._room = file, room

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        self._room.take(len(data))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading bytes, decompressed if its ending says that it is compressed."""
    return cast("IO[bytes]", UNPACK[path.suffix](path) if path.suffix in UNPACK else path.open("rb"))


def bounded(path: Path, ending: str | None = None) -> IO[bytes]:
    """Open a file that is to be held in memory; reading more from it than it may unpack to raises an error.

    `ending` says how it is packed if its own does not.
    """
    ending = path.suffix if ending is None else ending
    if ending not in UNPACK:
        return path.open("rb")
    room = Room(path, limit(path.stat().st_size))
    return io.BufferedReader(_Bounded(UNPACK[ending](path), room), BLOCK)


def lines(file: IO[bytes], path: Path, most: int | None = None) -> Iterator[bytes]:
    """Read the lines of a file; one of a compressed file that is longer than a line may be is an error."""
    if most is None and path.suffix not in UNPACK:
        yield from file
        return
    most, number = most or limit(), 0
    while line := file.readline(most + 1):
        number += 1
        if len(line) > most:
            raise too_much(f"line {number:,} of {path}", most)
        yield line


class Opened:
    """An open file, decompressed by its ending, that knows how much of it was read from the disk."""

    def __init__(self, raw: IO[bytes], stream: IO[bytes]) -> None:
        self.stream, self._raw, self._reported = stream, raw, 0

    def report(self, advance: Advance) -> None:
        """Report what was read since the last time."""
        position = self._raw.tell()
        advance(position - self._reported)
        self._reported = position


@contextmanager
def open_measured(path: Path) -> Iterator[Opened]:
    """Open a file for reading; the error for a damaged one names it."""
    if not path.is_file():
        raise EbertError(f"there is no file {path}")
    try:
        with path.open("rb") as raw:
            if path.suffix in UNPACK:
                with UNPACK[path.suffix](raw) as unpacked:
                    yield Opened(raw, unpacked)
            else:
                yield Opened(raw, raw)
    except DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk's fault, not the compression's
            raise
        raise EbertError(f"{path} is truncated or damaged: {error}") from None
