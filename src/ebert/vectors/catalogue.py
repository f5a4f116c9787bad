"""The names in a store, in SQLite: words, titles, redirects, Wikidata and own ids, counts, surfaces.

`Database` reads an SQLite file that may have come from anywhere, without trusting it. `Catalogue` has the names that a
store was made with, and tables in memory for names added later, which `ebert.vectors.added` fills. So one query finds
both.
"""

import ctypes
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import groupby, islice, repeat
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from ebert.errors import EbertError
from ebert.wikipedia.tokens import surface_key

Kind = Literal["words", "entities"]
Surface = tuple[str, int, Sequence[tuple[int, int]]]  # its words, how often they stand in the text; row and count

LATER = (  # tables that catalogues of version 0.1 lack
    "CREATE TABLE ids (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE)",
    "CREATE TABLE surfaces ( id INTEGER NOT NULL, surface TEXT PRIMARY KEY, occurrences INTEGER NOT NULL )"
    " WITHOUT ROWID",
    "CREATE TABLE mentions ( surface INTEGER NOT NULL, row INTEGER NOT NULL, count INTEGER NOT NULL,"
    " PRIMARY KEY (surface, row) ) WITHOUT ROWID",
    # Keys of surfaces (`tokens.surface_key`), where they differ; version 0.1 had none, see `Catalogue.ensure_keys`.
    "CREATE TABLE keys ( key TEXT NOT NULL, surface TEXT NOT NULL, PRIMARY KEY (key, surface) ) WITHOUT ROWID",
    # Entities that are one with another, by what rule, and the Wikidata id that the other one took from them.
    "CREATE TABLE merged ( row INTEGER PRIMARY KEY, into_row INTEGER NOT NULL, why TEXT NOT NULL, wikidata INTEGER )",
)
UNSORTED_KEYS = "CREATE TEMP TABLE keys (key TEXT, surface TEXT)"  # filled in one go, which is faster
SCHEMA = (
    "CREATE TABLE words (row INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE, count INTEGER)",
    "CREATE TABLE entities (row INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, count INTEGER, wikidata INTEGER)",
    "CREATE INDEX entities_by_wikidata ON entities (wikidata) WHERE wikidata IS NOT NULL",
    "CREATE TABLE redirects (title TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID",
    *LATER,
)
# Words of titles, for search. The text itself stays in `entities`, and the position of a word in a title is not needed.
SEARCH = (
    "CREATE VIRTUAL TABLE search USING fts5 (title, content = 'entities', content_rowid = 'row',"
    " tokenize = 'unicode61 remove_diacritics 2', detail = none, columnsize = 0)",
    "INSERT INTO search (search) VALUES ('rebuild')",
)
FTS5_TABLES = (  # that FTS5 creates for itself
    "CREATE TABLE 'search_data'(id INTEGER PRIMARY KEY, block BLOB)",
    "CREATE TABLE 'search_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID",
    "CREATE TABLE 'search_config'(k PRIMARY KEY, v) WITHOUT ROWID",
)
# What was added later. `hides` is the row of the store that an entity replaced, or that was removed; `place` is where
# the vector stands in the log; titles up to the row in `searched` are in the search index.
ADDED = (
    "CREATE TABLE added.entities (row INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, count INTEGER,"
    " wikidata INTEGER, hides INTEGER, place INTEGER)",
    "CREATE INDEX added.entities_by_wikidata ON entities (wikidata) WHERE wikidata IS NOT NULL",
    "CREATE INDEX added.entities_hiding ON entities (hides)",
    "CREATE TABLE added.redirects (title TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX added.redirects_by_row ON redirects (row)",
    "CREATE TABLE added.ids (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE)",
    "CREATE TABLE added.surfaces (surface TEXT, row INTEGER, key TEXT, PRIMARY KEY (surface, row)) WITHOUT ROWID",
    "CREATE INDEX added.surfaces_by_row ON surfaces (row)",
    "CREATE INDEX added.surfaces_by_key ON surfaces (key)",
    "CREATE TABLE added.removed (row INTEGER PRIMARY KEY, title TEXT NOT NULL, hides INTEGER)",
    "CREATE INDEX added.removed_hiding ON removed (hides)",
    SEARCH[0].replace("search", "added.search", 1),
    "CREATE TABLE added.searched AS SELECT -1 AS row",
)
NAME = {"words": "word", "entities": "title"}  # the column with the names of a table
MAPPED = 1 << 31  # bytes of the file at most: looked up cold, names come four times faster than page by page
PAGE = 8192  # rows read at a time when all are wanted
STEP = 1_000_000  # steps of SQLite's machine between two checks whether a query takes too long


class Merge(NamedTuple):
    """An entity of a store that is one with another: look-ups find the other one by its names."""

    row: int
    into: int
    why: str
    wikidata: int | None = None  # the id that the other one took from it, as it had none


class Session:
    """What one process has open of a store, for one thread at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.process, self.lock = connection, os.getpid(), threading.RLock()
        self.log: IO[bytes] | None = None  # of additions
        self.end = 0  # of the last whole frame of the log that was read
        self.mark: tuple[int, ...] | None = None  # of the log when it was last read; None if it never was
        self.keyed = False  # whether surfaces are known to have keys

    def __del__(self) -> None:
        if self.log is not None:
            self.log.close()
        if self.process == os.getpid():
            self.connection.close()
        else:  # SQLite forbids a forked process to use or even close what its parent opened, so it is never freed
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.connection))


class Database:
    """Names in an SQLite file that is read and never written to, which may have come from anywhere.

    So SQLite need not lock it, which is faster and works on read-only and network disks. It does not look for a journal
    beside it either, which could make it write, or delete a file that the journal names. Every process has a connection
    of its own.
    """

    def __init__(self, path: Path, schema: Sequence[str]) -> None:
        if not path.is_file():
            raise EbertError(f"{path} is missing; restore it or make the store again")
        self.path, self._sessions = path, dict[int, Session]()
        self._mark = self._identify()
        made = {_plain(statement) for statement in (*schema, *FTS5_TABLES)}
        for kind, name, sql in self.rows("SELECT type, name, sql FROM sqlite_master"):
            ours = _plain(sql) in made if sql else kind == "index"  # SQLite creates those of keys by itself
            if not ours:
                self.close()
                raise EbertError(
                    f"{path} has a {kind} {name!r:.60} that ebert never makes, so it is not used: it could do "
                    f"harm if it came from elsewhere; restore it or make the store again"
                )

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a query and return all its rows."""
        session = self.session()
        # More steps than any query takes over a file of this size: crafted pages can form a cycle.
        most = 20 + 100 * ((self._mark[2] if self._mark else 0) + session.end) // STEP
        with session.lock:
            session.connection.set_progress_handler(partial(next, repeat(0, most), 1), STEP)
            try:
                return session.connection.execute(query, values).fetchall()
            except sqlite3.DatabaseError as error:
                raise self._unreadable(error) from None
            except UnicodeEncodeError:  # no name contains half a surrogate pair
                return []
            finally:
                session.connection.set_progress_handler(None, 0)

    def pages(self, query: str, first: int | str) -> Iterator[Any]:
        """Yield the rows of a query. Its parameter is the key to begin after: its first column, the sort key."""
        while page := self.rows(f"{query} LIMIT {PAGE}", (first,)):
            yield from page
            first = page[-1][0]

    def check(self) -> None:
        """Raise `EbertError` if the file was moved or replaced since it was opened.

        Names of the new store would be mixed with vectors of the old one.
        """
        if self._identify() != self._mark:
            raise EbertError(f"{self.path.parent} was moved or replaced since it was opened: open it again")

    def close(self) -> None:
        """Close the connection. The next query opens a new one."""
        self._sessions = {}

    def session(self) -> Session:
        """Return what this process has open."""
        process = os.getpid()
        if process not in self._sessions:
            self._sessions.setdefault(process, self._open())  # another thread may have opened it first
        return self._sessions[process]

    def _open(self) -> Session:
        try:
            connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None, check_same_thread=False
            )
            session = Session(connection)
            # Not cell_size_check: it keeps damage from spreading, which needs a writer, and makes look-ups take twice
            # as long, since mapped pages are checked again each time.
            connection.execute(f"PRAGMA mmap_size = {MAPPED}")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA temp_store = MEMORY")
            self._prepare(connection)
        except sqlite3.DatabaseError as error:
            raise self._unreadable(error) from None
        self.check()  # after opening, as the store may be replaced at any moment
        return session

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Create the tables that are kept in memory beside the file."""

    def _unreadable(self, error: Exception) -> EbertError:
        return EbertError(f"{self.path} cannot be read ({error}); restore it or make the store again")

    def _identify(self) -> tuple[int, int, int] | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size


class Catalogue(Database):
    """The names that a store was made with, and empty tables for those added later."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, [*SCHEMA, SEARCH[0]])
        self.sizes = {kind: self.rows(f"SELECT 1 + coalesce(max(row), -1) FROM main.{kind}")[0][0] for kind in NAME}
        for table in ("redirects", "search"):
            self.rows(f"SELECT 1 FROM main.{table} LIMIT 1")

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
        columns = {
            "words with a count": "count(count) FROM words",
            "entities with a count": "count(count) FROM entities",
            "entities with a Wikidata id": "count(wikidata) FROM entities",
            "redirects": "count(row) FROM redirects",
            "surfaces": "count(id) FROM surfaces",
            "merged": "count(row) FROM merged",
        }
        return {name: self.rows(f"SELECT {column}")[0][0] for name, column in columns.items()}

    @cached_property
    def merged(self) -> list[Merge]:
        """Return which entities are one with another, in the order of their rows."""
        return [Merge(*found) for found in self.rows("SELECT row, into_row, why, wikidata FROM merged ORDER BY row")]

    def surfaces(self) -> Iterator[Surface]:
        """Yield all surfaces, in the order of their letters, with the rows of what they mean, merged or not."""
        query = (
            "SELECT s.surface, occurrences, m.row, m.count FROM"
            f" (SELECT id, surface, occurrences FROM surfaces WHERE surface > ? ORDER BY surface LIMIT {PAGE}) s"
            " LEFT JOIN mentions m ON m.surface = s.id ORDER BY s.surface, m.count DESC, m.row"
        )
        last = ""
        while page := self.rows(query, (last,)):
            for (surface, occurrences), meant in groupby(page, itemgetter(0, 1)):
                yield surface, occurrences, [(row, count) for _, _, row, count in meant if row is not None]
            last = page[-1][0]

    def ensure_keys(self) -> None:
        """Make the keys of the surfaces in memory if a store of version 0.1 has none: seconds for a million."""
        session = self.session()
        if session.keyed:
            return
        with session.lock:
            if not session.keyed and not self.rows("SELECT 1 FROM main.sqlite_master WHERE name = 'keys'"):
                query = "SELECT surface FROM surfaces WHERE surface > ? ORDER BY surface"
                surfaces = (surface for (surface,) in self.pages(query, ""))
                session.connection.execute("BEGIN")
                while batch := list(islice(surfaces, PAGE)):
                    insert_keys(session.connection, batch)
                session.connection.execute("CREATE INDEX temp.keys_by_key ON keys (key)")
                session.connection.execute("COMMIT")
            session.keyed = True

    def _prepare(self, connection: sqlite3.Connection) -> None:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        for statement in LATER:
            if (table := statement.split()[2]) == "keys" and table not in tables:
                connection.execute(UNSORTED_KEYS)
            elif table not in tables:
                connection.execute(statement.replace("TABLE", "TEMP TABLE", 1))
        begin_added(connection)


def insert_keys(connection: sqlite3.Connection, surfaces: Sequence[str]) -> None:
    """Put the keys of surfaces into a catalogue; a surface that is its own key, or that has no key, needs none."""
    for plain in (True, False):  # one batch for each kind, which is several times faster
        alike = [surface for surface in surfaces if surface.isascii() == plain]
        keys = surface_key("\n".join(one.replace("\n", " ") for one in alike)).split("\n") if alike else []
        keyed = ((key, surface) for key, surface in zip(keys, alike, strict=True) if key not in ("", surface))
        connection.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", keyed)


def begin_added(connection: sqlite3.Connection) -> None:
    """Make empty tables for additions, in place of the existing ones."""
    if any(name == "added" for _, name, _ in connection.execute("PRAGMA database_list")):
        connection.execute("DETACH added")
    connection.execute("ATTACH ':memory:' AS added")
    for statement in ADDED:
        connection.execute(statement)


def _plain(statement: str) -> str:
    """Return a statement in a form that can be compared: SQLite keeps it as it was written, blanks included."""
    return " ".join(statement.replace("IF NOT EXISTS", "").split())
