"""Make the starter set that ships in src/ebert/starter/data, out of a large store trained on all text.

    python experiments/starter.py STORE --out src/ebert/starter/data [--dim 256] [--entities 20000] [--keep titles.txt]

It takes the words that are wordpieces of bert-base-cased, the most linked entities (and those of --keep), and turns
all vectors by the principal axes of words and entities, of which the first --dim stay: scores between inputs and
outputs change as little as they can. Numbers become bytes. W is fitted on what is left, as users get it.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

import numpy as np

import ebert
from ebert.model.encoder import Vocabulary
from ebert.model.folder import ALIGNMENT, INFO, VECTORS
from ebert.starter import packing


def choose(vectors: ebert.Vectors, count: int, keep: list[str]) -> np.ndarray:
    """Give the rows of the most linked entities; rows are in the order of links."""
    wanted = {entity.row for title in keep if (entity := vectors.find(title))}
    rows = [row for row in range(vectors.info.entities) if row not in wanted][: count - len(wanted)]
    return np.array(sorted(wanted | set(rows)))


def axes(sample: np.ndarray, dim: int) -> np.ndarray:
    """Give the first principal axes (through the origin), shape (dimension, dim)."""
    values, vectors = np.linalg.eigh(sample.T @ sample / len(sample))
    print(f"{dim} of {len(values)} axes hold {values[::-1][:dim].sum() / values.sum():.1%} of the squared length")
    return vectors[:, ::-1][:, :dim]


def make(arguments: argparse.Namespace) -> None:
    vectors = ebert.Vectors.open(arguments.store)
    keep = [line.strip() for path in arguments.keep for line in Path(path).read_text("utf-8").splitlines()]
    model = ebert.EBert.plain(arguments.bert)
    pairs = Vocabulary(model.tokenizer).words_in(vectors.find_word)
    word_rows = np.array(sorted({vectors.find_word(word) for word in pairs}))
    entity_rows = choose(vectors, arguments.entities, [line for line in keep if line])
    words, entities = (
        np.asarray(m, np.float32) for m in (vectors.word_matrix[word_rows], vectors.entity_matrix[entity_rows])
    )
    outputs = np.asarray(vectors.word_outputs[word_rows], np.float32)
    if arguments.dim < vectors.dimension:
        turn = axes(np.concatenate([words, entities]), arguments.dim)
        words, entities, outputs = words @ turn, entities @ turn, outputs @ turn
    out = Path(arguments.out)
    made = {**vectors.info.made, "reduced": {"dim": arguments.dim, "dtype": "int8", "from": vectors.dimension}}
    packing.pack(out, {"words": words, "entities": entities, "outputs": outputs},
                 names(vectors, word_rows, entity_rows, made, arguments.surfaces))  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        packing.unpack(out, place / VECTORS)
        fitted = ebert.EBert.fit(arguments.bert, place / VECTORS, options=ebert.AlignmentOptions(
            weight_power=arguments.weight_power, intercept=arguments.intercept, length=arguments.length))  # fmt: skip
        print(fitted.alignment.report)
        fitted.save_pretrained(place, include_vectors=False, include_encoder=False)
        fitted.save_pretrained(place, include_vectors=True)
        for name in (ALIGNMENT, INFO):
            shutil.copyfile(place / name, out / name)
    print(f"{sum(path.stat().st_size for path in out.iterdir()) / 2**20:.1f} MiB in {out}")


def names(vectors: ebert.Vectors, word_rows: np.ndarray, entity_rows: np.ndarray, made: dict, most: int) -> dict:
    """Give all that the catalogue knows of the chosen rows."""
    query = vectors.catalogue.rows
    chosen = {int(row): number for number, row in enumerate(entity_rows)}
    words = {row: (word, count) for row, word, count in query("SELECT row, word, count FROM words")}
    titles = {
        row: (title, count, qid) for row, title, count, qid in query("SELECT row, title, count, wikidata FROM entities")
    }
    surfaces: dict[str, list] = {}
    joined = "SELECT s.surface, occurrences, row, count FROM surfaces s JOIN mentions m ON m.surface = s.id"
    for surface, seen, row, count in query(f"{joined} ORDER BY count DESC"):
        if row in chosen and count >= most:
            surfaces.setdefault(surface, [seen, []])[1].append([chosen[row], count])
    return {
        "words": [words[row][0] for row in word_rows.tolist()],
        "word_counts": [words[row][1] for row in word_rows.tolist()],
        "entities": [titles[row][0] for row in entity_rows.tolist()],
        "entity_counts": [titles[row][1] for row in entity_rows.tolist()],
        "redirects": [
            [title, chosen[row]] for title, row in query("SELECT title, row FROM redirects") if row in chosen
        ],
        "wikidata": [[chosen[row], qid] for row, (_, _, qid) in titles.items() if qid is not None and row in chosen],
        "surfaces": sorted([surface, seen, meant] for surface, (seen, meant) in surfaces.items()),
        "licence": vectors.info.licence,
        "made": made,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--out", required=True)
    parser.add_argument("--bert", default="bert-base-cased")
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--entities", type=int, default=20_000)
    parser.add_argument("--keep", action="append", default=[], help="a file of titles, one per line")
    parser.add_argument("--surfaces", type=int, default=3, help="least count of a mention")
    parser.add_argument("--weight-power", type=float, default=0.6)
    parser.add_argument("--intercept", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--length", type=float, default=2.0)
    make(parser.parse_args())


if __name__ == "__main__":
    main()
