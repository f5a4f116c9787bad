"""Which shards killed their worker: a note is made when a shard is begun, and taken away when it is done.

A worker may die through no fault of the shard, so a shard is tried again as it is. If it was begun twice and never
done, it is done row by row, and a row at which a worker dies twice then is to blame.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ebert.errors import EbertError

BEGUN, THROUGH = "begun", "through"
TRIES = 2  # as a whole, and then at a row
MOST = 18  # in all: where more than eight rows of one shard kill their worker, it is not the rows
REASON = "its worker died at this row, and another one did so, too: is it too large for the memory?"


@dataclass(frozen=True, slots=True)
class Attempts:
    """The notes about a shard, on disk, where the worker that comes next finds them."""

    path: Path

    def begin(self) -> tuple[bool, set[int]]:
        """Note that the shard is begun. Give whether it must be done row by row, and the rows to leave out."""
        lines = self.path.read_text("ascii").splitlines() if self.path.exists() else []
        last = Counter(line for line, after in pairwise([*lines, BEGUN]) if after == BEGUN and line.isdecimal())
        fatal = {int(row) for row, deaths in last.items() if deaths >= TRIES}
        careful = lines.count(BEGUN) >= TRIES
        if lines.count(BEGUN) >= MOST:
            raise EbertError(
                f"workers died {MOST} times in shard {self.path.name}: is there too little memory for so many of them "
                "(--workers), or does the model not run on their machine?"
            )
        self._note(BEGUN)
        return careful, fatal

    def at(self, row: int) -> None:
        """Note that this row is next."""
        self._note(str(row))

    def through(self) -> None:
        """Note that all rows are done, and no row is to blame for what comes now."""
        self._note(THROUGH)

    def end(self) -> None:
        """Note that the shard is done."""
        self.path.unlink(missing_ok=True)

    def _note(self, line: str) -> None:
        with self.path.open("a", encoding="ascii") as file:
            file.write(f"{line}\n")
