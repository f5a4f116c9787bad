"""Running a job: plan, compare with what is there, do what is missing, and put the ends together."""

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
from ebert._io.staging import is_temporary
from ebert._runs import alone_in, key_of, refuse_other, remove_halves, saying_where
from ebert._workers import WorkerDiedError
from ebert.bulk.inputs import MANIFEST, Plan, Shard, make_plan
from ebert.bulk.job import Job
from ebert.bulk.local import Engine, LocalEngine
from ebert.bulk.options import ReadOptions
from ebert.bulk.rows import Reader, Row, need_pyarrow
from ebert.bulk.worker import ATTEMPTS, KEY, MOST, ROWS, Report, Task, read_report
from ebert.errors import EbertError

ROW_FORMAT = "rows 1"  # what a row looks like; shards of another one are not mixed with these


def run(
    job: Job,
    inputs: Sequence[str | Path],
    out: str | Path,
    *,
    read: ReadOptions | None = None,
    engine: Engine | None = None,
    overwrite: bool = False,
    watch: Watch = unwatched,
) -> dict[str, Any]:
    """Do a job to every row of the inputs, or go on doing it, and give its manifest.

    The folder `out` gets the rows of every shard (`rows/*.parquet`), `errors.jsonl` and `manifest.json`.
    """
    need_pyarrow()
    began, read, engine = time.monotonic(), read or ReadOptions(), engine or LocalEngine()
    _refuse_inside(Path(out), inputs)
    plan = make_plan(inputs, read, lambda source, columns: job.check(source, columns, read))
    job = job.prepared(lambda: _rows(plan, job, read))
    model = job.load(device="cpu").identity  # what cannot be loaded is said now, not by every worker
    identity = _identity(job, plan, read, model)
    with opened(Path(out), identity, overwrite=overwrite) as folder:
        missing = [shard for shard in plan.shards if folder.report(shard) is None]
        folder.begin()
        with saying_where(folder.path), _summing_up(folder, plan) as facts:
            task = Task(job, read, folder.path, folder.key, model)
            with watch(job.kind, total=plan.rows, unit="rows") as advance:
                advance(plan.rows - sum(shard.rows for shard in missing))
                _work(engine, task, missing, advance)
            lost = [shard for shard in missing if folder.report(shard) is None]
            if lost:
                raise EbertError(
                    f"{len(lost):,} shards were done but are not in {folder.path}, such as {lost[0].file}; --out must "
                    "be in a folder that all machines share"
                )
            shown = job.finish(folder.path, [folder.file(shard) for shard in plan.shards])
            facts |= {**engine.facts(), "seconds": round(time.monotonic() - began, 1)}
        manifest = facts.pop("manifest")
    if not manifest["rows"]:
        raise EbertError(f"nothing came of any row; {folder.path / 'errors.jsonl'} says why")
    return {**manifest, **shown, "out": str(folder.path)}


def _refuse_inside(out: Path, inputs: Sequence[str | Path]) -> None:
    """Complain if what is written would be read, the next time."""
    for given in inputs:
        if Path(given).is_dir() and out.resolve().is_relative_to(Path(given).resolve()):
            raise EbertError(f"{out} is in {given}, which is read; choose a place outside")


def _rows(plan: Plan, job: Job, read: ReadOptions) -> Iterator[Row]:
    """Read all rows, for a job that must know them before the first is worked on."""
    with closing(Reader(read, job.columns)) as reader:
        for shard in plan.shards:
            yield from reader(shard).rows


def _identity(job: Job, plan: Plan, read: ReadOptions, model: dict[str, Any]) -> dict[str, Any]:
    return {
        "ebert": f"{__version__}, {ROW_FORMAT}",
        "job": job.kind,
        "options": {**read.identity(), **job.options()},
        "model": model,
        "inputs": plan.inputs,
    }


def _work(engine: Engine, task: Task, missing: Sequence[Shard], advance: Advance) -> None:
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


@contextmanager
def _summing_up(folder: "JobFolder", plan: Plan) -> Iterator[dict[str, Any]]:
    """Write the list of bad rows and the manifest, also if the work is stopped."""
    facts: dict[str, Any] = {}
    if plan.others:
        facts["not read"] = plan.others
    try:
        yield facts
    finally:
        facts["manifest"] = folder.finish(plan.shards, facts)


ERRORS, METRICS = "errors.jsonl", "metrics.json"
FORMAT = 1

_SHARD = re.compile(r"\d{6,}\.parquet")


class JobFolder:
    """The folder of a job that is this process's alone."""

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self.path, self.identity, self.key = path, identity, key_of(identity)

    def file(self, shard: Shard) -> Path:
        """Give the place of a shard's rows."""
        return self.path / ROWS / shard.file

    def report(self, shard: Shard) -> Report | None:
        """Give what came of a shard, if it is done."""
        found = read_report(self.file(shard), self.key)
        return found[0] if found else None

    def finish(self, shards: Sequence[Shard], facts: Mapping[str, Any]) -> dict[str, Any]:
        """Put the bad rows together, and write the manifest: what there is, and whether that is all."""
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
    """See that the job in a folder is this one, or make room for it."""
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
    """Whether a file or folder is one that 0.1 wrote before the manifest."""
    if file.name in (ROWS, ATTEMPTS):
        return file.is_dir() and not any(file.iterdir())
    return file.name == KEY or is_temporary(file.name, KEY)
