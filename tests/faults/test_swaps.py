"""A folder is replaced while others read and replace it, also where two folders cannot be swapped in one step."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from ebert import Vectors
from ebert._io import files

LONG = os.environ.get("EBERT_FAULTS") == "long"
# With this a system is one without a call for swapping folders.
TWO_STEPS = "import sys, filelock, ebert.vectors.store; sys.platform = 'other'\n"

WRITE = """
import numpy as np
from ebert import Vectors
path, first, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for number in range(first, first + times):
    one = Vectors.from_arrays(entities=[f"E{i}" for i in range(9)], entity_vectors=np.full((9, 4), number))
    one.save(path, overwrite=True).close()
    one.close()
"""
READ = """
import os
from ebert import Vectors
opened = 0
print("ready", flush=True)
while not os.path.exists(sys.argv[2]):
    with Vectors.open(sys.argv[1]) as store:
        values = {float(value) for i in range(9) for value in store[f"E{i}"]}
    assert len(values) == 1, values
    opened += 1
print(opened)
"""
# Stops before the new folder takes its place, until it is told to go on.
STOPPED = """
import os, pathlib
def stop(real):
    def rename(source, target):
        if os.fspath(target) == sys.argv[1]:
            print("between", flush=True)
            sys.stdin.readline()
        real(source, target)
    return rename
os.rename, os.replace = stop(os.rename), stop(os.replace)
"""
OPEN = """
from ebert import Vectors
print("ready", flush=True)
print(Vectors.open(sys.argv[1])["E3"][0])
"""
KILLED = """
import os, signal
from pathlib import Path
from ebert._io import files
left, real = int(sys.argv[2]), os.rename
def rename(*arguments):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    real(*arguments)
os.rename = rename
with files.replacing_folder(Path(sys.argv[1]), overwrite=True) as folder:
    (folder / "new").touch()
"""


def start(script, *arguments, steps):
    head = TWO_STEPS if steps == 2 else "import sys\n"
    command = [sys.executable, "-c", head + script, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize("steps", [1, 2])
def test_readers_never_miss_a_store_that_is_replaced_and_writers_lose_nothing(tmp_path, attack, steps):
    times = 100 if LONG else 6
    store, stop = tmp_path / "store", tmp_path / "stop"
    Vectors.from_arrays(entities=[f"E{i}" for i in range(9)], entity_vectors=np.zeros((9, 4)), path=store).close()
    readers = [start(READ, store, stop, steps=steps) for _ in range(2)]
    for reader in readers:
        assert reader.stdout.readline() == "ready\n"
    writer = start(WRITE, store, 1, times, steps=steps)
    _, said = writer.communicate()
    stop.touch()
    ended = [reader.communicate() for reader in readers]
    for number in attack(f"replace a store under readers, in {steps} step{'s' * (steps > 1)}", short=6, long=100):
        if number == 0:
            attack.check(writer.returncode == 0, said)
            for out, error in ended:
                attack.check(out.strip().isdecimal() and int(out) > 0, error)
    with Vectors.open(store) as last:
        assert last["E3"].tolist() == [times] * 4
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_a_reader_waits_while_the_old_store_is_aside_and_takes_nothing_from_the_writer(tmp_path):
    store = tmp_path / "store"
    Vectors.from_arrays(entities=[f"E{i}" for i in range(9)], entity_vectors=np.zeros((9, 4)), path=store).close()
    writer = start(STOPPED + WRITE, store, 7, 1, steps=2)
    assert writer.stdout.readline() == "between\n"
    assert not store.exists()
    reader = start(OPEN, store, steps=2)
    assert reader.stdout.readline() == "ready\n"
    with pytest.raises(subprocess.TimeoutExpired):
        reader.wait(timeout=1)
    _, said = writer.communicate("go on\n")
    assert (writer.returncode, said) == (0, "")
    out, said = reader.communicate()
    assert (reader.returncode, out, said) == (0, "7.0\n", "")


@pytest.mark.parametrize("steps", [1, 2])
def test_two_writers_at_once_leave_the_whole_of_one(tmp_path, steps):
    store = tmp_path / "store"
    writers = [start(WRITE, store, first, 10, steps=steps) for first in (100, 200)]
    for writer in writers:
        _, said = writer.communicate()
        assert (writer.returncode, said) == (0, "")
    with Vectors.open(store) as last:
        assert last["E3"][0] in (109, 209)
    assert [path.name for path in tmp_path.glob(".*")] == []


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_writer_that_is_killed_between_two_renames_leaves_the_old_or_the_new(tmp_path, at):
    """The old folder goes aside, the new one comes; there is no third."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "old").touch()
    process = start(KILLED, folder, at, steps=2)
    process.communicate()
    assert process.returncode == (0 if at == 3 else -signal.SIGKILL)
    assert folder.exists() == (at != 2)
    files.recover(folder)
    assert [path.name for path in folder.iterdir()] == (["old"] if at == 1 else ["new"])
    with files.replacing_folder(folder, overwrite=True) as again:
        (again / "again").touch()
    assert [path.name for path in folder.iterdir()] == ["again"]
    assert [path.name for path in tmp_path.glob(".*")] == []
