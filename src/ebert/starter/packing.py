"""A small store in two files for shipping: all vectors product-quantised, all names in compressed columns.

Names are stored alphabetically, which compresses best, and are unpacked in the order of their counts. Most surfaces are
the words of a title, which need not be stored.
"""

import json
import lzma
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, load_file, save, save_file

from ebert._io import files
from ebert.errors import EbertError
from ebert.vectors.catalogue import Surface
from ebert.vectors.lookup import surface_of
from ebert.vectors.quantised import SAMPLE, SEED, Quantised, encode, make_codebook
from ebert.vectors.writer import writing

MATRICES, NAMES = "vectors.safetensors", "names.safetensors.xz"
SEAL = "starter.json"  # what the other files are: a starter that differs in anything is unpacked to another folder
PARTS = ("words", "outputs", "entities")
_BYTES = 4  # of a number in a column
_LOWEST = 1  # added to numbers that may be missing: a column has none below zero

Columns = dict[str, NDArray[np.uint8]]


def pack(folder: Path, matrices: dict[str, NDArray[Any]], names: dict[str, Any]) -> None:
    """Write the matrices in PARTS, shape (names, dimension), and the names.

    `names` has lists of `words`, `word_counts`, `entities`, `entity_counts`, `wikidata` (row and number), `redirects`
    (title and row) and `surfaces` (words, how often they stand in the text, and the rows they mean with counts), and
    the `licence` and how it was `made`.
    """
    order = sorted(range(len(names["entities"])), key=names["entities"].__getitem__)
    tensors: dict[str, NDArray[Any]] = {}
    for part in PARTS:
        matrix = np.asarray(matrices[part], np.float32)
        sample = np.random.default_rng(SEED).permutation(len(matrix))[:SAMPLE]
        book = make_codebook(matrix[np.sort(sample)])
        codes = encode(matrix, book)
        tensors[f"{part}.codebook"], tensors[f"{part}.codes"] = book, codes[order] if part == "entities" else codes
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / MATRICES)
    with files.replacing(folder / NAMES) as file:
        file.write(lzma.compress(save(_columns(names, order)), preset=9 | lzma.PRESET_EXTREME))


def seal(folder: Path) -> None:
    """Record what the files of a packed model are, once all of them exist."""
    tensors = load_file(folder / MATRICES)
    sizes = {part: len(tensors[f"{part}.codes"]) for part in ("words", "entities")}
    hashes = {path.name: files.sha256(path) for path in sorted(folder.iterdir()) if path.name != SEAL}
    files.write_json(folder / SEAL, {**sizes, "sha256": hashes})


def unpack(folder: Path, out: Path) -> None:
    """Make a store of a packed one."""
    try:
        tensors = load_file(folder / MATRICES)
        columns = load(lzma.decompress((folder / NAMES).read_bytes()))
        facts = json.loads(columns["facts"].tobytes())
        titles, counts = _texts(columns["titles"]), _numbers(columns["counts"]) - _LOWEST
        order = np.argsort(-counts, kind="stable")
        places = np.argsort(order).tolist()  # of each title, in the store
        words, outputs = (Quantised(tensors[f"{part}.codes"], tensors[f"{part}.codebook"]) for part in PARTS[:2])
        codebook = tensors["entities.codebook"]
        entities = Quantised(tensors["entities.codes"][order], codebook)
        ids = (_numbers(columns["wikidata"]) - _LOWEST)[order]
        redirects = zip(_texts(columns["redirects"]), _numbers(columns["redirected"]).tolist(), strict=True)
        surfaces = list(_surfaces(columns, titles, places))
        word_names, word_counts = _texts(columns["words"]), _numbers(columns["word_counts"]) - _LOWEST
    except (OSError, KeyError, ValueError, IndexError, EOFError, lzma.LZMAError, SafetensorError) as error:
        raise EbertError(f"{folder} is damaged ({error}); install ebert again") from None
    with writing(out, dimension=words.shape[1], dtype="pq", codebook=codebook) as store:
        store.add("words", word_names, words, counts=_known(word_counts))
        store.outputs(outputs)
        chosen = [titles[place] for place in order.tolist()]
        store.add("entities", chosen, entities, counts=_known(counts[order]), wikidata=_known(ids))
        store.redirects((title, titles[place]) for title, place in redirects)
        store.surfaces(surfaces)
        store.finish(licence=facts["licence"], made=facts["made"])


def _columns(names: dict[str, Any], order: Sequence[int]) -> Columns:
    """Return the names as columns, in which entities are numbered in the given order."""
    places = {row: place for place, row in enumerate(order)}
    titles = [names["entities"][row] for row in order]
    ids = dict(names["wikidata"])
    redirects = sorted((title, places[row]) for title, row in names["redirects"])
    owners, owned, others = dict[str, int](), list[Surface](), list[Surface]()
    for place, title in enumerate(titles):
        owners.setdefault(surface_of(title), place)
    for surface, seen, meant in sorted(names["surfaces"]):
        moved = surface, seen, [(places[row], count) for row, count in meant]
        (owned if surface in owners else others).append(moved)
    owned.sort(key=lambda one: owners[one[0]])
    surfaces = owned + others
    facts = json.dumps({"licence": names["licence"], "made": names["made"]}).encode()
    return {
        "facts": np.frombuffer(facts, np.uint8),
        "words": _text(names["words"]),
        "word_counts": _column(_optional(names["word_counts"])),
        "titles": _text(titles),
        "counts": _column(_optional([names["entity_counts"][row] for row in order])),
        "wikidata": _column(_optional([ids.get(row) for row in order])),
        "redirects": _text([title for title, _ in redirects]),
        "redirected": _column([place for _, place in redirects]),
        # In which the surface that a title has comes first, by how many titles there are between one and the next.
        "owners": _column(np.diff([owners[surface] for surface, _, _ in owned], prepend=0)),
        "others": _text([surface for surface, _, _ in others]),
        "occurrences": _column([seen for _, seen, _ in surfaces]),
        "meanings": _column([len(meant) for _, _, meant in surfaces]),
        "meant": _column([place for _, _, meant in surfaces for place, _ in meant]),
        "mentions": _column([count for _, _, meant in surfaces for _, count in meant]),
    }


def _surfaces(columns: Columns, titles: Sequence[str], places: Sequence[int]) -> Iterator[Surface]:
    """Yield the surfaces of columns; entities are by their places in the store."""
    surfaces = [surface_of(titles[place]) for place in np.cumsum(_numbers(columns["owners"])).tolist()]
    surfaces += _texts(columns["others"])
    meant = [places[place] for place in _numbers(columns["meant"]).tolist()]
    pairs = list(zip(meant, _numbers(columns["mentions"]).tolist(), strict=True))
    ends = pairwise(accumulate(_numbers(columns["meanings"]).tolist(), initial=0))
    for surface, seen, (start, end) in zip(surfaces, _numbers(columns["occurrences"]).tolist(), ends, strict=True):
        yield surface, seen, pairs[start:end]


def _text(texts: Sequence[str]) -> NDArray[np.uint8]:
    """Return texts without line breaks as a column."""
    if any("\n" in text for text in texts):
        raise EbertError("a name with a line break cannot be packed")
    return np.frombuffer("".join(f"{text}\n" for text in texts).encode(), np.uint8)


def _texts(column: NDArray[np.uint8]) -> list[str]:
    return column.tobytes().decode().split("\n")[:-1]


def _column(numbers: Sequence[int] | NDArray[Any]) -> NDArray[np.uint8]:
    """Return numbers as bytes, shape (_BYTES, numbers): the lowest of all numbers first, which compress as they are."""
    array = np.asarray(numbers, np.int64).reshape(-1)
    if len(array) and not 0 <= array.min() <= array.max() < 1 << 8 * _BYTES:
        raise EbertError(f"numbers from {array.min()} to {array.max()} cannot be packed")
    return np.ascontiguousarray(array.astype("<u4").view(np.uint8).reshape(-1, _BYTES).T)


def _numbers(column: NDArray[np.uint8]) -> NDArray[np.int64]:
    return np.ascontiguousarray(column.T).view("<u4").reshape(-1).astype(np.int64)


def _optional(numbers: Sequence[int | None]) -> NDArray[np.int64]:
    return np.array([0 if number is None else number + _LOWEST for number in numbers], np.int64)


def _known(numbers: NDArray[np.int64]) -> list[int | None]:
    return [None if number < 0 else number for number in numbers.tolist()]
