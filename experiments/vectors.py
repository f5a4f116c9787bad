"""`make vectors`: the full sets of vectors, from dumps to stores in EBERT_HOME/vectors. Run it again to continue.

    python experiments/vectors.py [DUMP...]

`best` has the defaults, which the documentation explains. `paper` is the paper's way: dimension 768, three objectives
(Section 2.3), entities with at least 5 links. `best768` has the defaults except for dimension 768. `all768` has the
same dimension, which the paper's unaligned baselines need, and a vector for every entity that is linked at all, which a
linker needs. It has twice the repeats, because most of these entities are rare. Relations and linking use it. `all300`
has all entities in dimension 300, with longer openings.

The model `learned` is `all300` with a W that was learned through bert-base-cased (an hour on one core with bf16). If
LAMA is beside the dumps, pages of LAMA's subjects are left out of the learning. `ebert starter --build full` makes
`all300`, such a model and a linker in one command; the options of both are in `ebert.starter.recipe`.
"""

import subprocess
import sys
import time
from pathlib import Path

from ebert._io.home import home
from ebert.starter import recipe

DATA = Path(__file__).parents[1].parent / "shared" / "data"
SETS = {
    "best": [],  # the defaults
    "paper": ["--preset", "paper", "--epochs", "3"],
    "best768": ["--dim", "768", "--epochs", "3"],
    "all768": ["--dim", "768", "--epochs", "3", "--min-entity-count", "1", "--repeats", "8"],
    "all300": recipe.VECTORS,
}
LEARNED = [*recipe.LEARNED, "--steps", recipe.STEPS]


def run(*arguments: object) -> None:
    """Run an ebert command and say how long it took."""
    command = ["ebert", *map(str, arguments)]
    print(f"== {' '.join(command)}", flush=True)
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-m", *command], check=False)
    if done.returncode:
        sys.exit(done.returncode)
    print(f"== {time.monotonic() - start:,.0f} s", flush=True)


def main() -> None:
    dumps = [Path(name) for name in sys.argv[1:]] or sorted(DATA.glob("*.xml.bz2"))
    if not dumps:
        sys.exit(f"there are no dumps in {DATA}; give some: make vectors DUMPS='enwiki-latest-pages-articles.xml.bz2'")
    place = home() / "vectors"
    place.mkdir(parents=True, exist_ok=True)
    corpus = place / "corpus"
    if not (corpus / "corpus.json").exists():
        run("corpus", "build", *dumps, "--out", corpus)
    for name, options in SETS.items():
        store = place / name
        if not (store / "store.json").exists():
            run("vectors", "train", corpus, "--out", store, "--resume", "--dtype", recipe.DTYPE, *options)
    if not (place / "learned" / "ebert.json").exists():
        lama = [argument for path in DATA.glob("lama.tar.xz") for argument in ("--leave-out", path)]
        run("align", place / "all300", "--learn", corpus, *lama, *LEARNED, "--out", place / "learned")
    print(f"the sets are in {place}: {', '.join(SETS)}; the model is {place / 'learned'}")


if __name__ == "__main__":
    main()
