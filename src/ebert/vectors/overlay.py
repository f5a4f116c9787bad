"""Entities added after a store was made: a small SQLite file beside the big ones.

SQLite's own locking lets several processes add at once, and an addition is there for everybody as soon as it is
committed. The big files are never written to.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.vectors.catalogue import EntityRow, Names
from ebert.vectors.connections import Connections

# `hides` is the row that the store has for the same title, if any.
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS entities (row INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, count INTEGER,"
    " wikidata INTEGER, vector BLOB NOT NULL, hides INTEGER)",
    "CREATE TABLE IF NOT EXISTS redirects (title TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID",
)
PAGE = 1024


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

    def vector(self, row: int) -> NDArray[np.float32]:
        """Give the vector of an added entity."""
        found = self.rows("SELECT vector FROM entities WHERE row = ?", (row,))
        if not found:
            raise EbertError(f"{self.path} has no row {row}: the entity is of another store, or the file was replaced")
        return self._vector(found[0][0])

    def titles(self) -> list[str]:
        """Give the titles of all added entities."""
        return [title for (title,) in self.rows("SELECT title FROM entities ORDER BY row")] if self else []

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

    def add(
        self,
        title: str,
        vector: NDArray[np.float32],
        *,
        aliases: Iterable[str] = (),
        count: int | None = None,
        wikidata: int | None = None,
        replace: bool = False,
        hides: int | None = None,
    ) -> EntityRow:
        """Add an entity, or give it another vector if it may be replaced; `hides` is the store's own row for it."""
        with self.locked() as connection:
            known = connection.execute("SELECT row FROM entities WHERE title = ?", (title,)).fetchone()
            if known and not replace:
                raise EbertError(f"{title!r} was added before; use replace=True (--replace) for another vector")
            query = "SELECT title FROM entities WHERE wikidata = ? AND title != ?"
            if other := connection.execute(query, (wikidata, title)).fetchone():
                raise EbertError(f"Q{wikidata} is {other[0]!r} already; {title!r} needs its own Wikidata id or none")
            connection.execute(
                "INSERT INTO entities (row, title, count, wikidata, vector, hides) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (row) DO UPDATE SET count = coalesce(excluded.count, count),"
                " wikidata = coalesce(excluded.wikidata, wikidata), vector = excluded.vector",
                (known[0] if known else None, title, count, wikidata, vector.astype("<f4").tobytes(), hides),
            )
            query = "SELECT row, title, count, wikidata FROM entities WHERE title = ?"
            added: EntityRow = connection.execute(query, (title,)).fetchone()
            for alias in aliases:
                query = "SELECT 1 FROM entities WHERE title = ?"
                if connection.execute(query, (alias,)).fetchone():
                    raise EbertError(f"{alias!r} cannot be another name of {title!r}: it has a vector of its own")
                connection.execute("INSERT OR REPLACE INTO redirects VALUES (?, ?)", (alias, added[0]))
        return added

    @contextmanager
    def locked(self) -> Iterator[sqlite3.Connection]:
        """Keep all others from adding; what the block writes is there for them when it ends well."""
        try:
            connection = self._connections.get()
            if not self:
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
