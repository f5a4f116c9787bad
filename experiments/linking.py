"""The linker of the results, in one command: trained on Wikipedia's links, evaluated on four sets beside its baselines.

    python experiments/linking.py --work /tmp/linking --out results/linking [--dictionary corenlp] [--rows ...]

It takes the store, the model with the learned W and the corpus that `make vectors` leaves in EBERT_HOME, the dumps and
the sets of ../shared/data. Steps: make training documents of articles that are in no set; count the mention table
without the articles of the sets, the held-out articles and the training articles (otherwise the table would contain
their links), and optionally with an external dictionary; train every linker on the same documents; evaluate each on
every set, end to end and with given mentions; compare by a paired bootstrap over documents. To continue after a stop,
run it again: complete steps are not repeated, and a stopped training continues (other options need another --work).
Writes OUT.json, OUT.md and a plot of the convergence after every row.

The baselines without W are the paper's if `--vectors` are as wide as BERT (`all768` of `make vectors`) and `--model` is
fitted by least squares (`ebert align`).
"""

import argparse
import json
import subprocess
import sys
import tarfile
import time
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from ebert import EBert, Linker, Vectors
from ebert._io import files
from ebert._io.home import home
from ebert._runs import differences
from ebert.linking.candidates.table import MentionTable
from ebert.linking.evaluate import Links, difference, judge, load_scores
from ebert.linking.options import Mask, Variant
from ebert.linking.prior import PriorLinker, tune
from ebert.linking.readers.layouts import read
from ebert.linking.resolve import TitleResolver
from ebert.linking.wikipedia import HELD_OUT, TRAIN
from ebert.model.encoder import fast_bf16
from ebert.model.folder import ALIGNMENT
from ebert.report.plots import draw_convergence
from ebert.vectors.wikidata_ids import read_ids
from ebert.wikipedia.corpus import Corpus

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "shared" / "data"
DUMPS = ("enwiki-linked-24k.xml.bz2", "enwiki-plain.xml.bz2")  # those with links
SETS = {
    "wned-wiki": "test_wned-wiki.jsonl",
    "tweeki": "test_tweeki.jsonl",
    "kore50": "kore50.benchmark.jsonl",
    "wiki-fair-v2": "wiki-fair-v2.benchmark.jsonl",
}
ARCHIVE = "entity-linking.tar.xz"
ARTICLES = ("wned-wiki", "wiki-fair-v2")  # sets whose documents are articles, which must not be trained on
ADAPTER = "E-BERT-MLM, adapter"
BEST = "E-BERT-MLM"
PRIOR, PRIOR_ALL = "prior only", "prior only, tuned on all links"  # common nouns too
ALL_LINKS = "all-links"  # the folder of documents in which common nouns are labelled too
KINDS = ("end to end", "given mentions")
LASTING = (
    "documents", "dev", "held_out", "strategy", "epochs", "learning_rate", "batch", "nulls", "evaluations", "chunk",
    "dictionary", "precision",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A line of the table: which linker, and how it is run."""

    name: str
    training: tuple[str, ...] | None = None  # options of 'ebert link train'
    trained: str | None = None  # instead: the row whose linker it uses
    rounds: int | None = None  # of refinement, if not the linker's own
    variant: Variant | None = None  # of a row without training
    mask: Mask | None = None


STANDARD, UNALIGNED, RANDOM = "E-BERT-MLM with the standard mask", "Wikipedia2Vec-BERT-MLM", "Wikipedia2Vec-BERT-random"
UNREFINED = " without refinement"
ROWS = (
    Row(PRIOR),
    Row(PRIOR_ALL),
    Row(ADAPTER, ("--adapter",)),
    Row(ADAPTER + ", seed 1", ("--adapter", "--seed", "1")),
    Row(ADAPTER + ", seed 2", ("--adapter", "--seed", "2")),
    Row(BEST, ()),
    Row(UNALIGNED, ("--variant", "wikipedia2vec-bert-mlm")),
    Row("zero-shot E-BERT-MLM"),
    Row(BEST + UNREFINED, trained=BEST, rounds=1),
    Row(STANDARD + UNREFINED, trained=STANDARD, rounds=1),
    Row(UNALIGNED + UNREFINED, trained=UNALIGNED, rounds=1),
    Row(RANDOM + UNREFINED, trained=RANDOM, rounds=1),
    Row(STANDARD, ("--mask", "standard")),
    Row(RANDOM, ("--variant", "wikipedia2vec-bert-random")),
    Row("zero-shot E-BERT-MLM with the standard mask", mask="standard"),
    Row("zero-shot Wikipedia2Vec-BERT-MLM", variant="wikipedia2vec-bert-mlm"),
    Row("zero-shot Wikipedia2Vec-BERT-random", variant="wikipedia2vec-bert-random"),
)
BY_NAME = {row.name: row for row in ROWS}
OURS = (ADAPTER, BEST, BEST + UNREFINED)  # the first that is among the rows is held against the baselines
# Unaligned vectors stand in the text in later rounds, where they may do harm: baselines are shown without these too.
AGAINST = (
    PRIOR,
    PRIOR_ALL,
    BEST + UNREFINED,
    "zero-shot E-BERT-MLM",
    UNALIGNED,
    UNALIGNED + UNREFINED,
    RANDOM,
    RANDOM + UNREFINED,
)


def ebert(*arguments: object) -> None:
    """Run a command; what it prints is shown."""
    print("$ ebert", *arguments, flush=True)
    subprocess.run([sys.executable, "-m", "ebert", *map(str, arguments)], check=True)


def recipe(options: argparse.Namespace) -> dict[str, Any]:
    """Return what the results depend on."""
    store = Vectors.open(options.vectors)
    return {
        **{name: getattr(options, name) for name in LASTING},
        "model": files.sha256(options.model / ALIGNMENT),
        "vectors": {"name": options.vectors.name, "words": store.fingerprint, "entities": len(store)},
        "corpus": [dump["name"] for dump in Corpus.open(options.corpus).info.dumps],
        "sets": files.sha256(options.data / ARCHIVE),
        "ids": files.sha256(options.ids),
    }


def claim(options: argparse.Namespace) -> dict[str, Any]:
    """Check that the working folder was made in the same way; return what the results depend on."""
    facts, path = recipe(options), options.work / "recipe.json"
    if path.exists() and (changes := differences(files.read_json(path, "a working folder"), facts)):
        raise SystemExit(f"{options.work} was made with other options: {'; '.join(changes)}; choose another --work")
    files.write_json(path, facts)
    return facts


def prepare(work: Path, options: argparse.Namespace) -> dict[str, Path]:
    """Unpack the sets, and make the training documents and the mention table."""
    sets = {name: work / "entity-linking" / file for name, file in SETS.items()}
    if not all(path.exists() for path in sets.values()):
        with tarfile.open(options.data / ARCHIVE) as archive:
            archive.extractall(work, filter="data")
    left_out = [part for name in ARTICLES for part in ("--leave-out", sets[name])]
    first, documents = work / "first-vectors", work / "documents"
    dumps = [part for name in DUMPS for part in ("--dump", options.data / name)]
    making = ["link", "wikipedia", options.corpus, *dumps, "--vectors", first, *left_out]
    if not (documents / "documents.json").exists():  # found by a table that counts the held-out articles too
        if not (first / "store.json").exists():
            ebert("link", "candidates", options.vectors, "--corpus", options.corpus, *left_out, "--out", first)
        ebert(*making, "--documents", options.documents, "--held-out", options.held_out, "--out", documents)
    if PRIOR_ALL in options.rows and not (work / ALL_LINKS / "documents.json").exists():  # the same held-out articles
        ebert(*making, "--no-names", "--documents", 20, "--held-out", options.held_out, "--out", work / ALL_LINKS)
    if not (work / "vectors" / "store.json").exists():
        left_out += ["--leave-out", documents / HELD_OUT, "--leave-out", documents / TRAIN]
        dictionary = ("--dictionary", options.dictionary) if options.dictionary else ()
        counted = ("--corpus", options.corpus, *left_out, *dictionary)
        ebert("link", "candidates", options.vectors, *counted, "--out", work / "vectors")
    if not (work / "model" / "ebert.json").exists():
        model = EBert.from_pretrained(options.model, vectors=work / "vectors")
        model.save_pretrained(work / "model", include_vectors=False, include_encoder=False)
    for source, name, count in ((TRAIN, "train", options.documents), (HELD_OUT, "dev", options.dev)):
        with (
            (documents / source).open(encoding="utf-8") as file,
            files.replacing(work / f"{name}{count}.jsonl", "w") as out,
        ):
            out.writelines(islice(file, count))
    return sets


def folder(name: str) -> str:
    """Return the name of a row as the name of a folder."""
    return name.replace(" ", "-").lower()


def train(row: Row, work: Path, options: argparse.Namespace) -> Path:
    """Train the linker of a row, continue it, or find it complete; return its folder."""
    if row.trained:
        return train(BY_NAME[row.trained], work, options)
    if row.training is None:
        return work / "model"
    out = work / folder(row.name)
    if not (out / "metrics.json").exists():
        ebert(
            "link", "train", work / f"train{options.documents}.jsonl", "--dev", work / f"dev{options.dev}.jsonl",
            "--model", work / "model", "--strategy", options.strategy,
            "--epochs", options.epochs, "--learning-rate", options.learning_rate, "--batch", options.batch,
            "--nulls", options.nulls, "--evaluations", options.evaluations, "--chunk", options.chunk,
            *row.training, *(("--precision", options.precision) if "--adapter" in row.training else ()), "--out", out,
        )  # fmt: skip
    return out


def tool(row: Row, linker: Path, work: Path) -> Links:
    """Open the linker of a row; the prior's threshold and rule are tuned on held-out Wikipedia."""
    if row.name not in (PRIOR, PRIOR_ALL):
        return Linker.from_pretrained(linker, rounds=row.rounds, variant=row.variant, mask=row.mask)
    store = Vectors.open(work / "vectors")
    resolver, generator = TitleResolver(store), MentionTable(store)
    folder = "documents" if row.name == PRIOR else ALL_LINKS
    held_out = resolver.documents(read(str(work / folder / HELD_OUT)).documents).documents
    tuned = tune(generator, held_out, same=resolver.same)
    print(f"{row.name}: {tuned.options}, {tuned.f1:.2f} on held-out Wikipedia", flush=True)
    return PriorLinker(generator, tuned.options)


def judge_all(row: Row, linker: Path, sets: dict[str, Path], options: argparse.Namespace) -> dict[str, Any]:
    """Evaluate a linker on every set, end to end and with given mentions; skip what is in a file already."""
    found: dict[str, Any] = {}
    opened: Links | None = None
    for name, data in sets.items():
        for kind in KINDS:
            out = figures(options.work, row.name, name, kind)
            if not out.exists():
                opened = opened or tool(row, linker, options.work)
                resolver = TitleResolver(Vectors.open(options.work / "vectors"), read_ids(options.ids))
                resolved = resolver.documents(read(str(data)).documents)
                start = time.monotonic()
                found_here = judge(opened, resolved.documents, resolver, given_mentions=kind == KINDS[1])
                facts = {"unresolved": resolved.missing, "seconds": round(time.monotonic() - start, 1)}
                out.parent.mkdir(exist_ok=True)
                files.write_json(out, {**found_here.value(per_document=True), **facts})
                print(f"{row.name}, {name}, {kind}: micro F1 {found_here.value()['micro']['f1']:.2f}", flush=True)
            value = json.loads(out.read_text("utf-8"))
            own = found.setdefault(name, {})
            own[kind] = {key: part for key, part in value.items() if key != "per_document"}
    return found


def figures(work: Path, row: str, name: str, kind: str) -> Path:
    """Return the file with the figures of a row on a set."""
    return work / "figures" / f"{folder(row)}-{name}-{folder(kind)}.json"


def held_against(rows: Collection[str]) -> str:
    """Return the row that is compared with the baselines, or None."""
    return next((name for name in OURS if name in rows), "")


def compare(work: Path, rows: Collection[str], sets: Iterable[str]) -> dict[str, Any]:
    """Return by how much the trained linker is better than each baseline, with 95 % intervals."""
    compared: dict[str, Any] = {}
    ours = held_against(rows)
    for other in AGAINST if ours else ():
        for name in sets if other in rows else ():
            for kind in KINDS:
                scores = [load_scores(str(figures(work, one, name, kind))) for one in (ours, other)]
                change = difference(*scores)
                compared.setdefault(other, {}).setdefault(name, {})[kind] = {**asdict(change), "clear": change.clear}
    return compared


def table(result: dict[str, Any]) -> str:
    """Write the figures as Markdown: strong-match micro F1, and the recall that candidates allow."""
    lines = []
    for kind in KINDS:
        lines += [f"Strong-match micro F1, {kind}:", "", "| | " + " | ".join(SETS) + " |", "|---|" + "---|" * len(SETS)]
        for name, sets in result["rows"].items():
            lines.append(f"| {name} | " + " | ".join(f"{sets[one][kind]['micro']['f1']:.1f}" for one in SETS) + " |")
        first = next(iter(result["rows"].values()))
        ceilings = [first[one][kind]["candidate_recall"] for one in SETS]
        lines += ["| *gold among the candidates* | " + " | ".join(f"*{value:.1f}*" for value in ceilings) + " |", ""]
        if result["differences"]:
            head = f"| {held_against(result['rows'])} against, with 95 % intervals | " + " | ".join(SETS) + " |"
            lines += [head, "|---|" + "---|" * len(SETS)]
        for other, sets in result["differences"].items():
            cells = [sets[one][kind] for one in SETS]
            shown = " | ".join(f"{cell['value']:+.1f} [{cell['low']:+.1f}, {cell['high']:+.1f}]" for cell in cells)
            lines.append(f"| {other} | {shown} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    vectors = home() / "vectors"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=HERE.parent / "results" / "linking")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--ids", type=Path, default=DATA / "fb15k_entity2wikidata.json")
    parser.add_argument("--vectors", type=Path, default=vectors / "all300")
    parser.add_argument("--model", type=Path, default=vectors / "learned")
    parser.add_argument("--corpus", type=Path, default=vectors / "corpus")
    parser.add_argument("--dictionary", help="of surfaces, from outside: 'corenlp' or a file")
    parser.add_argument("--documents", type=int, default=1000, help="to train on")
    parser.add_argument("--dev", type=int, default=60, help="held-out documents that the trainings choose by")
    parser.add_argument("--held-out", type=int, default=100, help="held-out documents that the prior is tuned on")
    parser.add_argument("--strategy", choices=("paper", "packed"), default="packed")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--nulls", type=float, default=0.3)
    parser.add_argument("--evaluations", type=int, default=4, help="in an epoch")
    parser.add_argument("--chunk", type=int, default=512)
    parser.add_argument(
        "--precision", choices=("fp32", "bf16"), default="bf16" if fast_bf16(torch.device("cpu")) else "fp32",
        help="in which adapters are trained",
    )  # fmt: skip
    parser.add_argument("--rows", nargs="+", choices=list(BY_NAME), default=list(BY_NAME))
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    facts = claim(options)
    sets = prepare(options.work, options)
    rows = [row for row in ROWS if row.name in options.rows]
    found: dict[str, Any] = {}
    curves: dict[str, Any] = {}
    for row in rows:
        linker = train(row, options.work, options)
        found[row.name] = judge_all(row, linker, sets, options)
        if (metrics := linker / "metrics.json").exists():
            curves[row.trained or row.name] = json.loads(metrics.read_text("utf-8"))["epochs"]
        compared = compare(options.work, found, sets)
        write(options.out, {"options": facts, "rows": found, "differences": compared, "curves": curves})


def write(out: Path, result: dict[str, Any]) -> None:
    """Write the results so far."""
    files.write_json(out.with_suffix(".json"), result)
    with files.replacing(out.with_suffix(".md"), "w") as file:
        file.write(table(result))
    if curves := result["curves"]:
        plot = out.with_name(out.name + "-convergence.svg")
        draw_convergence(curves, plot, score="strong-match micro F1")
    print(table(result))


if __name__ == "__main__":
    main()
