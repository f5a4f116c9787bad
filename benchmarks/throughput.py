"""How fast a linker links a set of documents, and how much memory that takes, in three rounds and in one.

    python benchmarks/throughput.py [--linker LINKER] [--data DATA] [--documents N] [--entities N]

LINKER is a folder of `ebert link train`, else the starter, which links without training. DATA has any layout that
`ebert link` reads; without it the text is a made-up one. With `--entities` the store is copied and filled up with
made-up entities to that many. Every row is a process of its own, so that its peak memory is
its own: all that was resident, files mapped into memory included. Opening the linker is not counted in the time.
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

from ebert import Linker, Vectors
from ebert._names import resolve
from ebert.linking.document import Document
from ebert.linking.readers.layouts import read

ROUNDS = (3, 1)
TEXT = (
    "Niels Bohr met Albert Einstein in Brussels before the war, and told a paper in Copenhagen about it. The Beatles "
    "were in Hamburg when Germany and England played in London. Berlin is larger than Paris, says the mayor. "
) * 6


def filled(store: Vectors, path: Path, entities: int) -> Path:
    """Copy a store, with made-up entities up to that many; one that has as many stays where it is."""
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


def measure(linker: str, store: str, data: str | None, documents: int, rounds: int) -> None:
    """Link, and print what it took; one process, one row."""
    opened = Linker.from_pretrained(linker, vectors=store, rounds=rounds)
    made_up = [Document(str(number), TEXT) for number in range(documents)]
    given = [Document(one.id, one.text) for one in read(data).documents][:documents] if data else made_up
    opened(given[0].text[:200])
    start = time.perf_counter()
    links = sum(len(one.mentions) for one in opened.link(given))
    row = {
        "rounds": rounds,
        "documents": len(given),
        "words": sum(len(one.text.split()) for one in given),
        "links": links,
        "entities": len(opened.vectors),
        "seconds": round(time.perf_counter() - start, 2),
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(row))


def main() -> None:
    """Run a process for each row and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--linker", default="starter")
    parser.add_argument("--data")
    parser.add_argument("--documents", type=int, default=10)
    parser.add_argument("--entities", type=int, default=0)
    parser.add_argument("--row", nargs=2, metavar=("ROUNDS", "STORE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    linker = str(resolve(options.linker, "linker"))
    if options.row:
        measure(linker, options.row[1], options.data, options.documents, int(options.row[0]))
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{cores} cores, {torch.get_num_threads()} threads, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        store = Linker.from_pretrained(linker).vectors
        path = filled(store, Path(folder) / "store", options.entities)
        for rounds in ROUNDS:
            command = [sys.executable, __file__, *sys.argv[1:], "--row", str(rounds), str(path)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            row = json.loads(done.stdout.splitlines()[-1])
            print(
                f"{row['rounds']} rounds, {row['entities']:,} entities: {row['documents']} documents of "
                f"{row['words'] / row['documents']:.0f} words, {row['links']} links, "
                f"{row['documents'] / row['seconds']:.2f} documents a second, "
                f"{row['words'] / row['seconds']:.0f} words a second, peak {row['peak MB']:,} MB"
            )


if __name__ == "__main__":
    main()
