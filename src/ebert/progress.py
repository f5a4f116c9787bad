"""Progress of long work: a bar with rate and time left on a terminal, a line now and then on a pipe."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Advance(Protocol):
    """What long work calls when a part of it is done."""

    def __call__(self, amount: int, /) -> None:
        """Say that `amount` more units are done."""


def silent(amount: int, /) -> None:
    """Report to nobody: the default of every function that takes a progress."""


@contextmanager
def progress(what: str, *, total: int | None = None, unit: str = "rows", scale: bool = True) -> Iterator[Advance]:
    """Show the progress of `what` on stderr."""
    from tqdm import tqdm

    # On a pipe a bar would be one endless line: a fresh line every half minute is enough there.
    interval = 0.2 if sys.stderr.isatty() else 30.0
    with tqdm(
        desc=what, total=total, unit=f" {unit}", unit_scale=scale, mininterval=interval, maxinterval=interval,
        file=sys.stderr, ascii=not sys.stderr.isatty(), leave=sys.stderr.isatty(), dynamic_ncols=True,
    ) as bar:  # fmt: skip
        yield bar.update
