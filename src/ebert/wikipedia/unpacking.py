"""Unpacking a range of a compressed file block by block, in little memory whatever the file claims to hold."""

import bz2
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal, Protocol

from ebert._io.compressed import limit, too_much
from ebert._io.progress import Advance, silent

READ = 1 << 16  # bytes of the file at a time: what is known of where it is damaged
BLOCK = 1 << 22  # bytes unpacked at a time, at most

Packing = Literal["bz2", "gz", "xml"]


class DamagedError(Exception):
    """A file that cannot be unpacked from about some byte on."""

    def __init__(self, path: Path, offset: int, size: int, why: str) -> None:
        super().__init__(path, offset, size, why)  # all of them, so that it goes through a pipe
        self.path, self.offset, self.size, self.why = path, offset, size, why

    def __str__(self) -> str:
        return f"{self.path} is damaged at about byte {self.offset:,} of {self.size:,} ({self.why})"


class _Unpacker(Protocol):
    """One stream: takes packed bytes and gives what it can."""

    def unpack(self, data: bytes) -> bytes: ...

    @property
    def hungry(self) -> bool: ...  # there is nothing more without more data

    @property
    def rest(self) -> bytes | None: ...  # what follows the stream; None before its end


class _Bz2:
    def __init__(self) -> None:
        self._stream = bz2.BZ2Decompressor()

    def unpack(self, data: bytes) -> bytes:
        return self._stream.decompress(data, BLOCK)

    @property
    def hungry(self) -> bool:
        return self._stream.needs_input

    @property
    def rest(self) -> bytes | None:
        return self._stream.unused_data if self._stream.eof else None


class _Gz:
    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)
        self._full = False

    def unpack(self, data: bytes) -> bytes:
        out = self._stream.decompress(self._stream.unconsumed_tail + data, BLOCK)
        self._full = len(out) == BLOCK
        return out

    @property
    def hungry(self) -> bool:
        return not self._stream.unconsumed_tail and not self._full

    @property
    def rest(self) -> bytes | None:
        return self._stream.unused_data if self._stream.eof else None


def unpacked(path: Path, packing: Packing, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Give what is in a range of the file, each block with the byte of the file up to which it was read."""
    with path.open("rb") as file:
        size = path.stat().st_size if end is None else end
        file.seek(start)
        raw = _raw(file, start, size)
        yield from raw if packing == "xml" else _streams(path, packing, raw, size)


def _raw(file: IO[bytes], position: int, end: int) -> Iterator[tuple[int, bytes]]:
    while block := file.read(min(READ, end - position)):
        position += len(block)
        yield position, block


def _streams(path: Path, packing: Packing, raw: Iterator[tuple[int, bytes]], size: int) -> Iterator[tuple[int, bytes]]:
    """Unpack one stream after another, as files put together with `cat` have them."""
    stream: _Unpacker | None = None
    before = position = 0
    for position, data in raw:
        before = position - len(data)
        while data:
            if stream is None:
                data = data.lstrip(b"\0")  # padding between and behind streams, as tapes have it
                if not data:
                    break
                stream = _Bz2() if packing == "bz2" else _Gz()
            try:
                out = stream.unpack(data)
                data = b""
                while out or not stream.hungry:
                    if out:
                        yield position, out
                    if stream.rest is not None:
                        break
                    out = stream.unpack(b"")
            except (OSError, zlib.error, EOFError) as error:
                raise DamagedError(path, before, size, str(error)) from None
            if stream.rest is not None:
                data, stream = stream.rest, None
    if stream is not None:
        raise DamagedError(path, position, size, "it ends too early")


def packing_of(path: Path) -> Packing:
    """Tell how a file is compressed by its first bytes; what is not compressed passes for XML."""
    with path.open("rb") as file:
        begin = file.read(4)
    return "gz" if begin[:2] == b"\x1f\x8b" else "bz2" if re.match(rb"BZh[1-9]", begin) else "xml"


def lines(path: Path, advance: Advance = silent) -> Iterator[bytes]:
    """Read the lines of a file, compressed or not, without their ends."""
    held: list[bytes] = []  # of a line that has no end yet
    before = size = 0
    most = limit()
    for position, block in unpacked(path, packing_of(path)):
        advance(position - before)
        before = position
        found = block.split(b"\n")
        held.append(found[0])
        size += len(found[0])
        if size > most:
            raise too_much(f"a line of {path}", most)
        if len(found) > 1:
            yield b"".join(held)
            yield from found[1:-1]
            held, size = [found[-1]], len(found[-1])
    if rest := b"".join(held):
        yield rest
