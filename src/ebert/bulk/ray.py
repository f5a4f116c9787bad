"""Bulk work and the reading of dumps on a Ray cluster (extra ``ray``).

Jobs run on a pool of Ray Data's actors, each with a model, to which shards are streamed. Only descriptions of shards
and reports go through Ray: a worker reads its rows from the shared folder and writes what comes of them there. Ray
replaces a worker that dies and gives its shards to another one. Done twice, a shard is the same file: nothing is lost.
`ebert corpus build` shares out the pieces of a dump as tasks.
"""

import logging
import os
import pickle
import platform
import socket
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ebert.bulk.inputs import Shard
from ebert.bulk.local import how_many
from ebert.bulk.options import EngineOptions
from ebert.bulk.worker import BulkTask, ShardReport, ShardWork
from ebert.errors import EbertError

PATIENCE = 30.0  # seconds for a machine to answer
STORE = 256 << 20  # bytes of shared memory of a cluster of our own: only shards' names and reports go through it
DUMP_STORE = 1 << 30  # bytes: a dump of one stream is cut here, and its pieces go through Ray
AHEAD = 2  # shards or tasks that a worker has at hand: the next one waits while it is at one
BUSY = 1.5  # shards at hand of each worker, on average, from which on there are to be more workers
RETRIES = 5  # of a task whose worker died

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def need_ray() -> Any:
    """Return Ray, which is told to send nothing about its use to its makers; the error says how to get it."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # it warns about things that are Ray Data's own
    try:
        import ray
        import ray.data
    except ImportError:
        why = "; Ray has no wheels for this Python yet" if sys.version_info >= (3, 15) else ""
        raise EbertError(f"the engine ray needs Ray: pip install 'ebert[ray]'{why}") from None
    return ray


@contextmanager
def connected(address: str | None, *, cpus: int, store: int = STORE) -> Iterator[Any]:
    """Work on the cluster at an address, else at RAY_ADDRESS, else on one of our own with so many cores; yield Ray.

    `store` is how many bytes of shared memory that one has. Whoever has connected to a cluster before works on it.
    """
    ray = need_ray()
    if ray.is_initialized():
        yield ray
        return
    place = address or os.environ.get("RAY_ADDRESS")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if place is None:
        options |= {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": store}
    else:
        _check_answers(place)
    try:
        ray.init(address=place or "local", **options)
    except Exception as error:  # it says so in many ways
        ray.shutdown()
        what = f"there is no Ray cluster at {place}" if place else "Ray could not be started on this machine"
        raise EbertError(f"{what}: {_first_line(error)}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answers(place: str) -> None:
    """Raise an error if nobody is at an address: Ray itself keeps trying for many minutes in silence."""
    host, _, port = place.rpartition("//")[2].rpartition(":")
    if not (host and port.isdecimal()):  # 'auto' and its like
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except OSError as error:
        raise EbertError(
            f"there is no Ray cluster at {place} ({error}); --address must be the address of its head"
        ) from None


def _first_line(error: Exception) -> str:
    """Return what an error says in short: Ray adds pages."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@dataclass(frozen=True)
class RayEngine:
    """Actors on a cluster, more of them while there is work, fewer when there is none."""

    options: EngineOptions = field(default_factory=lambda: EngineOptions(engine="ray"))

    def __call__(self, task: BulkTask, shards: Sequence[Shard]) -> Generator[ShardReport, None, None]:
        """Do shards."""
        options, cpus = self.options, self.options.cpus_per_worker or 1
        with connected(options.address, cpus=cpus * how_many(options)) as ray, _settings(ray):
            # Ray hires only as many as the cluster has room for, and more when the cluster has grown.
            most = min(len(shards), options.workers or len(shards))
            pool = ray.data.ActorPoolStrategy(
                min_size=min(options.least_workers, most), max_size=most, max_tasks_in_flight_per_actor=AHEAD
            )
            given = [{"shard": pickle.dumps(shard)} for shard in shards]
            reports = ray.data.from_items(given, override_num_blocks=len(given)).map_batches(
                ShardActor,
                fn_constructor_args=(replace(task, threads=cpus, device="cuda" if options.gpus_per_worker else None),),
                batch_size=1,
                compute=pool,
                num_cpus=cpus,
                num_gpus=options.gpus_per_worker or None,
            )
            try:
                for batch in reports.iter_batches(batch_size=1, prefetch_batches=0):
                    done = pickle.loads(batch["report"][0])  # noqa: S301 - our own, from a cluster of ours
                    if isinstance(done, Exception):
                        raise done
                    yield done
            except ray.exceptions.RayError as error:
                raise EbertError(
                    f"the cluster failed ({_first_line(error)}); run the same command again to continue"
                ) from None

    def facts(self) -> dict[str, Any]:
        """Return what the manifest says about it."""
        return {"engine": "ray", "workers": self.options.workers}


class ShardActor:
    """A worker of the cluster. It has one model, loaded when the first shard comes."""

    def __init__(self, task: BulkTask) -> None:
        self._work = ShardWork(task)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Do a shard; what goes wrong is reported in its place, so that only what kills a worker is Ray's to mend."""
        try:
            done: ShardReport | Exception = self._work(pickle.loads(batch["shard"][0]))  # noqa: S301 - our own
        except Exception as error:
            done = error
        return {"report": [pickle.dumps(done)]}


@contextmanager
def _settings(ray: Any) -> Iterator[None]:
    """Keep Ray Data from printing while a job of ours runs, and let it hire workers while shards wait."""
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


@dataclass(frozen=True)
class RayTasks:
    """A cluster to share tasks out to."""

    options: EngineOptions = field(default_factory=lambda: EngineOptions(engine="ray"))

    def __call__(self, work: Callable[[Piece], Result], tasks: Iterable[Piece]) -> Iterator[tuple[Piece, Result]]:
        """Yield the results of tasks as they come. What one raises is raised here, when the other ones are done."""
        with connected(self.options.address, cpus=how_many(self.options), store=DUMP_STORE) as ray:
            remote = ray.remote(_do).options(num_cpus=1, max_retries=RETRIES)
            waiting: dict[Any, Piece] = {}
            more, error = iter(tasks), None
            try:
                while True:
                    cores = max(1, int(ray.cluster_resources().get("CPU", 1)))  # the cluster may have grown
                    try:
                        while error is None and len(waiting) < (self.options.workers or AHEAD * cores):
                            task = next(more)
                            waiting[remote.remote(work, task)] = task
                    except StopIteration:
                        pass
                    except Exception as failure:  # of making tasks; those that run are to end well
                        error = failure
                    if not waiting:
                        break
                    ready = ray.wait(list(waiting), num_returns=1)[0][0]
                    task, result = waiting.pop(ready), _got(ray, ready)
                    if isinstance(result, Exception):
                        error = error or result
                    else:
                        yield task, result
            finally:
                for left in waiting:
                    ray.cancel(left, force=True)
            if error:
                raise error


def _do(work: Callable[[Any], Any], task: Any) -> Any:
    """Do a task where it was sent; what it raises is its result."""
    try:
        return work(task)
    except FileNotFoundError as error:
        return EbertError(
            f"{platform.node()} does not see {error.filename}; dumps and --out must be in folders that all "
            "machines share"
        )
    except Exception as error:
        return error


def _got(ray: Any, ready: Any) -> Any:
    try:
        return ray.get(ready)
    except ray.exceptions.RayError as error:
        return EbertError(
            f"a worker of the cluster died {RETRIES + 1} times at the same task ({_first_line(error)}); run the same "
            "command again to continue"
        )
