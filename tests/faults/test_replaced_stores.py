"""A store that is replaced while others read it and add to it: nothing is mixed up and nothing is lost."""

import subprocess
import sys
from pathlib import Path

import foreign_stores
import numpy as np
import pytest

from ebert import EbertError, Vectors

# Adds entities for as long as it is let, opens the store again when it was replaced, and prints what was acknowledged.
ADDER = """
import sys, numpy as np
from ebert import EbertError, Vectors
path, name, errors = sys.argv[1], sys.argv[2], 0
vectors = Vectors.open(path)
print("ready", flush=True)
number = 0
while not __import__("os").path.exists(path + ".stop"):
    try:
        vectors.add(f"{name} {number}", np.full(4, number), aliases=[f"Alias of {name} {number}"])
    except EbertError as error:
        assert "open it again" in str(error), error
        vectors.close()
        vectors = Vectors.open(path)
    else:
        print(number, flush=True)
        number += 1
"""

# Reads through one and the same opened store while it is replaced, and through new ones. One that was replaced before
# its additions were first read must be opened again; all else is as it was.
READER = """
import os, sys, numpy as np
from ebert import EbertError, Vectors
path = sys.argv[1]
kept = Vectors.open(path)
len(kept)
print("ready", flush=True)
def read(vectors):
    assert vectors.find("Paname").title == "Paris"
    assert vectors["Denmark"].tolist() == [1, 2, 1, 1]
    for title, vector in list(vectors.added())[-5:]:
        assert vector.tolist() == [int(title.split()[1])] * 4, (title, vector)
    vectors.nearest("Denmark", top=2)
    vectors.candidates("Denmark")
while not os.path.exists(path + ".stop"):
    with Vectors.open(path) as fresh:
        try:
            read(fresh)
        except EbertError as error:
            assert "open it again" in str(error), error
    read(kept)
"""


def start(script, *arguments):
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    return process


def the_rest(process):
    """Read what a process still says; `communicate` would lose what is in the buffer of the lines read before."""
    with process:
        return process.stdout.read(), process.stderr.read()


def test_saving_in_place_among_adders_and_readers(tmp_path, attack):
    path = foreign_stores.make(tmp_path / "store")
    adders = {name: start(ADDER, path, name) for name in ("A", "B")}
    reader = start(READER, path)
    for _ in attack("a store saved in place among two adders and a reader", short=6, long=100):
        with Vectors.open(path) as vectors:
            vectors.save(path, overwrite=True).close()
    Path(f"{path}.stop").touch()
    ended = {name: the_rest(process) for name, process in {**adders, "reader": reader}.items()}
    for name, process in {**adders, "reader": reader}.items():
        attack.check(process.returncode == 0, f"{name}: {ended[name][1]}")
    with Vectors.open(path, verify=True) as vectors:
        for name in adders:
            for number in map(int, ended[name][0].split()):
                found = vectors.find(f"Alias of {name} {number}")
                attack.check(found is not None and found.title == f"{name} {number}", f"{name} {number} is lost")
                attack.check(vectors[f"{name} {number}"].tolist() == [number] * 4, f"{name} {number} is wrong")


# Dies in the middle of an addition: the kernel has half of the frame.
KILLED = """
import os, sys, numpy as np
from ebert import Vectors
vectors = Vectors.open(sys.argv[1])
vectors.add("Acknowledged", np.full(4, 1))
real = os.fsync
def die(handle):
    size = os.fstat(handle).st_size
    os.ftruncate(handle, size - int(sys.argv[2]))
    os.kill(os.getpid(), 9)
os.fsync = die
vectors.add("Half", np.full(4, 2))
"""


def test_an_adder_killed_in_a_new_store_under_an_open_reader(tmp_path, attack):
    for number in attack("an adder killed in a store that replaced the one of an open reader", short=3, long=100):
        path = foreign_stores.make(tmp_path / f"store{number}")
        reader = Vectors.open(path)
        reader.add("Before", np.full(4, 7))
        assert reader["Before"].tolist() == [7] * 4
        with Vectors.open(path) as vectors:
            vectors.save(path, overwrite=True).close()
        assert subprocess.run([sys.executable, "-c", KILLED, path, str(1 + number % 40)]).returncode == -9
        attack.check(reader["Before"].tolist() == [7] * 4, "the reader of the old store lost something")
        attack.check([title for title, _ in reader.added()] == ["Before"], "the old store has additions of the new")
        attack.check(reader.find("Acknowledged") is None, "the reader has an entity of the new store")
        with pytest.raises(EbertError, match="open it again"):
            reader.add("After", np.ones(4))
        reader.close()
        with Vectors.open(path, verify=True) as vectors:
            attack.check([title for title, _ in vectors.added()] == ["Acknowledged"], "not what was acknowledged")
            vectors.add("After", np.full(4, 3))
        with Vectors.open(path) as vectors:
            attack.check([title for title, _ in vectors.added()] == ["Acknowledged", "After"], "it cannot be added to")
            attack.check(vectors["Before"].tolist() == [7] * 4, "what was saved is lost")


def test_an_adder_killed_at_any_moment_leaves_all_that_it_acknowledged(tmp_path, attack):
    path = foreign_stores.make(tmp_path / "store")
    expected: set[str] = set()
    for number in attack("an adder killed at a random moment", short=4, long=200):
        process = start(ADDER, path, f"K{number}")
        rng = np.random.default_rng(number)
        last = -1
        for _ in range(int(rng.integers(1, 40))):
            last = int(process.stdout.readline())
        process.kill()
        rest = the_rest(process)[0].split("\n")[:-1]  # the last may be half a line
        last = max([last, *map(int, rest)])
        expected |= {f"K{number} {i}" for i in range(last + 1)}
        with Vectors.open(path) as vectors:
            added = {title for title, _ in vectors.added()}
        attack.check(expected <= added, f"{len(expected - added)} additions are lost")
        more = added - expected
        attack.check(more <= {f"K{number} {last + 1}"}, f"{more} were never acknowledged")
        expected |= more
