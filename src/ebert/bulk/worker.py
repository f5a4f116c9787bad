"""A shard from beginning to end, in the process that does it: rows are read, worked on and written.

A worker may die through no fault of the shard, so a shard is tried again as it is. If it was begun twice and never
done, it is done row by row, and a row at which a worker dies twice then is to blame.
"""

import os
import platform
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
        self._worker: BulkWorker | None = None
        self._reader: RowReader | None = None

    def __call__(self, shard: Shard) -> ShardReport:
        """Do a shard. What is raised can be sent to other processes."""
        try:
            return self._do(shard)
        except (EbertError, OSError):
            raise
        except Exception as error:
            raise RuntimeError(f"{type(error).__name__}: {error}\n{traceback.format_exc()}") from None

    def _do(self, shard: Shard) -> ShardReport:
        _check_folder(self.task)
        attempts = Attempts(self.task.folder / ATTEMPTS / f"{shard.number:06d}")
        careful, fatal = attempts.begin()
        reader, worker = self._load()
        read = reader(shard)
        done = _row_by_row(read.rows, worker, attempts, fatal) if careful else worker(read.rows)
        bad = sorted([*read.bad, *done.bad], key=lambda one: one.row)
        report = ShardReport(shard.number, done.table.num_rows, len(bad), read.blank, dict(done.dropped), _name())
        if report.read != shard.rows:
            raise AssertionError(f"{shard.rows} rows became {report.read}")
        note = {**asdict(report), "bad": [asdict(one) for one in bad], "key": self.task.key}
        note.pop("worker")  # the bytes do not tell who did it
        write_parquet(self.task.folder / ROWS / shard.file, done.table, note)
        attempts.end()
        return report

    def close(self) -> None:
        """Close files and drop the model."""
        if self._reader is not None:
            self._reader.close()
        self._worker = self._reader = None

    def _load(self) -> tuple[RowReader, BulkWorker]:
        """Load what is not loaded yet."""
        if self._worker is None or self._reader is None:
            with _threads(self.task.threads):
                self._worker = self.task.job.load(device=self.task.device)
            if self._worker.identity != self.task.identity:
                raise EbertError(
                    f"the model that {_name()} has is not the one that the job was begun with; all machines need the "
                    "same model, encoder and store, at the same place"
                )
            self._reader = RowReader(self.task.read, self.task.job.columns)
        return self._reader, self._worker


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

    tables, bad = [worker(()).table], [BadRow.of(row, REASON) for row in rows if row.number in fatal]
    dropped: Counter[str] = Counter()
    for row in rows:
        if row.number not in fatal:
            attempts.at(row.number)
            done = worker([row])
            tables.append(done.table)
            bad += done.bad
            dropped += done.dropped
    attempts.through()
    return RowResults(pa.concat_tables(tables).combine_chunks(), bad, dropped)


def _check_folder(task: BulkTask) -> None:
    """Raise an error early if this machine does not see what the job is to be written to."""
    try:
        found = (task.folder / KEY).read_text("ascii")
    except FileNotFoundError:
        found = ""
    if found != task.key:
        raise EbertError(
            f"{_name()} does not see {task.folder} as the job does; --out must be in a folder that all machines share"
        )


@contextmanager
def _threads(many: int | None) -> Iterator[None]:
    """Load a model so that it takes a share of the cores; tokenizers would take all."""
    if many is None:
        yield
        return
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": str(many)}
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(many)


def _name() -> str:
    """Return the name of this process among those of all machines."""
    return f"{platform.node()}:{os.getpid()}"


@dataclass(frozen=True, slots=True)
class Attempts:
    """The notes about a shard, on disk, where the worker that comes next finds them."""

    path: Path

    def begin(self) -> tuple[bool, set[int]]:
        """Note that the shard is begun. Return whether it must be done row by row, and the rows to leave out."""
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
