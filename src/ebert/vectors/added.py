"""Entities added after a store was made: read from a log beside the big files (`ebert.vectors.log`), and written to it.

The names go into the tables `added` of the catalogue, in memory, which each process fills for itself; the vectors stay
in the log. Additions of other processes appear as soon as the log has grown. The log's name contains the identity of
its store, so that a reader of a store that is replaced never reads the additions of the new one.
"""

import io
import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from ebert._io import files, staging
from ebert.errors import EbertError
from ebert.vectors import log
from ebert.vectors.catalogue import Catalogue, Session, begin_added
from ebert.vectors.entity import Entity
from ebert.vectors.log import Addition
from ebert.wikipedia.tokens import surface_key

LOCK = "added.lock"
PATIENCE = 60.0  # seconds to wait for other writers
PAGE = 1024

Vector = NDArray[np.float32]


class Overlay:
    """The added entities of one store, and which of its own were removed.

    Additions to a `shared` store go into a temporary log, from the first one on.
    """

    temporary = False  # whether the additions end with the object

    def __init__(self, catalogue: Catalogue, path: Path, *, dimension: int, shared: bool = False) -> None:
        self.shared = shared
        self.path, self._catalogue, self._dimension, self._place = path, catalogue, dimension, str(path)
        self._old = path.with_name(log.OLD)
        self._existed = self._old.exists() or path.exists()
        self._times = 0  # how often a log was read from its beginning
        self._pending: list[tuple[Addition, Vector]] = []  # of the thread that has the overlay `locked`

    def __len__(self) -> int:
        """Return the number of added entities."""
        return int(self.rows("SELECT count(*) FROM added.entities")[0][0])

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a query over the names of the store and what was added to it up to now."""
        self.session()
        return self._catalogue.rows(query, values)

    def session(self) -> Session:
        """Return what this process has open, with all that was added up to now."""
        session = self._catalogue.session()
        try:
            status = os.stat(self._place)  # noqa: PTH116 - asked at every look-up, where pathlib is slow
        except FileNotFoundError:  # nothing was added; or the store was replaced, and the old one is still used here
            if session.mark is None and self._existed:
                with session.lock:
                    self._catalogue.check()  # it was replaced before anything was read
                    old = log.from_sqlite(self._old, self._dimension) if self._old.exists() else b""
                    self._begin(session, io.BytesIO(old))
                    self._read(session)
                    session.mark = ()
            return session
        if session.mark != _mark(status) and not session.connection.in_transaction:
            if not stat.S_ISREG(status.st_mode):  # opening a pipe would block
                raise log.damaged(self.path, "it is not a file")
            with session.lock:
                self._follow(session, status)
        return session

    def unread(self) -> int:
        """Return the bytes at the end of the log that are not a complete addition: it is unfinished or damaged."""
        session = self.session()
        return session.mark[1] - session.end if session.mark else 0

    def stamp(self) -> tuple[int, int]:
        """Return a value that changes after every addition, whoever made it."""
        end = self.session().end
        return self._times, end

    def vector(self, row: int) -> Vector:
        """Return the vector of an added entity."""
        with self.session().lock:  # so that no other thread reads another log between the query and the vector
            found = self.rows("SELECT place FROM added.entities WHERE row = ?", (row,))
            if not found:
                raise EbertError(
                    f"{self.path} has no row {row}: the entity is of another store, or it was replaced or removed"
                )
            if found[0][0] < 0:  # of the current transaction
                return next(vector for new, vector in reversed(self._pending) if new.row == row)
            return self._vector(found[0][0])

    def all(self) -> Iterator[tuple[Entity, Vector]]:
        """Yield all added entities with their vectors."""
        query = f"SELECT title, row, count, wikidata, place FROM added.entities WHERE row > ? ORDER BY row LIMIT {PAGE}"
        last = -1
        while True:
            with self.session().lock:
                page = [
                    (Entity(title, row, count, wikidata, added=True), self._vector(place))
                    for title, row, count, wikidata, place in self.rows(query, (last,))
                ]
            if not page:
                return
            yield from page
            last = page[-1][0].row

    def hidden(self) -> set[int]:
        """Return the rows of the store that were replaced or removed."""
        query = "SELECT hides FROM added.entities UNION SELECT hides FROM added.removed"
        return {row for (row,) in self.rows(query)} - {None}

    def names(self) -> Iterator[tuple[int | str | None, ...]]:
        """Yield all that is known of added and removed entities, except vectors, in an order that only it decides."""
        for query in (
            "SELECT row, title, count, wikidata FROM added.entities ORDER BY row",
            "SELECT r.title, e.title FROM added.redirects r JOIN added.entities e ON e.row = r.row ORDER BY r.title",
            "SELECT row, id FROM added.ids ORDER BY row",
            "SELECT surface, row FROM added.surfaces ORDER BY surface, row",
            "SELECT row, title, hides FROM added.removed ORDER BY row",
        ):
            yield from self.rows(query)

    def add(self, new: Addition, vector: Vector) -> int:
        """Add an entity, change one that has a row, or remove one, and return its row. Call it only when `locked`."""
        if new.row is None:
            last = ", ".join(f"coalesce((SELECT max(row) FROM added.{table}), 0)" for table in ("entities", "removed"))
            new = replace(new, row=self.rows(f"SELECT 1 + max({last})")[0][0])
        assert new.row is not None
        _apply(self._catalogue.session().connection, [new], [-1])
        self._pending.append((new, vector))
        return new.row

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep all others from adding."""
        lock = self.path.with_name(LOCK)
        if lock.is_symlink():  # opening it would empty what it points to
            raise EbertError(f"{lock} is a link, which ebert never makes; remove it")
        self._catalogue.check()  # before a lock file is made where the store was
        try:
            with FileLock(lock, timeout=PATIENCE, poll_interval=0.002):
                self._catalogue.check()  # the last holder may have replaced the store
                staging.sweep(self.path.parent, self.path.name)  # left by killed processes
                yield
        except Timeout:
            raise OSError(f"cannot add to {self.path}: another process has been adding for over a minute") from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let only this block `add`. When it ends without an error, its additions are on disk and visible to others."""
        if self.shared and not self.temporary:
            self._detach()
        try:
            with self.alone():
                session = self.session()
                with session.lock:
                    self._pending = []
                    session.connection.execute("BEGIN")
                    try:
                        yield
                    finally:
                        session.connection.execute("ROLLBACK")  # the log is read instead, as by all others
                    if self._pending:
                        self._append(session, self._pending)
                        self._catalogue.check()  # otherwise it was written where nobody reads it
                        self.session()
        except OSError as error:
            if str(error).startswith("cannot add"):
                raise
            raise OSError(f"cannot add to {self.path}: {error.strerror or error}") from error

    def _detach(self) -> None:
        """Continue in a log that ends with this object and begins with the additions so far."""
        with self.session().lock:
            if not self.temporary:  # another thread was first
                with files.temporary_folder("ebert-added-") as folder:
                    self.copy(folder / self.path.name)
                files.remove_with(self, folder)
                self.join(folder / self.path.name)

    def join(self, path: Path) -> None:
        """Continue in a log that ends with another object."""
        self._catalogue.session().mark = None  # so that it is read from its beginning
        self.path, self._place, self.temporary = path, str(path), True

    def copy(self, path: Path) -> None:
        """Copy the additions to the log of another store with the same entities."""
        session = self.session()
        if session.end:
            with session.lock, files.replacing(path) as file:
                self._dump(session, file)

    def _follow(self, session: Session, status: os.stat_result) -> None:
        """Continue to read the log where reading stopped, or from its beginning if it is another log."""
        if not session.mark or session.mark[0] != status.st_ino or session.end > status.st_size:
            try:  # without a buffer, which would keep outdated bytes
                self._begin(session, open(self._place, "rb", buffering=0))  # noqa: PTH123, SIM115
            except FileNotFoundError:  # replaced just now
                return
        assert session.log is not None
        status = os.fstat(session.log.fileno())
        self._read(session)
        session.mark = _mark(status)

    def _begin(self, session: Session, file: IO[bytes]) -> None:
        if session.log is not None:
            session.log.close()
        begin_added(session.connection)
        session.log, session.end = file, 0
        self._times, self._existed = self._times + 1, True

    def _read(self, session: Session) -> None:
        """Put the contents of the log after the last frame that was read into the tables."""
        assert session.log is not None
        try:
            with session.connection:
                session.connection.execute("BEGIN")
                for frame in log.read(session.log, session.end, self.path, self._dimension):
                    try:
                        stop = frame.vectors + 4 * self._dimension * len(frame.additions)
                        _apply(session.connection, frame.additions, range(frame.vectors, stop, 4 * self._dimension))
                    except (sqlite3.DatabaseError, UnicodeEncodeError) as error:  # such as a title twice
                        raise log.damaged(self.path, str(error)) from None
                    session.end = frame.end
        except BaseException:
            session.mark = None  # so that it is read from its beginning
            raise

    def _append(self, session: Session, pending: Sequence[tuple[Addition, Vector]]) -> None:
        """Write a transaction to the end of the log, in place of an incomplete frame if there is one."""
        frame = log.pack([addition for addition, _ in pending], np.stack([vector for _, vector in pending]))
        # A link's target may be shared, as in the hub's cache.
        if session.mark and self.path.exists() and not self.path.is_symlink():
            log.append(self.path, session.end, frame)
            return
        with files.replacing(self.path) as new:
            self._dump(session, new)
            new.write(frame)

    def _dump(self, session: Session, file: IO[bytes]) -> None:
        """Write the complete frames of the log to another file."""
        if session.log is None or not session.end:
            file.write(log.MAGIC)
            return
        session.log.seek(0)
        while (left := session.end - session.log.tell()) > 0:
            block = session.log.read(min(left, files.BLOCK))
            if not block:
                raise log.damaged(self.path, "it was cut off")
            file.write(block)

    def _vector(self, place: int) -> Vector:
        file = self._catalogue.session().log
        assert file is not None
        file.seek(place)
        data = file.read(4 * self._dimension)
        if len(data) < 4 * self._dimension:
            raise log.damaged(self.path, "it was cut off")
        return np.frombuffer(data, "<f4")


def _mark(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _apply(connection: sqlite3.Connection, given: Sequence[Addition], places: Sequence[int]) -> None:
    """Put additions into the tables, each with the place of its vector; then remove."""
    new = [one for one in given if not one.removed]
    gone = [(one.row, one.title, one.hides) for one in given if one.removed]
    connection.executemany(
        "INSERT INTO added.entities VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (row) DO UPDATE SET count = coalesce(excluded.count, count),"
        " wikidata = coalesce(excluded.wikidata, wikidata), place = excluded.place",
        (
            (one.row, one.title, one.count, one.wikidata, one.hides, place)
            for one, place in zip(given, places, strict=True)
            if not one.removed
        ),
    )
    for query, values in (
        ("REPLACE INTO added.ids VALUES (?, ?)", [(one.row, one.id) for one in new if one.id is not None]),
        ("REPLACE INTO added.redirects VALUES (?, ?)", [(alias, one.row) for one in new for alias in one.aliases]),
        (
            "IGNORE INTO added.surfaces VALUES (?, ?, ?)",
            [(name, one.row, surface_key(name)) for one in new for name in one.surfaces],
        ),
        ("REPLACE INTO added.removed VALUES (?, ?, ?)", gone),
    ):
        connection.executemany(f"INSERT OR {query}", values)
    for table in ("entities", "redirects", "ids", "surfaces"):
        connection.executemany(f"DELETE FROM added.{table} WHERE row = ?", [one[:1] for one in gone])
