"""Entities added after a store was made: a small SQLite file beside the big ones.

SQLite's own locking lets several processes add at once, and an addition is there for everybody as soon as it is
committed. The big files are never written to.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.vectors.catalogue import SEARCH, EntityRow, Names
from ebert.vectors.connections import Connections

# `hides` is the row that the store has for the same title, if any.
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS entities (row INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, count INTEGER,"
    " wikidata INTEGER, vector BLOB NOT NULL, hides INTEGER)",
    "CREATE INDEX IF NOT EXISTS entities_by_wikidata ON entities (wikidata) WHERE wikidata IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS entities_hiding ON entities (hides) WHERE hides IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS redirects (title TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS ids (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE)",
    "CREATE TABLE IF NOT EXISTS surfaces (surface TEXT, row INTEGER, PRIMARY KEY (surface, row)) WITHOUT ROWID",
    *SEARCH,
)
PAGE = 1024


@dataclass(frozen=True, slots=True)
class Addition:
    """An entity that is to be added, checked."""

    title: str
    vector: NDArray[np.float32]
    row: int | None = None  # if it was added before
    hides: int | None = None
    count: int | None = None
    wikidata: int | None = None
    id: str | None = None
    aliases: tuple[str, ...] = ()  # other names to find it by
    surfaces: tuple[str, ...] = ()  # words that name it in text


@dataclass(frozen=True, slots=True)
class Added:
    """An entity that was added."""

    row: EntityRow
    hides: int | None
    vector: NDArray[np.float32]


class Overlay(Names):
    """Reads and writes the added entities of one store."""

    def __init__(self, path: Path, *, dimension: int, catalogue: Path) -> None:
        """Remember where the file is or will be."""
        # Readers too may write: if a process died while it added, the first to come rolls its half addition back.
        super().__init__(path, Connections(path, "mode=rwc", witness=catalogue))
        self._dimension, self._filled, self._place = dimension, False, str(path)

    def __bool__(self) -> bool:
        """Tell whether anything was ever added."""
        if not self._filled:
            try:
                size = os.stat(self._place).st_size  # noqa: PTH116 - asked at every look-up, where pathlib is slow
            except FileNotFoundError:
                return False
            # A first addition that was rolled back leaves a file without tables.
            self._filled = bool(size and self.rows("SELECT 1 FROM sqlite_master WHERE name = 'entities'"))
        return self._filled

    def __len__(self) -> int:
        """Count the added entities."""
        return int(self.rows("SELECT count(*) FROM entities")[0][0]) if self else 0

    def stamp(self) -> tuple[int, int]:
        """Give something that is another thing after anything was added, by whomever."""
        try:
            status = os.stat(self._place)  # noqa: PTH116
        except FileNotFoundError:
            return 0, 0
        return status.st_mtime_ns, status.st_size

    def vector(self, row: int) -> NDArray[np.float32]:
        """Give the vector of an added entity."""
        found = self.rows("SELECT vector FROM entities WHERE row = ?", (row,))
        if not found:
            raise EbertError(f"{self.path} has no row {row}: the entity is of another store, or the file was replaced")
        return self._vector(found[0][0])

    def hides(self, row: int) -> int | None:
        """Give the row of the store that an added entity took the place of."""
        found = self.rows("SELECT hides FROM entities WHERE row = ?", (row,))
        return found[0][0] if found else None

    def named(self, surface: str) -> list[EntityRow]:
        """Give the added entities that a surface may mean."""
        query = "SELECT row, title, count, wikidata FROM surfaces JOIN entities USING (row) WHERE surface = ?"
        return self.rows(query, (surface,)) if self.has("surfaces") else []

    def surfaces(self) -> list[tuple[str, int]]:
        """Give all surfaces with the rows of what they may mean."""
        query = "SELECT surface, row FROM surfaces ORDER BY surface, row"
        return self.rows(query) if self and self.has("surfaces") else []

    def hidden(self) -> set[int]:
        """Give the rows of the store whose vectors were replaced."""
        query = "SELECT hides FROM entities WHERE hides IS NOT NULL"
        return {row for (row,) in self.rows(query)} if self else set()

    def all(self) -> Iterator[Added]:
        """Go through all added entities."""
        query = (
            f"SELECT row, title, count, wikidata, hides, vector FROM entities WHERE row > ? ORDER BY row LIMIT {PAGE}"
        )
        last = -1
        while self and (page := self.rows(query, (last,))):
            for row, title, count, wikidata, hides, blob in page:
                yield Added((row, title, count, wikidata), hides, self._vector(blob))
            last = page[-1][0]

    def names(self) -> Iterator[tuple[int | str | None, ...]]:
        """Go through all that is known of added entities beside their vectors, in an order that it alone decides."""
        if self:
            yield from (entity.row for entity in self.all())
            yield from self.redirects()
            yield from self.ids()
            yield from self.surfaces()

    def add(self, connection: sqlite3.Connection, new: Addition) -> EntityRow:
        """Add an entity, or give it another vector; for whoever has it `locked`."""
        cursor = connection.execute(
            "INSERT INTO entities (row, title, count, wikidata, vector, hides) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (row) DO UPDATE SET count = coalesce(excluded.count, count),"
            " wikidata = coalesce(excluded.wikidata, wikidata), vector = excluded.vector",
            (new.row, new.title, new.count, new.wikidata, new.vector.astype("<f4").tobytes(), new.hides),
        )
        row = cursor.lastrowid if new.row is None else new.row
        if new.row is None:
            connection.execute("INSERT INTO search (rowid, title) VALUES (?, ?)", (row, new.title))
        if new.id is not None:
            connection.execute("INSERT OR REPLACE INTO ids VALUES (?, ?)", (row, new.id))
        pairs = ((alias, row) for alias in new.aliases)
        connection.executemany("INSERT OR REPLACE INTO redirects VALUES (?, ?)", pairs)
        pairs = ((surface, row) for surface in new.surfaces)
        connection.executemany("INSERT OR IGNORE INTO surfaces VALUES (?, ?)", pairs)
        query = "SELECT row, title, count, wikidata FROM entities WHERE row = ?"
        added: EntityRow = connection.execute(query, (row,)).fetchone()
        return added

    @contextmanager
    def locked(self) -> Iterator[sqlite3.Connection]:
        """Keep all others from adding; what the block writes is there for them when it ends well."""
        try:
            connection = self._connections.get()
            if not self or not self.has("surfaces"):
                self._create(connection)
                self._filled = True
            with connection:
                connection.execute("BEGIN IMMEDIATE")  # waits for other writers, then nobody comes between
                self._connections.check()  # one of them may have been a `save` in place of this store
                yield connection
        except sqlite3.OperationalError as error:  # a full disk, no permission, locked for too long
            self._connections.check()
            raise OSError(f"cannot add to {self.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise EbertError(f"{self.path} is damaged ({error}); remove or restore it") from None

    @staticmethod
    def _create(connection: sqlite3.Connection) -> None:
        with connection:
            connection.execute("BEGIN IMMEDIATE")  # another process may be creating them right now
            for statement in SCHEMA:
                connection.execute(statement)

    def _vector(self, blob: bytes) -> NDArray[np.float32]:
        vector = np.frombuffer(blob, dtype="<f4")
        if len(vector) != self._dimension:
            raise EbertError(
                f"{self.path} has a vector of dimension {len(vector)} in a store of dimension {self._dimension}; "
                "the files are not of one store: remove or restore it"
            )
        return vector
