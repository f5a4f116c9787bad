"""A job without a model, so that what is tested is the machinery: it counts letters, and does as its rows say."""

import json
import os
import signal
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from ebert.bulk.job import BulkJob, RowResults, each, together
from ebert.bulk.worker import ShardWork
from ebert.errors import EbertError

PATIENCE = 300  # seconds to wait for another worker


@dataclass(frozen=True, kw_only=True)
class CountJob(BulkJob):
    factor: int = 1
    weights: str = "of this job"
    devices: str | None = None  # where to note on which ones it was loaded

    kind: ClassVar[str] = "count"

    def settings(self):
        return {"factor": self.factor}

    def load(self, *, device=None):
        if self.devices:
            (Path(self.devices) / str(device)).touch()
        return CountWorker(self)


class CountWorker:
    def __init__(self, job):
        self.identity = {"weights": job.weights}
        self._job = job

    def __call__(self, rows):
        bad = []
        texts = each(rows, lambda row: row.text, bad)
        kept = together(texts, lambda some: [self._one(row, text) for row, text in some], bad)
        schema = pa.schema({"row": pa.int64(), "id": pa.string(), "letters": pa.int64()})
        return RowResults(pa.Table.from_pylist(kept, schema), bad, Counter(rows=len(kept)))

    def _one(self, row, text):
        if text.startswith("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        if text.startswith(("once", "thrice")):  # the first time only, or the first three times
            mark = Path(text.split()[1])
            deaths = len(mark.read_text()) if mark.exists() else 0
            if deaths < (1 if text.startswith("once") else 3):
                mark.write_text("x" * (deaths + 1))
                os.kill(os.getpid(), signal.SIGKILL)
        if text.startswith("meet"):  # waits for other workers until there are two, or as many as it says
            _, place, *many = text.split()
            (Path(place) / str(os.getpid())).touch()
            for _ in range(PATIENCE * 10):
                if len(list(Path(place).iterdir())) >= int(*many or (2,)):
                    break
                time.sleep(0.1)
            else:
                raise EbertError("no other worker came")
        if text.startswith("refuse"):
            raise EbertError("refused")
        if text.startswith("surprise"):
            raise KeyError("surprise")
        return {"row": row.number, "id": row.id, "letters": len(text) * self._job.factor}


def fail_or_die(task):
    """A task for workers that is not done well."""
    what, mark = task
    if what == "die once" and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "fail":
        raise EbertError("this one failed")
    if what == "not there":
        Path(mark).read_text()
    return what


class Here:
    """An engine in this process, which remembers what it did."""

    def __init__(self):
        self.done = []

    def __call__(self, task, shards):
        with closing(ShardWork(task)) as work:
            for shard in shards:
                self.done.append(shard.number)
                yield work(shard)

    def facts(self):
        return {"engine": "here"}


def write(path, texts):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [text if isinstance(text, dict) else {"id": str(number), "text": text} for number, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rows_of(folder):
    """All rows of a job, in the order of its shards."""
    return [row for file in sorted((folder / "rows").iterdir()) for row in pq.read_table(file).to_pylist()]


def shard_bytes(folder):
    return {file.name: file.read_bytes() for file in (folder / "rows").iterdir()}


def damaged_ends(data):
    """Spoil what stands at the end of a Parquet file, in the ways that Arrow has different errors for."""
    end, length = len(data) - 8, int.from_bytes(data[-8:-4], "little")
    for begin, size in ((end - length, 20), (end - length // 2, 20), (end, 4)):
        spoiled = bytearray(data)
        spoiled[begin : begin + size] = b"\xff" * size
        yield bytes(spoiled)
