"""Which GPU each worker of this machine has. There need not be one: the names are what is tested."""

import pytest
import torch
from bulk_jobs import CountJob, rows_of, write
from click.testing import CliRunner

from ebert.bulk.local import LocalEngine, device_of, how_many
from ebert.bulk.options import EngineOptions, ReadOptions
from ebert.bulk.run import run
from ebert.cli import bulk
from ebert.errors import EbertError


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        (0, [None] * 4), (1, ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]), (0.5, ["cuda:0", "cuda:0", "cuda:1", "cuda:1"]),
        (0.3, ["cuda:0", "cuda:0", "cuda:0", "cuda:1"]), (0.6, ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]),
    ],
)  # fmt: skip
def test_each_worker_has_its_own_or_its_share(gpus, expected):
    assert [device_of(number, gpus) for number in range(4)] == expected
    assert device_of(9, 0.1) == "cuda:0"
    assert device_of(10, 0.1) == "cuda:1"


@pytest.mark.usefixtures("two_gpus")
def test_there_are_as_many_workers_as_gpus_have_room_for():
    assert how_many(EngineOptions(gpus_per_worker=1)) == 2
    assert how_many(EngineOptions(gpus_per_worker=0.25)) == 8
    assert how_many(EngineOptions(gpus_per_worker=1, workers=1)) == 1
    LocalEngine(EngineOptions(gpus_per_worker=1, workers=2))
    LocalEngine(EngineOptions(gpus_per_worker=0.5, workers=4))
    with pytest.raises(EbertError, match="--workers 3 with --gpus-per-worker 1 need 3 GPUs, and this machine has 2"):
        LocalEngine(EngineOptions(gpus_per_worker=1, workers=3))
    with pytest.raises(EbertError, match=r"--workers 5 with --gpus-per-worker 0\.5 need 3 GPUs"):
        LocalEngine(EngineOptions(gpus_per_worker=0.5, workers=5))


def test_a_worker_takes_one_gpu_at_most():
    with pytest.raises(EbertError, match="a worker of this machine works on one GPU"):
        LocalEngine(EngineOptions(gpus_per_worker=2))


@pytest.mark.usefixtures("two_gpus")
def test_workers_are_told_their_device(tmp_path):
    """Both wait for the other, so that there are two, and write down where they were told to load the model."""
    (tmp_path / "place").mkdir()
    (tmp_path / "devices").mkdir()
    corpus = write(tmp_path / "in.jsonl", [f"meet {tmp_path / 'place'}"] * 4)
    job = CountJob(devices=str(tmp_path / "devices"))
    run(
        job,
        [corpus],
        tmp_path / "out",
        read=ReadOptions(shard_rows=1),
        engine=LocalEngine(EngineOptions(gpus_per_worker=1)),
    )
    assert len(rows_of(tmp_path / "out")) == 4
    assert sorted(path.name for path in (tmp_path / "devices").iterdir()) == ["cpu", "cuda:0", "cuda:1"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--device", "cpu"], "--device cpu and --gpus-per-worker do not go together"),
        (["--device", "cuda:1", "--engine", "ray"], "--device cuda:1 and --gpus-per-worker do not go together"),
        (["--workers", "1000"], "--workers 1000 with --gpus-per-worker 1 need 1000 GPUs, and this machine has"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_read(arguments, expected):
    given = ["nowhere", "--bert", "x", "--out", "out", "--gpus-per-worker", "1", *arguments]
    done = CliRunner().invoke(bulk.encode, given)
    assert isinstance(done.exception, EbertError)
    assert expected in str(done.exception)
