"""Worker processes: one task at a time each, and gone at once when the parent stops or is killed.

A pool of the standard library leaves its workers behind when the parent is killed, and cannot drop tasks that have
begun. Here a worker is tied to its parent by a pipe, and ends when the other end of the pipe does.
"""

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar, cast

from ebert.errors import EbertError

Task = TypeVar("Task")
Result = TypeVar("Result")

_END = object()


class WorkerDiedError(EbertError):
    """A worker process is gone, and the task that it was at is not done."""


def run(
    work: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    processes: int,
    apart: bool = False,
    option: str = "--threads",
    own: Callable[[int], Callable[[Task], Result]] | None = None,
) -> Iterator[tuple[Task, Result]]:
    """Return the results of tasks as they come. What a task raises is raised here, when the others that run are done.

    One process alone is this one, unless it is to stand `apart`. `option` is how the user says how many there are.
    `own` gives what each process does, by its number, where they do not all do the same.
    """
    if processes < 2 and not apart:
        for task in tasks:
            yield task, work(task)
        return
    workers: list[_Worker[Task, Result]] = []
    with closing(_ahead(iter(tasks), processes)) as ahead:
        try:
            yield from _share_out(
                lambda: _Worker(own(len(workers)) if own else work, option), ahead, workers, processes
            )
        finally:
            for worker in workers:
                worker.stop()


def _share_out(
    hire: "Callable[[], _Worker[Task, Result]]",
    tasks: Iterator[Task],
    workers: "list[_Worker[Task, Result]]",
    processes: int,
) -> Iterator[tuple[Task, Result]]:
    error: Exception | None = None
    more = True
    while True:
        idle = [worker for worker in workers if worker.task is None]
        if more and error is None and (idle or len(workers) < processes):
            try:
                task = next(tasks)
            except StopIteration:
                more = False
            except Exception as failure:
                error = failure
            else:
                if not idle:
                    workers.append(hire())
                (idle or workers)[-1].begin(task)
            continue
        busy = {worker.pipe: worker for worker in workers if worker.task is not None}
        if not busy:
            break
        for pipe in wait(list(busy)):
            task, result = busy[cast(Connection, pipe)].finish()
            if isinstance(result, Exception):
                error = error or result
            else:
                yield task, result
    if error:
        raise error


class _Worker(Generic[Task, Result]):
    """A process, and the task it is at."""

    def __init__(self, work: Callable[[Task], Result], option: str) -> None:
        self._option = option
        context = multiprocessing.get_context("spawn")  # forking a process with threads is not safe
        self.pipe, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(target=_serve, args=(theirs, work), daemon=True)
        self._process.start()
        theirs.close()
        self.task: Task | None = None

    def begin(self, task: Task) -> None:
        self.task = task
        with suppress(OSError):  # `finish` will see it
            self.pipe.send(task)

    def finish(self) -> tuple[Task, Any]:
        task, self.task = self.task, None
        assert task is not None
        try:
            return task, self.pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            why = "killed, as when memory runs out" if code == -signal.SIGKILL else f"exit code {code}"
            return task, WorkerDiedError(
                f"a worker process died ({why}); run the same command again, it goes on where it stopped;"
                f" fewer {self._option} need less memory"
            )

    def stop(self) -> None:
        self.pipe.close()
        self._process.terminate()
        self._process.join()
        self._process.close()


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent sees to the workers
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):  # the parent has gone; a pipe with unread data is not closed but reset
            os._exit(0)
        try:
            result = work(task)
        except Exception as error:
            result = error
        try:
            pipe.send(result)
        except OSError:
            os._exit(0)


def _ahead(tasks: Iterator[Task], many: int) -> Generator[Task, None, None]:
    """Make the next tasks in a thread, so that they are at hand when a worker is free."""
    made: queue.Queue[Any] = queue.Queue(many)
    stopped = threading.Event()

    def put(value: Any) -> bool:
        while not stopped.is_set():
            with suppress(queue.Full):
                made.put(value, timeout=0.1)
                return True
        return False

    def make() -> None:
        try:
            for task in tasks:
                if not put((task, None)):
                    return
            put((None, _END))
        except BaseException as error:
            put((None, error))

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    try:
        while True:
            task, end = made.get()
            if end is _END:
                return
            if end is not None:
                raise end
            yield task
    finally:
        stopped.set()
        thread.join()
