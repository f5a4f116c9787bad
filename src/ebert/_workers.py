"""Worker processes: one task at a time each, and gone at once when the parent stops or is killed.

A pool of the standard library leaves its workers behind when the parent is killed, and cannot drop tasks that have
begun. Here a worker is tied to its parent by a pipe, and ends when the other end of the pipe does.
"""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar, cast

from ebert.errors import EbertError

Task = TypeVar("Task")
Result = TypeVar("Result")

_END: Any = object()


class WorkerDiedError(EbertError):
    """A worker process has died, and its task is not done."""


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
    workers: list[_Worker[Task]] = []
    error: Exception | None = None
    more = True
    with closing(_ahead(iter(tasks), processes)) as ahead:
        try:
            while True:
                idle = [worker for worker in workers if worker.task is _END]
                if more and error is None and (idle or len(workers) < processes):
                    try:
                        task = next(ahead)
                    except StopIteration:
                        more = False
                    except Exception as failure:
                        error = failure
                    else:
                        if not idle:
                            workers.append(_Worker(own(len(workers)) if own else work, option))
                        (idle or workers)[-1].begin(task)
                    continue
                busy = {worker.pipe: worker for worker in workers if worker.task is not _END}
                if not busy:
                    break
                for pipe in wait(list(busy)):
                    task, result = busy[cast(Connection, pipe)].finish()
                    if isinstance(result, Exception):
                        error = error or result
                    else:
                        yield task, result
        finally:
            for worker in workers:
                worker.stop()
    if error:
        raise error


class _Worker(Generic[Task]):
    """A process and its current task."""

    def __init__(self, work: Callable[[Task], Any], option: str) -> None:
        context = multiprocessing.get_context("spawn")  # forking a process with threads is not safe
        self.pipe, theirs = context.Pipe()
        self.task: Task = _END
        self._option, self._process = option, context.Process(target=_serve, args=(theirs, work), daemon=True)
        self._process.start()
        theirs.close()

    def begin(self, task: Task) -> None:
        self.task = task
        with suppress(OSError):  # `finish` will see it
            self.pipe.send(task)

    def finish(self) -> tuple[Task, Any]:
        task, self.task = self.task, _END
        try:
            return task, self.pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            why = "killed, as when memory runs out" if code == -signal.SIGKILL else f"exit code {code}"
            return task, WorkerDiedError(
                f"a worker process died ({why}); run the same command again to continue;"
                f" fewer {self._option} need less memory"
            )

    def stop(self) -> None:
        self.pipe.close()
        self._process.terminate()
        self._process.join()
        self._process.close()


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent sees to the workers
    try:
        while True:
            task = pipe.recv()
            try:
                result = work(task)
            except Exception as error:
                result = error
            pipe.send(result)
    except (EOFError, OSError):  # the parent has gone; a pipe with unread data is not closed but reset
        os._exit(0)


def _ahead(tasks: Iterator[Task], many: int) -> Generator[Task, None, None]:
    """Make the next tasks in a thread, so that they are ready when a worker is free."""
    thread = ThreadPoolExecutor(1)
    try:
        waiting = deque(thread.submit(next, tasks, _END) for _ in range(many))
        while (task := waiting.popleft().result()) is not _END:
            waiting.append(thread.submit(next, tasks, _END))
            yield task
    finally:
        thread.shutdown(cancel_futures=True)
