"""Relation classification on FewRel: the paper's five variants, and plain BERT for its 10 epochs (Section 4.2).

    python experiments/fewrel.py [--store STORE] [--work FOLDER] [--only NAME]... [--data FILE] [--ids FILE]
    python experiments/fewrel.py --publish results/fewrel

The variants differ in their mode only: three epochs, learning rate 5e-5, seed 0, the best epoch by a fixed 2,000 of the
dev samples, then all 16,000 test samples. The store must have dimension 768, as the unaligned baselines need it. Hours
on two cores; run it again to go on. Runs stand in FOLDER (default EBERT_HOME/experiments/fewrel).

--publish trains nothing: it copies what is complete, answers without FewRel's text and commands without this machine's
folders, and writes a report beside it. `ebert relations report` reads the copies like any other run.
"""

import argparse
import json
import lzma
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from ebert import files
from ebert.bert.cache import home

DATA = Path(__file__).parents[1].parent / "shared" / "data"
MODES = ("bert", "concat", "replace", "wikipedia2vec-concat", "wikipedia2vec-replace")
RUNS = {mode: (mode, 3) for mode in MODES} | {"bert-10": ("bert", 10)}
STORES = ("all768", "paper")
RATE, SEED, DEV = "5e-5", 0, 2000


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
    """Give the folder with the three files of FewRel."""
    folder = work / "fewrel"
    if not (folder / "test.json").exists():
        work.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as tar:
            tar.extractall(work, filter="data")
    return folder


def publish(work: Path, out: Path) -> None:
    """Write the shipped form of all runs that have been evaluated, and the report on them."""
    done = [name for name in RUNS if (work / "runs" / name / "test.json").exists()]
    if not done:
        sys.exit(f"no run in {work / 'runs'} is complete yet")
    for name in done:
        run = work / "runs" / name
        with files.replacing_folder(out / name, overwrite=True, marker="run.json") as folder:
            info = files.read_json(run / "run.json", "a run")
            info["command"] = re.sub(r"(?<=\s)/\S*/(?=\S)", "", info["command"])
            files.write_json(folder / "run.json", info)
            answers = (run / "test.predictions.jsonl").read_bytes()
            (folder / "test.predictions.jsonl.xz").write_bytes(lzma.compress(answers, preset=9))
            for file in ("metrics.json", "test.json"):
                shutil.copyfile(run / file, folder / file)
    ebert("relations", "report", *(out / name for name in done), "--out", out / "report", "--overwrite")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, help="vectors of dimension 768 (default: all768 or paper)")
    parser.add_argument("--bert", default="bert-base-cased")
    parser.add_argument("--data", type=Path, default=DATA / "fewrel.tar.xz")
    parser.add_argument("--ids", type=Path, default=DATA / "fb15k_entity2wikidata.json")
    parser.add_argument("--work", type=Path, default=home() / "experiments" / "fewrel")
    parser.add_argument("--only", action="append", choices=RUNS, help="this run only (may be given again)")
    parser.add_argument("--publish", type=Path, metavar="FOLDER", help="train nothing, ship what is there")
    given = parser.parse_args()
    if given.publish:
        publish(given.work, given.publish)
        return
    stores = [given.store] if given.store else [home() / "vectors" / name for name in STORES]
    store = next((path for path in stores if (path / "store.json").exists()), None)
    if store is None:
        sys.exit(f"there is no store at {stores[0]}; train one with 'make vectors', or give --store")
    data = unpack(given.data, given.work)
    model = given.work / "model"
    if not (model / "ebert.json").exists():
        ebert("align", store, "--bert", given.bert, "--out", model)
    for name in given.only or RUNS:
        mode, epochs = RUNS[name]
        run = given.work / "runs" / name
        ebert("relations", "train", data, "--model", model, "--mode", mode, "--epochs", epochs,
              "--learning-rate", RATE, "--seed", SEED, "--dev-samples", DEV,
              "--ids", given.ids, "--out", run)  # fmt: skip
        if not (run / "test.json").exists():
            ebert("relations", "evaluate", run, data / "test.json", "--keep")
        print(name, json.dumps(json.loads((run / "test.json").read_text(encoding="utf-8"))["macro"]), flush=True)


if __name__ == "__main__":
    main()
