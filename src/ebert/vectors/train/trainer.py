"""Training: jobs of a few pages each, in a new order every epoch, run by threads that share the matrices."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.vectors.catalogue import PAGE
from ebert.vectors.train.data import TrainingData, stream
from ebert.vectors.train.options import VectorTrainingOptions

MATRICES = ("words_in", "words_out", "entities_in", "entities_out")
SHUFFLE, INITIAL = 1 << 40, 1 << 41  # keep the random numbers of jobs, orders and first vectors apart


@dataclass
class TrainingState:
    """Everything that changes in training and is kept in a checkpoint."""

    words_in: NDArray[np.float32]  # (words, dimension)
    words_out: NDArray[np.float32]
    entities_in: NDArray[np.float32]  # (entities, dimension)
    entities_out: NDArray[np.float32]
    done: int = 0  # jobs, in the order in which they are run
    seconds: float = 0.0  # in the training loop
    flops: int = 0


@dataclass
class Speed:
    """What a run achieved."""

    words: int = 0  # before subsampling
    seconds: float = 0.0
    flops: int = 0
    finish_seconds: float = 0.0

    def report(self) -> dict[str, float]:
        """Return the figures under the names that scripts rely on."""
        seconds = max(self.seconds, 1e-9)
        return {
            "words": self.words,
            "loop_seconds": round(self.seconds, 3),
            "words_per_second": round(self.words / seconds),
            "gflops": round(self.flops / seconds / 1e9, 2),
            "finish_seconds": round(self.finish_seconds, 3),
        }


def initial(data: TrainingData, options: VectorTrainingOptions) -> TrainingState:
    """Return small random inputs, and outputs of zero, as in word2vec."""
    generator = np.random.default_rng([options.seed, INITIAL])

    def small(rows: int) -> NDArray[np.float32]:
        out = generator.random((rows, options.dim), dtype=np.float32)
        out -= np.float32(0.5)
        out /= np.float32(options.dim)
        return out

    words, entities = small(data.words), small(len(data.entities))
    linked = np.zeros_like(entities) if options.links else np.zeros((0, options.dim), np.float32)
    return TrainingState(words, np.zeros_like(words), entities, linked)


class Trainer:
    """Run the jobs that are left, and stop between two of them when asked to."""

    def __init__(
        self, data: TrainingData, options: VectorTrainingOptions, state: TrainingState, threads: int = 1
    ) -> None:
        self.data, self.options, self.state, self.threads = data, options, state, threads
        self.stopped, self._lock = threading.Event(), threading.Lock()
        self._sizes = np.diff(data.starts[data.jobs])  # words of each job
        self.jobs = len(self._sizes)
        self.total = self.jobs * (options.epochs + options.finish)

    def run(
        self, *, advance: Advance = silent, save: Callable[[TrainingState], None] | None = None, every: float = 600.0
    ) -> Speed:
        """Train to the end. Call `save` between jobs, every so many seconds and when the run is stopped."""
        from threadpoolctl import threadpool_limits

        speed = Speed()
        # Many small products at once: each thread has a core, and a library that starts more would slow all down.
        with threadpool_limits(1, user_api="blas"):
            while self.state.done < self.total and not self.stopped.is_set():
                self._until(time.monotonic() + every, advance, speed)
                if save and self.state.done < self.total:
                    save(self.state)
        return speed

    def words_left(self) -> int:
        """Return how many words of all epochs, and of the finish, are still to come."""
        epochs, jobs = divmod(self.state.done, self.jobs)
        begun = int(self._sizes[_order(self.options.seed, epochs, self.jobs)[:jobs]].sum())
        return (self.options.epochs + self.options.finish - epochs) * int(self._sizes.sum()) - begun

    def _until(self, deadline: float, advance: Advance, speed: Speed) -> None:
        """Run jobs, at least one, until it is time, the phase ends, or somebody asks to stop."""
        epochs = self.options.epochs * self.jobs
        end = epochs if self.state.done < epochs else self.total
        taken, before, start = self.state.done, self.state.flops, time.monotonic()
        errors: list[BaseException] = []

        def work() -> None:
            nonlocal taken
            while True:
                with self._lock:
                    late = taken > self.state.done and time.monotonic() >= deadline
                    if taken >= end or errors or self.stopped.is_set() or late:
                        return
                    number, taken = taken, taken + 1
                    epoch, place = divmod(number, self.jobs)
                    job = int(_order(self.options.seed, epoch, self.jobs)[place])
                try:
                    flops = self._job(epoch, job, self._rate(number))
                except BaseException as error:
                    errors.append(error)
                    return
                with self._lock:
                    self.state.flops += flops
                    if number < epochs:
                        speed.words += int(self._sizes[job])
                    advance(int(self._sizes[job]))

        workers = [threading.Thread(target=work, daemon=True) for _ in range(self.threads)]
        try:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        except BaseException:
            self.stopped.set()
            for worker in workers:
                with suppress(RuntimeError):  # a job that has not begun, and will do nothing
                    worker.join()
            raise
        finally:
            self.state.done = taken
            seconds = time.monotonic() - start
            self.state.seconds += seconds
            if end == epochs:
                speed.seconds += seconds
                speed.flops += self.state.flops - before
            else:
                speed.finish_seconds += seconds
        if errors:
            raise errors[0]

    def _rate(self, number: int) -> np.float32:
        """Return the learning rate of a job: it falls linearly during the epochs, and again during the finish."""
        epochs = self.options.epochs * self.jobs
        done = number / epochs if number < epochs else (number - epochs) / max(self.total - epochs, 1)
        return np.float32(max(self.options.rate * (1 - done), self.options.min_rate))

    def _job(self, epoch: int, job: int, rate: np.float32) -> int:
        """Train the pages of a job; return the number of floating-point operations."""
        from ebert.vectors.train import kernel  # imported late: numba comes with an extra

        data, options, state, corpus = self.data, self.options, self.state, self.data.corpus
        random = stream(options.seed, epoch, job)
        first, last = int(data.jobs[job]), int(data.jobs[job + 1])
        text = corpus.tokens, corpus.paragraphs, int(corpus.page_paragraphs[first]), int(corpus.page_paragraphs[last])
        learn, flops = epoch < options.epochs, 0
        if learn:
            flops += kernel.train_words(
                *text, data.keep, data.word_table, state.words_in, state.words_out,
                options.window, options.negative, options.shared, rate, random,
            )  # fmt: skip
        if not len(data.entities):
            return flops
        predicted = data.keep, data.word_table, state.entities_in, state.words_out
        for _ in range(options.repeats if learn else 1):
            flops += kernel.train_anchors(
                *text, corpus.anchor_start, corpus.anchor_length, data.anchor_rows, int(corpus.page_anchors[first]),
                *predicted, options.anchor_window, options.negative, options.shared, rate, learn, random,
            )  # fmt: skip
            if options.openings:
                flops += kernel.train_openings(
                    corpus.tokens, data.starts, data.opening_ends, data.page_rows, first, last,
                    *predicted, options.negative, options.shared, rate, learn, random,
                )  # fmt: skip
            if options.links and learn:
                flops += kernel.train_links(
                    data.page_rows, corpus.page_anchors, data.anchor_rows, first, last, data.entity_table,
                    state.entities_in, state.entities_out, options.negative, options.shared, rate, random,
                )  # fmt: skip
        return flops


@lru_cache(4)
def _order(seed: int, epoch: int, jobs: int) -> NDArray[np.int64]:
    """Return the order of the jobs in an epoch."""
    return np.random.default_rng([seed, SHUFFLE, epoch]).permutation(jobs)


def check(data: TrainingData, state: TrainingState) -> None:
    """Raise `EbertError` if a vector has diverged; name its word or entity."""
    for name in MATRICES:
        matrix = getattr(state, name)
        for start in range(0, len(matrix), PAGE):  # all at once would take a quarter of the matrix's memory again
            bad = start + np.flatnonzero(~np.isfinite(matrix[start : start + PAGE]).all(axis=1))
            if len(bad) and name.startswith("words"):
                raise _diverged(f"the word {data.corpus.words[bad[0]]!r}")
            if len(bad):
                raise _diverged(repr(data.corpus.entities[data.entities[bad[0]]]))


def _diverged(what: str) -> EbertError:
    return EbertError(
        f"the vector of {what} has a value that is infinite or not a number: training diverged; start again "
        "(--overwrite) with a lower rate (--rate)"
    )
