"""Entities added after a store was made: a small SQLite file beside the big ones.

SQLite's own locking lets several processes add at once, and an addition is there for everybody as soon as it is
committed. The big files are never written to.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.vectors import titles as spelling
from ebert.vectors.catalogue import Connections, EntityRow

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS entities (row INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, count INTEGER,"
    " wikidata INTEGER, vector BLOB NOT NULL, hides INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS redirects (title TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID",
)


class Overlay:
    """Reads and writes the added entities of one store."""

    def __init__(self, path: Path, dimension: int) -> None:
        """Remember where the file is or will be."""
        self._path, self._dimension = path, dimension
        self._reader, self._writer = Connections(path), Connections(path, writable=True)

    def __bool__(self) -> bool:
        """Tell whether anything was ever added."""
        return self._path.exists() and self._path.stat().st_size > 0

    def close(self) -> None:
        """Let go of the file."""
        self._reader.close()
        self._writer.close()

    def find(self, titles: Sequence[str], wikidata: int | None = None) -> EntityRow | None:
        """Give an added entity by title, other name or Wikidata id."""
        row: EntityRow | None
        with self._reading() as connection:
            query = connection.execute
            for title in titles:
                if row := query(
                    "SELECT row, title, count, wikidata FROM entities WHERE title = ?", (title,)
                ).fetchone():
                    return row
            for title in titles:
                join = (
                    "SELECT row, e.title, count, wikidata FROM redirects r JOIN entities e USING (row)"
                    " WHERE r.title = ?"
                )
                if row := query(join, (title,)).fetchone():
                    return row
            if wikidata is None:
                return None
            row = query("SELECT row, title, count, wikidata FROM entities WHERE wikidata = ?", (wikidata,)).fetchone()
            return row

    def vector(self, row: int) -> NDArray[np.float32]:
        """Give the vector of an added entity."""
        with self._reading() as connection:
            (blob,) = connection.execute("SELECT vector FROM entities WHERE row = ?", (row,)).fetchone()
        return np.frombuffer(blob, dtype="<f4")

    def all(self) -> Iterator[tuple[EntityRow, NDArray[np.float32]]]:
        """Go through all added entities."""
        with self._reading() as connection:
            for *row, blob in connection.execute("SELECT row, title, count, wikidata, vector FROM entities"):
                yield (row[0], row[1], row[2], row[3]), np.frombuffer(blob, dtype="<f4")

    def redirects(self) -> Iterator[tuple[str, str]]:
        """Go through the other names of added entities."""
        with self._reading() as connection:
            yield from connection.execute("SELECT r.title, e.title FROM redirects r JOIN entities e USING (row)")

    def counts(self) -> tuple[int, int]:
        """Count the added entities, and those of them that take the place of one in the store."""
        if not self:
            return 0, 0
        with self._reading() as connection:
            count, hidden = connection.execute("SELECT count(*), total(hides) FROM entities").fetchone()
            return count, int(hidden)

    def add(
        self,
        title: str,
        vector: NDArray[np.float32],
        *,
        aliases: Iterable[str] = (),
        count: int | None = None,
        wikidata: int | None = None,
        replace: bool = False,
        hides: bool = False,
    ) -> EntityRow:
        """Add an entity, or give it another vector if it may be replaced; `hides` says that the store has it too."""
        try:
            connection = self._writer.get()
            with connection:
                connection.execute("BEGIN IMMEDIATE")  # waits for other writers, then nobody comes between
                for statement in SCHEMA:
                    connection.execute(statement)
                known = connection.execute("SELECT row FROM entities WHERE title = ?", (title,)).fetchone()
                if known and not replace:
                    raise EbertError(f"{title!r} was added before; use replace=True (--replace) for another vector")
                cursor = connection.execute(
                    "INSERT INTO entities (row, title, count, wikidata, vector, hides) VALUES (?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT (row) DO UPDATE SET count = excluded.count, wikidata = excluded.wikidata,"
                    " vector = excluded.vector RETURNING row",
                    (known[0] if known else None, title, count, wikidata, vector.astype("<f4").tobytes(), hides),
                )
                (row,) = cursor.fetchone()
                connection.executemany(
                    "INSERT OR REPLACE INTO redirects VALUES (?, ?)", ((spelling.clean(a), row) for a in aliases)
                )
        except sqlite3.DatabaseError as error:
            raise OSError(f"cannot add to {self._path}: {error}") from error
        return row, title, count, wikidata

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._reader.get()
        except sqlite3.DatabaseError as error:
            raise EbertError(f"{self._path} is damaged ({error}); remove or restore it") from None
