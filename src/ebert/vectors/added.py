"""Entities added after a store was made: read from a log beside the big files (`ebert.vectors.log`), found by SQL.

The names are put into a database in memory, which each process makes for itself; the vectors stay in the log. Additions
of other processes are there as soon as the log has grown. The log's name carries the identity of its store, so that a
reader of a store that is replaced never takes up the additions of the new one.
"""

import itertools
import os
import sqlite3
import stat
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from ebert._io import files, staging
from ebert.errors import EbertError
from ebert.vectors import log
from ebert.vectors.catalogue import SEARCH, HeldConnection, Names
from ebert.vectors.entity import Entity
from ebert.vectors.log import Addition

# `place` is where the vector stands in the log; one that is not in the log yet is here itself.
SCHEMA = (
    "CREATE TABLE entities (row INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, count INTEGER, wikidata INTEGER,"
    " hides INTEGER, place INTEGER, vector BLOB)",
    "CREATE INDEX entities_by_wikidata ON entities (wikidata) WHERE wikidata IS NOT NULL",
    "CREATE TABLE redirects (title TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE ids (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE)",
    "CREATE TABLE surfaces (surface TEXT, row INTEGER, PRIMARY KEY (surface, row)) WITHOUT ROWID",
    "CREATE TABLE removed (row INTEGER PRIMARY KEY, title TEXT NOT NULL, hides INTEGER)",
    SEARCH[0],
)
LOCK = "added.lock"
PATIENCE = 60.0  # seconds to wait for others who add
PAGE = 1024


@dataclass(frozen=True, slots=True)
class Added:
    """An entity that was added, with the row of the store that it took the place of, if any."""

    entity: Entity
    hides: int | None
    vector: NDArray[np.float32]


@dataclass
class _Loaded:
    """The names of what was added, as far as the log was read."""

    held: HeldConnection
    file: IO[bytes] | None  # the log; None if there is none yet
    end: int = 0  # of the last whole frame
    seen: tuple[int, ...] = (0,)  # the `_mark` of the log when it was last read
    searched: int = 0  # the last row whose title is in the search index
    pending: list[tuple[Addition, NDArray[np.float32]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.file is not None:
            weakref.finalize(self, os.close, self.file.fileno())


class Overlay(Names):
    """Reads and writes the added entities of one store, and which of its own were removed."""

    added = True

    def __init__(self, path: Path, *, dimension: int, check: Callable[[], None]) -> None:
        super().__init__(path)
        self._dimension, self._check, self._place = dimension, check, str(path)
        self._old = path.with_name(log.OLD) if path.with_name(log.OLD).exists() else None
        self._process, self._lock = os.getpid(), threading.RLock()
        self._loaded: _Loaded | None = None
        self._times = 0  # that the log was read from its beginning
        self._existed = self._old is not None or path.exists()

    def __bool__(self) -> bool:
        """Return whether anything was ever added."""
        return self._current() is not None

    def __len__(self) -> int:
        """Return the number of added entities."""
        return int(self.rows("SELECT count(*) FROM entities")[0][0]) if self else 0

    def unread(self) -> int:
        """Return the bytes at the end of the log that are no whole addition: one that did not end, or was damaged."""
        loaded = self._current()
        return loaded.seen[1] - loaded.end if loaded and loaded.file else 0

    def stamp(self) -> tuple[int, int]:
        """Return something that is another thing after anything was added, by whomever."""
        loaded = self._current()
        return (self._times, loaded.end) if loaded else (0, 0)

    def vector(self, row: int) -> NDArray[np.float32]:
        """Return the vector of an added entity."""
        self._current()  # another process may have replaced it
        with self._lock:
            found = self.rows("SELECT place, vector FROM entities WHERE row = ?", (row,))
            if not found:
                raise EbertError(
                    f"{self.path} has no row {row}: the entity is of another store, or it was replaced or removed"
                )
            return self._vector(*found[0])

    def hides(self, row: int) -> int | None:
        """Return the row of the store that an added entity took the place of."""
        self._current()
        found = self.rows("SELECT hides FROM entities WHERE row = ?", (row,))
        return found[0][0] if found else None

    def named(self, surface: str) -> list[Entity]:
        """Return the added entities that a surface may mean."""
        return self.entities("surfaces s JOIN entities e USING (row) WHERE surface = ?", (surface,))

    def surfaces(self) -> list[tuple[str, int]]:
        """Return all surfaces with the rows of what they may mean."""
        return self.rows("SELECT surface, row FROM surfaces ORDER BY surface, row") if self else []

    def hidden(self) -> set[int]:
        """Return the rows of the store that were replaced or removed."""
        query = "SELECT hides FROM entities WHERE hides IS NOT NULL UNION SELECT hides FROM removed"
        return {row for (row,) in self.rows(query)} - {None} if self else set()

    def current(self, entity: Entity) -> Entity | None:
        """Return what took the place of an entity of the store: another one, itself, or None if it was removed."""
        if later := self.titled([entity.title]):
            return later[1]
        return None if self.rows("SELECT 1 FROM removed WHERE hides = ?", (entity.row,)) else entity

    def all(self) -> Iterator[Added]:
        """Yield all added entities."""
        query = (
            "SELECT title, row, count, wikidata, hides, place, vector FROM entities"
            f" WHERE row > ? ORDER BY row LIMIT {PAGE}"
        )
        last = -1
        while self:
            with self._lock:  # no other thread reads another log between the query and the vectors
                rows = self.rows(query, (last,))
                page = [
                    Added(Entity(title, row, count, wikidata, added=True), hides, self._vector(*where))
                    for title, row, count, wikidata, hides, *where in rows
                ]
            if not page:
                return
            yield from page
            last = page[-1].entity.row

    def names(self) -> Iterator[tuple[int | str | None, ...]]:
        """Yield all that is known of added and removed entities beside vectors, in an order that it alone decides."""
        if self:
            yield from ((one.row, one.title, one.count, one.wikidata) for one in (added.entity for added in self.all()))
            yield from ((title, entity.title) for title, entity in self.redirects())
            yield from self.ids()
            yield from self.surfaces()
            yield from self.rows("SELECT row, title, hides FROM removed ORDER BY row")

    def add(self, new: Addition, vector: NDArray[np.float32]) -> Entity | None:
        """Add an entity, change one that has a row, or remove one; for whoever has the overlay `locked`."""
        assert self._loaded is not None
        if new.row is None:
            last = "SELECT row FROM entities UNION ALL SELECT row FROM removed"
            new = replace(new, row=self.rows(f"SELECT coalesce(max(row), 0) + 1 FROM ({last})")[0][0])
        assert new.row is not None
        _apply(self._loaded.held.connection, [(new, None, b"")])
        self._loaded.pending.append((new, vector))
        return self.at(new.row)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep all others from adding."""
        self._notice_fork()
        lock = self.path.with_name(LOCK)
        if lock.is_symlink():  # opening it would empty what it points to
            raise EbertError(f"{lock} is a link, which ebert never makes; remove it")
        self._check()  # before a lock file is made where the store was
        try:
            with FileLock(lock, timeout=PATIENCE, poll_interval=0.002):
                self._check()  # whoever had it may have replaced the store
                staging.sweep(self.path.parent, self.path.name)  # of those who were killed
                yield
        except Timeout:
            raise OSError(f"cannot add to {self.path}: another process is adding for more than a minute") from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let the block `add` alone; what it added is on disk, and there for all others, when it ends well."""
        try:
            with self.alone(), self._lock:
                loaded = self._current() or self._begin()
                connection = loaded.held.connection
                connection.execute("BEGIN")
                try:
                    yield
                    pending = loaded.pending
                finally:
                    loaded.pending = []
                    connection.execute("ROLLBACK")  # what the log has in the end is read from there, as by all others
                if pending:
                    self._append(loaded, pending)
                    self._check()  # else it was written where nobody reads it
                    self._read()
        except OSError as error:
            if str(error).startswith("cannot add"):
                raise
            raise OSError(f"cannot add to {self.path}: {error.strerror or error}") from error

    def copy(self, path: Path) -> None:
        """Write what was added to the log of another store, one with the same entities."""
        if self:
            with self._lock, files.replacing(path) as file:
                for block in self._dump():
                    file.write(block)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a query over what was added."""
        self._notice_fork()
        with self._lock:
            loaded = self._loaded or self._current() or self._begin()
            try:
                return loaded.held.connection.execute(query, values).fetchall()
            except UnicodeEncodeError:  # half a surrogate pair is in no name
                return []

    def has(self, table: str) -> bool:
        """Return whether there is a table, the search index brought up to date."""
        self._notice_fork()
        if table == "search":
            with self._lock:
                loaded = self._loaded or self._current() or self._begin()
                last = self.rows("SELECT coalesce(max(row), 0) FROM entities")[0][0]
                if last > loaded.searched:
                    query = "INSERT INTO search (rowid, title) SELECT row, title FROM entities WHERE row > ?"
                    self.rows(query, (loaded.searched,))
                    loaded.searched = last
        return True

    def close(self) -> None:
        """Close the log; whoever asks again reads it again."""
        self._notice_fork()
        with self._lock:
            self._loaded = None

    def _current(self) -> _Loaded | None:
        """Return what was added, as the log is now; None if there is none."""
        self._notice_fork()
        try:
            status = os.stat(self._place)  # noqa: PTH116 - asked at every look-up, where pathlib is slow
        except FileNotFoundError:  # nothing was added; or the store was replaced, and the old one goes on here
            if self._loaded is None and self._existed:
                self._check()  # it was replaced before anything was read
                return self._read_old()
            return self._loaded
        loaded = self._loaded
        if loaded is not None and loaded.seen == _mark(status):
            return loaded
        with self._lock:
            return self._read()

    def _notice_fork(self) -> None:
        """Begin anew in a forked process, where another thread of the parent may have the lock for ever."""
        if self._process != os.getpid():
            self._process, self._lock, self._loaded = os.getpid(), threading.RLock(), None

    def _read(self) -> _Loaded | None:
        """Read the log on from where it was read to, or from its beginning if it is another one."""
        loaded = self._loaded
        flags = getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe would be waited for
        try:
            handle = os.open(self.path, os.O_RDONLY | flags)
        except FileNotFoundError:  # replaced just now
            return loaded
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            os.close(handle)
            raise log.damaged(self.path, "it is not a file")
        if loaded and loaded.file and loaded.seen[0] == status.st_ino and loaded.end <= status.st_size:
            os.close(handle)
        else:  # without a buffer, which would keep what others change
            loaded = self._begin(open(handle, "rb", buffering=0, closefd=False))  # noqa: SIM115
        assert loaded.file is not None
        connection = loaded.held.connection
        connection.execute("BEGIN")
        try:
            for frame in log.read(loaded.file, loaded.end, self.path, self._dimension):
                try:
                    staging = itertools.count(frame.vectors, 4 * self._dimension)
                    _apply(connection, [(one, next(staging), None) for one in frame.additions])
                except (sqlite3.DatabaseError, UnicodeEncodeError) as error:  # such as a title twice
                    raise log.damaged(self.path, str(error)) from None
                loaded.end = frame.end
        except BaseException:
            self._loaded = None
            raise
        connection.execute("COMMIT")
        loaded.seen = _mark(status)
        return loaded

    def _read_old(self) -> _Loaded | None:
        """Read what version 0.1 added."""
        with self._lock:
            old = self._old if self._old and self._old.exists() else None
            additions = list(log.read_sqlite(old, self._dimension)) if old else []
            if not additions:
                return None
            loaded = self._begin()
            _apply(loaded.held.connection, [(one, None, vector.tobytes()) for one, vector in additions])
            return loaded

    def _begin(self, file: IO[bytes] | None = None) -> _Loaded:
        """Begin a database in memory."""
        # The lock keeps threads apart, so that one connection serves all of them.
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        for statement in SCHEMA:
            connection.execute(statement)
        self._loaded, self._times, self._existed = _Loaded(HeldConnection(connection), file), self._times + 1, True
        return self._loaded

    def _append(self, loaded: _Loaded, pending: Sequence[tuple[Addition, NDArray[np.float32]]]) -> None:
        """Write a transaction to the end of the log, where a frame that is not whole gives way to it."""
        frame = log.pack([addition for addition, _ in pending], np.stack([vector for _, vector in pending]))
        # A link's target may be shared, as in the hub's cache.
        if loaded.file is None or self.path.is_symlink() or not self.path.exists():
            with files.replacing(self.path) as new:
                for block in self._dump():
                    new.write(block)
                new.write(frame)
            return
        log.append(self.path, loaded.end, frame)

    def _dump(self) -> Iterator[bytes]:
        """Yield the bytes of a log of all that was added and removed so far."""
        yield log.MAGIC
        known = list(log.collect(self))
        for start in range(0, len(known), PAGE):
            page = known[start : start + PAGE]
            places = (self.rows("SELECT place, vector FROM entities WHERE row = ?", (one.row,))[0] for one in page)
            yield log.pack(page, np.stack([self._vector(*place) for place in places]))
        removed = self.rows("SELECT title, row, hides FROM removed ORDER BY row")
        for start in range(0, len(removed), PAGE):
            part = removed[start : start + PAGE]
            gone = [Addition(title, row, hides, removed=True) for title, row, hides in part]
            yield log.pack(gone, np.zeros((len(gone), self._dimension), np.float32))

    def _vector(self, place: int | None, vector: bytes | None) -> NDArray[np.float32]:
        if place is None:
            return np.frombuffer(vector or b"", "<f4")
        with self._lock:
            assert self._loaded is not None
            assert self._loaded.file is not None
            self._loaded.file.seek(place)
            data = self._loaded.file.read(4 * self._dimension)
        if len(data) < 4 * self._dimension:
            raise log.damaged(self.path, "it was cut off")
        return np.frombuffer(data, "<f4")


def _mark(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _apply(connection: sqlite3.Connection, given: Sequence[tuple[Addition, int | None, bytes | None]]) -> None:
    """Put additions into the database, each with the place of its vector or the vector itself; then remove."""
    new = [one for one in given if not one[0].removed]
    gone = [(one.row, one.title, one.hides) for one, _, _ in given if one.removed]
    connection.executemany(
        "INSERT INTO entities (row, title, count, wikidata, hides, place, vector) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (row) DO UPDATE SET count = coalesce(excluded.count, count),"
        " wikidata = coalesce(excluded.wikidata, wikidata), place = excluded.place, vector = excluded.vector",
        ((one.row, one.title, one.count, one.wikidata, one.hides, place, vector) for one, place, vector in new),
    )
    for query, values in (
        ("REPLACE INTO ids VALUES (?, ?)", [(one.row, one.id) for one, _, _ in new if one.id is not None]),
        ("REPLACE INTO redirects VALUES (?, ?)", [(alias, one.row) for one, _, _ in new for alias in one.aliases]),
        ("IGNORE INTO surfaces VALUES (?, ?)", [(name, one.row) for one, _, _ in new for name in one.surfaces]),
        ("REPLACE INTO removed VALUES (?, ?, ?)", gone),
    ):
        if values:
            connection.executemany(f"INSERT OR {query}", values)
    for table in ("entities", "redirects", "ids", "surfaces") if gone else ():
        connection.executemany(f"DELETE FROM {table} WHERE row = ?", [one[:1] for one in gone])
