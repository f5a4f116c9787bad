"""How the defaults of training were found: the same text trained in several ways, each measured by LAMA.

    python experiments/options.py --work /tmp/options --out results/options.json [--pages 5000 80000] [--dim 200]

The text is the first pages of the linked dump and of the plain dump in ../shared/data. Every row differs from the first
in one thing. Finished rows are kept in --work, so the script continues where it stopped. Hits@1 is that of
E-BERT-concat with the paper's W, on questions that all rows cover.
"""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "benchmarks"))
from train import cut  # noqa: E402

DATA = HERE.parents[1] / "shared" / "data"
DUMPS = ("enwiki-linked-24k.xml.bz2", "enwiki-plain.xml.bz2")
ROWS: dict[str, list[str]] = {
    "default": [],
    "paper's objectives": ["--no-openings", "--repeats", "1", "--keep", "{titles}"],
    "repeats 1": ["--repeats", "1"],
    "repeats 8": ["--repeats", "8"],
    "opening of 50 words": ["--opening-words", "50"],
    "opening of 400 words": ["--opening-words", "400"],
    "no links": ["--no-links"],
    "window 10": ["--window", "10"],
    "anchor window 10": ["--anchor-window", "10"],
    "15 negatives": ["--negative", "15"],
    "finish 3": ["--finish", "3"],
    "6 epochs": ["--epochs", "6"],
}


def ebert(*arguments: object) -> str:
    """Run a command and return what it prints."""
    command = [sys.executable, "-m", "ebert", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def prepare(work: Path, pages: list[int]) -> Path:
    """Make the corpus, and the list of its titles that LAMA asks about."""
    corpus = work / "corpus"
    if not (corpus / "corpus.json").exists():
        dumps = []
        for name, count in zip(DUMPS, pages, strict=True):
            dumps.append(work / name)
            cut(DATA / name, count, dumps[-1])
        ebert("corpus", "build", *dumps, "--out", corpus)
    return corpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pages", type=int, nargs=2, default=[5000, 80000])
    parser.add_argument("--dim", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--per-relation", default="50")
    parser.add_argument("--rows", nargs="+", default=list(ROWS))
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    corpus = prepare(options.work, options.pages)
    titles = options.work / "titles.txt"
    if not titles.exists():  # all titles with a page, so that the row without openings has vectors for the same ones
        from ebert.wikipedia.corpus import Corpus

        opened = Corpus.open(corpus)
        titles.write_text("".join(f"{opened.entities[n]}\n" for n in sorted(set(opened.page_entity.tolist()))), "utf-8")
    stores = []
    for name in options.rows:
        store = options.work / name.replace(" ", "-").replace("'", "")
        if not (store / "store.json").exists():
            extra = [part.format(titles=titles) for part in ROWS[name]]
            report = ebert(
                "vectors", "train", corpus, "--out", store, "--resume", "--json", "--dim", options.dim,
                "--epochs", options.epochs, *extra,
            )  # fmt: skip
            print(name, report, flush=True)
        stores.append(store)
    subprocess.run(
        [sys.executable, str(HERE / "lama.py"), *map(str, stores), "--per-relation", options.per_relation,
         "--align", "paper", "--out", str(options.out)], check=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
