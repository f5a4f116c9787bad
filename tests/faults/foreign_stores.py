"""Stores that somebody else prepared: overlays as version 0.1 wrote them, and journals that name a victim."""

import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import numpy as np

from ebert import Vectors

DIMENSION = 4
JOURNAL = bytes.fromhex("d9d505f920a163d7")  # how a rollback journal of SQLite begins
PENDING = 0x40000000  # the byte whose page SQLite never uses

OLD_OVERLAY = (
    "CREATE TABLE IF NOT EXISTS entities (row INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, count INTEGER,"
    " wikidata INTEGER, vector BLOB NOT NULL, hides INTEGER)",
    "CREATE INDEX IF NOT EXISTS entities_by_wikidata ON entities (wikidata) WHERE wikidata IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS entities_hiding ON entities (hides) WHERE hides IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS redirects (title TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS ids (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE)",
    "CREATE TABLE IF NOT EXISTS surfaces (surface TEXT, row INTEGER, PRIMARY KEY (surface, row)) WITHOUT ROWID",
    "CREATE VIRTUAL TABLE IF NOT EXISTS search USING fts5 (title, content = 'entities', content_rowid = 'row',"
    " tokenize = 'unicode61 remove_diacritics 2', detail = none, columnsize = 0)",
    "INSERT INTO search (search) VALUES ('rebuild')",
)


def make(path: Path) -> Path:
    """Make a store of a few words and entities."""
    titles = ["Paris", "Denmark", "Marie Curie"]
    Vectors.from_arrays(
        words=["paris", "city"], word_vectors=np.eye(2, DIMENSION), word_outputs=np.eye(2, DIMENSION),
        entities=titles, entity_vectors=np.eye(3, DIMENSION) + 1, redirects=[("Paname", "Paris")], path=path,
    ).close()  # fmt: skip
    return path


def add_as_before(store: Path, *titles: str) -> Path:
    """Add entities in the way of version 0.1, each with an alias, a surface, an own id and a vector of its number."""
    path = store / "added.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in OLD_OVERLAY:
            connection.execute(statement)
        for row, title in enumerate(titles, 1):
            vector = np.full(DIMENSION, row, "<f4").tobytes()
            hides = 0 if title == "Paris" else None
            connection.execute(
                "INSERT INTO entities VALUES (?, ?, 7, ?, ?, ?)", (row, title, 1000 + row, vector, hides)
            )
            connection.execute("INSERT INTO search (rowid, title) VALUES (?, ?)", (row, title))
            connection.execute("INSERT INTO redirects VALUES (?, ?)", (f"Alias of {title}", row))
            connection.execute("INSERT INTO surfaces VALUES (?, ?)", (title, row))
            connection.execute("INSERT INTO ids VALUES (?, ?)", (row, f"own-{row}"))
    return path


def leave_journal(database: Path, victim: Path) -> Path:
    """Leave a journal beside a database, as of a writer that died, that names `victim` as its super-journal."""
    content = database.read_bytes()
    size = struct.unpack(">H", content[16:18])[0]
    nonce = 1
    header = JOURNAL + struct.pack(">5I", 1, nonce, len(content) // size, 512, size)
    page = content[:size]
    checksum = nonce + sum(page[offset] for offset in range(size - 200, 0, -200))
    record = struct.pack(">I", 1) + page + struct.pack(">I", checksum & 0xFFFFFFFF)
    name = str(victim).encode()
    trailer = struct.pack(">I", PENDING // size + 1) + name + struct.pack(">2I", len(name), sum(name)) + JOURNAL
    journal = database.with_name(f"{database.name}-journal")
    journal.write_bytes(header.ljust(512, b"\0") + record + trailer)
    return journal
