"""The log of additions: what was acknowledged is there, half an addition is not, and damage is named."""

import json
import os
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ebert import EbertError, Vectors
from ebert.doctor import check_path
from ebert.vectors import log

TITLES = ["One", "Two", "Three"]


@pytest.fixture
def added(store):
    """The log of a store to which three entities were added, each in a transaction of its own."""
    for number, title in enumerate(TITLES, 1):
        store.add(title, np.full(6, number), aliases=[f"Alias of {title}"])
    return store.path / store.info.added


def ends(path):
    """Return where the frames of a log end."""
    with path.open("rb") as file:
        return [len(log.MAGIC), *(frame.end for frame in log.read(file, 0, path, 6))]


def titles(store):
    with Vectors.open(store.path) as again:
        for title, vector in again.added():
            assert vector.tolist() == [[*TITLES, "Half"].index(title) + 1] * 6
            assert again.find(f"Alias of {title}").title == title
        return [title for title, _ in again.added()]


def test_a_log_cut_anywhere_has_the_additions_before_the_cut_and_takes_new_ones(store, added):
    whole, places = added.read_bytes(), ends(added)
    for cut in sorted({*range(0, len(whole), 5), *(place + step for place in places[:-1] for step in (-1, 0, 1))}):
        added.write_bytes(whole[:cut])
        kept = [title for title, end in zip(TITLES, places[1:], strict=True) if end <= cut]
        assert titles(store) == kept
    added.write_bytes(whole[: places[2] + 30])  # within the third addition
    with Vectors.open(store.path) as again:
        again.add("Half", np.full(6, 4), aliases=["Alias of Half"])
    assert titles(store) == ["One", "Two", "Half"]


def test_zeros_that_a_power_cut_left_at_the_end_are_no_damage(store, added):
    with added.open("ab") as file:
        file.write(bytes(5000))
    assert titles(store) == TITLES
    store.add("Half", np.full(6, 4), aliases=["Alias of Half"])
    assert titles(store) == [*TITLES, "Half"]


def test_a_bit_that_flipped_is_noticed_and_nothing_after_it_is_lost(store, added):
    whole, places = added.read_bytes(), ends(added)
    for place in range(places[0], places[2], 7):  # not in the last addition, which may be half written
        damaged = bytearray(whole)
        damaged[place] ^= 4
        added.write_bytes(damaged)
        with Vectors.open(store.path) as again:
            with pytest.raises(EbertError, match=r"added-\w+\.log is damaged .*; restore it, or remove it"):
                again.find("One")
            with pytest.raises(EbertError, match="is damaged"):
                again.add("Half", np.ones(6))
        assert added.read_bytes() == bytes(damaged)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["title", "row", "hides", "count", "id", "aliases", "x"]), inner)
        ),
        max_leaves=8,
    )
)
def test_whatever_a_frame_says_it_is_read_or_refused(store, value):
    names = json.dumps(value).encode()
    start = log.HEADER.pack(log.MARK, len(names), 24, zlib.crc32(bytes(24), zlib.crc32(names)), 0)[:-4]
    frame = start + zlib.crc32(start).to_bytes(4, "little") + names + bytes(24)
    (store.path / store.info.added).write_bytes(log.MAGIC + frame)
    with Vectors.open(store.path) as again:
        try:
            found = [title for title, _ in again.added()]
        except EbertError:
            found = None
    good = (
        isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and type(value[0].get("row")) is int
    )
    assert found is None or (good and found == [value[0]["title"]])


def test_a_title_twice_is_damage(store, added):
    with added.open("ab") as file:
        file.write(log.pack([log.Addition("One", 17)], np.ones((1, 6), np.float32)))
        file.write(log.pack([log.Addition("Four", 18)], np.ones((1, 6), np.float32)))
    with Vectors.open(store.path) as again, pytest.raises(EbertError, match=r"is damaged \(UNIQUE"):
        again.find("One")


def test_an_open_reader_reads_on_as_the_log_grows_and_through_another_log_of_the_same_name(store, added):
    with Vectors.open(store.path) as reader:
        assert len(reader) == 12
        stamp = reader.stamp
        store.add("Four", np.full(6, 4))
        assert reader["Four"].tolist() == [4] * 6
        assert reader.stamp != stamp
        added.write_bytes(added.read_bytes()[: ends(added)[1]])  # restored from yesterday
        assert [title for title, _ in reader.added()] == ["One"]


def test_a_full_disk_anywhere_in_an_addition_leaves_the_log_as_it_was(store, added):
    script = """
import resource, sys, numpy as np
from ebert import Vectors
vectors = Vectors.open(sys.argv[1])
path = vectors.path / vectors.info.added
whole = path.read_bytes()
for more in (1, 100, 5000, 11000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + more, resource.RLIM_INFINITY))
    try:
        vectors.add("Half", np.full(6, 4), aliases=["Alias of Half" * 900])
    except OSError as error:
        print(error)
    assert path.read_bytes() == whole
"""
    done = subprocess.run([sys.executable, "-c", script, str(store.path)], capture_output=True, text=True)
    assert (done.stdout.count("cannot add to"), done.stderr) == (4, "")
    assert titles(store) == TITLES


def test_what_nobody_could_read_is_not_written(make):
    with make(entity_counts=[-1] * 9) as store:
        store.add("Paris", np.ones(6), replace=True)
        assert store.find("Paris").count == 0
        (store.path / store.info.added).write_bytes(
            log.MAGIC + log.pack([log.Addition("Last", (1 << 31) - 1)], np.ones((1, 6), np.float32))
        )
        with pytest.raises(EbertError, match="'Next' cannot be added: row cannot be 2147483648"):
            store.add("Next", np.ones(6))
        assert [title for title, _ in store.added()] == ["Last"]


@pytest.mark.parametrize("values", ["-7, 'X', 1, NULL", "1, 'X', 'many', NULL", "1, 'X', 1, 'zz'", "1, x'41', 1, NULL"])
def test_odd_values_of_version_0_1_are_damage_and_stay(store, values):
    path = store.path / log.OLD
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in log.OLD_SCHEMA:
            connection.execute(statement)
        columns = "row, title, count, hides, vector"
        connection.execute(f"INSERT INTO entities ({columns}) VALUES ({values}, zeroblob(24))")
    before = path.read_bytes()
    with Vectors.open(store.path) as again:
        with pytest.raises(EbertError, match=r"added\.sqlite is damaged"):
            again.find("X")
        with pytest.raises(EbertError, match=r"added\.sqlite is damaged"):
            again.add("New", np.ones(6))
    assert path.read_bytes() == before
    assert not list(store.path.glob("added-*.log"))


def test_a_forked_child_adds_while_a_thread_of_its_parent_does(store):
    script = """
import os, sys, threading, numpy as np
from ebert import Vectors
vectors = Vectors.open(sys.argv[1])
vectors.add("First", np.ones(6))
inside, go_on = threading.Event(), threading.Event()
def add():
    with vectors.overlay.locked():
        inside.set()
        go_on.wait()
thread = threading.Thread(target=add)
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    vectors.add("From the child", np.ones(6))
    os._exit(0)
go_on.set()
thread.join()
assert os.waitpid(child, 0)[1] == 0
assert vectors.find("From the child") is not None
"""
    done = subprocess.run([sys.executable, "-c", script, str(store.path)], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_entity_that_another_reader_replaced_has_its_new_vector(store, added):
    with Vectors.open(store.path) as reader:
        one = reader.find("One")
        store.add("One", np.full(6, 9), replace=True)
        assert reader.take([one]).tolist() == [[9] * 6]
        four = store.add("Four", np.full(6, 4))
        assert reader.take([four]).tolist() == [[4] * 6]


def test_a_store_replaced_before_its_additions_were_read_says_so(store, added):
    with Vectors.open(store.path) as reader:
        store.save(store.path, overwrite=True).close()
        with pytest.raises(EbertError, match="open it again"):
            reader.find("One")


def test_an_addition_that_ends_in_a_store_that_was_replaced_is_not_acknowledged(store, make, tmp_path):
    with make("other") as other, pytest.raises(EbertError, match="open it again"), store.overlay.locked():
        store.overlay.add(log.Addition("Lost"), np.ones(6, np.float32))
        other.save(store.path, overwrite=True).close()


def test_a_damaged_last_addition_is_noticed_by_doctor_and_kept_aside(store, added):
    content = bytearray(added.read_bytes())
    content[-1] ^= 1
    added.write_bytes(content)
    assert [check.state for check in check_path(str(store.path)) if check.what == added.name] == ["note"]
    start = ends(added)[-1]
    with Vectors.open(store.path) as again:
        again.add("Half", np.full(6, 4), aliases=["Alias of Half"])
    assert added.with_name(f"{added.name}.damaged").read_bytes() == bytes(content[start:])
    assert titles(store) == ["One", "Two", "Half"]


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_log_that_is_no_file_is_refused(store, kind):
    path = store.path / store.info.added
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with Vectors.open(store.path) as again, pytest.raises(EbertError, match="is not a file"):
        again.find("One")


def test_a_log_that_was_removed_is_begun_anew(store, added):
    assert len(store) == 12
    added.unlink()
    store.add("Half", np.full(6, 4), aliases=["Alias of Half"])
    assert titles(store) == [*TITLES, "Half"]  # whoever has them open still has them
