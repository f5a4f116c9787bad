"""The file of entities added to a store: a log that is only ever appended to, and holds nothing but data.

It begins with MAGIC. Then comes a frame for each transaction: a header with the lengths and checksums of what follows,
the names as JSON, and the vectors. A reader takes whole frames and leaves a last one that is not whole: either somebody
is writing it, or a writer died before it could say that the addition is there. An SQLite file would need less code, but
whoever opens one for writing trusts it: a journal beside it can have any file deleted, a trigger can change vectors.
Version 0.1 wrote such a file, `added.sqlite`; it is read here and never written to.
"""

import json
import os
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ebert._io import files
from ebert.errors import EbertError
from ebert.vectors.catalogue import SEARCH, Database, Names

MAGIC = b"ebert additions 1\n"
HEADER = struct.Struct("<4sIIII")  # mark, bytes of names, bytes of vectors, CRC-32 of both, CRC-32 of the header so far
MARK = b"ADD\n"
MOST = 1 << 28  # bytes of names or vectors in a frame: what a reader is ready to hold
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
    hides: int | None = None  # the row that the store has for the same title, if any
    count: int | None = None
    wikidata: int | None = None
    id: str | None = None
    aliases: tuple[str, ...] = ()  # other names to find it by
    surfaces: tuple[str, ...] = ()  # words that name it in text
    removed: bool = False  # it, or the entity that it hides, is taken away; its vector means nothing


FIELDS = [field.name for field in fields(Addition)]


@dataclass(frozen=True, slots=True)
class Frame:
    """A transaction: what was added, where the vectors stand in the file, and where the frame ends."""

    additions: list[Addition]
    vectors: int
    end: int


def pack(additions: Sequence[Addition], vectors: NDArray[np.float32]) -> bytes:
    """Return the frame of a transaction; `vectors` has the shape (additions, dimension)."""
    records = [{name: value for name in FIELDS if _is_given(value := getattr(one, name))} for one in additions]
    names = json.dumps(records, ensure_ascii=False, separators=(",", ":")).encode()
    numbers = np.ascontiguousarray(vectors, "<f4").tobytes()
    for one in additions:
        try:
            check(one)  # nobody could read it otherwise
        except TypeError as error:
            raise EbertError(f"{one.title!r} cannot be added: {error}") from None
    if max(len(names), len(numbers)) > MOST:
        raise EbertError(f"{len(additions):,} entities are too many for one transaction; add fewer at a time")
    start = HEADER.pack(MARK, len(names), len(numbers), zlib.crc32(numbers, zlib.crc32(names)), 0)[:-4]
    return start + struct.pack("<I", zlib.crc32(start)) + names + numbers


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != ()


def read(file: IO[bytes], start: int, path: Path, dimension: int) -> Iterator[Frame]:
    """Read the frames of a log from `start` (0 or the end of a frame) on. A last frame that is not whole is left."""
    size = os.fstat(file.fileno()).st_size
    file.seek(start)
    if start == 0:
        magic = file.read(len(MAGIC))
        if not MAGIC.startswith(magic):
            raise damaged(path, "it does not begin as one")
        if len(magic) < len(MAGIC):
            return
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
        yield Frame(_parse(text, len(vectors), path, dimension), end - lengths[1], end)
        start = end


def append(path: Path, end: int, frame: bytes) -> None:
    """Write a frame behind the last whole one, which ends at `end`. One that is not whole gives way to it.

    What may have been an addition that was acknowledged, and damaged since, is kept in a file of its own.
    """
    # Without a buffer: what a full disk leaves in it would be written when the file is closed.
    with path.open("r+b", buffering=0) as file:
        start = end or len(MAGIC)
        if end and not is_unfinished(file, end):
            file.seek(end)
            with files.replacing(path.with_name(f"{path.name}.damaged")) as kept:
                kept.write(file.read())
        file.truncate(start)
        try:
            if not end:
                _write(file, 0, MAGIC)
            _write(file, start, frame)
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(start)
            raise


def _write(file: IO[bytes], place: int, data: bytes) -> None:
    """Write all of the data to a file that has no buffer."""
    file.seek(place)
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def is_unfinished(file: IO[bytes], start: int) -> bool:
    """Return whether what follows the last whole frame is the beginning of one, as a writer leaves that was killed.

    Otherwise it may be an addition that was acknowledged, and damaged since.
    """
    size = os.fstat(file.fileno()).st_size
    file.seek(start)
    header = file.read(HEADER.size)
    if len(header) < HEADER.size or not (header + file.read()).strip(b"\0"):
        return True
    lengths = _lengths(header)
    return lengths is not None and start + HEADER.size + sum(lengths) > size


def _lengths(header: bytes) -> tuple[int, int] | None:
    """Return the bytes of names and of vectors that follow a header; None if it is none."""
    if len(header) < HEADER.size:
        return None
    mark, names, numbers, _, own = HEADER.unpack(header)
    good = mark == MARK and own == zlib.crc32(header[:-4]) and max(names, numbers) <= MOST
    return (names, numbers) if good else None


def _frame_follows(file: IO[bytes]) -> bool:
    """Return whether another frame begins somewhere in the rest of a log: then the one before it was whole once."""
    rest, place = file.read(), -1
    while (place := rest.find(MARK, place + 1)) >= 0:
        if _lengths(rest[place : place + HEADER.size]) is not None:
            return True
    return False


def _parse(text: bytes, size: int, path: Path, dimension: int) -> list[Addition]:
    try:
        additions = [_addition(record) for record in json.loads(text)]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(path, str(error)) from None
    width = size // 4 // max(1, len(additions))
    if size != 4 * len(additions) * dimension:
        raise EbertError(
            f"{path} has vectors of dimension {width} in a store of dimension {dimension}; "
            "the files are not of one store: remove or restore it"
        )
    return additions


def _addition(record: Any) -> Addition:
    aliases, surfaces = tuple(record.pop("aliases", ())), tuple(record.pop("surfaces", ()))
    addition = Addition(**record, aliases=aliases, surfaces=surfaces)
    check(addition)
    return addition


def check(addition: Addition) -> None:
    """Raise `TypeError` if an addition has values that no reader would take."""
    own = () if addition.id is None else (addition.id,)
    if not all(isinstance(text, str) for text in (addition.title, *addition.aliases, *addition.surfaces, *own)):
        raise TypeError("a name is not text")
    if type(addition.removed) is not bool:
        raise TypeError(f"removed cannot be {addition.removed!r:.40}")
    most = {"row": 1 << 31, "hides": 1 << 31, "count": 1 << 31, "wikidata": 1 << 62}
    for name, limit in most.items():
        number = getattr(addition, name)
        if not (number is None and name != "row") and not (type(number) is int and 0 <= number < limit):
            raise TypeError(f"{name} cannot be {number!r:.40}")


def damaged(path: Path, why: str) -> EbertError:
    """Return the error for a log that is not as it was written."""
    return EbertError(f"{path} is damaged ({why}); restore it, or remove it and lose what was added to the store")


def read_sqlite(path: Path, dimension: int) -> Iterator[tuple[Addition, NDArray[np.float32]]]:
    """Read all additions with their vectors.

    A journal beside the file is of a writer that died. Playing it would be SQLite's business, but it may have come with
    the file from elsewhere, and then could do harm.
    """
    for journal in (path.with_name(f"{OLD}-journal"), path.with_name(f"{OLD}-wal")):
        if journal.is_file() and journal.stat().st_size:
            raise EbertError(
                f"{journal} is left of an addition that did not end, and is not played back, as it can do harm if it "
                f"came from elsewhere. If you know it is yours, open {path.name} once with the program sqlite3, which "
                f"removes it. Otherwise remove it together with {path.name}, and lose what was added to the store"
            )
    if not path.stat().st_size:
        return
    names = Database(path, OLD_SCHEMA)
    try:
        for addition in collect(names) if names.has("entities") else ():  # else of a first one that was rolled back
            vector = np.frombuffer(
                names.rows("SELECT vector FROM entities WHERE row = ?", (addition.row,))[0][0], "<f4"
            )
            if len(vector) != dimension:
                raise EbertError(
                    f"{path} has a vector of dimension {len(vector)} in a store of dimension {dimension}; "
                    "the files are not of one store: remove or restore it"
                )
            check(addition)
            yield addition, vector
    except (TypeError, ValueError) as error:  # values of other types than the columns have
        raise EbertError(f"{path} is damaged ({error}); remove or restore it") from None
    finally:
        names.close()


def collect(names: Names) -> Iterator[Addition]:
    """Yield the entities in tables of additions, by row, with all their names."""
    aliases: dict[int, list[str]] = defaultdict(list)
    surfaces: dict[int, list[str]] = defaultdict(list)
    for title, row in names.rows("SELECT title, row FROM redirects ORDER BY title"):
        aliases[row].append(title)
    for surface, row in names.rows("SELECT surface, row FROM surfaces") if names.has("surfaces") else ():
        surfaces[row].append(surface)
    ids = dict(names.ids())
    query = "SELECT title, row, hides, count, wikidata FROM entities ORDER BY row"
    for title, row, hides, count, wikidata in names.rows(query):
        others = tuple(aliases[row]), tuple(surfaces[row])
        yield Addition(title, row, hides, count, wikidata, ids.get(row), *others)
