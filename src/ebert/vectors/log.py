"""The file of entities added to a store: a log that is only ever appended to, and holds nothing but data.

It begins with MAGIC. Then comes a frame for each transaction: a header with the lengths and checksums of what follows,
the names as JSON, and the vectors. A reader takes complete frames and ignores an incomplete last one: either somebody
is still writing it, or a writer died before it confirmed the addition. An SQLite file would need less code, but opening
one for writing means trusting it: a journal beside it can have any file deleted, a trigger can change vectors. Version
0.1 wrote such a file, `added.sqlite`; it is read here and never written to.
"""

import json
import os
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ebert._io import files
from ebert.errors import EbertError
from ebert.vectors.catalogue import SEARCH, Database

MAGIC = b"ebert additions 1\n"
HEADER = struct.Struct("<4sIIII")  # mark, bytes of names, bytes of vectors, CRC-32 of both, CRC-32 of the header so far
MARK = b"ADD\n"
MOST = 1 << 28  # the largest number of bytes of names or vectors in a frame that a reader accepts
LIMITS = {"row": 1 << 31, "hides": 1 << 31, "count": 1 << 31, "wikidata": 1 << 62}  # of numbers
OLD = "added.sqlite"
OLD_SCHEMA = (
    "CREATE TABLE entities (row INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, count INTEGER,"
    " wikidata INTEGER, vector BLOB NOT NULL, hides INTEGER)",
    "CREATE INDEX entities_by_wikidata ON entities (wikidata) WHERE wikidata IS NOT NULL",
    "CREATE INDEX entities_hiding ON entities (hides) WHERE hides IS NOT NULL",
    "CREATE TABLE redirects (title TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE ids (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE)",
    "CREATE TABLE surfaces (surface TEXT, row INTEGER, PRIMARY KEY (surface, row)) WITHOUT ROWID",
    SEARCH[0],
)


@dataclass(frozen=True, slots=True)
class Addition:
    """An entity that is added, checked."""

    title: str
    row: int | None = None  # None until it has one
    hides: int | None = None  # the store's own row for the same title, if any
    count: int | None = None
    wikidata: int | None = None
    id: str | None = None
    aliases: tuple[str, ...] = ()  # other names to find it by
    surfaces: tuple[str, ...] = ()  # words that name it in text
    removed: bool = False  # it, or the entity that it hides, is removed; its vector means nothing

    def check(self) -> None:
        """Raise `TypeError` if there are values that no reader would accept."""
        own = () if self.id is None else (self.id,)
        if not all(isinstance(text, str) for text in (self.title, *self.aliases, *self.surfaces, *own)):
            raise TypeError("a name is not text")
        if type(self.removed) is not bool:
            raise TypeError(f"removed cannot be {self.removed!r:.40}")
        for name, limit in LIMITS.items():
            number = getattr(self, name)
            if not (number is None and name != "row") and not (type(number) is int and 0 <= number < limit):
                raise TypeError(f"{name} cannot be {number!r:.40}")


@dataclass(frozen=True, slots=True)
class Frame:
    """A transaction: what was added, where the vectors stand in the file, and where the frame ends."""

    additions: list[Addition]
    vectors: int
    end: int


def pack(additions: Sequence[Addition], vectors: NDArray[np.float32]) -> bytes:
    """Return the frame of a transaction; `vectors` has the shape (additions, dimension)."""
    for one in additions:
        try:
            one.check()  # nobody could read it otherwise
        except TypeError as error:
            raise EbertError(f"{one.title!r} cannot be added: {error}") from None
    records = [
        {field.name: value for field in fields(one) if (value := getattr(one, field.name)) != field.default}
        for one in additions
    ]
    names = json.dumps(records, ensure_ascii=False, separators=(",", ":")).encode()
    numbers = np.ascontiguousarray(vectors, "<f4").tobytes()
    if max(len(names), len(numbers)) > MOST:
        raise EbertError(f"{len(additions):,} entities are too many for one transaction; add fewer at a time")
    start = HEADER.pack(MARK, len(names), len(numbers), zlib.crc32(numbers, zlib.crc32(names)), 0)[:-4]
    return start + struct.pack("<I", zlib.crc32(start)) + names + numbers


def read(file: IO[bytes], start: int, path: Path, dimension: int) -> Iterator[Frame]:
    """Read the frames of a log from `start` (0 or the end of a frame) on. Ignore an incomplete last frame."""
    size = file.seek(0, os.SEEK_END)
    file.seek(start)
    if start == 0:
        magic = file.read(len(MAGIC))
        if not MAGIC.startswith(magic):
            raise damaged(path, "it does not begin as one")
        start = len(MAGIC)
    while header := file.read(HEADER.size):
        if (lengths := _lengths(header)) is None:
            if len(header) == HEADER.size and _frame_follows(file):
                raise damaged(path, f"no addition begins at byte {start:,}")
            return
        end = start + HEADER.size + sum(lengths)
        if end > size:
            return
        text, vectors = (file.read(length) for length in lengths)
        if zlib.crc32(vectors, zlib.crc32(text)) != HEADER.unpack(header)[3]:
            if end < size:
                raise damaged(path, f"the additions at byte {start:,} are not what was written")
            return
        additions = _parse(text, path)
        if len(vectors) != 4 * len(additions) * dimension:
            raise _of_another_store(path, len(vectors) // 4 // max(1, len(additions)), dimension)
        yield Frame(additions, end - lengths[1], end)
        start = end


def append(path: Path, end: int, frame: bytes) -> None:
    """Write a frame after the last complete one, which ends at `end`. An incomplete one is overwritten.

    Bytes that may be a confirmed addition, damaged later, are kept in a separate file.
    """
    # Without a buffer: what a full disk leaves in it would be written when the file is closed.
    with path.open("r+b", buffering=0) as file:
        if end and not _is_unfinished(file, end):
            file.seek(end)
            with files.replacing(path.with_name(f"{path.name}.damaged")) as kept:
                kept.write(file.read())
        file.truncate(end)
        try:
            file.seek(end)
            left = memoryview(frame if end else MAGIC + frame)
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(end)
            raise


def _is_unfinished(file: IO[bytes], start: int) -> bool:
    """Return whether the rest after the last complete frame is the beginning of one, as a killed writer leaves it.

    Otherwise it may be a confirmed addition that was damaged later.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(start)
    header = file.read(HEADER.size)
    if len(header) < HEADER.size or not (header + file.read()).strip(b"\0"):
        return True
    lengths = _lengths(header)
    return lengths is not None and start + HEADER.size + sum(lengths) > size


def _lengths(header: bytes) -> tuple[int, int] | None:
    """Return the bytes of names and of vectors that follow a header; None if it is not a header."""
    if len(header) < HEADER.size:
        return None
    mark, names, numbers, _, own = HEADER.unpack(header)
    good = mark == MARK and own == zlib.crc32(header[:-4]) and max(names, numbers) <= MOST
    return (names, numbers) if good else None


def _frame_follows(file: IO[bytes]) -> bool:
    """Return whether another frame begins somewhere in the rest of a log: then the one before it was once complete."""
    rest, place = file.read(), -1
    while (place := rest.find(MARK, place + 1)) >= 0:
        if _lengths(rest[place : place + HEADER.size]) is not None:
            return True
    return False


def _parse(text: bytes, path: Path) -> list[Addition]:
    additions = []
    try:
        for record in json.loads(text):
            lists = {name: tuple(record.get(name, ())) for name in ("aliases", "surfaces")}
            additions.append(Addition(**(record | lists)))
            additions[-1].check()
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(path, str(error)) from None
    return additions


def damaged(path: Path, why: str) -> EbertError:
    """Return the error for a damaged log."""
    return EbertError(f"{path} is damaged ({why}); restore it, or remove it and lose what was added to the store")


def _of_another_store(path: Path, width: int, dimension: int) -> EbertError:
    return EbertError(
        f"{path} has vectors of dimension {width} in a store of dimension {dimension}; "
        "the files are not of one store: remove or restore it"
    )


def from_sqlite(path: Path, dimension: int) -> bytes:
    """Return a log with the additions of version 0.1.

    A journal beside the file was left by a writer that died. SQLite would replay it, but it may have come with the file
    from elsewhere, and could then do harm.
    """
    for journal in (path.with_name(f"{OLD}-journal"), path.with_name(f"{OLD}-wal")):
        if journal.is_file() and journal.stat().st_size:
            raise EbertError(
                f"{journal} is left over from an addition that did not end. It is not replayed, because it could "
                f"do harm if it came from elsewhere. If you know that it is yours, open {path.name} once with the "
                f"program sqlite3, which "
                f"removes it. Otherwise remove it together with {path.name}, and lose what was added to the store"
            )
    if not path.stat().st_size:
        return b""
    with closing(Database(path, OLD_SCHEMA)) as old:
        tables = {name for (name,) in old.rows("SELECT name FROM sqlite_master")}
        if "entities" not in tables:  # of a first addition that was rolled back
            return b""
        names: dict[str, dict[int, list[str]]] = {}
        for table, column in (("redirects", "title"), ("surfaces", "surface"), ("ids", "id")):
            names[table] = defaultdict(list)
            for name, row in old.rows(f"SELECT {column}, row FROM {table}") if table in tables else ():
                names[table][row].append(name)
        log = [MAGIC]
        query = "SELECT row, title, hides, count, wikidata, vector FROM entities WHERE row > ? ORDER BY row"
        try:
            for row, title, hides, count, wikidata, vector in old.pages(query, -1 << 62):
                own = next(iter(names["ids"][row]), None)
                others = tuple(names["redirects"][row]), tuple(names["surfaces"][row])
                addition, array = (
                    Addition(title, row, hides, count, wikidata, own, *others),
                    np.frombuffer(vector, "<f4"),
                )
                if len(array) != dimension:
                    raise _of_another_store(path, len(array), dimension)
                addition.check()
                log.append(pack([addition], array))
        except (TypeError, ValueError) as error:  # values of other types than the columns have
            raise EbertError(f"{path} is damaged ({error}); remove or restore it") from None
        return b"".join(log)
