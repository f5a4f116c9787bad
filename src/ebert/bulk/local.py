"""The engine that needs nothing: worker processes on this machine, its cores and GPUs divided among them."""

import math
import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ebert import _workers
from ebert.bulk.inputs import Shard
from ebert.bulk.options import EngineOptions
from ebert.bulk.worker import BulkTask, ShardReport, ShardWork
from ebert.errors import EbertError

MEMORY = 2 << 30  # bytes that a worker with BERT needs, about


class Engine(Protocol):
    """Processes shards with some workers."""

    def __call__(self, task: BulkTask, shards: Sequence[Shard]) -> Generator[ShardReport, None, None]:
        """Do shards in any order, and yield a report of each that is done; one whose worker died may be missing."""

    def facts(self) -> dict[str, Any]:
        """Return what the manifest says about it."""


def make_engine(options: EngineOptions) -> Engine:
    """Return the engine that options ask for."""
    if options.engine == "local":
        return LocalEngine(options)
    from ebert.bulk.ray import RayEngine, need_ray

    need_ray()  # now, not after the inputs were read
    return RayEngine(options)


@dataclass(frozen=True)
class LocalEngine:
    """Processes on this machine; if a worker dies, only its shard is lost, and it is processed again."""

    options: EngineOptions = field(default_factory=EngineOptions)

    def __post_init__(self) -> None:
        """Raise an error if workers would have to share GPUs that others have, or would leave GPUs unused."""
        share = self.options.gpus_per_worker
        if not share:
            return
        if share > 1:
            raise EbertError(
                f"a worker of this machine works on one GPU, not on {share:g}: --gpus-per-worker is at most 1"
            )
        many, there = how_many(self.options), gpus()
        needed = math.ceil(many / _sharing(share))
        if needed > there:
            raise EbertError(
                f"--workers {many} with --gpus-per-worker {share:g} need {needed} GPUs, and this machine has {there}"
            )

    def __call__(self, task: BulkTask, shards: Sequence[Shard]) -> Generator[ShardReport, None, None]:
        """Do shards."""
        many = how_many(self.options)
        task = replace(task, threads=self.options.cpus_per_worker or max(1, cores() // many))

        def own(number: int) -> ShardWork:
            return ShardWork(replace(task, device=device_of(number, self.options.gpus_per_worker)))

        processes = min(many, len(shards))
        for _, report in _workers.run(own(0), shards, processes=processes, apart=True, option="--workers", own=own):
            yield report

    def facts(self) -> dict[str, Any]:
        """Return what the manifest says about it."""
        return {"engine": "local", "workers": how_many(self.options)}


def how_many(options: EngineOptions) -> int:
    """Return how many workers this machine has: as many as it has cores, memory or GPUs for, if none are given."""
    if options.workers is not None:
        return options.workers
    if options.gpus_per_worker:
        return max(options.least_workers, gpus() * _sharing(options.gpus_per_worker))
    return max(options.least_workers, min(cores() // (options.cpus_per_worker or 1), memory() // MEMORY))


def device_of(number: int, share: float) -> str | None:
    """Return the GPU of a worker that has this share of one; None if it has none."""
    return f"cuda:{number // _sharing(share)}" if share else None


def _sharing(share: float) -> int:
    """Return how many workers a GPU has room for."""
    return max(1, int(1 / share + 1e-9))  # 1 / 0.1 may be less than ten


def gpus() -> int:
    """Return the number of GPUs of this machine that torch can use."""
    import torch

    return torch.cuda.device_count()


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory() -> int:
    """Return the bytes of memory that this machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 1 << 62
