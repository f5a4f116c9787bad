"""The names in a store, in SQLite: words, titles, redirects, Wikidata and own ids, counts, surfaces.

`Names` has the queries that the catalogue of a store and the entities added to it (`ebert.vectors.added`) share.
`Database` reads an SQLite file that may have come from anywhere, without trusting it.
"""

import ctypes
import os
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from ebert.errors import EbertError
from ebert.vectors.entity import Entity

Kind = Literal["words", "entities"]
Surface = tuple[str, int, Sequence[tuple[int, int]]]  # its words, how often they stand in the text; row and count

SCHEMA = """
CREATE TABLE words (row INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE, count INTEGER);
CREATE TABLE entities (row INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, count INTEGER, wikidata INTEGER);
CREATE INDEX entities_by_wikidata ON entities (wikidata) WHERE wikidata IS NOT NULL;
CREATE TABLE redirects (title TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE ids (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE surfaces (
    id INTEGER NOT NULL, surface TEXT PRIMARY KEY, occurrences INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE mentions (
    surface INTEGER NOT NULL, row INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (surface, row)
) WITHOUT ROWID;
"""
# Words of titles, for search. The text itself stays in `entities`, and nobody asks where in a title a word stands.
SEARCH = (
    "CREATE VIRTUAL TABLE search USING fts5 (title, content = 'entities', content_rowid = 'row',"
    " tokenize = 'unicode61 remove_diacritics 2', detail = none, columnsize = 0)",
    "INSERT INTO search (search) VALUES ('rebuild')",
)
FTS5_TABLES = (  # that FTS5 makes for itself
    "CREATE TABLE 'search_data'(id INTEGER PRIMARY KEY, block BLOB)",
    "CREATE TABLE 'search_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID",
    "CREATE TABLE 'search_config'(k PRIMARY KEY, v) WITHOUT ROWID",
)
NAME = {"words": "word", "entities": "title"}  # the column with the names of a table
MAPPED = 1 << 31  # bytes of the file at most: looked up cold, names come four times faster than page by page
PAGE = 8192  # rows read at a time when all are wanted


class Names(ABC):
    """Queries for entities by name.

    Files of version 0.1 lack the tables of own ids and of surfaces, and nothing is found in a table that is not there.
    """

    added = False  # whether the entities were added after the store was made

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tables: set[str] = set()

    @abstractmethod
    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a query and return all its rows."""

    def pages(self, query: str, first: int | str) -> Iterator[Any]:
        """Yield the rows of a query whose only value is the key to begin after: its first column, by which it sorts."""
        while page := self.rows(f"{query} LIMIT {PAGE}", (first,)):
            yield from page
            first = page[-1][0]

    def entities(self, source: str, values: Sequence[Any]) -> list[Entity]:
        """Return the entities of a query, of which `source` is what follows FROM."""
        query = f"SELECT e.title, e.row, e.count, e.wikidata FROM {source}"
        return [Entity(t, row, count, number, self.added) for t, row, count, number in self.rows(query, values)]

    def titled(self, titles: Sequence[str]) -> tuple[int, Entity] | None:
        """Return the entity with the first of the titles that is one, and which title it was."""
        return self._first("entities e WHERE title = ?", titles)

    def redirected(self, titles: Sequence[str]) -> tuple[int, Entity] | None:
        """Return the entity that the first of the titles redirects to, and which title it was."""
        return self._first("redirects r JOIN entities e USING (row) WHERE r.title = ?", titles)

    def numbered(self, wikidata: int) -> Entity | None:
        """Return the entity with a Wikidata id."""
        return self._one("entities e WHERE wikidata = ? ORDER BY row LIMIT 1", wikidata)

    def identified(self, name: str) -> Entity | None:
        """Return the entity with an own id."""
        return self._one("ids JOIN entities e USING (row) WHERE id = ?", name) if self.has("ids") else None

    def at(self, row: int) -> Entity | None:
        """Return the entity of a row."""
        return self._one("entities e WHERE row = ?", row)

    def matching(self, match: str, limit: int) -> list[Entity]:
        """Return entities by an FTS5 query over the words of their titles."""
        source = "search s JOIN entities e ON e.row = s.rowid WHERE search MATCH ? LIMIT ?"
        return self.entities(source, (match, limit)) if self.has("search") else []

    def beginning(self, start: str, limit: int) -> list[Entity]:
        """Return entities whose titles begin with `start`."""
        return self.entities("entities e WHERE title >= ? AND title < ? LIMIT ?", (start, start + "\U0010ffff", limit))

    def id_of(self, row: int) -> str | None:
        """Return the own id of an entity."""
        found = self.rows("SELECT id FROM ids WHERE row = ?", (row,)) if self.has("ids") else None
        return found[0][0] if found else None

    def ids(self) -> Iterator[tuple[int, str]]:
        """Yield all own ids with their rows."""
        if self.has("ids"):
            yield from self.pages("SELECT row, id FROM ids WHERE row > ? ORDER BY row", -1)

    def continues(self, surface: str) -> bool:
        """Return whether there is a longer surface that begins with these words."""
        start = f"{surface} "
        query = "SELECT surface FROM surfaces WHERE surface >= ? ORDER BY surface LIMIT 1"
        found = self.rows(query, (start,)) if self.has("surfaces") else None
        return bool(found and found[0][0].startswith(start))

    def has(self, table: str) -> bool:
        """Return whether the file has a table. One that was there once is never looked for again."""
        if table not in self._tables:
            self._tables = {name for (name,) in self.rows("SELECT name FROM sqlite_master")}
        return table in self._tables

    def redirects(self) -> Iterator[tuple[str, Entity]]:
        """Yield all redirects: from which title, to which entity."""
        query = (
            "SELECT r.title, e.title, row, e.count, e.wikidata FROM redirects r JOIN entities e USING (row)"
            " WHERE r.title > ? ORDER BY r.title"
        )
        for title, target, row, count, wikidata in self.pages(query, ""):
            yield title, Entity(target, row, count, wikidata, self.added)

    def redirects_to(self, row: int, limit: int) -> list[str]:
        """Return redirects to an entity. All redirects are gone through, which takes a second for ten million."""
        return [title for (title,) in self.rows("SELECT title FROM redirects WHERE row = ? LIMIT ?", (row, limit))]

    def _one(self, source: str, value: int | str) -> Entity | None:
        return next(iter(self.entities(source, (value,))), None)

    def _first(self, source: str, titles: Sequence[str]) -> tuple[int, Entity] | None:
        for index, title in enumerate(titles):
            if found := self._one(source, title):
                return index, found
        return None


class Budget:
    """Ends a query that takes more steps than any could over a file of its size: crafted pages can go in circles."""

    STEP = 1_000_000  # of SQLite's machine, between two calls

    def __init__(self, size: int) -> None:
        self.whole = self.left = 20 + 100 * size // self.STEP

    def __call__(self) -> bool:
        """Return whether the query is to end."""
        self.left -= 1
        return self.left < 0


class HeldConnection:
    """Closes its connection when the thread or the store it belongs to is gone."""

    def __init__(self, connection: sqlite3.Connection, size: int = 0) -> None:
        self.connection, self.process, self.budget = connection, os.getpid(), Budget(size)
        if size:
            connection.set_progress_handler(self.budget, Budget.STEP)

    def __del__(self) -> None:
        if self.process == os.getpid():
            self.connection.close()
        else:  # SQLite forbids a forked process to touch, even to close, what its parent opened: nothing ever frees it
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.connection))


class Database(Names):
    """Names in an SQLite file that is read and never written to, which may have come from anywhere.

    So SQLite need not lock it: faster, and fine on read-only and network disks. Nor does it look for a journal beside
    it, which could have it write, or delete a file that the journal names. Every thread and process has a connection of
    its own, so that readers never wait for each other.
    """

    def __init__(self, path: Path, schema: Sequence[str]) -> None:
        if not path.is_file():
            raise EbertError(f"{path} is missing; restore it or make the store again")
        super().__init__(path)
        self._mark, self._local = self._identify(), threading.local()
        made = {_plain(statement) for statement in (*schema, *FTS5_TABLES)}
        for kind, name, sql in self.rows("SELECT type, name, sql FROM sqlite_master"):
            ours = _plain(sql) in made if sql else kind == "index"  # SQLite makes those of keys by itself
            if not ours:
                self.close()
                raise EbertError(
                    f"{path} has a {kind} {name!r:.60} that ebert never makes, and is not used: it can do harm if it "
                    "came from elsewhere; restore it or make the store again"
                )

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a query and return all its rows."""
        try:
            return self._connection().execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise EbertError(f"{self.path} cannot be read ({error}); restore it or make the store again") from None
        except UnicodeEncodeError:  # half a surrogate pair is in no name
            return []

    def check(self) -> None:
        """Raise `EbertError` if the file was moved or replaced since it was opened.

        Names of the new store would be mixed with vectors of the old one.
        """
        if self._identify() != self._mark:
            raise EbertError(f"{self.path.parent} was moved or replaced since it was opened: open it again")

    def close(self) -> None:
        """Close the connections; whoever asks again gets a new one."""
        self._local = threading.local()

    def _connection(self) -> sqlite3.Connection:
        """Return this thread's connection, for a new query."""
        held: HeldConnection | None = getattr(self._local, "held", None)
        if held is None or held.process != os.getpid():  # a new thread, or forked since
            uri = f"{self.path.as_uri()}?mode=ro&immutable=1"
            # SQLite itself lets any thread close a connection; Python's stricter check would forbid it.
            connection = sqlite3.connect(uri, uri=True, timeout=60.0, check_same_thread=False)
            held = HeldConnection(connection, size=self._mark[2] if self._mark else 0)
            # Not cell_size_check: it keeps damage from spreading, which needs a writer, and makes look-ups take twice
            # as long, since mapped pages are checked anew each time.
            connection.execute(f"PRAGMA mmap_size = {MAPPED}")
            connection.execute("PRAGMA trusted_schema = OFF")
            self.check()  # when it is open, as the store may be replaced at any moment
            self._local.held = held
        held.budget.left = held.budget.whole
        return held.connection

    def _identify(self) -> tuple[int, int, int] | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size


class Catalogue(Database):
    """The names that a store was made with."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, [*SCHEMA.split(";"), SEARCH[0]])
        self.sizes = {kind: self.rows(f"SELECT 1 + coalesce(max(row), -1) FROM {kind}")[0][0] for kind in NAME}
        for table in ("redirects", "search"):
            self.rows(f"SELECT 1 FROM {table} LIMIT 1")

    def word(self, word: str) -> tuple[int, int | None] | None:
        """Return a word's row and count."""
        return next(iter(self.rows("SELECT row, count FROM words WHERE word = ?", (word,))), None)

    def word_counts(self) -> list[int | None]:
        """Return how often each word occurred, in the order of their rows."""
        return [count for (count,) in self.rows("SELECT count FROM words ORDER BY row")]

    def names(self, kind: Kind, start: int, stop: int) -> list[str]:
        """Return the names of a range of rows."""
        query = f"SELECT {NAME[kind]} FROM {kind} WHERE row >= ? AND row < ? ORDER BY row"
        return [name for (name,) in self.rows(query, (start, stop))]

    def counts(self) -> dict[str, int]:
        """Count what is there, by kind."""
        return {
            "words with a count": self.rows("SELECT count(count) FROM words")[0][0],
            "entities with a count": self.rows("SELECT count(count) FROM entities")[0][0],
            "entities with a Wikidata id": self.rows("SELECT count(wikidata) FROM entities")[0][0],
            "redirects": self.rows("SELECT count(row) FROM redirects")[0][0],
            "surfaces": self.rows("SELECT count(id) FROM surfaces")[0][0] if self.has("surfaces") else 0,
        }

    def titles(self) -> Iterator[tuple[str, int]]:
        """Yield all titles and redirects, with the rows they stand for."""
        for start in range(0, self.sizes["entities"], PAGE):
            yield from zip(self.names("entities", start, start + PAGE), range(start, start + PAGE), strict=False)
        yield from self.rows("SELECT title, row FROM redirects")

    def mentions(self, surface: str) -> tuple[int, list[tuple[Entity, int]]]:
        """Return how often a surface stands in the text, as far as known, and what it means there how often."""
        query = "SELECT id, occurrences FROM surfaces WHERE surface = ?"
        found = self.rows(query, (surface,)) if self.has("surfaces") else None
        if not found:  # nobody linked it; of single words the count is known
            return (self.word(surface) or (0, 0))[1] or 0, []
        query = (
            "SELECT title, row, e.count, wikidata, m.count FROM mentions m JOIN entities e USING (row)"
            " WHERE surface = ? ORDER BY m.count DESC, row"
        )
        return found[0][1], [(Entity(*entity), count) for *entity, count in self.rows(query, (found[0][0],))]

    def surfaces(self) -> Iterator[Surface]:
        """Yield all surfaces, in the order of their letters, with the rows of what they mean."""
        query = (
            "SELECT s.surface, occurrences, m.row, m.count FROM"
            f" (SELECT id, surface, occurrences FROM surfaces WHERE surface > ? ORDER BY surface LIMIT {PAGE}) s"
            " LEFT JOIN mentions m ON m.surface = s.id ORDER BY s.surface, m.count DESC, m.row"
        )
        last = ""
        while self.has("surfaces") and (page := self.rows(query, (last,))):
            for (surface, occurrences), meant in groupby(page, itemgetter(0, 1)):
                yield surface, occurrences, [(row, count) for _, _, row, count in meant if row is not None]
            last = page[-1][0]


def _plain(statement: str) -> str:
    """Return a statement as it can be compared: SQLite keeps how it was written, blanks included."""
    return " ".join(statement.replace("IF NOT EXISTS", "").split())
