"""A Ray of our own on this machine: however a job ends, its processes go with it, and the job goes on."""

import os
import signal
import subprocess
import sys
import uuid

import pytest
from bulk_jobs import CountJob, Here, rows_of, write
from ray_processes import still_there

from ebert.bulk.options import ReadOptions
from ebert.bulk.ray import connected
from ebert.bulk.run import run
from ebert.errors import EbertError

SCRIPT = """
import contextlib, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from bulk_jobs import CountJob
from ebert.bulk.options import EngineOptions, ReadOptions
from ebert.bulk.run import run
from ebert.bulk.ray import RayEngine
path, out, number = sys.argv[1:]
left = 3
@contextlib.contextmanager
def watch(what, *, total=None, unit=""):
    def advance(amount):
        global left
        left -= amount > 0
        if left == 0:
            os.kill(os.getpid(), int(number))
    yield advance
try:
    engine = RayEngine(EngineOptions(workers=1))
    run(CountJob(), [path], out, read=ReadOptions(shard_rows=5), engine=engine, watch=watch)
except KeyboardInterrupt:
    import ray
    assert not ray.is_initialized()
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    sys.exit("interrupted")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind(tmp_path, number):
    corpus, mark = write(tmp_path / "in.jsonl", ["x" * number for number in range(60)]), uuid.uuid4().hex
    environment = {**os.environ, "EBERT_TEST_CLUSTER": mark}
    command = [sys.executable, "-c", SCRIPT, corpus, tmp_path / "out", int(number)]
    done = subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True)
    assert done.returncode == (1 if number == signal.SIGINT else -9), done.stderr
    assert done.stderr.strip().endswith("interrupted") == (number == signal.SIGINT), (
        done.stderr
    )  # not by a failed check
    assert still_there(mark) == []
    engine = Here()
    run(CountJob(), [corpus], tmp_path / "out", read=ReadOptions(shard_rows=5), engine=engine)
    assert [row["letters"] for row in rows_of(tmp_path / "out")] == list(range(60))
    assert 0 < len(engine.done) <= 9


def test_a_cluster_that_is_not_there_is_named(monkeypatch):
    with (
        pytest.raises(EbertError, match=r"there is no Ray cluster at 127\.0\.0\.1:9"),
        connected("127.0.0.1:9", cpus=1),
    ):
        pass
