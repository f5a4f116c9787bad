"""Relation classification on FewRel: the paper's five variants, and plain BERT for its 10 epochs (Section 4.2).

    python experiments/fewrel.py [--store STORE] [--work FOLDER] [--only NAME]... [--data FILE] [--ids FILE]
    python experiments/fewrel.py --words
    python experiments/fewrel.py --search
    python experiments/fewrel.py --publish results/fewrel

The variants differ in their mode only: three epochs, learning rate 5e-5, seed 0, the best epoch by a fixed 2,000 of the
dev samples, then all 16,000 test samples. The store must have dimension 768, because the unaligned baselines need it.
It takes hours on two cores; run it again to continue. Runs are in FOLDER (default: EBERT_HOME/experiments/fewrel).

--words prints how often the words of a mention alone lead to its entity, if the table of --ids knows the entity.

--search shows `ebert relations search` on a small part: 400 training and 240 dev samples.

--publish trains nothing: it copies what is complete, answers without FewRel's text and commands without this machine's
folders, and writes a report beside it. `ebert relations report` reads the copies like any other run.
"""

import argparse
import lzma
import re
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ebert import EBert, Vectors
from ebert._io import files
from ebert._io.home import home
from ebert.relations.data import SampleResolver, read
from ebert.relations.options import ResolvingOptions
from ebert.vectors.wikidata_ids import read_ids

DATA = Path(__file__).parents[1].parent / "shared" / "data"
MODES = ("bert", "concat", "replace", "wikipedia2vec-concat", "wikipedia2vec-replace")
RUNS = {mode: (mode, 3) for mode in MODES} | {"bert-10": ("bert", 10)}
DIMENSION = 768  # of BERT
RATE, SEED, DEV = "5e-5", 0, 2000
KEPT, SEARCH = "evaluations", "search"
SMALL = ("--samples", 400, "--dev-samples", 240, "--epochs", 3, "--epochs", 6, "--epochs", 10)


def ebert(*arguments: object) -> None:
    """Run an ebert command and say how long it took."""
    command = ["ebert", *map(str, arguments)]
    print(f"== {time.strftime('%H:%M:%S')} {' '.join(command)}", flush=True)
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-m", *command], check=False)
    if done.returncode:
        sys.exit(done.returncode)
    print(f"== {time.monotonic() - start:,.0f} s", flush=True)


def unpack(archive: Path, work: Path) -> Path:
    """Return the folder with the three files of FewRel."""
    folder = work / "fewrel"
    if not (folder / "test.json").exists():
        work.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as tar:
            tar.extractall(work, filter="data")
    return folder


def align(store: Path, bert: str, model: Path) -> None:
    """Fit W, or check that the existing model belongs to the store."""
    if not (store / "store.json").exists():
        sys.exit(f"there is no store at {store}; train one with 'make vectors', or give --store")
    vectors = Vectors.open(store)
    if vectors.dimension != DIMENSION:
        sys.exit(f"{store} has dimension {vectors.dimension}; the baselines without W need {DIMENSION}")
    if not (model / "ebert.json").exists():
        ebert("align", store, "--bert", bert, "--out", model)
    used = EBert.from_pretrained(model).vectors
    if used is None or used.fingerprint != vectors.fingerprint:
        sys.exit(f"{model} was made with another store than {store}; choose another --work")


def words(data: Path, store: Path, ids: Path) -> None:
    """Count how often the words of a mention lead to an entity, and to the right one, where that is known."""
    vectors = Vectors.open(store)
    known = SampleResolver(vectors, ResolvingOptions(ids_only=True), read_ids(ids))
    alone = SampleResolver(vectors)
    entities, mentions, found, right = set(), 0, 0, 0
    for sample in (sample for split in ("train", "dev", "test") for sample in read(data / f"{split}.json")):
        for span in (sample.subject, sample.object):
            entity = known(sample, span)[1]
            if entity is None:
                continue
            guess = alone(sample, replace(span, entity=None))[1]
            entities.add(entity)
            mentions, found, right = mentions + 1, found + (guess is not None), right + (guess == entity)
    print(
        f"{mentions:,} mentions of {len(entities):,} entities with a known id and a vector in {store.name}: by their "
        f"words alone {found / mentions:.1%} lead to an entity, {right / max(found, 1):.1%} of these to the right one"
    )


def train(name: str, data: Path, work: Path, ids: Path) -> None:
    """Train a run, continue it, or find it complete; then evaluate it on the whole test set."""
    mode, epochs = RUNS[name]
    run = work / "runs" / name
    ebert("relations", "train", data, "--model", work / "model", "--mode", mode, "--epochs", epochs,
          "--learning-rate", RATE, "--seed", SEED, "--dev-samples", DEV, "--ids", ids, "--out", run)  # fmt: skip
    if not (run / KEPT / "test.json").exists():
        ebert("relations", "evaluate", run, data / "test.json", "--keep")
    print(name, files.read_json(run / KEPT / "test.json", "a run")["macro"], flush=True)


def publish(work: Path, out: Path) -> None:
    """Write the shipped form of all runs that have been evaluated, and the report on them."""
    done = [name for name in RUNS if (work / "runs" / name / KEPT / "test.json").exists()]
    if not done:
        sys.exit(f"no run in {work / 'runs'} is complete yet")
    for name in done:
        run = work / "runs" / name
        with files.replacing_folder(out / name, overwrite=True, marker="run.json") as folder:
            files.write_json(folder / "run.json", without_folders(files.read_json(run / "run.json", "a run")))
            shutil.copyfile(run / "metrics.json", folder / "metrics.json")
            (folder / KEPT).mkdir()
            shutil.copyfile(run / KEPT / "test.json", folder / KEPT / "test.json")
            answers = (run / KEPT / "test.predictions.jsonl").read_bytes()
            (folder / KEPT / "test.predictions.jsonl.xz").write_bytes(lzma.compress(answers, preset=9))
    if (work / SEARCH / "search.json").exists():
        (out / SEARCH).mkdir(exist_ok=True)
        shutil.copyfile(work / SEARCH / "curve.svg", out / SEARCH / "curve.svg")
        found = without_folders(files.read_json(work / SEARCH / "search.json", "a search"))
        files.write_json(out / SEARCH / "search.json", found)
    ebert("relations", "report", *(out / name for name in done), "--out", out / "report", "--overwrite")


def without_folders(info: dict[str, Any]) -> dict[str, Any]:
    """Leave this machine's folders out of a command."""
    return {**info, "command": re.sub(r"(?<=\s)/\S*/(?=\S)", "", info["command"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=home() / "vectors" / "all768", help="vectors of dimension 768")
    parser.add_argument("--bert", default="bert-base-cased")
    parser.add_argument("--data", type=Path, default=DATA / "fewrel.tar.xz")
    parser.add_argument("--ids", type=Path, default=DATA / "fb15k_entity2wikidata.json")
    parser.add_argument("--work", type=Path, default=home() / "experiments" / "fewrel")
    parser.add_argument("--only", action="append", choices=RUNS, help="this run only (may be given again)")
    parser.add_argument("--words", action="store_true", help="train nothing, look at what mentions lead to")
    parser.add_argument("--search", action="store_true", help="a small search instead of the runs")
    parser.add_argument("--publish", type=Path, metavar="FOLDER", help="train nothing, ship what is there")
    given = parser.parse_args()
    if given.publish:
        publish(given.work, given.publish)
        return
    data = unpack(given.data, given.work)
    if given.words:
        words(data, given.store, given.ids)
        return
    align(given.store, given.bert, given.work / "model")
    if given.search:
        ebert("relations", "search", data, "--model", given.work / "model", "--mode", "concat", *SMALL,
              "--seed", SEED, "--ids", given.ids, "--out", given.work / SEARCH)  # fmt: skip
        return
    for name in given.only or RUNS:
        train(name, data, given.work, given.ids)


if __name__ == "__main__":
    main()
