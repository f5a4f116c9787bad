"""Documents a second in bulk: the local engine and Ray, with one and with two workers, in one run.

    python benchmarks/bulk.py [--documents N] [--words N] [--shard-rows N] [--job encode|link] [--rounds N]

Every engine processes the same documents with the same model (the starter's). `start` is the time until the first shard
is done: processes, imports, the model, and for Ray its own servers. The rate leaves out the first shard of each worker,
so it is the rate of a long job. The fastest of several rounds counts. The last line is the rate of Ray divided by the
rate of the local engine, with the most workers.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ebert import get_starter
from ebert._io.progress import Advance
from ebert.bulk.encode import EncodeJob
from ebert.bulk.job import BulkJob
from ebert.bulk.link import LinkJob
from ebert.bulk.local import Engine, LocalEngine
from ebert.bulk.options import EngineOptions, ReadOptions
from ebert.bulk.ray import RayEngine
from ebert.bulk.run import run

TEXT = (
    "Albert Einstein was born in Germany and the report said on Monday that officials in Rome and Vienna had agreed to "
    "meet again before the end of the year while players from Spain and Italy were training for the final in London "
)


class Stopwatch:
    """Notes when rows were done."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.times: list[tuple[float, int]] = []

    @contextmanager
    def __call__(self, what: str, *, total: int | None = None, unit: str = "") -> Iterator[Advance]:  # noqa: ARG002
        self.began = time.monotonic()

        def advance(amount: int, /) -> None:
            if amount:
                self.times.append((time.monotonic() - self.began, amount))

        yield advance

    def figures(self, workers: int) -> tuple[float, float]:
        """Return the seconds until the first shard was done, and then the rows per second of each worker."""
        start = self.times[0][0]
        rest = self.times[workers:]
        begin = self.times[workers - 1][0]
        return start, sum(rows for _, rows in rest) / (rest[-1][0] - begin)


def measure(engine: Engine, job: BulkJob, corpus: Path, out: Path, rows: int, workers: int) -> dict[str, Any]:
    """Run a job and return its speed."""
    watch = Stopwatch()
    began = time.monotonic()
    manifest = run(job, [corpus], out, read=ReadOptions(shard_rows=rows), engine=engine, watch=watch)
    assert manifest["errors"] == 0
    start, rate = watch.figures(workers)
    return {"start": start, "rate": rate, "all": time.monotonic() - began, "rows": manifest["rows"]}


def main() -> None:
    """Run all and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=240)
    parser.add_argument("--words", type=int, default=38)
    parser.add_argument("--shard-rows", type=int, default=8)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--rounds", type=int, default=1, help="how often everything is timed; the fastest counts")
    parser.add_argument("--job", choices=["encode", "link"], default="link")
    options = parser.parse_args()
    many = [int(number) for number in options.workers.split(",")]
    model = str(get_starter())
    job: BulkJob = LinkJob(linker=model) if options.job == "link" else EncodeJob(model=model)
    text = " ".join((TEXT * (1 + options.words // TEXT.count(" "))).split()[: options.words])
    rates: dict[tuple[str, int], float] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        corpus = folder / "in.jsonl"
        corpus.write_text("".join(json.dumps({"text": text}) + "\n" for _ in range(options.documents)), "utf-8")
        print(f"{options.job}, {options.documents} documents of {options.words} words, {os.cpu_count()} cores")
        print("engine  workers  start s  all s  documents/s")
        for number, workers in ((number, workers) for number in range(options.rounds) for workers in many):
            # A local worker alone would take all cores.
            each = EngineOptions(workers=workers, least_workers=workers, cpus_per_worker=1)
            engines: dict[str, Engine] = {"local": LocalEngine(each), "ray": RayEngine(each)}
            for name, engine in engines.items():
                done = measure(engine, job, corpus, folder / f"{name}-{workers}-{number}", options.shard_rows, workers)
                rates[name, workers] = max(done["rate"], rates.get((name, workers), 0.0))
                print(
                    f"{name:<7} {workers:>7}  {done['start']:>7.1f}  {done['all']:>5.1f}  {done['rate']:>11.2f}",
                    flush=True,
                )
        outputs = [
            {f.name: f.read_bytes() for f in (folder / f"{name}-{many[-1]}-0" / "rows").iterdir()}
            for name in ("local", "ray")
        ]
        print(f"the same bytes from both engines: {'yes' if outputs[0] == outputs[1] else 'no'}")
    print(f"ratio two workers over one, local: {rates['local', many[-1]] / rates['local', many[0]]:.2f}")
    print(f"ratio two workers over one, ray: {rates['ray', many[-1]] / rates['ray', many[0]]:.2f}")
    print(f"ratio ray over local: {rates['ray', many[-1]] / rates['local', many[-1]]:.2f}")


if __name__ == "__main__":
    main()
