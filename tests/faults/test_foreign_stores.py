"""Stores from elsewhere are data: opening one changes nothing outside it, runs nothing in it, and ends."""

import os
import shutil
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing

import foreign_stores
import numpy as np
import pytest

from ebert import EbertError, Vectors


def command(*arguments, seconds=60):
    """Run a command of ebert; one that hangs is killed, which fails the test."""
    run = [sys.executable, "-m", "ebert", *map(str, arguments)]
    return subprocess.run(run, capture_output=True, text=True, timeout=seconds)


@pytest.fixture
def store(tmp_path):
    return foreign_stores.make(tmp_path / "foreign")


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "thesis.txt"
    path.write_text("years of work")
    return path


READING = [("vectors", "info"), ("doctor",), ("vectors", "find"), ("vectors", "nearest")]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_journal_beside_an_overlay_deletes_nothing(store, victim, attack, words):
    overlay = foreign_stores.add_as_before(store, "Zorblax")
    for _ in attack(f"`{' '.join(words)}` on a store with a journal that names a victim", short=1, long=20):
        journal = foreign_stores.leave_journal(overlay, victim)
        name = [] if words[-1] in ("info", "doctor") else ["Denmark"]
        done = command(*words, store, *name)
        attack.check(victim.is_file() and victim.read_text() == "years of work", "the victim is gone")
        attack.check(journal.is_file(), "the journal was played and removed")
        attack.check("added.sqlite-journal" in done.stdout + done.stderr, "nobody was told of the journal")


@pytest.mark.parametrize("name", ["catalogue.sqlite-journal", "catalogue.sqlite-wal"])
def test_a_journal_beside_the_catalogue_is_never_played(store, victim, name):
    journal = foreign_stores.leave_journal(store / "catalogue.sqlite", victim)
    journal.rename(store / name)
    before = (store / "catalogue.sqlite").read_bytes()
    with Vectors.open(store) as vectors:
        assert vectors.find("Denmark") is not None
        vectors.add("Zorblax", np.ones(4))
        vectors.save(store.with_name("copy")).close()
    assert victim.read_text() == "years of work"
    assert (store / "catalogue.sqlite").read_bytes() == before
    assert (store / name).exists()


ENDLESS = "WITH RECURSIVE n (row) AS (SELECT 0 UNION ALL SELECT row + 1 FROM n) SELECT {} FROM n"


@pytest.mark.parametrize("file", ["catalogue.sqlite", "added.sqlite"])
def test_an_endless_view_in_place_of_a_table_is_refused(tmp_path, attack, file):
    for number in attack(f"an endless view in {file}", short=1, long=5):
        store = foreign_stores.make(tmp_path / str(number))
        if file == "added.sqlite":
            foreign_stores.add_as_before(store, "Zorblax")
        with closing(sqlite3.connect(store / file)) as connection, connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("DROP TABLE IF EXISTS search")
            connection.execute("ALTER TABLE entities RENAME TO real")
            body = ENDLESS.format(
                "row, 'T' || row AS title, 1 AS count, row AS wikidata, x'00' AS vector, NULL AS hides"
            )
            connection.execute(f"CREATE VIEW entities AS {body}")
        done = command("vectors", "info", store)
        attack.check(done.returncode == 2 and "view" in done.stderr, f"{done.returncode}: {done.stderr}")


@pytest.mark.parametrize("file", ["catalogue.sqlite", "added.sqlite"])
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON entities BEGIN UPDATE entities SET title = 'x'; END",
        "CREATE TABLE other (x)",
        "CREATE INDEX i ON redirects (abs(row))",
        "ALTER TABLE redirects ADD COLUMN more AS (abs(row))",
    ],
)
def test_what_we_never_make_is_refused_by_name(store, file, statement):
    if file == "added.sqlite":
        foreign_stores.add_as_before(store, "Zorblax")
    with closing(sqlite3.connect(store / file)) as connection, connection:
        connection.execute(statement)
    with pytest.raises(EbertError, match=rf"{file}.* that ebert never makes"):
        Vectors.open(store).find("Zorblax")


def interior(size, child):
    """Make an inner page of a table's tree all of whose branches lead to the same page."""
    page, cells, place = bytearray(size), (size - 12) // 7 - 1, size
    page[0] = 5
    struct.pack_into(">H", page, 3, cells)
    struct.pack_into(">I", page, 8, child)
    for number in range(cells):
        place -= 5
        struct.pack_into(">IB", page, place, child, 3)
        struct.pack_into(">H", page, 12 + 2 * number, place)
    struct.pack_into(">H", page, 5, place)
    return bytes(page)


def test_a_table_that_has_no_end_is_noticed(store):
    path = store / "catalogue.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'entities'"
        (root,), (size,) = connection.execute(query).fetchone(), connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    pages = len(content) // size
    leaf = bytes(content[(root - 1) * size : root * size])
    content[(root - 1) * size : root * size] = interior(size, pages + 9)
    content += leaf + b"".join(interior(size, pages + number) for number in range(1, 9))  # 500 to the power of 8 rows
    struct.pack_into(">I", content, 28, pages + 9)
    path.write_bytes(content)
    done = command("vectors", "info", store)
    assert (done.returncode, "catalogue.sqlite cannot be read (interrupted)" in done.stderr) == (2, True)


def test_a_table_of_the_search_index_that_computes_is_refused(store):
    with closing(sqlite3.connect(store / "catalogue.sqlite")) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        slow = "instr(hex(zeroblob(40000000)), hex(zeroblob(20000000)) || '1')"
        sql = f"CREATE TABLE 'search_config'(k PRIMARY KEY, v AS ({slow})) WITHOUT ROWID"
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'search_config'", (sql,))
    done = command("vectors", "info", store)
    assert (done.returncode, "'search_config' that ebert never makes" in done.stderr) == (2, True)


@pytest.mark.parametrize("name", ["store.json", "words.safetensors", "catalogue.sqlite"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(store, name):
    (store / name).unlink()
    os.mkfifo(store / name)
    done = command("vectors", "info", store)
    assert (done.returncode, name in done.stderr) == (2, True)


def test_a_trigger_cannot_change_the_vector_of_another_entity(store):
    overlay = foreign_stores.add_as_before(store, "Zorblax")
    with closing(sqlite3.connect(overlay)) as connection, connection:
        connection.execute(
            "CREATE TRIGGER t AFTER INSERT ON entities BEGIN UPDATE entities SET vector = zeroblob(16); END"
        )
    before = overlay.read_bytes()
    with Vectors.open(store) as vectors, pytest.raises(EbertError, match="trigger"):
        vectors.add("Harmless", np.ones(4))
    assert overlay.read_bytes() == before


def test_additions_of_version_0_1_are_read_and_kept(store):
    overlay = foreign_stores.add_as_before(store, "Zorblax", "Paris")
    before = overlay.read_bytes()
    with Vectors.open(store) as vectors:
        assert len(vectors) == 4
        assert vectors["Alias of Zorblax"].tolist() == [1] * 4
        assert vectors["Paname"].tolist() == [2] * 4  # a redirect to what was replaced
        assert vectors.find_id("own-1").title == vectors.find("Q1001").title == "Zorblax"
        assert [candidate.entity.title for candidate in vectors.candidates("Zorblax")] == ["Zorblax"]
        assert vectors.complete("zorb")[0].title == "Zorblax"
        assert vectors.suggest("Zorblux") == ["Zorblax"]
        vectors.add("New", np.full(4, 9.0), aliases=["Newer"])
        with pytest.raises(EbertError, match="was added before"):
            vectors.add("Zorblax", np.full(4, 3.0))
    with Vectors.open(store) as again:
        assert len(again) == 5
        assert again["Alias of Zorblax"].tolist() == [1] * 4
        assert again["Newer"].tolist() == [9] * 4
        assert again.find_id("own-1").title == "Zorblax"
        assert [title for title, _ in again.added()] == ["Zorblax", "Paris", "New"]
    assert overlay.read_bytes() == before  # never written to


@pytest.mark.parametrize("name", ["added.lock", "log"])
def test_adding_writes_through_no_link(store, victim, name):
    if name == "log":  # as the hub's cache has it: a link to a blob that other snapshots share
        with Vectors.open(store) as vectors:
            vectors.add("Before", np.ones(4))
        (log,) = store.glob("added-*.log")
        blob = victim.with_name("blob")
        shutil.move(log, blob)
        log.symlink_to(blob)
        before = blob.read_bytes()
        with Vectors.open(store) as vectors:
            vectors.add("After", np.full(4, 2.0))
        with Vectors.open(store) as vectors:
            assert [title for title, _ in vectors.added()] == ["Before", "After"]
        assert blob.read_bytes() == before
        assert not log.is_symlink()
    else:
        (store / name).unlink(missing_ok=True)
        (store / name).symlink_to(victim)
        with Vectors.open(store) as vectors, pytest.raises(EbertError, match="is a link"):
            vectors.add("New", np.ones(4))
    assert victim.read_text() == "years of work"
