"""The engine that works on a cluster: a pool of Ray Data's actors, each with a model, to which shards are streamed.

Only the descriptions of shards and the reports go through Ray: a worker reads its rows from the shared folder and
writes what comes of them there. Ray replaces a worker that dies and gives its shards to another one. Done twice, a
shard is the same file, so nothing is lost or doubled.
"""

import logging
import pickle
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ebert.bulk.local import how_many
from ebert.bulk.options import Workers
from ebert.bulk.planning import Shard
from ebert.bulk.shard import Report, ShardWork, Task
from ebert.errors import EbertError
from ebert.ray.cluster import connected, first_line, need_ray

AHEAD = 2  # shards that a worker has at hand: the next one waits while it is at one
BUSY = 1.5  # shards at hand of each worker, on average, from which on there are to be more workers


@dataclass(frozen=True)
class RayEngine:
    """Actors on a cluster, more of them while there is work, fewer when there is none."""

    workers: Workers = Workers()  # noqa: RUF009 - frozen
    address: str | None = None
    """Of the cluster; RAY_ADDRESS if not given, and without that a cluster of this machine alone."""

    def __call__(self, task: Task, shards: Sequence[Shard]) -> Generator[Report, None, None]:
        """Do shards."""
        ray, workers, cpus = need_ray(), self.workers, self.workers.cpus or 1
        with connected(self.address, cpus=cpus * how_many(workers)), _settings(ray):
            # Ray hires only as many as the cluster has room for, and more when the cluster has grown.
            most = min(len(shards), workers.most or len(shards))
            pool = ray.data.ActorPoolStrategy(
                min_size=min(workers.least, most), max_size=most, max_tasks_in_flight_per_actor=AHEAD
            )
            given = [{"shard": pickle.dumps(shard)} for shard in shards]
            reports = ray.data.from_items(given, override_num_blocks=len(given)).map_batches(
                ShardActor,
                fn_constructor_args=(replace(task, threads=cpus),),
                batch_size=1,
                compute=pool,
                num_cpus=cpus,
                num_gpus=workers.gpus or None,
            )
            for batch in _streamed(reports):
                for value in batch["report"]:
                    yield _opened(value)

    def facts(self) -> dict[str, Any]:
        """Give what the manifest says about it."""
        return {"engine": "ray", "workers": self.workers.most}


class ShardActor:
    """A worker of the cluster. It has one model, loaded when the first shard comes."""

    def __init__(self, task: Task) -> None:
        self._work = ShardWork(task)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Do a shard; what goes wrong is reported in its place, so that only what kills a worker is Ray's to mend."""
        values: list[bytes] = []
        for value in batch["shard"]:
            try:
                done: Report | Exception = self._work(pickle.loads(value))  # noqa: S301 - our own
            except Exception as error:
                done = error
            values.append(pickle.dumps(done))
        return {"report": values}


def _opened(value: bytes) -> Report:
    done = pickle.loads(value)  # noqa: S301 - our own, from a cluster of ours
    if isinstance(done, Exception):
        raise done
    assert isinstance(done, Report)
    return done


def _streamed(reports: Any) -> Iterator[dict[str, Any]]:
    """Give reports as they come, and put into words what Ray says when it gives up."""
    import ray

    try:
        yield from reports.iter_batches(batch_size=1, prefetch_batches=0)
    except ray.exceptions.RayError as error:
        raise EbertError(
            f"the cluster could not go on ({first_line(error)}); run the same command again, it goes on"
        ) from None


@contextmanager
def _settings(ray: Any) -> Iterator[None]:
    """Keep Ray Data from drawing and telling while a job of ours runs, and let it hire while shards wait."""
    context, log = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
    scaling = context.autoscaling_config
    before = context.enable_progress_bars, scaling.actor_pool_util_upscaling_threshold, log.level
    context.enable_progress_bars, scaling.actor_pool_util_upscaling_threshold = False, BUSY
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        context.enable_progress_bars, scaling.actor_pool_util_upscaling_threshold, level = before
        log.setLevel(level)
