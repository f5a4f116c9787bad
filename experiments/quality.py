"""Vectors of Wikipedia2Vec and ours, trained on the same text and epochs: are ours worse because of their speed?

    python experiments/quality.py --work DIR [--dump FILE.xml.bz2] [--pages N] [--runs 3] [--epochs N] [--dim 300]
        [--out results/quality.json]

Both are trained exactly as `benchmarks/train.py` times them, three times: ours with the seeds 0, 1 and 2, and
Wikipedia2Vec without seeds, because it has none. Then W is fitted as in the paper. R² and held-out wordpieces are
measured on the words that all stores have, and Hits@1 of E-BERT-concat on LAMA questions whose subjects all stores have
(see `lama.py`).

Finished steps stay in --work and are not repeated. The script prints a table in Markdown; --out writes everything as
JSON, and the table beside it as .md.
"""

import argparse
import hashlib
import shutil
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lama import Examiner, compare, measure
from questions import DATA, choose, load

from ebert import Alignment, AlignmentOptions, EbertError, Vectors
from ebert._io import files
from ebert.model.encoder import Vocabulary
from ebert.probing.questions import Question
from ebert.vectors.formats.importer import import_vectors

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from train import DUMP, NAMES, Setting, cut, machine, measure_ours, measure_theirs

FIGURES = {
    "r2": "R²",
    "held_out_r2": "R², words kept back",
    "top1": "own wordpiece nearest, words kept back (%)",
    "top10": "among the ten nearest (%)",
    "all": "Hits@1, all questions",
    "filtered": "Hits@1, string-match filter",
    "words a second": "words a second in the train loop",
}


@dataclass(frozen=True)
class Trained:
    """A finished training: which, where its store is, and what it said."""

    kind: str
    number: int
    store: Path
    told: dict[str, Any]


def finished(path: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the content of a JSON file, or make the file."""
    if not path.exists():
        files.write_json(path, make())
    return files.read_json(path, "a finished part of this work")


def train(setting: Setting, dump: Path, work: Path, kind: str, number: int) -> Trained:
    """Train once more, or find an earlier training. The steps before the training are done once for all runs."""
    folder, store = work / kind, work / f"{kind}-{number}"

    def make() -> dict[str, Any]:
        print(f"training {NAMES[kind]}, run {number}", file=sys.stderr, flush=True)
        if kind == "theirs":
            told, _ = measure_theirs(setting, dump, folder)
            import_vectors([folder / "model.pkl"], store, overwrite=True).close()
        else:
            told, _ = measure_ours(setting, dump, folder, seed=number)
            shutil.rmtree(store, ignore_errors=True)  # of a run that was killed just here
            (folder / "store").replace(store)
        return told

    return Trained(kind, number, store, finished(work / f"{kind}-{number}.json", make))


def fit_common(examiner: Examiner, stores: Sequence[Vectors]) -> list[dict[str, Any]]:
    """Fit W for each store on the words that all of them have, so that the held-out words are the same."""
    words = Vocabulary(examiner.encoder.tokenizer).words_in(
        lambda word: 0 if all(store.find_word(word) is not None for store in stores) else None
    )
    table = examiner.encoder.embedding.weight.detach().float().numpy()
    return [asdict(Alignment.fit(store, words, table, AlignmentOptions()).report) for store in stores]


def ask(
    examiner: Examiner, trained: Trained, store: Vectors, questions: Sequence[Question], base: Sequence[str], work: Path
) -> dict[str, Any]:
    """Measure Hits@1 of one store, or find an earlier result on the same questions."""
    same = hashlib.sha256("\n".join(question.id for question in questions).encode()).hexdigest()[:12]

    def make() -> dict[str, Any]:
        answers, _ = measure(examiner, store, AlignmentOptions(), questions)
        row = compare(trained.store.name, "paper", "concat", questions, answers, base)
        return {"gain": row.gain, "gain_error": row.gain_error, **asdict(row.score)}

    return finished(work / f"{trained.kind}-{trained.number}-lama-{same}.json", make)


def summary(rows: Sequence[dict[str, Any]], plain: dict[str, float]) -> str:
    """Write the table: mean of the runs and their standard deviation."""
    lines = [f"| | {' | '.join(NAMES.values())} | plain BERT |", "|---|---:|---:|---:|"]
    for figure, name in FIGURES.items():
        cells = []
        for kind in NAMES:
            values = [row[figure] for row in rows if row["kind"] == kind]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            digits = 3 if "r2" in figure else 0 if "second" in figure else 2
            cells.append(f"{statistics.mean(values):,.{digits}f} ± {spread:,.{digits}f}")
        cells.append(f"{plain[figure]:.2f}" if figure in plain else "")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for everything that is made")
    parser.add_argument("--dump", type=Path, default=DUMP)
    parser.add_argument("--pages", type=int, default=0, help="how many pages of it; 0: all")
    parser.add_argument("--runs", type=int, default=3)
    for option in fields(Setting):
        parser.add_argument(f"--{option.name.replace('_', '-')}", type=type(option.default), default=option.default)
    parser.add_argument("--data", type=Path, default=DATA, help="LAMA: archive or folder")
    parser.add_argument("--bert", default="bert-base-cased")
    parser.add_argument("--per-relation", type=int, default=100)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def prepare(options: argparse.Namespace, setting: Setting) -> Path:
    """Make the text, and make sure that the work folder is for this text and setting."""
    work: Path = options.work
    wanted = {**asdict(setting), "dump": options.dump.name, "pages": options.pages}
    if finished(work / "setting.json", lambda: wanted) != wanted:
        raise EbertError(f"{work} has runs of another text or setting (see its setting.json); choose another --work")
    if not options.pages:
        return options.dump
    dump = work / "cut.xml.bz2"
    finished(work / "cut.json", lambda: {"pages": cut(options.dump, options.pages, dump)})
    return dump


def run(options: argparse.Namespace) -> None:
    """Train, measure, print."""
    setting = Setting(**{option.name: getattr(options, option.name) for option in fields(Setting)})
    dump = prepare(options, setting)
    # Turn by turn, so that a slow hour of the machine hits both.
    trained = [train(setting, dump, options.work, kind, number) for number in range(options.runs) for kind in NAMES]
    stores = [Vectors.open(one.store) for one in trained]
    lama = load(options.data)
    examiner = Examiner(options.bert, lama.vocabulary or [])
    choice = choose(lama.questions, examiner.candidates, [store.__contains__ for store in stores], options.per_relation)
    questions = choice.questions
    if not questions:
        raise EbertError("no subject of a question is in all stores; train on more text")
    base = examiner.plain(questions)
    plain = compare("-", "-", "bert", questions, base, base).score
    words = next(one.told["words"] for one in trained if one.kind == "ours")  # one count for both
    rows: list[dict[str, Any]] = []
    for one, store, fit in zip(trained, stores, fit_common(examiner, stores), strict=True):
        loop = one.told["stages"]["train loop"]
        told = {"kind": one.kind, "run": one.number, "words": store.info.words, "entities": store.info.entities}
        rows.append({**told, "words a second": words / loop, **fit, **ask(
            examiner, one, store, questions, base, options.work)})  # fmt: skip
    about = (
        f"{machine()}; {options.dump.name}, {options.pages or 'all'} pages, {words / setting.epochs:,.0f} words; "
        f"{setting}; {options.bert}, {rows[0]['pairs']:,} common words that are wordpieces; {len(questions):,} "
        f"questions of {len(plain.relations)} relations; mean and standard deviation of {options.runs} runs"
    )
    table = f"{summary(rows, {'all': plain.all, 'filtered': plain.filtered})}\n\n{about}\n"
    print(table)
    if options.out:
        result = {"command": " ".join(sys.argv), "about": about, "plain": asdict(plain), "skipped": choice.skipped}
        files.write_json(options.out, {**result, "rows": rows})
        with files.replacing(options.out.with_suffix(".md"), "w") as file:
            file.write(table)


def main() -> int:
    """Run from the command line."""
    try:
        run(parse())
    except EbertError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
