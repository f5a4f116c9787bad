"""One store, many threads and processes."""

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ebert import EbertError

ADD = """
import sys, numpy as np
from ebert import Vectors
path, number = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
with Vectors.open(path) as vectors:
    for i in range(15):
        vectors.add(f"Added {number} {i}", np.full(6, 1000 * number + i), aliases=[f"Alias {number} {i}"])
"""


def test_four_processes_add_to_one_store_at_once(store):
    # The store has no overlay yet, so they also race to create it.
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ADD, str(store.path), str(number)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(4)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")
    assert len(store) == 9 + 60
    for number in range(4):
        for i in range(15):
            assert store[f"Alias {number} {i}"].tolist() == [1000 * number + i] * 6


def test_many_threads_read_at_once(store):
    store.add("New", np.ones(6))
    names = ["Jean Marais", "Paname", "Q90", "New", "AC/DC", "xyzzy"]
    expected = [None if store.find(name) is None else store[name].tolist() for name in names]
    together = threading.Barrier(8)

    def read(_):
        together.wait()
        for _ in range(20):
            found = [store.find(name) for name in names]
            assert [None if e is None else store.take([e])[0].tolist() for e in found] == expected
            assert store.suggest("Jean Maris")[0] == "Jean Marais"
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(8)))


def test_threads_add_and_read_at_once(store):
    def work(number):
        for i in range(8):
            store.add(f"Added {number} {i}", np.full(6, number))
            assert store[f"Added {number} {i}"][0] == number

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert len(store) == 9 + 32


def _child(store, answers):
    try:
        store.add("From the child", np.full(6, 7))
        answers.put((store.find("Paname").title, store["Paris"].tolist(), store["Before"].tolist()))
    except BaseException as error:
        answers.put(repr(error))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_store_works_on_in_a_child_process(store, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    store.add("Before", np.ones(6))
    context = multiprocessing.get_context(method)
    answers = context.Queue()
    process = context.Process(target=_child, args=(store, answers))
    process.start()
    answer = answers.get()
    process.join()
    assert answer == ("Paris", store["Paris"].tolist(), [1] * 6)
    assert process.exitcode == 0
    assert store["From the child"].tolist() == [7] * 6
    store.add("After", np.ones(6))
    assert len(store) == 12


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_does_not_remove_its_parents_temporary_store():
    script = """
import os, gc, sys
from ebert import Vectors
vectors = Vectors.from_arrays(entities=["A"], entity_vectors=[[1.0]])
vectors.find("A")
if os.fork() == 0:
    assert vectors["A"][0] == 1
    del vectors
    gc.collect()
    sys.exit(0)
assert os.wait()[1] == 0
assert vectors.path.is_dir() and vectors["A"][0] == 1
path = vectors.path
del vectors
assert not path.exists()
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_whoever_has_a_store_open_goes_on_with_the_old_one_when_it_is_replaced(store, make):
    with make("other", entities=[f"T{i}" for i in range(9)], redirects=[], wikidata=[]) as other:
        assert store.find("Paris") is not None
        other.save(store.path, overwrite=True).close()
    with ThreadPoolExecutor(1) as pool:
        for find in (store.find, lambda name: pool.submit(store.find, name).result()):
            assert find("Paris") is not None
            assert find("T1") is None
    store.close()
    with pytest.raises(EbertError, match="open it again"):
        store.find("T1")
