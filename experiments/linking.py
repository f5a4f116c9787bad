"""The linker of the results: trained on Wikipedia's links, judged on four sets beside its baselines. One command.

    python experiments/linking.py --work /tmp/linking --out results/linking [--documents 3000] [--epochs 1] [--rows ...]

It takes the store and the corpus that `make vectors` leaves in EBERT_HOME, and the dumps and the sets of
../shared/data. Steps: count the mention table without the test articles; fit W; make training documents; train every
linker for as long; judge each on every set, end to end and with given mentions; compare by a paired bootstrap over
documents. Whatever is complete is not done again, and a training that was stopped goes on, so run it again to go on.
Writes OUT.json and OUT.md. On two cores a training of 3,000 documents of 300 words takes a few hours an epoch.
"""

import argparse
import json
import subprocess
import sys
import tarfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ebert import files
from ebert.bert.cache import home
from ebert.linking.evaluating import difference
from ebert.linking.judging import load_scores
from ebert.linking.run import draw

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "shared" / "data"
DUMPS = ("enwiki-linked-24k.xml.bz2", "enwiki-plain.xml.bz2")  # those with links
SETS = {
    "wned-wiki": "test_wned-wiki.jsonl",
    "tweeki": "test_tweeki.jsonl",
    "kore50": "kore50.benchmark.jsonl",
    "wiki-fair-v2": "wiki-fair-v2.benchmark.jsonl",
}
ARTICLES = ("wned-wiki", "wiki-fair-v2")  # sets whose documents are articles, which must not be trained on
ALIGN = ("--weight-power", "0.4", "--intercept", "--length", "2.5")
BEST = "E-BERT-MLM"
PRIOR = ("--prior-only",)
LASTING = (
    "bert", "documents", "held_out", "strategy", "epochs", "learning_rate", "batch", "nulls", "evaluations", "chunk",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A line of the table: which linker, and how it is run."""

    name: str
    training: tuple[str, ...] | None = None  # options of 'ebert link train'
    trained: str | None = None  # instead: the row whose linker it uses
    judging: tuple[str, ...] = ()  # options of 'ebert link evaluate'


ROWS = (
    Row("prior only", judging=PRIOR),
    Row("zero-shot E-BERT-MLM", judging=("--rounds", "1")),
    Row(BEST, ()),
    Row("E-BERT-MLM without refinement", trained=BEST, judging=("--rounds", "1")),
    Row("Wikipedia2Vec-BERT-MLM", ("--variant", "wikipedia2vec-bert-mlm")),
    Row("E-BERT-MLM with the standard mask", ("--mask", "standard")),
    Row("Wikipedia2Vec-BERT-random", ("--variant", "wikipedia2vec-bert-random")),
)
AGAINST = ("prior only", "zero-shot E-BERT-MLM", "Wikipedia2Vec-BERT-MLM")


def ebert(*arguments: object) -> None:
    """Run a command; what it prints is shown."""
    print("$ ebert", *arguments, flush=True)
    subprocess.run([sys.executable, "-m", "ebert", *map(str, arguments)], check=True)


def prepare(work: Path, options: argparse.Namespace) -> dict[str, Path]:
    """Unpack the sets, and make the mention table, the model and the training documents."""
    sets = {name: work / "entity-linking" / file for name, file in SETS.items()}
    if not all(path.exists() for path in sets.values()):
        with tarfile.open(options.data / "entity-linking.tar.xz") as archive:
            archive.extractall(work, filter="data")
    left_out = [part for name in ARTICLES for part in ("--leave-out", sets[name])]
    if not (work / "vectors" / "store.json").exists():
        ebert("link", "candidates", options.vectors, "--corpus", options.corpus, *left_out, "--out", work / "vectors")
    if not (work / "model" / "ebert.json").exists():
        ebert("align", work / "vectors", "--bert", options.bert, *ALIGN, "--out", work / "model")
    if not (work / "documents" / "documents.json").exists():
        dumps = [part for name in DUMPS for part in ("--dump", options.data / name)]
        ebert(
            "link", "wikipedia", options.corpus, *dumps, "--vectors", work / "vectors", *left_out,
            "--documents", options.documents, "--held-out", options.held_out, "--out", work / "documents",
        )  # fmt: skip
    return sets


def folder(name: str) -> str:
    """Give the name of a row as that of a folder."""
    return name.replace(" ", "-").lower()


def train(row: Row, work: Path, options: argparse.Namespace) -> Path:
    """Train the linker of a row, go on with it, or find it complete; give its folder."""
    if row.judging == PRIOR:
        return work / "vectors"
    if row.trained or row.training is None:
        return work / (folder(row.trained) if row.trained else "model")
    out = work / folder(row.name)
    if not (out / "metrics.json").exists():
        ebert(
            "link", "train", work / "documents", "--model", work / "model", "--strategy", options.strategy,
            "--epochs", options.epochs, "--learning-rate", options.learning_rate, "--batch", options.batch,
            "--nulls", options.nulls, "--evaluations", options.evaluations, "--chunk", options.chunk,
            *row.training, "--out", out,
        )  # fmt: skip
    return out


def judge(row: Row, linker: Path, sets: dict[str, Path], work: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Judge a linker on every set, end to end and with given mentions."""
    found: dict[str, Any] = {}
    for name, data in sets.items():
        found[name] = {}
        for kind, extra in (("end to end", ()), ("given mentions", ("--given-mentions",))):
            out = work / "figures" / f"{folder(row.name)}-{name}-{folder(kind)}.json"
            if not out.exists():
                out.parent.mkdir(exist_ok=True)
                tuning = ("--tune", work / "documents" / "held-out.jsonl") if row.judging == PRIOR else ()
                start = time.monotonic()
                ebert(
                    "link", "evaluate", linker, data, *row.judging, *tuning, *extra, "--ids", options.ids, "--out", out
                )
                value = json.loads(out.read_text("utf-8"))
                files.write_json(out, {**value, "seconds": round(time.monotonic() - start, 1)})
            value = json.loads(out.read_text("utf-8"))
            found[name][kind] = {key: part for key, part in value.items() if key != "per_document"}
    return found


def compare(work: Path, rows: list[Row], sets: dict[str, Path]) -> dict[str, Any]:
    """Give by how much the trained linker is better than each baseline, with 95 % intervals."""
    names = [row.name for row in rows]
    compared: dict[str, Any] = {}
    for other in AGAINST if BEST in names else ():
        for name in sets if other in names else ():
            for kind in ("end to end", "given mentions"):
                scores = [
                    load_scores(str(work / "figures" / f"{folder(one)}-{name}-{folder(kind)}.json"))
                    for one in (BEST, other)
                ]
                change = difference(*scores)
                compared.setdefault(other, {}).setdefault(name, {})[kind] = {**asdict(change), "clear": change.clear}
    return compared


def table(result: dict[str, Any]) -> str:
    """Write the figures as Markdown: strong-match micro F1, and the recall that candidates allow."""
    lines = []
    for kind in ("end to end", "given mentions"):
        lines += [f"Strong-match micro F1, {kind}:", "", "| | " + " | ".join(SETS) + " |", "|---|" + "---|" * len(SETS)]
        for name, sets in result["rows"].items():
            lines.append(f"| {name} | " + " | ".join(f"{sets[one][kind]['micro']['f1']:.1f}" for one in SETS) + " |")
        first = next(iter(result["rows"].values()))
        ceilings = [first[one][kind]["candidate_recall"] for one in SETS]
        lines += ["| *gold among the candidates* | " + " | ".join(f"*{value:.1f}*" for value in ceilings) + " |", ""]
        for other, sets in result["differences"].items():
            cells = [sets[one][kind] for one in SETS]
            shown = " | ".join(f"{cell['value']:+.1f} [{cell['low']:+.1f}, {cell['high']:+.1f}]" for cell in cells)
            lines.append(f"| {BEST} against {other} | {shown} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    vectors = home() / "vectors"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=HERE.parent / "results" / "linking")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--ids", type=Path, default=DATA / "fb15k_entity2wikidata.json")
    parser.add_argument("--vectors", type=Path, default=vectors / "best")
    parser.add_argument("--corpus", type=Path, default=vectors / "corpus")
    parser.add_argument("--bert", default="bert-base-cased")
    parser.add_argument("--documents", type=int, default=3000)
    parser.add_argument("--held-out", type=int, default=100)
    parser.add_argument("--strategy", choices=("paper", "packed"), default="packed")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--nulls", type=float, default=0.3)
    parser.add_argument("--evaluations", type=int, default=4, help="in an epoch")
    parser.add_argument("--chunk", type=int, default=512)
    parser.add_argument("--rows", nargs="+", choices=[row.name for row in ROWS], default=[row.name for row in ROWS])
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    sets = prepare(options.work, options)
    rows = [row for row in ROWS if row.name in options.rows]
    found: dict[str, Any] = {}
    curves: dict[str, Any] = {}
    for row in rows:
        linker = train(row, options.work, options)
        found[row.name] = judge(row, linker, sets, options.work, options)
        if row.training is not None:
            curves[row.name] = json.loads((linker / "metrics.json").read_text("utf-8"))["epochs"]
    facts = {name: value for name, value in vars(options).items() if name in LASTING}
    result = {"options": facts, "rows": found, "differences": compare(options.work, rows, sets), "curves": curves}
    files.write_json(options.out.with_suffix(".json"), result)
    with files.replacing(options.out.with_suffix(".md"), "w") as file:
        file.write(table(result))
    if curves:
        draw(curves, options.out.with_name(options.out.name + "-convergence.svg"))
    print(table(result))


if __name__ == "__main__":
    main()
