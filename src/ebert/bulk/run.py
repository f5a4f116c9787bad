"""Running a job in a folder: plan, compare with what is there, do what is missing, and sum up.

`manifest.json` says what was done to what: inputs with their fingerprints, options, the model; and, when the job is
complete, what came of it. The rows of each shard are a Parquet file, and bad rows are listed in `errors.jsonl`. The
same command continues a job that was stopped; one with other inputs, options or another model is refused, as results
of two kinds would be mixed.
"""

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ebert import __version__
from ebert._io import files, staging
from ebert._io.progress import Advance, Watch, unwatched
from ebert._runs import alone_in, key_of, refuse_other, remove_halves, saying_where
from ebert._workers import WorkerDiedError
from ebert.bulk.inputs import MANIFEST, Shard, ShardPlan, make_plan
from ebert.bulk.job import BulkJob
from ebert.bulk.local import Engine, LocalEngine
from ebert.bulk.options import ReadOptions
from ebert.bulk.rows import Row, RowReader, need_pyarrow
from ebert.bulk.worker import ATTEMPTS, KEY, MOST, ROWS, BulkTask, read_report
from ebert.errors import EbertError

ROW_FORMAT = "rows 2"  # what a row looks like; shards of another one are not mixed with these
FORMAT = 1
ERRORS, METRICS = "errors.jsonl", "metrics.json"

_SHARD = re.compile(r"\d{6,}\.parquet")


def run(
    job: BulkJob, inputs: Sequence[str | Path], out: str | Path, *, read: ReadOptions | None = None,
    engine: Engine | None = None, overwrite: bool = False, watch: Watch = unwatched,
) -> dict[str, Any]:  # fmt: skip
    """Do a job to every row of the inputs, or continue it, and return its manifest.

    The folder `out` gets the rows of every shard (`rows/*.parquet`), `errors.jsonl` and `manifest.json`.
    """
    need_pyarrow()
    began, read, engine = time.monotonic(), read or ReadOptions(), engine or LocalEngine()
    for given in inputs:
        if Path(given).is_dir() and Path(out).resolve().is_relative_to(Path(given).resolve()):
            raise EbertError(f"{out} is in {given}, which is read; choose a place outside")
    job = job.located()
    plan = make_plan(inputs, read, lambda source, columns: job.check_source(source, columns, read))
    job = job.prepared(lambda: _rows(plan, job, read))
    model = job.load(device="cpu").identity  # an error of loading comes now, not from every worker
    identity = {
        "ebert": f"{__version__}, {ROW_FORMAT}",
        "job": job.kind,
        "options": {**read.identity(), **job.settings()},
        "model": model,
        "inputs": plan.inputs,
    }
    folder = JobFolder(Path(out).absolute(), identity)
    with alone_in(folder.path, marker=MANIFEST, ours=_is_ours) as known:
        if known:
            folder.compare(overwrite=overwrite)
        missing = folder.missing(plan.shards)
        folder.begin()
        facts: dict[str, Any] = {"not read": plan.others} if plan.others else {}
        with saying_where(folder.path):
            try:
                with watch(job.kind, total=plan.rows, unit="rows") as advance:
                    advance(plan.rows - sum(shard.rows for shard in missing))
                    _work(engine, BulkTask(job, read, folder.path, folder.key, model), missing, advance)
                if lost := folder.missing(missing):
                    raise EbertError(
                        f"{len(lost):,} shards were done but are not in {folder.path}, such as {lost[0].file}; --out "
                        "must be in a folder that all machines share"
                    )
                shown = job.finish(folder.path, [folder.path / ROWS / shard.file for shard in plan.shards])
                facts |= {**engine.facts(), "seconds": round(time.monotonic() - began, 1)}
            finally:  # also if the work is stopped
                manifest = folder.finish(plan.shards, facts)
    if not manifest["rows"]:
        raise EbertError(f"no row could be processed; {folder.path / ERRORS} says why")
    return {**manifest, **shown, "out": str(folder.path)}


def _rows(plan: ShardPlan, job: BulkJob, read: ReadOptions) -> Iterator[Row]:
    """Read all rows, for a job that must know them before the first is worked on."""
    with closing(RowReader(read, job.columns)) as reader:
        for shard in plan.shards:
            yield from reader(shard).rows


def _work(engine: Engine, task: BulkTask, missing: Sequence[Shard], advance: Advance) -> None:
    """Do shards until all are done. What was left out because a worker died is done again by another."""
    waiting = {shard.number: shard for shard in missing}
    idle = 0
    while waiting:
        before = len(waiting)
        died: WorkerDiedError | None = None
        try:
            with closing(engine(task, list(waiting.values()))) as reports:
                for report in reports:
                    if waiting.pop(report.shard, None):
                        advance(report.read)
        except WorkerDiedError as error:
            died = error
        idle = idle + 1 if len(waiting) == before else 0
        if waiting and idle > MOST:
            raise died or EbertError(f"{len(waiting):,} shards were given to workers and never came back")


class JobFolder:
    """The folder of a job that is this process's alone."""

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self.path, self.identity, self.key = path, identity, key_of(identity)

    def missing(self, shards: Sequence[Shard]) -> list[Shard]:
        """Return the shards that are not done."""
        return [shard for shard in shards if read_report(self.path / ROWS / shard.file, self.key) is None]

    def compare(self, *, overwrite: bool) -> None:
        """Raise an error if the job in the folder is another one, or make room for the new one."""
        before = files.read_json(self.path / MANIFEST, "a job")
        if before.get("kind") != "bulk":
            raise EbertError(
                f"{self.path} contains something else (its {MANIFEST} is not of a job); choose another --out"
            )
        refuse_other(self.path, before.get("identity", {}), self.identity, what="a job", overwrite=overwrite)
        if overwrite:  # what a job wrote and nothing else: people may have put files of their own beside it
            shards = [file for file in self._in_rows() if _SHARD.fullmatch(file.name) and file.is_file()]
            for file in [*shards, *(self.path / name for name in (ERRORS, METRICS, KEY))]:
                file.unlink(missing_ok=True)

    def begin(self) -> None:
        """Write what the job is about, before anything else, and remove what killed workers left, be it by 0.1."""
        self._write({"complete": False})
        (self.path / ROWS).mkdir(exist_ok=True)
        shutil.rmtree(self.path / ATTEMPTS, ignore_errors=True)
        (self.path / ATTEMPTS).mkdir()
        remove_halves(self.path, ERRORS, METRICS, KEY, MANIFEST)
        halves = (file.name.removeprefix(".").rpartition(".")[0] for file in self._in_rows())
        remove_halves(self.path / ROWS, *(name for name in halves if _SHARD.fullmatch(name)))
        with files.replacing(self.path / KEY, "w") as file:
            file.write(self.key)

    def finish(self, shards: Sequence[Shard], facts: Mapping[str, Any]) -> dict[str, Any]:
        """List the bad rows, and write the manifest: what there is, and whether that is all."""
        dropped: Counter[str] = Counter()
        reports: list[dict[str, Any]] = []
        total = Counter(rows=0, errors=0, blank=0)
        with files.replacing(self.path / ERRORS, "w") as errors:
            for shard in shards:
                found = read_report(self.path / ROWS / shard.file, self.key)
                if found is None:
                    continue
                report, bad = found
                errors.writelines(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in bad)
                dropped.update(report.dropped)
                total.update(rows=report.rows, errors=report.errors, blank=report.blank)
                reports.append({"file": f"{ROWS}/{shard.file}", "rows": report.rows, "errors": report.errors})
        complete = len(reports) == len(shards)
        result = {"complete": complete, **total, "dropped": dict(dropped), **facts, "shards": reports}
        self._write(result)
        staging.sweep(self.path / ROWS)
        if complete:
            shutil.rmtree(self.path / ATTEMPTS, ignore_errors=True)
        return result

    def _in_rows(self) -> list[Path]:
        return list((self.path / ROWS).iterdir()) if (self.path / ROWS).is_dir() else []

    def _write(self, result: Mapping[str, Any]) -> None:
        head = {"kind": "bulk", "format": FORMAT, "ebert": __version__}
        files.write_json(self.path / MANIFEST, {**head, **result, "identity": self.identity})


def _is_ours(file: Path) -> bool:
    """Return whether a file or folder is one that 0.1 wrote before the manifest."""
    if file.name in (ROWS, ATTEMPTS):
        return file.is_dir() and not any(file.iterdir())
    return file.name == KEY or staging.is_temporary(file.name, KEY)
