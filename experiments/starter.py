"""Make the starter set in src/ebert/starter/data from a large store that was trained on all text.

    python experiments/starter.py STORE --alignment MODEL --linker LINKER --out src/ebert/starter/data
        [--entities 200000] [--keep titles.txt]

The store, the model and the linker may be `vectors`, `model` and `run` of a folder of 'ebert starter --build full'.
It takes the words that are wordpieces of bert-base-cased and the most linked entities (and those of --keep, those that
our pages and examples name, and all entities merged into them) with their redirects and surfaces, and quantises all
vectors: one byte for four numbers. Before that, it rotates the vectors so that every group of four has the same share
of the information; W is rotated with them, so that the projected vectors stay the same. W is from --alignment or
--linker (a folder with an adapter, made by 'ebert link train --adapter'); without both, it is fitted on the store. A
model and a linker belong to the words of STORE.
"""

import argparse
import json
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

import ebert
from ebert._io import files
from ebert.finetuning.folder import of_run
from ebert.linking.adapter import ADAPTER
from ebert.linking.linker import INFO as LINKER
from ebert.model.alignment import Alignment
from ebert.model.encoder import Encoder, Vocabulary
from ebert.model.folder import ALIGNMENT, INFO, VECTORS
from ebert.starter import packing, recipe
from ebert.vectors.quantised import WIDTH

ROOT = Path(__file__).parents[1]
MARKED = re.compile(r"\[\[([^\[\]|]+)")


def merged(vectors: ebert.Vectors) -> dict[int, int]:
    """Return the rows of merged entities, and the rows of the entities that they are merged into."""
    return {merge.row: merge.into for merge in vectors.catalogue.merged}


def named() -> list[str]:
    """Return the titles in our pages, in the questions of the demonstration, and in the examples of linking."""
    pages = [ROOT / "README.md", ROOT / "src/ebert/demo/questions.tsv", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [title for page in pages for title in MARKED.findall(page.read_text("utf-8"))]
    for path in sorted((ROOT / "examples" / "linking").glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            found += [mention["entity"] for mention in json.loads(line)["mentions"]]
    return sorted({title.strip() for title in found})


def choose(vectors: ebert.Vectors, count: int, keep: list[str]) -> np.ndarray:
    """Return the rows of the most linked entities; rows are in the order of links."""
    wanted = {entity.row for title in keep if (entity := vectors.find(title))}
    if missing := [title for title in keep if not vectors.find(title)]:
        print(f"{len(missing)} of {len(keep)} names to keep are not in {vectors.path}: {', '.join(missing[:20])}")
    gone = merged(vectors)
    rows = [row for row in range(vectors.info.entities) if row not in wanted and row not in gone]
    return np.array(sorted(wanted | set(rows[: max(0, count - len(wanted))])))


def balanced(sample: np.ndarray) -> np.ndarray:
    """Return principal axes, shape (dimension, dimension), in such an order that all groups have equal shares.

    That is the product of variances along their axes, which decides how much is lost (Ge et al., Optimized Product
    Quantization, 2013, Section 3.2).
    """
    values, vectors = np.linalg.eigh(sample.T @ sample / len(sample))
    shares = np.log(np.maximum(values, values.max() * 1e-9))
    groups: list[list[int]] = [[] for _ in range(-(-len(values) // WIDTH))]
    sizes = [WIDTH] * (len(values) // WIDTH) + ([len(values) % WIDTH] if len(values) % WIDTH else [])
    for axis in np.argsort(-values):  # the largest first, each to the group that has least
        open_groups = [number for number, group in enumerate(groups) if len(group) < sizes[number]]
        least = min(open_groups, key=lambda number: (sum(shares[groups[number]] - shares.min()), number))
        groups[least].append(int(axis))
    return vectors[:, [axis for group in groups for axis in group]].astype(np.float32)


def turned(alignment: Alignment, turn: np.ndarray) -> Alignment:
    """Return an alignment that maps rotated vectors to where the given one maps the original vectors."""
    assert alignment.weight is not None, "there is a W"
    layer = alignment.correction
    layer = layer and replace(layer, inner=np.ascontiguousarray(layer.inner @ turn))
    return replace(alignment, weight=np.ascontiguousarray(alignment.weight @ turn), correction=layer)


def make(arguments: argparse.Namespace) -> None:
    out = Path(arguments.out)
    vectors = ebert.Vectors.open(arguments.store)
    linker = ebert.Linker.from_pretrained(arguments.linker, vectors=vectors) if arguments.linker else None
    if linker is not None and not linker.options.adapter:
        raise SystemExit(f"{arguments.linker} has weights of its own; a starter's linker is an adapter")
    if arguments.alignment:
        alignment = ebert.EBert.from_pretrained(arguments.alignment, vectors=vectors).alignment
        if linker is not None and not np.array_equal(alignment.weight, linker.alignment.weight):
            raise SystemExit(f"{arguments.linker} was trained with another W than that of {arguments.alignment}")
    elif linker is not None:
        alignment = linker.alignment
    else:
        options = ebert.AlignmentOptions(
            weight_power=arguments.weight_power, intercept=arguments.intercept, length=arguments.length
        )
        alignment = ebert.EBert.fit(arguments.bert, vectors, options=options).alignment
    print(alignment.report)
    encoder = Encoder.load(arguments.bert)
    pairs = Vocabulary(encoder.tokenizer).words_in(vectors.find_word)
    word_rows = np.array(sorted({vectors.find_word(word) for word in pairs}))
    keep = [line.strip() for path in arguments.keep for line in Path(path).read_text("utf-8").splitlines()]
    entity_rows = choose(vectors, arguments.entities, named() + [line for line in keep if line])
    words, entities = (
        np.asarray(m[rows], np.float32)
        for m, rows in ((vectors.word_matrix, word_rows), (vectors.entity_matrix, entity_rows))
    )
    turn = balanced(np.concatenate([words, entities]))
    matrices = {"words": words @ turn, "entities": entities @ turn}
    matrices["outputs"] = np.asarray(vectors.word_outputs[word_rows], np.float32) @ turn
    made = {**vectors.info.made, "reduced": {"entities": len(entity_rows), "dtype": "pq"}}
    if out.exists():  # but for the licence, which is no part of it
        for path in set(out.iterdir()) - {out / "LICENCE.md"}:
            path.unlink()
    known = names(vectors, word_rows, entity_rows, made, arguments.surfaces)
    packing.pack(out, matrices, known)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        packing.unpack(out, Path(folder) / VECTORS)
        small = ebert.Vectors.open(Path(folder) / VECTORS)
        show_loss(small, matrices, known["entities"])
        alignment = turned(alignment, turn)
        if linker is None:
            ebert.EBert(encoder, small, alignment).save_pretrained(place, include_vectors=True)
        else:
            # The spans' candidates come from the small store's own table; the encoder is the one that it was trained
            # on.
            ebert.Linker(
                linker.module, encoder, small, alignment, options=linker.options, threshold=linker.threshold,
                generator=linker.generator.with_vectors(small), null_shift=linker.null_shift,
                trained_with=linker.trained_with,
            ).save_pretrained(place, include_vectors=True)  # fmt: skip
            halve(of_run(Path(arguments.linker), LINKER) / ADAPTER, place / ADAPTER)
            info = files.read_json(place / LINKER, "a linker")
            files.write_json(place / LINKER, {**info, "saved_here": ""})  # the mark of paths on this machine
        for name in (ALIGNMENT, INFO, LINKER, ADAPTER):
            if (place / name).exists():
                shutil.copyfile(place / name, out / name)
    packing.seal(out)
    for path in sorted(out.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.name}")
    print(f"{sum(path.stat().st_size for path in out.iterdir()) / 2**20:.1f} MiB in {out}")


def show_loss(small: ebert.Vectors, matrices: dict[str, np.ndarray], titles: list[str]) -> None:
    """Print how close the unpacked values are to the original ones."""
    rows = {title: row for row, title in small.catalogue.rows("SELECT row, title FROM entities")}
    show_cosines("words", matrices["words"], small.word_matrix[:])
    show_cosines("outputs", matrices["outputs"], small.word_outputs[:])
    show_cosines("entities", matrices["entities"], small.entity_matrix[[rows[title] for title in titles]])


def show_cosines(part: str, before: np.ndarray, after: np.ndarray) -> None:
    after = after.astype(np.float32)
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    cosines = np.einsum("ij,ij->i", before, after) / np.maximum(lengths, 1e-9)
    print(f"{part}: cosine to what was packed {cosines.mean():.4f}, 5th percentile {np.percentile(cosines, 5):.4f}")


def halve(source: Path, target: Path) -> None:
    """Write the matrices of an adapter in half precision; other tensors, such as weights of evidence, stay."""
    tensors = load_file(source)
    save_file({name: t.astype(np.float16) if t.ndim > 1 else t for name, t in tensors.items()}, target)


def names(vectors: ebert.Vectors, word_rows: np.ndarray, entity_rows: np.ndarray, made: dict, most: int) -> dict:
    """Return everything in the catalogue about the chosen rows, and about the entities merged into them."""
    query = vectors.catalogue.rows
    chosen = {int(row): number for number, row in enumerate(entity_rows)}
    chosen |= {row: chosen[into] for row, into in merged(vectors).items() if into in chosen}
    words = {row: (word, count) for row, word, count in query("SELECT row, word, count FROM words")}
    titles = {
        row: (title, count, qid) for row, title, count, qid in query("SELECT row, title, count, wikidata FROM entities")
    }
    counts = Counter[int]()
    for row, number in chosen.items():
        counts[number] += titles[row][1] or 0
    surfaces: dict[str, tuple[int, Counter[int]]] = {}
    joined = "SELECT s.surface, occurrences, row, count FROM surfaces s JOIN mentions m ON m.surface = s.id"
    for surface, seen, row, count in query(joined):
        if row in chosen:
            surfaces.setdefault(surface, (seen, Counter()))[1][chosen[row]] += count
    meant = ((surface, seen, found.most_common()) for surface, (seen, found) in surfaces.items())
    kept = ((surface, seen, [pair for pair in found if pair[1] >= most]) for surface, seen, found in meant)
    rows = entity_rows.tolist()
    redirects = [(title, chosen[row]) for title, row in query("SELECT title, row FROM redirects") if row in chosen]
    ids = {number: titles[row][2] for row, number in chosen.items() if titles[row][2] is not None}
    ids |= {chosen[row]: titles[row][2] for row in rows if titles[row][2] is not None}  # its own, if it has one
    return {
        "words": [words[row][0] for row in word_rows.tolist()],
        "word_counts": [words[row][1] for row in word_rows.tolist()],
        "entities": [titles[row][0] for row in rows],
        "entity_counts": [counts[number] for number in range(len(rows))],
        "redirects": redirects + [(titles[row][0], chosen[row]) for row in chosen.keys() - set(rows)],
        "wikidata": list(ids.items()),
        "surfaces": [one for one in kept if one[2]],
        "licence": vectors.info.licence,
        "made": made,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--out", required=True)
    parser.add_argument("--alignment", help="a model whose W it takes, instead of fitting one")
    parser.add_argument("--linker", help="a folder of 'ebert link train --adapter' that ships with it")
    parser.add_argument("--bert", default="bert-base-cased")
    parser.add_argument("--entities", type=int, default=200_000)
    parser.add_argument("--keep", action="append", default=[], help="a file of titles, one per line")
    parser.add_argument("--surfaces", type=int, default=1, help="least count of a mention")
    parser.add_argument("--weight-power", type=float, default=recipe.WEIGHT_POWER)
    parser.add_argument("--intercept", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--length", type=float, default=recipe.LENGTH)
    make(parser.parse_args())


if __name__ == "__main__":
    main()
