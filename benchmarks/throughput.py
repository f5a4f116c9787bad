"""How fast linking is with today's defaults and with those of the first edition, and how much memory it takes.

    python benchmarks/throughput.py [--model MODEL] [--linker LINKER] [--data DATA] [--documents N] [--entities N]

The first edition linked with full weights in three rounds, in float32, with the mask and markers for each span. Today
there is an adapter, one round, the mask alone, and the number type that suits the processor. Both linkers are made from
the same MODEL (default: the starter) and are not trained, which makes no difference to the time. With LINKER, a folder
made by `ebert link train`, three rounds of this linker are compared with one. DATA has any layout that `ebert link`
reads; without it, the text is made up. With `--entities`, the store is copied and filled up with made-up entities to
this number. Every row runs in its own process, so that the peak memory is that of the row: all resident memory,
including mapped files. Opening the linker is not included in the time. Rows take turns (`--repeats`), and the fastest
run of each counts. The last lines have the ratio of the wall times and of the CPU times, which other work on the
machine affects less.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from ebert import EBert, Linker, Vectors
from ebert._names import resolve
from ebert.linking.document import Document
from ebert.linking.options import LinkerOptions
from ebert.linking.readers.layouts import read
from ebert.model.folder import find_model, open_store

FIRST, TODAY = "first edition", "today"
THREE, ONE = "3 rounds", "1 round"
TEXT = (
    "Niels Bohr met Albert Einstein in Brussels before the war, and told a paper in Copenhagen about it. The Beatles "
    "were in Hamburg when Germany and England played in London. Berlin is larger than Paris, says the mayor. "
) * 6


def filled(store: Vectors, path: Path, entities: int) -> Path:
    """Copy a store and add made-up entities up to this number; a store that has as many is used as it is."""
    missing = entities - len(store)
    if missing <= 0:
        return store.path
    shutil.copytree(store.path, path)
    random = np.random.default_rng(0)
    with Vectors.open(path) as copy:
        copy.add_many(
            {"title": f"Made-up entity {number}", "vector": random.normal(size=copy.dimension).tolist()}
            for number in range(missing)
        )
    return path


def opened(row: str, model: str, linker: str | None, store: str) -> Linker:
    """Open a linker, or make the one of a row."""
    if linker is not None:
        return Linker.from_pretrained(linker, vectors=store, rounds=3 if row == THREE else 1)
    made = Linker.fresh(EBert.from_pretrained(model, vectors=store), options=LinkerOptions(adapter=row == TODAY))
    made.compute_in("auto")
    return made


def measure(row: str, store: str, options: argparse.Namespace) -> None:
    """Link, and print time and memory; one process for each row."""
    linker = opened(row, options.model, options.linker, store)
    made_up = [Document(str(number), TEXT) for number in range(options.documents)]
    data = options.data
    given = [Document(one.id, one.text) for one in read(Path(data)).documents][: options.documents] if data else made_up
    linker(given[0].text[:200])
    start, processor = time.perf_counter(), time.process_time()
    links = sum(len(one.mentions) for one in linker.stream(given))
    facts = {
        "rounds": linker.options.rounds,
        "precision": linker.precision,
        "documents": len(given),
        "words": sum(len(one.text.split()) for one in given),
        "links": links,
        "entities": len(linker.vectors),
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - processor,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(facts))


def main() -> None:
    """Run a process for each row and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="starter")
    parser.add_argument("--linker")
    parser.add_argument("--data")
    parser.add_argument("--documents", type=int, default=10)
    parser.add_argument("--entities", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--row", nargs=2, metavar=("ROW", "STORE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        name, place = options.row
        measure(name, place, options)
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{cores} cores, {torch.get_num_threads()} threads, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        if options.linker:
            store = Linker.from_pretrained(str(resolve(options.linker, "linker"))).vectors
        else:
            store = open_store(find_model(options.model))
        path = filled(store, Path(folder) / "store", options.entities)
        names = (THREE, ONE) if options.linker else (FIRST, TODAY)
        best: dict[str, dict[str, float]] = {}
        for name in names * options.repeats:
            command = [sys.executable, __file__, *sys.argv[1:], "--row", name, str(path)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            row = json.loads(done.stdout.splitlines()[-1])
            shown = best.setdefault(name, row)
            shown |= {part: min(shown[part], row[part]) for part in ("seconds", "processor")}
            shown["peak MB"] = max(shown["peak MB"], row["peak MB"])
    for name, row in best.items():
        print(
            f"{name}: {row['rounds']} rounds in {row['precision']}, {row['entities']:,} entities: {row['documents']} "
            f"documents of {row['words'] / row['documents']:.0f} words, {row['links']} links, "
            f"{row['words'] / row['seconds']:.0f} words a second, peak {row['peak MB']:,} MB"
        )
    for part in ("processor", "seconds"):
        kind = " of the processor" if part == "processor" else ""
        ratio = best[names[0]][part] / best[names[1]][part]
        print(f"ratio {names[1]} / {names[0]}, seconds{kind}: {ratio:.1f}")


if __name__ == "__main__":
    main()
