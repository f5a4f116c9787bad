"""Tasks shared out to a cluster, in the way that `ebert.wikipedia.pool` shares them out to processes.

`ebert corpus build` gives it the pieces of a dump: those of a multistream dump are ranges, read where the task runs.
"""

import platform
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from ebert.bulk.local import how_many
from ebert.bulk.options import Workers
from ebert.errors import EbertError
from ebert.ray.cluster import connected, cores, first_line, need_ray

Task = TypeVar("Task")
Result = TypeVar("Result")

STORE = 1 << 30  # bytes: a dump of one stream is cut here, and its pieces go through Ray
AHEAD = 2  # tasks for each core: the next one waits while it is at one
RETRIES = 5  # of a task whose worker died


@dataclass(frozen=True)
class RayTasks:
    """A cluster to share tasks out to."""

    workers: Workers = Workers()  # noqa: RUF009 - frozen
    address: str | None = None
    """Of the cluster; RAY_ADDRESS if not given, and without that a cluster of this machine alone."""

    def __call__(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        """Give the results of tasks as they come. What one raises is raised here, when the others that run are done."""
        ray = need_ray()
        with connected(self.address, cpus=how_many(self.workers), store=STORE):
            remote = ray.remote(_do).options(num_cpus=1, max_retries=RETRIES)
            waiting: dict[Any, Task] = {}
            more, error = iter(tasks), None
            try:
                while True:
                    most = self.workers.most or AHEAD * cores()  # the cluster may have grown
                    try:
                        while error is None and len(waiting) < most and (task := next(more, None)) is not None:
                            waiting[remote.remote(work, task)] = task
                    except Exception as failure:  # of making tasks; those that run are to end well
                        error = failure
                    if not waiting:
                        break
                    ready, _ = ray.wait(list(waiting), num_returns=1)
                    task, result = waiting.pop(ready[0]), _got(ray, ready[0])
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
            f"a worker of the cluster died {RETRIES + 1} times at the same task ({first_line(error)}); run the same "
            "command again, it goes on where it stopped"
        )
