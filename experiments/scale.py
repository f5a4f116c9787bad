"""How time and memory grow with the text: three sizes measured, the English Wikipedia computed.

    python experiments/scale.py [--pages 1000 3000 9000] [--dim 768] [--out results/scale.md]

Each size is the first pages of a dump, built into a corpus and trained for one epoch with the default objectives, in
separate processes. The computed rows use the rates of the largest size: time per word, divided by cores, and memory for
two matrices of words and two of entities, which training keeps in memory; the text is memory-mapped.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from train import DUMP, cut, machine

WORDS, VOCABULARY, ENTITIES = 3.0e9, 2.5e6, 2.7e6  # the English Wikipedia, about; its words that occur 5 times
CORES = (2, 32, 64)


def run(*arguments: object) -> tuple[str, float, float]:
    """Run an ebert command; return its output, its seconds and its peak memory in MB."""
    read, write = os.pipe()
    start = time.monotonic()
    process = os.fork()
    if process == 0:
        os.dup2(write, 1)
        os.execv(sys.executable, [sys.executable, "-m", "ebert", *map(str, arguments)])
    os.close(write)
    with os.fdopen(read) as file:
        printed = file.read()
    _, status, usage = os.wait4(process, 0)
    if status:
        sys.exit(f"ebert {arguments[0]} {arguments[1]} failed")
    return printed, time.monotonic() - start, usage.ru_maxrss / 1024


def measure(dump: Path, folder: Path, dim: int, threads: int) -> dict[str, float]:
    """Build and train one size."""
    corpus, store = folder / "corpus", folder / "store"
    told, built, build_memory = run("corpus", "build", dump, "--out", corpus, "--threads", threads, "--json")
    told, whole, memory = run(
        "vectors", "train", corpus, "--out", store, "--dim", dim, "--epochs", 1, "--threads", threads, "--json"
    )
    report = json.loads(told)
    return {
        "words": report["words"], "vocabulary": report["vocabulary"], "entities": report["entities"], "build": built,
        "loop": report["loop_seconds"], "rest": whole - report["loop_seconds"],
        "build_memory": build_memory, "memory": memory,
    }  # fmt: skip


MEASURED = """\
Measured on {machine}, {threads} threads, dimension {dim}, one epoch with the default objectives:

| words | different | entities | dump to corpus, s | train, s | words a second | start and save, s | memory, MB |
|---:|---:|---:|---:|---:|---:|---:|---:|
"""
ROW = (
    "| {words:,} | {vocabulary:,} | {entities:,} | {build:.1f} | {loop:.1f} | {rate:,.0f} | {rest:.1f}"
    " | {memory:,.0f} |\n"
)
COMPUTED = """
Computed from the last row for the English Wikipedia (about 3 billion words, 2.5 million different words that occur
5 times, 2.7 million entities, dimension {dim}), if cores add up; nobody has run this:

| cores | dump to corpus, hours | one epoch, hours | five epochs, hours | memory, GB |
|---:|---:|---:|---:|---:|
"""
COMPUTED_ROW = "| {cores} | {build:.1f} | {one:.1f} | {five:.1f} | {memory:.0f} and the text, mapped |\n"


def table(rows: list[dict[str, float]], options: argparse.Namespace) -> str:
    """Write it all as Markdown."""
    text = MEASURED.format(machine=machine(), threads=options.threads, dim=options.dim)
    text += "".join(ROW.format(**row, rate=row["words"] / row["loop"]) for row in rows)
    text += COMPUTED.format(dim=options.dim)
    last = rows[-1]
    build, loop = (last[name] * options.threads / last["words"] for name in ("build", "loop"))  # core seconds a word
    memory = 2 * 4 * options.dim * (VOCABULARY + ENTITIES) / 2**30
    for cores in CORES:
        one = WORDS * loop / cores / 3600
        text += COMPUTED_ROW.format(
            cores=cores, build=WORDS * build / cores / 3600, one=one, five=5 * one, memory=memory
        )
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dump", type=Path, default=DUMP)
    parser.add_argument("--pages", type=int, nargs="+", default=[1000, 3000, 9000])
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for pages in options.pages:
        with tempfile.TemporaryDirectory() as folder:
            dump = Path(folder) / "dump.xml.bz2"
            cut(options.dump, pages, dump)
            rows.append(measure(dump, Path(folder), options.dim, options.threads))
            print(rows[-1], file=sys.stderr, flush=True)
    text = table(rows, options)
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
