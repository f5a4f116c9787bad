"""Filling a new store: from arrays in memory, or from another store with what was added to it."""

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ebert.errors import EbertError
from ebert.vectors.catalogue import PAGE, Catalogue, Kind
from ebert.vectors.overlay import Overlay
from ebert.vectors.writer import StoreWriter, writing

Part = tuple[Kind, Sequence[str], ArrayLike | None, Iterable[int | None] | None]  # names, vectors, counts


def from_arrays(
    folder: Path,
    parts: Sequence[Part],
    *,
    redirects: Iterable[tuple[str, str]],
    wikidata: Iterable[tuple[str, int]],
    dtype: str,
    licence: str,
) -> None:
    """Make a store of arrays, shape (names, dimension) each."""
    given: list[tuple[Kind, list[str], NDArray[Any], Iterable[int | None] | None]] = []
    for kind, names, vectors, counts in parts:
        if vectors is not None:
            given.append((kind, list(names), np.asarray(vectors), counts))
        elif len(names):
            raise EbertError(f"{len(names)} {kind} without vectors: every name needs one")
    if not given:
        raise EbertError("a store needs word_vectors or entity_vectors")
    for kind, _, array, _ in given:
        if array.ndim != 2:
            raise EbertError(f"the vectors of the {kind} have shape {array.shape}; (names, dimension) is needed")
    with writing(folder, dimension=given[0][2].shape[1], dtype=dtype) as writer:
        for kind, names, array, counts in given:
            writer.add(kind, names, array, counts=counts)
        writer.redirects(redirects)
        writer.wikidata(wikidata)
        writer.finish(licence=licence, made={"from": "arrays"})


def copy(
    writer: StoreWriter, catalogue: Catalogue, added: Overlay, words: NDArray[Any], entities: NDArray[Any]
) -> None:
    """Copy a store, added entities among the others, replaced ones in their places."""
    for start in range(0, len(words), PAGE):
        rows = catalogue.described("words", start, start + PAGE)
        counts = [count for _, _, count, _ in rows]
        writer.add("words", [word for _, word, _, _ in rows], words[start : start + PAGE], counts=counts)
    later = list(added.all())
    replaced = {entity.hides: entity for entity in later if entity.hides is not None}
    for start in range(0, len(entities), PAGE):
        rows = catalogue.described("entities", start, start + PAGE)
        block = np.array(entities[start : start + PAGE], np.float32)
        for index, row in enumerate(rows):
            if row[0] in replaced:
                rows[index], block[index] = replaced[row[0]].row, replaced[row[0]].vector
        writer.add(
            "entities",
            [title for _, title, _, _ in rows],
            block,
            counts=[count for _, _, count, _ in rows],
            wikidata=[number for _, _, _, number in rows],
        )
    for entity in later:
        if entity.hides is None:
            _, title, count, number = entity.row
            writer.add("entities", [title], entity.vector[None], counts=[count], wikidata=[number])
    if added:
        writer.redirects(added.redirects())  # first, as they go before the store's own
    writer.redirects(catalogue.redirects())


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder of its own to a store that nobody named a place for; it stays if the block ends well."""
    folder = Path(tempfile.mkdtemp(prefix="ebert-store-"))
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def remove_with(store: object, folder: Path) -> None:
    """Remove a folder when an object is gone or the program ends."""
    weakref.finalize(store, _remove, folder, os.getpid())


def _remove(folder: Path, process: int) -> None:
    if process == os.getpid():  # a forked copy of the object is not the last one
        shutil.rmtree(folder, ignore_errors=True)
