"""The engine that needs nothing: worker processes on this machine, its cores and GPUs divided among them."""

import math
import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ebert import _workers
from ebert.bulk.inputs import Shard
from ebert.bulk.options import Workers
from ebert.bulk.worker import Report, ShardWork, Task
from ebert.errors import EbertError

MEMORY = 2 << 30  # bytes that a worker with BERT needs, about


class Engine(Protocol):
    """Does shards by some workers."""

    def __call__(self, task: Task, shards: Sequence[Shard]) -> Generator[Report, None, None]:
        """Do shards, in whatever order, and report each that is done. A shard whose worker died may be left out."""

    def facts(self) -> dict[str, Any]:
        """Give what the manifest says about it."""


@dataclass(frozen=True)
class LocalEngine:
    """Processes on this machine; a worker that dies takes nothing with it but its shard, which is done again."""

    workers: Workers = Workers()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        _check_gpus(self.workers)

    def __call__(self, task: Task, shards: Sequence[Shard]) -> Generator[Report, None, None]:
        """Do shards."""
        many = how_many(self.workers)
        task = replace(task, threads=self.workers.cpus or max(1, cores() // many))

        def own(number: int) -> ShardWork:
            return ShardWork(replace(task, device=device_of(number, self.workers.gpus)))

        processes = min(many, len(shards))
        for _, report in _workers.run(own(0), shards, processes=processes, apart=True, option="--workers", own=own):
            yield report

    def facts(self) -> dict[str, Any]:
        """Give what the manifest says about it."""
        return {"engine": "local", "workers": how_many(self.workers)}


def how_many(workers: Workers) -> int:
    """Give how many workers this machine has: as many as it has cores, memory or GPUs for, if nobody says so."""
    if workers.most is not None:
        return workers.most
    if workers.gpus:
        return max(workers.least, gpus() * _sharing(workers.gpus))
    return max(workers.least, min(cores() // (workers.cpus or 1), memory() // MEMORY))


def device_of(number: int, share: float) -> str | None:
    """Give the GPU of a worker, of which it has such a share; None if it has none."""
    return f"cuda:{number // _sharing(share)}" if share else None


def gpus() -> int:
    """Count the GPUs of this machine that torch can use."""
    import torch

    return torch.cuda.device_count()


def _sharing(share: float) -> int:
    """Give how many workers a GPU has room for."""
    return max(1, int(1 / share + 1e-9))  # 1 / 0.1 may be less than ten


def _check_gpus(workers: Workers) -> None:
    """Complain if workers would have to take what others have, or would leave what they have alone."""
    if not workers.gpus:
        return
    if workers.gpus > 1:
        raise EbertError(
            f"a worker of this machine works on one GPU, not on {workers.gpus:g}: --gpus-per-worker is at most 1"
        )
    many, there = how_many(workers), gpus()
    needed = math.ceil(many / _sharing(workers.gpus))
    if needed > there:
        raise EbertError(
            f"--workers {many} with --gpus-per-worker {workers.gpus:g} need {needed} GPUs, and this machine has {there}"
        )


def cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> int:
    """Give the bytes of memory that this machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 1 << 62
