"""Reading MediaWiki exports: what a file is, and how it is cut into pieces for worker processes.

A piece is a few megabytes of XML. A bz2 file of one stream, or a gz file, can be unpacked from its beginning only, so
its pieces are cut here and hold whole pages. A bz2 file of many streams, as Wikipedia publishes, and plain XML are cut
anywhere and unpacked by the workers; a page may then lie across a cut, and its fragments are put together afterwards.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ebert._io.compressed import limit, too_much
from ebert.errors import EbertError
from ebert.wikipedia.pages import PAGE
from ebert.wikipedia.unpacking import DamagedError, Packing, unpacked

PIECE = 8 << 20  # bytes of XML in a piece, about
RANGE = 2 << 20  # bytes of a bz2 file of many streams in a piece, about
LOOK_AHEAD = 16 << 20  # bytes in which a file of many streams shows its second one

_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_END = b"</page>"

Kind = Literal["bz2", "streams", "gz", "xml"]  # streams: bz2 of more than one


@dataclass(frozen=True, slots=True)
class Dump:
    """A file that was looked at, but not read yet."""

    path: Path
    kind: Kind
    size: int
    changed: int  # when, in nanoseconds
    header: str  # everything before the first page

    @property
    def packing(self) -> Packing:
        """How the file is compressed."""
        return "bz2" if self.kind == "streams" else self.kind


@dataclass(frozen=True, slots=True)
class Piece:
    """Some pages of a dump: as XML, or as a range of bytes of the file."""

    number: int
    start: int  # bytes of the file
    end: int
    xml: bytes | None = None
    damage: DamagedError | None = None  # why the file cannot be read after this piece


def look(path: Path) -> Dump:
    """Find out what a file is, or say why it is no dump."""
    if path.is_dir():
        raise EbertError(f"{path} is a folder; give the dump files in it one by one")
    try:
        status = path.stat()
        with path.open("rb") as file:
            begin = file.read(LOOK_AHEAD)
    except FileNotFoundError:
        raise EbertError(f"there is no dump at {path}") from None
    if not begin:
        raise EbertError(f"{path} is empty; get the dump again")
    kind = _kind(begin)
    if kind is None:
        raise EbertError(f"{path} is neither XML nor XML packed by bzip2 or gzip; give a pages-articles dump")
    header = _header(path, "bz2" if kind == "streams" else kind)
    return Dump(path, kind, status.st_size, status.st_mtime_ns, header)


def _kind(begin: bytes) -> Kind | None:
    if begin.startswith(b"\x1f\x8b"):
        return "gz"
    if re.match(rb"BZh[1-9]", begin):
        return "streams" if _STREAM.search(begin, 1) else "bz2"
    return "xml" if begin[:1000].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<") else None


def _header(path: Path, packing: Packing) -> str:
    begin = b""
    try:
        for _, block in unpacked(path, packing):
            begin += block
            if PAGE in begin or len(begin) > PIECE:
                break
    except DamagedError as error:
        if PAGE not in begin:
            raise EbertError(f"{error}; nothing of it can be read: get it again") from None
    header, page, _ = begin.partition(PAGE)
    if not page and b"<mediawiki" not in header:
        raise EbertError(f"{path} is not a MediaWiki export: it has neither <mediawiki> nor a <page>")
    return header.decode("utf-8", "replace")


def refuse_long(path: Path, size: int) -> None:
    """Raise an error if a page of a dump is longer than a page may be."""
    if size > limit():
        raise too_much(f"a page of {path}", limit())


def pieces(dump: Dump) -> Iterator[Piece]:
    """Cut a dump. The cuts depend on the file alone, so that work that was stopped can go on."""
    if dump.kind in ("bz2", "gz"):
        yield from _whole_pages(dump)
        return
    cuts = _stream_starts(dump.path) if dump.kind == "streams" else range(PIECE, dump.size, PIECE)
    start = number = 0
    for cut in cuts:
        yield Piece(number, start, cut)
        start, number = cut, number + 1
    yield Piece(number, start, dump.size)


def streams_in(data: bytes) -> list[int]:
    """Find where streams of bz2 begin: at a whole byte, with ten bytes that chance does not make."""
    return [match.start() for match in _STREAM.finditer(data)]


def _stream_starts(path: Path) -> Iterator[int]:
    """Find streams that begin about two megabytes apart."""
    overlap = 9  # bytes; one less than the mark has, so that none is found twice
    with path.open("rb") as file:
        last = base = 0
        window = b""
        while block := file.read(LOOK_AHEAD):
            window += block
            for start in streams_in(window):
                if base + start - last >= RANGE:
                    last = base + start
                    yield last
            base += max(0, len(window) - overlap)
            window = window[-overlap:]


def _whole_pages(dump: Dump) -> Iterator[Piece]:
    """Unpack a file from its beginning and cut it behind pages."""
    buffer = bytearray()
    number = start = position = searched = 0
    damage = None
    try:
        for position, block in unpacked(dump.path, dump.packing):
            buffer += block
            while (end := buffer.find(_END, max(PIECE, searched))) >= 0:
                end += len(_END)
                yield Piece(number, start, position, bytes(buffer[:end]))
                del buffer[:end]
                number, start, searched = number + 1, position, 0
            refuse_long(dump.path, len(buffer) - PIECE)
            searched = max(0, len(buffer) - len(_END))
    except DamagedError as error:
        damage, position = error, dump.size
    yield Piece(number, start, position, bytes(buffer), damage)
