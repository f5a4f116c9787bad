"""A shard from beginning to end, in the process that does it: rows are read, worked on and written.

A worker may die through no fault of the shard, so a shard is tried again as it is. If it was begun twice and never
done, it is done row by row, and a row at which a worker dies twice then is to blame.
"""

import os
import platform
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ebert.bulk.inputs import Shard
from ebert.bulk.job import BulkJob, BulkWorker, RowResults
from ebert.bulk.options import ReadOptions
from ebert.bulk.rows import BadRow, Row, RowReader, read_note, write_parquet
from ebert.errors import EbertError

ROWS, ATTEMPTS, KEY = "rows", "attempts", "job.key"
BEGUN, THROUGH = "begun", "through"
TRIES = 2  # as a whole, and then at a row
MOST = 18  # in all: where more than eight rows of one shard kill their worker, it is not the rows
REASON = "its worker died at this row, and another one did so, too: is it too large for the memory?"


@dataclass(frozen=True, slots=True)
class BulkTask:
    """All that a worker has to know, whatever engine it works for."""

    job: BulkJob
    read: ReadOptions
    folder: Path
    key: str  # of the job: what it writes is marked with it
    identity: dict[str, Any]  # of the model
    threads: int | None = None  # of each worker; as torch likes if not given
    device: str | None = None  # of this worker; the job's if not given


@dataclass(frozen=True, slots=True)
class ShardReport:
    """What came of a shard."""

    shard: int
    rows: int
    errors: int
    blank: int
    dropped: dict[str, int]
    worker: str = ""  # who did it

    @property
    def read(self) -> int:
        """How many rows were read, for the progress."""
        return self.rows + self.errors + self.blank


class ShardWork:
    """Does shards, one after the other. It can be sent to another process, and loads the model there, once."""

    def __init__(self, task: BulkTask) -> None:
        self.task = task
        self._loaded: tuple[RowReader, BulkWorker] | None = None

    def __call__(self, shard: Shard) -> ShardReport:
        """Do a shard. What is raised can be sent to other processes."""
        try:
            return self._do(shard)
        except (EbertError, OSError):
            raise
        except Exception as error:
            raise RuntimeError(f"{type(error).__name__}: {error}\n{traceback.format_exc()}") from None

    def close(self) -> None:
        """Close files and drop the model."""
        if self._loaded is not None:
            self._loaded[0].close()
        self._loaded = None

    def _do(self, shard: Shard) -> ShardReport:
        task, name = self.task, f"{platform.node()}:{os.getpid()}"  # of this process among those of all machines
        key = task.folder / KEY
        if not key.exists() or key.read_text("ascii") != task.key:
            raise EbertError(
                f"{name} does not see {task.folder} as the job does; --out must be in a folder that all machines share"
            )
        attempts = Attempts(task.folder / ATTEMPTS / f"{shard.number:06d}")
        careful, fatal = attempts.begin()
        self._loaded = self._loaded or self._load(name)
        reader, worker = self._loaded
        read = reader(shard)
        done = _row_by_row(read.rows, worker, attempts, fatal) if careful else worker(read.rows)
        bad = sorted([*read.bad, *done.bad], key=lambda one: one.row)
        report = ShardReport(shard.number, done.table.num_rows, len(bad), read.blank, dict(done.dropped), name)
        if report.read != shard.rows:
            raise AssertionError(f"{shard.rows} rows became {report.read}")
        note = {**asdict(report), "bad": [asdict(one) for one in bad], "key": task.key}
        note.pop("worker")  # the bytes do not tell who did it
        write_parquet(task.folder / ROWS / shard.file, done.table, note)
        attempts.end()
        return report

    def _load(self, name: str) -> tuple[RowReader, BulkWorker]:
        """Load the model so that it takes a share of the cores; tokenizers would take all."""
        task = self.task
        if task.threads is not None:
            os.environ |= {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": str(task.threads)}
        worker = task.job.load(device=task.device)
        if task.threads is not None and "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(task.threads)
        if worker.identity != task.identity:
            raise EbertError(
                f"the model that {name} has is not the one that the job started with; all machines need the "
                "same model, encoder and store, at the same place"
            )
        return RowReader(task.read, task.job.columns), worker


def read_report(path: Path, key: str) -> tuple[ShardReport, list[BadRow]] | None:
    """Return what a shard's file says about it; None if there is none, or it is damaged or of another job."""
    note = read_note(path)
    if note is None or note.pop("key", None) != key:
        return None
    bad = [BadRow(**one) for one in note.pop("bad")]
    return ShardReport(**note), bad


def _row_by_row(rows: Sequence[Row], worker: BulkWorker, attempts: "Attempts", fatal: set[int]) -> RowResults:
    """Work on one row after the other, noting each: one of them kills its worker."""
    import pyarrow as pa

    parts = [worker(())]
    for row in rows:
        if row.number in fatal:
            parts[0].bad.append(BadRow.of(row, REASON))
        else:
            attempts.note(row.number)
            parts.append(worker([row]))
    attempts.note(THROUGH)
    table = pa.concat_tables([part.table for part in parts]).combine_chunks()
    return RowResults(table, [one for part in parts for one in part.bad], sum((p.dropped for p in parts), Counter()))


@dataclass(frozen=True, slots=True)
class Attempts:
    """The notes about a shard, on disk, where the worker that comes next finds them."""

    path: Path

    def begin(self) -> tuple[bool, set[int]]:
        """Note that the shard is begun. Return whether it must be done row by row, and the rows to leave out."""
        lines = self.path.read_text("ascii").splitlines() if self.path.exists() else []
        if lines.count(BEGUN) >= MOST:
            raise EbertError(
                f"workers died {MOST} times in shard {self.path.name}: is there too little memory for so many of them "
                "(--workers), or does the model not run on their machine?"
            )
        last = Counter(line for line, after in pairwise([*lines, BEGUN]) if after == BEGUN and line.isdecimal())
        self.note(BEGUN)
        return lines.count(BEGUN) >= TRIES, {int(row) for row, deaths in last.items() if deaths >= TRIES}

    def note(self, line: object) -> None:
        """Note the row that is next, or that all rows are through and none is to blame for what comes now."""
        with self.path.open("a", encoding="ascii") as file:
            file.write(f"{line}\n")

    def end(self) -> None:
        """Note that the shard is done."""
        self.path.unlink(missing_ok=True)
