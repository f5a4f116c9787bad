"""The names in a store, in SQLite: words, titles, redirects, Wikidata ids and counts.

Every thread and every process has a connection of its own, so readers never wait for each other.
"""

import os
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ebert.errors import EbertError

SCHEMA = """
CREATE TABLE words (row INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE, count INTEGER);
CREATE TABLE entities (row INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, count INTEGER, wikidata INTEGER);
CREATE INDEX entities_by_wikidata ON entities (wikidata) WHERE wikidata IS NOT NULL;
CREATE TABLE redirects (title TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID;
"""
# Words of titles, for search. The text itself stays in `entities`.
SEARCH = """
CREATE VIRTUAL TABLE search USING fts5 (
    title, content = 'entities', content_rowid = 'row', tokenize = 'unicode61 remove_diacritics 2', detail = none
);
INSERT INTO search (search) VALUES ('rebuild');
"""
EntityRow = tuple[int, str, int | None, int | None]  # row, title, count, wikidata

_WORD = re.compile(r"\w+")


class Connections:
    """Opens an SQLite file once for every thread and process that asks."""

    def __init__(self, path: Path, *, writable: bool = False) -> None:
        """Remember where the file is; nothing is opened yet."""
        self._path, self._writable, self._local = path, writable, threading.local()

    def get(self) -> sqlite3.Connection:
        """Give this thread's connection."""
        if getattr(self._local, "process", None) != os.getpid():  # new thread, or forked since
            mode = "rwc" if self._writable else "ro"
            connection = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode={mode}", uri=True, timeout=60.0)
            self._local.connection, self._local.process = connection, os.getpid()
        connection = self._local.connection
        assert isinstance(connection, sqlite3.Connection)
        return connection

    def close(self) -> None:
        """Close this thread's connection; the others close when their threads end."""
        if getattr(self._local, "process", None) == os.getpid():
            self._local.connection.close()
            self._local.process = None


class Catalogue:
    """Looks names up."""

    def __init__(self, path: Path) -> None:
        """Open the file and see that it is one of ours."""
        if not path.is_file():
            raise EbertError(f"{path} is missing; restore it or make the store again")
        self._connections = Connections(path)
        try:
            self._connections.get().execute("SELECT row FROM entities LIMIT 1").fetchone()
        except sqlite3.DatabaseError as error:
            raise EbertError(f"{path} is damaged ({error}); restore it or make the store again") from None

    def close(self) -> None:
        """Let go of the file."""
        self._connections.close()

    def find(self, titles: Sequence[str], wikidata: int | None) -> EntityRow | None:
        """Give the entity with the first of the titles that is one; then by redirect; then by Wikidata id."""
        query = self._connections.get().execute
        row: EntityRow | None
        for title in titles:
            if row := query("SELECT row, title, count, wikidata FROM entities WHERE title = ?", (title,)).fetchone():
                return row
        for title in titles:
            join = "SELECT row, e.title, count, wikidata FROM redirects r JOIN entities e USING (row) WHERE r.title = ?"
            if row := query(join, (title,)).fetchone():
                return row
        if wikidata is None:
            return None
        row = query("SELECT row, title, count, wikidata FROM entities WHERE wikidata = ?", (wikidata,)).fetchone()
        return row

    def word(self, word: str) -> tuple[int, int | None] | None:
        """Give a word's row and count."""
        found: tuple[int, int | None] | None
        found = self._connections.get().execute("SELECT row, count FROM words WHERE word = ?", (word,)).fetchone()
        return found

    def names(self, kind: str, start: int, stop: int) -> list[str]:
        """Give the names of a range of rows of ``words`` or ``entities``."""
        column = "word" if kind == "words" else "title"
        query = f"SELECT {column} FROM {kind} WHERE row >= ? AND row < ? ORDER BY row"
        return [name for (name,) in self._connections.get().execute(query, (start, stop))]

    def name(self, kind: str, row: int) -> str:
        """Give the name of one row."""
        return self.names(kind, row, row + 1)[0]

    def entities(self) -> Iterator[EntityRow]:
        """Go through all entities."""
        yield from self._connections.get().execute("SELECT row, title, count, wikidata FROM entities ORDER BY row")

    def words(self) -> Iterator[tuple[int, str, int | None]]:
        """Go through all words."""
        yield from self._connections.get().execute("SELECT row, word, count FROM words ORDER BY row")

    def redirects(self) -> Iterator[tuple[str, str]]:
        """Go through all redirects: from which title, to which."""
        query = "SELECT r.title, e.title FROM redirects r JOIN entities e USING (row)"
        yield from self._connections.get().execute(query)

    def counts(self) -> dict[str, int]:
        """Count what is there, by kind."""
        query = self._connections.get().execute
        return {
            "words with a count": query("SELECT count(count) FROM words").fetchone()[0],
            "entities with a count": query("SELECT count(count) FROM entities").fetchone()[0],
            "entities with a Wikidata id": query("SELECT count(wikidata) FROM entities").fetchone()[0],
            "redirects": query("SELECT count(*) FROM redirects").fetchone()[0],
        }

    def like(self, title: str, limit: int) -> list[str]:
        """Give titles that share words or a beginning with `title`, in no order: candidates for the closest ones."""
        query = self._connections.get().execute
        found: dict[str, None] = {}
        words = _WORD.findall(title)
        searches = [" ".join(f'"{word}"' for word in words)] * bool(words)
        searches += [f'"{word}"*' for word in words]
        searches += [f'"{word[:3]}"*' for word in words if len(word) > 4]  # a slip of the pen further on
        match = "SELECT e.title FROM search s JOIN entities e ON e.row = s.rowid WHERE search MATCH ? LIMIT ?"
        for search in searches:
            found.update(dict.fromkeys(name for (name,) in query(match, (search, limit))))
        begin = "SELECT title FROM entities WHERE title >= ? AND title < ? LIMIT ?"
        for length in range(len(title), 1, -1):
            prefix = title[0].upper() + title[1:length]
            rows = query(begin, (prefix, prefix + "\U0010ffff", limit)).fetchall()
            found.update(dict.fromkeys(name for (name,) in rows))
            if len(rows) == limit:
                break
        return list(found)


def create(path: Path) -> sqlite3.Connection:
    """Begin a catalogue for a store that is being made. Nobody reads it yet, so speed goes before safety."""
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000;")
    connection.executescript(SCHEMA)
    return connection


def known(connection: sqlite3.Connection, kind: str, names: Iterable[str]) -> set[str]:
    """Give those of the names that a catalogue under construction has already."""
    column = "word" if kind == "words" else "title"
    query = f"SELECT 1 FROM {kind} WHERE {column} = ?"
    return {name for name in names if connection.execute(query, (name,)).fetchone()}
