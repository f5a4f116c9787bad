"""Bounded queues of work for separate threads, outside the event loop.

A queue hands its threads as many jobs at a time as fit together: that is how requests of several clients come to go
through the encoder in one batch. Between two batches of a long job, shorter ones get their turn, and a job that nobody
waits for any more is stopped.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class QueueFullError(Exception):
    """The queue is full, so this job is refused."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"full; try again in {seconds:.0f} s")
        self.seconds = seconds


class QueueClosedError(Exception):
    """The queue takes no more jobs."""


class _StoppedError(Exception):
    """The running jobs have no waiting clients any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """How many jobs a queue holds, and how many of them it runs together."""

    threads: int = 1
    waiting: int = 256  # jobs at most, those that run not counted
    together: int = 1  # jobs that run together at most
    budget: int = 1  # what these may cost in all; a dearer job runs alone
    patience: float = math.inf  # seconds that a job may expect to wait; beyond them it is refused at once
    window: float = 0.0  # seconds that the first of them waits for others, if there were others of late


@dataclass(frozen=True, slots=True)
class Ran:
    """Jobs that ran together: for metrics."""

    jobs: int
    cost: int
    seconds: float


@dataclass(slots=True, eq=False)
class _Job(Generic[Item, Result]):
    item: Item
    cost: int
    future: "Future[Result]"


Pause = Callable[[], None]
Run = Callable[[Sequence[Item], Pause], Sequence[Result | Exception]]


class BatchQueue(Generic[Item, Result]):
    """A queue of jobs and the threads that work on it.

    >>> with BatchQueue("doubling", lambda items, pause: [2 * item for item in items]) as queue:
    ...     queue.submit(21).result()
    42
    """

    def __init__(
        self,
        name: str,
        run: Run[Item, Result],
        options: QueueOptions | None = None,
        *,
        watch: Callable[[Ran], None] | None = None,
    ) -> None:
        """Begin to work. `run` returns a result or an error for each job, in their order.

        What it is given besides the jobs is a function that it calls between two parts of its work: jobs that cost less
        than half of its dearest one run then, and an exception leaves `run` when all its jobs were cancelled.
        """
        self.name, self._run, self.options, self._watch = name, run, options or QueueOptions(), watch
        self._jobs: deque[_Job[Item, Result]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._pace = 0.0  # seconds for what costs one, of late
        self._crowded = True  # whether jobs came together of late: a job that is alone need not wait for others
        self._threads = [
            threading.Thread(target=self._work, name=f"ebert-{name}-{number}", daemon=True)
            for number in range(self.options.threads)
        ]
        for thread in self._threads:
            thread.start()

    def __len__(self) -> int:
        """Count the jobs that wait."""
        return len(self._jobs)

    def submit(self, item: Item, cost: int = 1, *, begun: bool = False) -> "Future[Result]":
        """Add a job to the queue; cancelling its future removes it again, or stops it at the next pause of its `run`.

        A job that goes on with a request that was begun is taken also if the line is full: most of the work is done.
        """
        job: _Job[Item, Result] = _Job(item, cost, Future())
        with self._changed:
            if self._closed:
                raise QueueClosedError(f"{self.name} is closed")
            before = [other.cost for other in self._jobs if other.cost <= 2 * cost]  # dearer ones let it pass
            wait = self._pace * sum(before)  # as it looks now
            full = len(self._jobs) >= self.options.waiting or wait > self.options.patience
            if full and not begun:
                raise QueueFullError(max(1.0, wait))
            self._jobs.append(job)
            self._changed.notify_all()
        job.future.add_done_callback(lambda future: self._forget(job) if future.cancelled() else None)
        return job.future

    def close(self, timeout: float | None = None) -> None:
        """Take no more jobs, and finish the waiting ones, for at most this many seconds."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        end = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))

    def __enter__(self) -> "BatchQueue[Item, Result]":
        """Use the queue in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Finish what waits."""
        self.close()

    def _forget(self, job: _Job[Item, Result]) -> None:
        with self._changed:
            if job in self._jobs:
                self._jobs.remove(job)

    def _work(self) -> None:
        while jobs := self._take():
            self._together(jobs)

    def _together(self, jobs: list[_Job[Item, Result]]) -> None:
        """Run jobs together and return their results, except to clients that no longer wait."""
        jobs = [job for job in jobs if not job.future.cancelled()]
        if not jobs:
            return
        others = 0.0  # seconds that shorter jobs took meanwhile

        def pause() -> None:
            nonlocal others
            if all(job.future.cancelled() for job in jobs):
                raise _StoppedError
            start = time.perf_counter()
            with self._changed:
                shorter = self._next((max(job.cost for job in jobs) - 1) // 2)  # so it cannot nest for ever
            if shorter:
                self._together(shorter)
            others += time.perf_counter() - start

        start = time.perf_counter()
        try:
            results = self._results(jobs, pause)
        except _StoppedError:
            return
        seconds = time.perf_counter() - start - others
        ran = Ran(len(jobs), sum(job.cost for job in jobs), seconds)
        self._pace += 0.2 * (seconds / max(1, ran.cost) / self.options.threads - self._pace)
        if self._watch is not None:
            self._watch(ran)
        for job, result in zip(jobs, results, strict=True):
            if not job.future.set_running_or_notify_cancel():
                continue
            if isinstance(result, Exception):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)

    def _results(self, jobs: list[_Job[Item, Result]], pause: Pause) -> Sequence[Result | Exception]:
        """Run jobs together; if that fails, run each alone, so that no job fails because of another."""
        try:
            results = self._run([job.item for job in jobs], pause)
            assert len(results) == len(jobs)
            return results
        except _StoppedError:
            raise
        except Exception as error:
            if len(jobs) == 1:
                return [error]
        return [self._results([job], pause)[0] for job in jobs]

    def _take(self) -> list[_Job[Item, Result]]:
        """Wait for jobs and return those that run together next; none when the queue is closed and empty."""
        options = self.options
        with self._changed:
            while True:
                while not self._jobs and not self._closed:
                    self._changed.wait()
                if options.window and options.together > 1 and self._crowded:
                    self._gather(time.monotonic() + options.window)
                if self._jobs or self._closed:  # others, or a cancellation, may have taken all meanwhile
                    break
            taken = self._next()
            self._crowded = len(taken) > 1 or bool(self._jobs)
            return taken

    def _next(self, most: float = math.inf) -> list[_Job[Item, Result]]:
        """Take the first jobs that run together, of those that cost `most` each at most."""
        taken: list[_Job[Item, Result]] = []
        cost = 0
        for job in [job for job in self._jobs if job.cost <= most]:
            cost += job.cost
            if len(taken) == self.options.together or (taken and cost > self.options.budget):
                break
            taken.append(job)
        for job in taken:
            self._jobs.remove(job)
        return taken

    def _gather(self, until: float) -> None:
        """Wait until there are enough jobs for a batch, or the time is over."""
        options = self.options
        while not self._closed and len(self._jobs) < options.together:
            left = until - time.monotonic()
            if left <= 0 or sum(job.cost for job in self._jobs) >= options.budget:
                return
            self._changed.wait(left)
