"""A small store in three files that are fit to ship: a byte for each number, and the names compressed.

Every vector is scaled by its largest number, which is kept beside it, so that a number is off by 1/254 of that at most.
"""

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from ebert._io import files
from ebert.errors import EbertError
from ebert.vectors.writer import writing

MATRICES, NAMES = "vectors.safetensors", "names.json.xz"
PARTS = ("words", "outputs", "entities")
STEPS = 127  # of a byte, on each side of zero


def pack(folder: Path, matrices: dict[str, NDArray[Any]], names: dict[str, Any]) -> None:
    """Write the matrices in PARTS and the names: see `unpack` for what those are."""
    tensors: dict[str, NDArray[Any]] = {}
    for part in PARTS:
        tensors[part], tensors[f"{part}.scales"] = quantise(matrices[part])
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / MATRICES)
    text = json.dumps(names, ensure_ascii=False, separators=(",", ":")).encode()
    with files.replacing(folder / NAMES) as file:
        file.write(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))


def unpack(folder: Path, out: Path) -> None:
    """Make a store of a packed one."""
    try:
        tensors = load_file(folder / MATRICES)
        names = json.loads(lzma.decompress((folder / NAMES).read_bytes()))
        matrices = {part: restore(tensors[part], tensors[f"{part}.scales"]) for part in PARTS}
    except (OSError, KeyError, ValueError, EOFError, lzma.LZMAError, SafetensorError) as error:
        raise EbertError(f"{folder} is damaged ({error}); install ebert again") from None
    with writing(out, dimension=matrices["words"].shape[1], dtype="float16") as store:
        store.add("words", names["words"], matrices["words"], counts=names["word_counts"])
        store.outputs(matrices["outputs"])
        titles = names["entities"]
        store.add("entities", titles, matrices["entities"], counts=names["entity_counts"])
        store.redirects((title, titles[row]) for title, row in names["redirects"])
        store.wikidata((titles[row], number) for row, number in names["wikidata"])
        store.surfaces(
            (surface, seen, [(row, count) for row, count in meant]) for surface, seen, meant in names["surfaces"]
        )
        store.finish(licence=names["licence"], made=names["made"])


def quantise(matrix: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return a byte for each number and what a step of each row is worth."""
    largest = np.abs(matrix).max(axis=1, initial=0)
    scales = np.where(largest > 0, largest / STEPS, 1).astype(np.float32)
    return np.rint(matrix / scales[:, None]).astype(np.int8), scales


def restore(steps: NDArray[np.int8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the numbers of what `quantise` made."""
    return steps * scales[:, None]
