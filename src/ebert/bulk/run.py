"""Running a job in a folder: plan, compare with what is there, do what is missing, and sum up.

`manifest.json` says what was done to what: inputs with their fingerprints, options, the model; and, when the job is
complete, what came of it. The rows of each shard are a Parquet file, and bad rows are listed in `errors.jsonl`. The
same command goes on with a job that was stopped; one with other inputs, options or another model is refused, as results
of two kinds would be mixed.
"""

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ebert import __version__
from ebert._io import files, staging
from ebert._io.progress import Advance, Watch, unwatched
from ebert._runs import alone_in, key_of, refuse_other, remove_halves, saying_where
from ebert._workers import WorkerDiedError
from ebert.bulk.inputs import MANIFEST, Shard, ShardPlan, make_plan
from ebert.bulk.job import BulkJob, located
from ebert.bulk.local import Engine, LocalEngine
from ebert.bulk.options import ReadOptions
from ebert.bulk.rows import Row, RowReader, need_pyarrow
from ebert.bulk.worker import ATTEMPTS, KEY, MOST, ROWS, BulkTask, ShardReport, read_report
from ebert.errors import EbertError

ROW_FORMAT = "rows 1"  # what a row looks like; shards of another one are not mixed with these
FORMAT = 1
ERRORS, METRICS = "errors.jsonl", "metrics.json"

_SHARD = re.compile(r"\d{6,}\.parquet")


def run(
    job: BulkJob,
    inputs: Sequence[str | Path],
    out: str | Path,
    *,
    read: ReadOptions | None = None,
    engine: Engine | None = None,
    overwrite: bool = False,
    watch: Watch = unwatched,
) -> dict[str, Any]:
    """Do a job to every row of the inputs, or go on doing it, and return its manifest.

    The folder `out` gets the rows of every shard (`rows/*.parquet`), `errors.jsonl` and `manifest.json`.
    """
    need_pyarrow()
    began, read, engine = time.monotonic(), read or ReadOptions(), engine or LocalEngine()
    for given in inputs:
        if Path(given).is_dir() and Path(out).resolve().is_relative_to(Path(given).resolve()):
            raise EbertError(f"{out} is in {given}, which is read; choose a place outside")
    job = located(job)
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
    with opened(Path(out), identity, overwrite=overwrite) as folder:
        missing = [shard for shard in plan.shards if folder.report(shard) is None]
        folder.begin()
        facts: dict[str, Any] = {"not read": plan.others} if plan.others else {}
        with saying_where(folder.path):
            try:
                with watch(job.kind, total=plan.rows, unit="rows") as advance:
                    advance(plan.rows - sum(shard.rows for shard in missing))
                    _work(engine, BulkTask(job, read, folder.path, folder.key, model), missing, advance)
                folder.check_there(missing)
                shown = job.finish(folder.path, [folder.file(shard) for shard in plan.shards])
                facts |= {**engine.facts(), "seconds": round(time.monotonic() - began, 1)}
            finally:  # also if the work is stopped
                manifest = folder.finish(plan.shards, facts)
    if not manifest["rows"]:
        raise EbertError(f"nothing came of any row; {folder.path / ERRORS} says why")
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

    def file(self, shard: Shard) -> Path:
        """Return the place of a shard's rows."""
        return self.path / ROWS / shard.file

    def report(self, shard: Shard) -> ShardReport | None:
        """Return what came of a shard, if it is done."""
        found = read_report(self.file(shard), self.key)
        return found[0] if found else None

    def check_there(self, shards: Sequence[Shard]) -> None:
        """Raise an error about shards that were done but are not in the folder."""
        if lost := [shard for shard in shards if self.report(shard) is None]:
            raise EbertError(
                f"{len(lost):,} shards were done but are not in {self.path}, such as {lost[0].file}; --out must be in "
                "a folder that all machines share"
            )

    def finish(self, shards: Sequence[Shard], facts: Mapping[str, Any]) -> dict[str, Any]:
        """List the bad rows, and write the manifest: what there is, and whether that is all."""
        dropped: Counter[str] = Counter()
        reports: list[dict[str, Any]] = []
        total = Counter(rows=0, errors=0, blank=0)
        with files.replacing(self.path / ERRORS, "w") as errors:
            for shard in shards:
                found = read_report(self.file(shard), self.key)
                if found is None:
                    continue
                report, bad = found
                for one in bad:
                    errors.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
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

    def begin(self) -> None:
        """Write what the job is about, before anything else."""
        self._write({"complete": False})
        (self.path / ROWS).mkdir(exist_ok=True)
        shutil.rmtree(self.path / ATTEMPTS, ignore_errors=True)
        (self.path / ATTEMPTS).mkdir()
        _remove_halves(self.path)
        with files.replacing(self.path / KEY, "w") as file:
            file.write(self.key)

    def _write(self, result: Mapping[str, Any]) -> None:
        head = {"kind": "bulk", "format": FORMAT, "ebert": __version__}
        files.write_json(self.path / MANIFEST, {**head, **result, "identity": self.identity})


@contextmanager
def opened(folder: Path, identity: dict[str, Any], *, overwrite: bool = False) -> Iterator[JobFolder]:
    """Begin a job or go on with it, alone."""
    folder = folder.absolute()
    with alone_in(folder, marker=MANIFEST, ours=_is_ours) as known:
        if known:
            _compare(folder, identity, overwrite=overwrite)
        yield JobFolder(folder, identity)


def _compare(folder: Path, identity: Mapping[str, Any], *, overwrite: bool) -> None:
    """Raise an error if the job in a folder is another one, or make room for the new one."""
    before = files.read_json(folder / MANIFEST, "a job")
    if before.get("kind") != "bulk":
        raise EbertError(f"{folder} holds something else (its {MANIFEST} is not of a job); choose another --out")
    refuse_other(folder, before.get("identity", {}), identity, what="a job", overwrite=overwrite)
    if overwrite:
        shutil.rmtree(folder / ATTEMPTS, ignore_errors=True)
        _remove_halves(folder)
        for shard in _shards(folder):  # and nothing else: people may have put files of their own beside them
            shard.unlink()
        for name in (ERRORS, METRICS, KEY):
            (folder / name).unlink(missing_ok=True)


def _shards(folder: Path) -> list[Path]:
    rows = (folder / ROWS).iterdir() if (folder / ROWS).is_dir() else ()
    return [file for file in rows if _SHARD.fullmatch(file.name) and file.is_file()]


def _remove_halves(folder: Path) -> None:
    """Remove what killed workers left half written, be it by 0.1."""
    remove_halves(folder, ERRORS, METRICS, KEY, MANIFEST)
    if (folder / ROWS).is_dir():
        halves = (file.name.removeprefix(".").rpartition(".")[0] for file in (folder / ROWS).iterdir())
        remove_halves(folder / ROWS, *(name for name in halves if _SHARD.fullmatch(name)))


def _is_ours(file: Path) -> bool:
    """Return whether a file or folder is one that 0.1 wrote before the manifest."""
    if file.name in (ROWS, ATTEMPTS):
        return file.is_dir() and not any(file.iterdir())
    return file.name == KEY or staging.is_temporary(file.name, KEY)
