"""Progress of long work: a bar with rate and time left on a terminal, a line now and then on a pipe."""

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

EVERY = 30.0  # seconds between lines on a pipe


class Advance(Protocol):
    """What long work calls when a part of it is done."""

    def __call__(self, amount: int, /) -> object:
        """Say that `amount` more units are done."""


def silent(amount: int, /) -> None:
    """Report nothing: the default of every function that takes a progress."""


def say(message: str) -> None:
    """Write a line to stderr: stdout is for results."""
    print(message, file=sys.stderr, flush=True)  # noqa: T201


class Watch(Protocol):
    """Shows the progress of one part of the work, as `progress` does."""

    def __call__(self, what: str, *, total: int | None = None, unit: str = ...) -> AbstractContextManager[Advance]:
        """Show it while the block runs."""


@contextmanager
def unwatched(what: str, *, total: int | None = None, unit: str = "") -> Iterator[Advance]:  # noqa: ARG001
    """Show nothing."""
    yield silent


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal what the block waits for; write nothing to a pipe."""
    shown = sys.stderr.isatty()
    if shown:
        print(f"{what} ...", end="", file=sys.stderr, flush=True)  # noqa: T201
    try:
        yield
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def progress(what: str, *, total: int | None = None, unit: str = "rows") -> Iterator[Advance]:
    """Show the progress of `what` on stderr."""
    if sys.stderr.isatty():
        from tqdm import tqdm

        with tqdm(desc=what, total=total, unit=f" {unit}", unit_scale=True, dynamic_ncols=True, leave=False) as bar:
            yield bar.update
    else:
        yield _ProgressLines(what, total, unit)


class _ProgressLines:
    """Writes a line every half minute; short work writes none."""

    def __init__(self, what: str, total: int | None, unit: str) -> None:
        self._what, self._total, self._unit = what, total, unit
        self._start = self._last = time.monotonic()
        self._done = 0

    def __call__(self, amount: int, /) -> None:
        self._done += amount
        now = time.monotonic()
        if now - self._last < EVERY:
            return
        self._last = now
        rate = self._done / (now - self._start)
        line = f"{self._what}: {self._done:,} {self._unit}, {rate:,.{0 if rate >= 10 else 2}f} a second"
        if self._total:
            line += f", {self._done / self._total:.0%}, {(self._total - self._done) / rate:,.0f} s left"
        print(line, file=sys.stderr, flush=True)  # noqa: T201
