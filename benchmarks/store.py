"""How fast a large store of vectors opens and answers, and how that compares with Wikipedia2Vec's own files.

    python benchmarks/store.py [--entities 2700000] [--folder DIR]

It makes a store of 2.7 million entities x 768 in half precision (4.1 GB, about two minutes, kept in --folder or the
temporary folder for the next time) and measures every figure in a fresh process. Then it makes a small model with
Wikipedia2Vec (`make bench` installs it) and does the same work with both.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert import Vectors
from ebert.vectors.formats.importer import import_vectors
from ebert.vectors.writer import writing

LOOKUPS = 10_000
BATCH = 4096
# Entities and dimension of what is made with Wikipedia2Vec: a tenth of the large store, and less of the slower text.
MODEL, TEXT = (270_000, 300), (50_000, 300)
SYLLABLES = [consonant + vowel for consonant in "bdfghjklmnprstvz" for vowel in "aeiou"]  # 80
TARGETS = {"open": 0.5, "look-ups": 2.0, "memory": 500.0}


# Making the files


def word(number: int) -> str:
    """Return the made-up word for a number."""
    parts = []
    number += len(SYLLABLES)  # at least two syllables
    while number:
        number, rest = divmod(number, len(SYLLABLES))
        parts.append(SYLLABLES[rest])
    return "".join(parts).capitalize()


def titles(count: int) -> Iterator[list[str]]:
    """Yield batches of different titles of one to three words, some of them common."""
    common = [word(number) for number in range(100_000)]
    for start in range(0, count, BATCH):
        rng = np.random.default_rng(start)
        size = min(BATCH, count - start)
        picks = np.minimum(rng.pareto(0.6, (size, 2)) * 20, len(common) - 1).astype(int).tolist()
        lengths = rng.integers(0, 3, size).tolist()
        yield [
            " ".join([*(common[pick] for pick in row[:length]), word(start + index + len(common))])
            for index, (row, length) in enumerate(zip(picks, lengths, strict=True))
        ]


def blocks(count: int, dimension: int, dtype: type[np.floating[Any]]) -> Iterator[NDArray[Any]]:
    """Yield batches of random vectors, shifted from batch to batch so that no two are the same."""
    block = np.random.default_rng(0).standard_normal((BATCH, dimension)).astype(dtype)
    for start in range(0, count, BATCH):
        shifted = np.roll(block, start // BATCH, axis=1)
        shifted[:, 0] = start / count
        yield shifted[: count - start]


def make_large(path: Path, entities: int, dimension: int) -> float:
    """Make the large store, in bounded memory; return the seconds it took."""
    began = time.perf_counter()
    sample = set(np.random.default_rng(1).choice(entities, min(LOOKUPS, entities), replace=False).tolist())
    names: list[str] = []
    with writing(path, dimension=dimension, dtype="float16", overwrite=True) as writer:
        row = 0
        for batch, block in zip(titles(entities), blocks(entities, dimension, np.float16), strict=True):
            writer.add("entities", batch, block)
            names += [title for index, title in enumerate(batch, row) if index in sample]
            row += len(batch)
        writer.finish(licence="none: made-up numbers", made={"from": "benchmarks/store.py"})
    np.random.default_rng(2).shuffle(names)
    (path / "sample.json").write_text(json.dumps(names), encoding="utf-8")
    return time.perf_counter() - began


def make_model(entities: int, dimension: int) -> tuple[Any, list[str]]:
    """Make a model of Wikipedia2Vec; return it and some of its titles."""
    import marisa_trie
    from wikipedia2vec import Wikipedia2Vec
    from wikipedia2vec.dictionary import Dictionary

    names = [title for batch in titles(entities) for title in batch]
    words = marisa_trie.Trie([f"word{number}" for number in range(1000)])
    trie, none = marisa_trie.Trie(names), marisa_trie.RecordTrie("<I")
    counts = [np.ones((len(kind), 2), np.int32) for kind in (words, trie)]
    model = Wikipedia2Vec(Dictionary(words, trie, none, *counts))
    model.syn0 = np.concatenate(list(blocks(len(words) + len(trie), dimension, np.float32)))
    model.syn1 = np.zeros_like(model.syn0)
    chosen: list[str] = np.random.default_rng(3).choice(names, LOOKUPS, replace=False).tolist()
    return model, chosen


# Measuring, each in a process of its own


def measure_ours(path: str, names: list[str]) -> dict[str, float]:
    """Open a store, look names up, take their vectors, find neighbours."""
    began = time.perf_counter()
    vectors = Vectors.open(path)
    opened = time.perf_counter()
    total = sum(float(vectors[name][0]) for name in names)
    looked = time.perf_counter()
    memory = anonymous_memory()
    vectors.nearest(names[0], top=10)
    near = time.perf_counter()
    vectors.suggest(names[0][:-1] + "x")
    missed = time.perf_counter()
    return {
        "open": opened - began, "look-ups": looked - opened, "memory": memory, "nearest": near - looked,
        "miss": missed - near, "memory at the end": anonymous_memory(), "sum": total,
    }  # fmt: skip


def measure_theirs(path: str, names: list[str]) -> dict[str, float]:
    """Do the same with Wikipedia2Vec."""
    from wikipedia2vec import Wikipedia2Vec

    began = time.perf_counter()
    model = Wikipedia2Vec.load(path)
    opened = time.perf_counter()
    total = sum(float(model.get_entity_vector(name)[0]) for name in names)
    looked = time.perf_counter()
    memory = anonymous_memory()
    model.most_similar(model.get_entity(names[0]), 11)
    near = time.perf_counter()
    return {
        "open": opened - began, "look-ups": looked - opened, "memory": memory, "nearest": near - looked,
        "memory at the end": anonymous_memory(), "sum": total,
    }  # fmt: skip


def measure_text_ours(path: str, _: list[str]) -> dict[str, float]:
    """Import a file of text into a store on disk."""
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
        began = time.perf_counter()
        import_vectors([path], Path(folder) / "store").close()
        return {"text": time.perf_counter() - began, "memory at the end": anonymous_memory()}


def measure_text_theirs(path: str, _: list[str]) -> dict[str, float]:
    """Load a file of text into memory with Wikipedia2Vec."""
    from wikipedia2vec import Wikipedia2Vec

    began = time.perf_counter()
    model = Wikipedia2Vec.load_text(path)
    return {"text": time.perf_counter() - began, "memory at the end": anonymous_memory(), "size": len(model.syn0)}


MEASURES = {
    "ours": measure_ours,
    "theirs": measure_theirs,
    "text ours": measure_text_ours,
    "text theirs": measure_text_theirs,
}


def anonymous_memory() -> float:
    """Return the megabytes of memory of this process that are not the page cache of a file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def measured(what: str, path: Path, names: list[str], times: int = 1) -> dict[str, float]:
    """Measure in fresh processes; return the best of each figure."""
    runs = []
    for _ in range(times):
        command = [sys.executable, __file__, "--measure", what, str(path)]
        done = subprocess.run(command, input=json.dumps(names), capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout))
    return {figure: min(run[figure] for run in runs) for figure in runs[0]}


def forget(path: Path) -> None:
    """Ask the system to drop a folder's files from its page cache."""
    for file in path.iterdir():
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# Reporting


def machine() -> str:
    """Return a description of the machine."""
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GB; Python {platform.python_version()}, numpy {np.__version__}"


def large(folder: Path, entities: int, dimension: int) -> None:
    """Measure the large store."""
    path = folder / f"store-{entities}x{dimension}"
    if not (path / "sample.json").is_file():
        print(f"making a store of {entities:,} x {dimension} in {path} ...", flush=True)
        print(f"  made in {make_large(path, entities, dimension):.0f} s")
    names = json.loads((path / "sample.json").read_text(encoding="utf-8"))
    size = sum(file.stat().st_size for file in path.iterdir()) / 1e9
    forget(path)
    cold = measured("ours", path, names)
    warm = measured("ours", path, names, times=3)
    print(f"\nstore of {entities:,} entities x {dimension}, float16, {size:.1f} GB on disk")
    print(f"  {'':44}{'just started':>14}{'in page cache':>14}{'target':>10}")
    rows = (
        ("open", "open", "s"),
        (f"{len(names):,} titles looked up, vectors taken", "look-ups", "s"),
        ("memory then, without the page cache", "memory", "MB"),
        ("10 nearest of an entity", "nearest", "s"),
        ("closest titles of a missing one", "miss", "s"),
    )
    for label, figure, unit in rows:
        digits = 0 if unit == "MB" else 3
        target = f"< {TARGETS[figure]:g} {unit}" if figure in TARGETS else ""
        figures = (f"{run[figure]:.{digits}f} {unit}" for run in (cold, warm))
        print(f"  {label:44}" + "".join(f"{text:>14}" for text in figures) + f"{target:>10}")


def compare(folder: Path) -> dict[str, float]:
    """Measure Wikipedia2Vec and this package side by side; return how many times faster ours is."""
    try:
        import wikipedia2vec  # noqa: F401
    except ImportError:
        sys.exit(
            "Wikipedia2Vec is not installed, so there is nothing to compare with: 'make bench' installs it (to 3.12)"
        )
    make_model(*TEXT)[0].save_text(str(folder / "model.txt"))
    model, names = make_model(*MODEL)
    model.save(str(folder / "model.pkl"))
    began = time.perf_counter()
    import_vectors([folder / "model.pkl"], folder / "store").close()
    imported = time.perf_counter() - began
    ours, theirs = measured("ours", folder / "store", names, 3), measured("theirs", folder / "model.pkl", names, 3)
    ours |= {"text": measured("text ours", folder / "model.txt", [], 2)["text"]}
    theirs |= {"text": measured("text theirs", folder / "model.txt", [], 2)["text"]}
    assert abs(ours["sum"] - theirs["sum"]) < 1e-3, "the two give different vectors"
    print(f"\nmodel of {MODEL[0]:,} entities x {MODEL[1]}, float32 (importing it took {imported:.1f} s, once)")
    print(f"text of {TEXT[0]:,} entities x {TEXT[1]}")
    print(f"  {'':44}{'Wikipedia2Vec':>14}{'ebert':>14}{'ratio':>10}")
    ratios = {}
    for label, name, figures in (
        ("open", "open", ("open",)),
        (f"open, {LOOKUPS:,} look-ups with vectors", "open and look-ups", ("open", "look-ups")),
        ("10 nearest of an entity", "nearest", ("nearest",)),
        ("load text / import text into a store", "text load", ("text",)),
        ("memory in the end, without the page cache", "memory", ("memory at the end",)),
    ):
        pair = [sum(run[figure] for figure in figures) for run in (theirs, ours)]
        ratios[name] = pair[0] / pair[1]
        texts = (f"{value:.0f} MB" if name == "memory" else f"{value:.4f} s" for value in pair)
        print(f"  {label:44}" + "".join(f"{text:>14}" for text in texts) + f"{ratios[name]:>10.2f}")
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=2_700_000)
    parser.add_argument("--dimension", type=int, default=768)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "ebert-benchmark")
    parser.add_argument("--measure", nargs=2, metavar=("WHAT", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        what, path = options.measure
        print(json.dumps(MEASURES[what](path, json.load(sys.stdin))))
        return
    print(machine())
    options.folder.mkdir(parents=True, exist_ok=True)
    large(options.folder, options.entities, options.dimension)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        ratios = compare(Path(folder))
    print()
    for name, ratio in ratios.items():
        print(f"ratio {name}: {ratio:.2f}")


if __name__ == "__main__":
    main()
