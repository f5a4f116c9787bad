"""Worker processes: results, errors, and what becomes of workers when anything ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ebert import _workers
from ebert.errors import EbertError


def double(number):
    return 2 * number, os.getpid()


def fail_at_three(number):
    if number == 3:
        raise EbertError("three is bad")
    return number


def kill_itself(number):
    os.kill(os.getpid(), signal.SIGKILL)


def leave(number):
    os._exit(7)


def alive(pid):
    """Return whether a process runs, or is a zombie that nobody waited for."""
    return Path(f"/proc/{pid}").exists()


def runs(pid):
    """Return whether a process runs; orphans may stay zombies for a while."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("processes", [1, 3])
def test_all_tasks_are_done(processes):
    results = list(_workers.run(double, range(20), processes=processes))
    assert sorted((task, result) for task, (result, _) in results) == [(n, 2 * n) for n in range(20)]
    pids = {pid for _, (_, pid) in results}
    assert (pids == {os.getpid()}) == (processes == 1)
    assert len(pids) <= processes
    assert not any(alive(pid) for pid in pids - {os.getpid()})


def test_no_more_workers_than_tasks():
    assert len({pid for _, (_, pid) in _workers.run(double, [1], processes=50)}) == 1


@pytest.mark.parametrize("processes", [1, 2])
def test_no_tasks(processes):
    assert list(_workers.run(double, [], processes=processes)) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_what_a_task_raises_is_raised_here(processes):
    with pytest.raises(EbertError, match="three is bad"):
        list(_workers.run(fail_at_three, range(10), processes=processes))


@pytest.mark.parametrize("processes", [1, 2])
def test_what_making_tasks_raises_is_raised_when_the_others_are_done(processes):
    def tasks():
        yield from (1, 2)
        raise OSError("no more")

    done = []
    with pytest.raises(OSError, match="no more"):
        for task, _ in _workers.run(double, tasks(), processes=processes):
            done.append(task)
    assert sorted(done) == [1, 2]


@pytest.mark.parametrize(("work", "why"), [(kill_itself, "killed"), (leave, "exit code 7")])
def test_a_worker_that_dies_is_an_error_that_says_how_to_go_on(work, why):
    with pytest.raises(EbertError, match=f"a worker process died \\({why}.*run the same command again"):
        list(_workers.run(work, range(5), processes=2))


def test_workers_end_when_the_results_are_not_wanted_any_more():
    results = _workers.run(double, range(100), processes=2)
    pid = next(results)[1][1]
    assert alive(pid)
    results.close()
    assert not alive(pid)


SCRIPT = """
import sys, time
sys.path.insert(0, sys.argv[1])
from ebert import _workers
import test_workers
for task, (_, pid) in _workers.run(test_workers.double, iter(int, 1), processes=2):
    print(pid, flush=True)
"""


def test_workers_end_when_their_parent_is_killed():
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    )
    with parent:
        pids = {int(parent.stdout.readline()) for _ in range(500)}
        assert pids
        parent.kill()
        parent.wait()
        # The pipe to this process is open until the last worker has gone, so this line waits for that.
        parent.stdout.read()
    assert not any(map(runs, pids))
