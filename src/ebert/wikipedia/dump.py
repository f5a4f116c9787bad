"""Read MediaWiki exports: detect what a file is, unpack it, cut it into pieces for worker processes, find its pages.

A piece is a few megabytes of XML. A bz2 file of one stream, or a gz file, can be unpacked from its beginning only, so
its pieces are cut here and hold whole pages. Plain XML and bz2 files of many streams, as Wikipedia publishes them, are
cut anywhere and unpacked by the workers; a page may then lie across a cut, and its fragments are put together
afterwards.

Pages are found by their tags: in text, '<' is always escaped. This is several times faster than an XML parser, and
independent of the version of the export's schema. Unpacking is written by hand because the standard library's files
cannot begin in the middle, nor say at which byte they are damaged.
"""

import bz2
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from ebert._io.compressed import limit, too_much
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError

PIECE = 8 << 20  # bytes of XML in a piece, about
RANGE = 2 << 20  # bytes of a bz2 file of many streams in a piece, about
LOOK_AHEAD = 16 << 20  # bytes within which a file of many streams has its second one
READ = 1 << 16  # bytes of a file at a time: the precision of the place of damage
BLOCK = 1 << 22  # bytes unpacked at a time, at most

PAGE, _END = b"<page>", b"</page>"
_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_REDIRECT = re.compile(rb'<redirect\s+title="([^"]*)"')
_REFERENCE = re.compile(r"&#(x[0-9a-fA-F]{1,6}|[0-9]{1,7});")

Kind = Literal["bz2", "streams", "gz", "xml"]  # streams: bz2 of more than one
Packing = Literal["bz2", "gz", "xml"]


class DamagedError(Exception):
    """A file that cannot be unpacked from about a certain byte on."""

    def __init__(self, path: Path, offset: int, size: int, why: str) -> None:
        super().__init__(path, offset, size, why)  # all of them, so that it goes through a pipe
        self.path, self.offset, self.size, self.why = path, offset, size, why

    def __str__(self) -> str:
        return f"{self.path} is damaged at about byte {self.offset:,} of {self.size:,} ({self.why})"


@dataclass(frozen=True, slots=True)
class Dump:
    """A file that was inspected, but not read yet."""

    path: Path
    kind: Kind
    size: int
    changed: int  # when, in nanoseconds
    header: str  # everything before the first page

    def blocks(self, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Unpack a range of the file; yield each block with the byte of the file up to which it was read."""
        return unpacked(self.path, "bz2" if self.kind == "streams" else self.kind, start, end)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some pages of a dump: as XML, or as a range of bytes of the file."""

    number: int
    start: int  # bytes of the file
    end: int
    xml: bytes | None = None
    damage: DamagedError | None = None  # why the file cannot be read after this piece


class Page(NamedTuple):
    """The fields of a page of a dump; `text` is that of its newest revision, still escaped."""

    title: str  # as written
    namespace: int | None  # schemas before 0.6 do not say
    redirect: str | None  # the target, as written
    model: str  # of the content: 'wikitext' where nothing is said
    text: bytes | None

    def source(self) -> str:
        """Return the wikitext."""
        return unescape(self.text or b"")


class Cut(NamedTuple):
    """A piece of XML: its whole pages, and the fragments before and after them."""

    head: bytes
    pages: list[bytes]
    tail: bytes
    broken: int  # pages that have no end because another begins


def look(path: Path) -> Dump:
    """Find out what a file is; raise `EbertError` if it is not a dump."""
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
    packing = _packing(begin)
    if packing == "xml" and not begin[:1000].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        raise EbertError(f"{path} is neither XML nor XML packed by bzip2 or gzip; give a pages-articles dump")
    kind: Kind = "streams" if packing == "bz2" and _STREAM.search(begin, 1) else packing
    return Dump(path, kind, status.st_size, status.st_mtime_ns, _header(path, packing))


def _packing(begin: bytes) -> Packing:
    """Return how a file with these first bytes is compressed; an uncompressed file is taken for XML."""
    return "gz" if begin[:2] == b"\x1f\x8b" else "bz2" if re.match(rb"BZh[1-9]", begin) else "xml"


def _header(path: Path, packing: Packing) -> str:
    begin = b""
    try:
        for _, block in unpacked(path, packing):
            begin += block
            if PAGE in begin or len(begin) > PIECE:
                break
    except DamagedError as error:
        if PAGE not in begin:
            raise EbertError(f"{error}; none of it can be read: get it again") from None
    header, page, _ = begin.partition(PAGE)
    if not page and b"<mediawiki" not in header:
        raise EbertError(f"{path} is not a MediaWiki export: it has neither <mediawiki> nor a <page>")
    return header.decode("utf-8", "replace")


def refuse_long(path: Path, size: int) -> None:
    """Raise an error if a page of a dump is longer than a page may be."""
    if size > limit():
        raise too_much(f"a page of {path}", limit())


# Pieces of a file


def pieces(dump: Dump) -> Iterator[Piece]:
    """Cut a dump. The cuts depend only on the file, so that stopped work can continue."""
    if dump.kind in ("bz2", "gz"):
        yield from whole_pages(dump)
        return
    cuts = _stream_starts(dump.path) if dump.kind == "streams" else range(PIECE, dump.size, PIECE)
    for number, (start, end) in enumerate(pairwise(chain([0], cuts, [dump.size]))):
        yield Piece(number, start, end)


def streams_in(data: bytes) -> list[int]:
    """Return where streams of bz2 begin: at a whole byte, with ten bytes that do not occur by chance."""
    return [match.start() for match in _STREAM.finditer(data)]


def _stream_starts(path: Path) -> Iterator[int]:
    """Yield where streams begin that are about two megabytes apart."""
    overlap = 9  # bytes; one less than the mark, so that none is found twice
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


def whole_pages(dump: Dump) -> Iterator[Piece]:
    """Unpack a file from its beginning and cut it after pages."""
    buffer = bytearray()
    number = start = position = searched = 0
    damage = None
    try:
        for position, block in dump.blocks():
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


# Pages of a piece


def cut_pages(xml: bytes) -> Cut:
    """Find the pages of a piece of XML that was cut anywhere. If no page begins, all of it is head."""
    first = start = xml.find(PAGE)
    if first < 0:
        return Cut(xml, [], b"", 0)
    found: list[bytes] = []
    broken = 0
    while True:
        end = xml.find(_END, start)
        last = xml.rfind(PAGE, start, len(xml) if end < 0 else end)
        if last > start:
            broken += xml.count(PAGE, start, last)
            start = last
        if end < 0:
            return Cut(xml[:first], found, xml[start:], broken)
        found.append(xml[start + len(PAGE) : end])
        end += len(_END)
        start = xml.find(PAGE, end)
        if start < 0:
            return Cut(xml[:first], found, xml[end:], broken)


def read_page(page: bytes) -> Page:
    """Parse a page, given as everything between its tags."""
    title = unescape(_between(page, b"<title>", b"</title>") or b"").strip()
    number = _between(page, b"<ns>", b"</ns>")
    first = page.find(b"<revision>")
    redirect = _REDIRECT.search(page, 0, len(page) if first < 0 else first)
    newest = max(0, page.rfind(b"<revision>"))
    model = _between(page, b"<model>", b"</model>", newest)
    return Page(
        title,
        int(number) if number and number.strip().lstrip(b"-").isdigit() else None,
        unescape(redirect[1]) if redirect else None,
        model.decode("utf-8", "replace") if model else "wikitext",
        _text(page, newest),
    )


def unescape(raw: bytes) -> str:
    """Decode XML: the five named entities and numbers."""
    text = raw.decode("utf-8", "replace")
    if "&" not in text:
        return text
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&apos;", "'")
    if "&#" in text:
        text = _REFERENCE.sub(_character, text)
    return text.replace("&amp;", "&")


def _character(match: re.Match[str]) -> str:
    code = int("0" + match[1], 16) if match[1][0] == "x" else int(match[1])
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def _between(page: bytes, opening: bytes, closing: bytes, start: int = 0) -> bytes | None:
    begin = page.find(opening, start)
    end = page.find(closing, begin + len(opening)) if begin >= 0 else -1
    return None if end < 0 else page[begin + len(opening) : end]


def _text(page: bytes, start: int) -> bytes | None:
    begin = page.find(b"<text", start)
    tag = page.find(b">", begin) if begin >= 0 else -1
    if tag < 0:
        return None
    if page[tag - 1 : tag] == b"/":
        return b""
    end = page.find(b"</text>", tag)
    return None if end < 0 else page[tag + 1 : end]


# Unpacking, in little memory whatever the file claims to hold


def unpacked(path: Path, packing: Packing, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Unpack a range of a file; yield each block with the byte of the file up to which it was read."""
    with path.open("rb") as file:
        size = path.stat().st_size
        file.seek(start)
        raw = _raw(file, start, size if end is None else end)
        yield from raw if packing == "xml" else _streams(path, packing, raw, size)


def lines(path: Path, advance: Advance = silent) -> Iterator[bytes]:
    """Read the lines of a file, compressed or not, without their ends."""
    with path.open("rb") as file:
        packing = _packing(file.read(4))
    held = bytearray()  # of a line that has no end yet
    before, most = 0, limit()
    for position, block in unpacked(path, packing):
        advance(position - before)
        before = position
        whole, end, rest = block.rpartition(b"\n")
        if end:
            yield from (bytes(held) + whole).split(b"\n")
            held.clear()
        held += rest
        if len(held) > most:
            raise too_much(f"a line of {path}", most)
    if held:
        yield bytes(held)


def _raw(file: IO[bytes], position: int, end: int) -> Iterator[tuple[int, bytes]]:
    while block := file.read(min(READ, end - position)):
        position += len(block)
        yield position, block


def _streams(path: Path, packing: Packing, raw: Iterator[tuple[int, bytes]], size: int) -> Iterator[tuple[int, bytes]]:
    """Unpack one stream after another, as files put together with `cat` have them."""
    stream: Any = None  # of bz2, or of zlib, which differ in that the latter gives back what it has not read
    position = 0
    for position, data in raw:
        before = position - len(data)
        while data:
            if stream is None:
                data = data.lstrip(b"\0")  # padding between and after streams, as on tapes
                if not data:
                    break
                stream = bz2.BZ2Decompressor() if packing == "bz2" else zlib.decompressobj(wbits=31)
            try:
                while out := stream.decompress(data, BLOCK):
                    yield position, out
                    if stream.eof:
                        break
                    data = getattr(stream, "unconsumed_tail", b"")
            except (OSError, zlib.error) as error:
                raise DamagedError(path, before, size, str(error)) from None
            data = b""
            if stream.eof:
                data, stream = stream.unused_data, None
    if stream is not None:
        raise DamagedError(path, position, size, "it ends too early")
