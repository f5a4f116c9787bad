"""What matters when W is learned through the encoder: one option changed at a time, evaluated on held-out passages.

    python experiments/learning.py STORE CORPUS --work DIR --leave-out lama.tar.xz [--steps 300] [--rows NAME...]
        [--seeds 3] [--out results/learning.txt]

Each row starts from the same least squares and learns for the same number of steps. The figures are the mean losses of
masked words in passages from held-out pages. Rows that are already in DIR are not learned again.
"""

import argparse
import statistics
import sys
from dataclasses import asdict
from pathlib import Path

from ebert import AlignmentOptions, EBert, EbertError, Vectors
from ebert._io import files
from ebert._io.progress import progress, say
from ebert._runs import processor
from ebert.cli.align import titles_left_out
from ebert.model.alignment import Alignment
from ebert.model.options import LearningOptions
from ebert.model.passages import Passages

START = AlignmentOptions(weight_power=0.4, intercept=True, length=2.5)
# What differs from the defaults. Every row is measured on the passages that its options choose: those of other lengths
# have other losses, also with least squares, which is why that stands beside them.
ROWS = {
    "defaults": {},
    "rate 1e-4": {"rate": 1e-4},
    "rate 1e-3": {"rate": 1e-3},
    "up to 72 wordpieces": {"longest": 72},
    "half of the words masked": {"mask": 0.5},
    "float32": {"precision": "fp32"},
}


def learn(arguments: argparse.Namespace, name: str, seed: int) -> dict:
    """Learn one row, or read it if it was learned before; return its report."""
    place = Path(arguments.work) / f"{name.replace(' ', '-')}-{seed}"
    if not (place / "ebert.json").is_file():
        say(f"== {name}, seed {seed}")
        options = {"steps": arguments.steps, "evaluate": arguments.steps, "seed": seed, **ROWS[name]}
        passages = Passages.of(arguments.corpus, titles_left_out(tuple(arguments.leave_out)))
        model = EBert.fit(
            arguments.bert, Vectors.open(arguments.store), options=START, learn=passages,
            learning=LearningOptions(**options), work=f"{place}.learning", say=say, watch=progress,
        )  # fmt: skip
        model.save_pretrained(place, include_vectors=False, include_encoder=False)
    found = Alignment.load(place / "alignment.safetensors").learned
    assert found is not None
    return asdict(found)


def table(reports: dict[str, list[dict]]) -> list[str]:
    """Return the lines of the table."""
    lines = [f"{'row':<26} {'mode':<8} {'no entities':>11} {'least squares':>13} {'learned':>15}  {'s/step':>6}"]
    for name, runs in reports.items():
        for mode in runs[0]["learned"]:
            losses = [run["learned"][mode] for run in runs]
            spread = f" ±{statistics.stdev(losses):.3f}" if len(losses) > 1 else ""
            before, start = (statistics.fmean(run[key][mode] for run in runs) for key in ("without", "least_squares"))
            seconds = statistics.fmean(run["seconds"] / run["steps"] for run in runs)
            learned = f"{statistics.fmean(losses):.3f}{spread}"
            lines.append(f"{name:<26} {mode:<8} {before:>11.3f} {start:>13.3f} {learned:>15}  {seconds:>6.2f}")
    return lines


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("corpus")
    parser.add_argument("--work", required=True, help="the folder of what is learned")
    parser.add_argument("--bert", default="bert-base-cased")
    parser.add_argument("--leave-out", action="append", default=[])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    try:
        reports = {name: [learn(arguments, name, seed) for seed in range(arguments.seeds)] for name in arguments.rows}
    except EbertError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    first = next(iter(reports.values()))[0]
    head = [
        f"{arguments.steps} steps each, {arguments.seeds} seed(s), {Path(arguments.store).name}, {arguments.bert}",
        f"{first['passages']:,} passages, {first['held_out']:,} held out, {first['precision']}, {processor()}",
        "",
    ]
    text = "\n".join([*head, *table(reports)]) + "\n"
    print(text)
    if arguments.out:
        with files.replacing(arguments.out, "w") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
