"""Running a job: plan, compare with what is there, do what is missing, and put the ends together."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ebert import __version__
from ebert._io.progress import Advance, Watch, unwatched
from ebert._runs import saying_where
from ebert.bulk.arrow import need_pyarrow
from ebert.bulk.attempts import MOST
from ebert.bulk.folder import JobFolder, opened
from ebert.bulk.jobs import Job
from ebert.bulk.local import Engine, LocalEngine
from ebert.bulk.options import ReadOptions
from ebert.bulk.planning import Plan, Shard, make_plan
from ebert.bulk.rows import Reader, Row
from ebert.bulk.shard import Task
from ebert.errors import EbertError
from ebert.wikipedia.pool import WorkerDiedError

FORMAT = "rows 1"  # what a row looks like; shards of another one are not mixed with these


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
        "ebert": f"{__version__}, {FORMAT}",
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
def _summing_up(folder: JobFolder, plan: Plan) -> Iterator[dict[str, Any]]:
    """Write the list of bad rows and the manifest, also if the work is stopped."""
    facts: dict[str, Any] = {}
    if plan.others:
        facts["not read"] = plan.others
    try:
        yield facts
    finally:
        facts["manifest"] = folder.finish(plan.shards, facts)
