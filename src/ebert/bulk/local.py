"""The engine that needs nothing: worker processes on this machine, its cores divided among them."""

import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ebert.bulk.options import Workers
from ebert.bulk.planning import Shard
from ebert.bulk.shard import Report, ShardWork, Task
from ebert.wikipedia import pool

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

    def __call__(self, task: Task, shards: Sequence[Shard]) -> Generator[Report, None, None]:
        """Do shards."""
        many = how_many(self.workers)
        work = ShardWork(replace(task, threads=self.workers.cpus or max(1, cores() // many)))
        for _, report in pool.run(work, shards, processes=min(many, len(shards)), apart=True, option="--workers"):
            yield report

    def facts(self) -> dict[str, Any]:
        """Give what the manifest says about it."""
        return {"engine": "local", "workers": how_many(self.workers)}


def how_many(workers: Workers) -> int:
    """Give how many workers this machine has: as many as it has cores, or memory, if nobody says so."""
    if workers.most is not None:
        return workers.most
    if workers.gpus:
        return workers.least
    return max(workers.least, min(cores() // (workers.cpus or 1), memory() // MEMORY))


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
