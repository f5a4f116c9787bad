"""Filling a new store: from arrays in memory, or from another store with what was added to it."""

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ebert.errors import EbertError
from ebert.text import letters, titles
from ebert.vectors.catalogue import PAGE, Catalogue, EntityRow, Kind, Surface
from ebert.vectors.overlay import Added, Overlay
from ebert.vectors.surfaces import unlinked
from ebert.vectors.writer import StoreWriter, writing

Part = tuple[Kind, Sequence[str], ArrayLike | None, Iterable[int | None] | None]  # names, vectors, counts


def from_arrays(
    folder: Path,
    parts: Sequence[Part],
    *,
    outputs: ArrayLike | None,
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
    if outputs is not None:
        outputs = np.asarray(outputs)
        words = next((array.shape for kind, _, array, _ in given if kind == "words"), (0,))
        if outputs.shape != words:
            raise EbertError(f"word_outputs have shape {outputs.shape}, word_vectors {words}: every word needs both")
    for kind, _, array, _ in given:
        if array.ndim != 2:
            raise EbertError(f"the vectors of the {kind} have shape {array.shape}; (names, dimension) is needed")
    for title in (name for kind, names, _, _ in given if kind == "entities" for name in names):
        if hidden := letters.unseen(titles.clean(title)):
            raise EbertError(f"an entity cannot be called {title!r}: nobody sees {hidden} in it; leave it out")
    with writing(folder, dimension=given[0][2].shape[1], dtype=dtype) as writer:
        for kind, names, array, counts in given:
            writer.add(kind, names, array, counts=counts, outputs=outputs if kind == "words" else None)
        writer.redirects(redirects)
        writer.wikidata(wikidata)
        writer.finish(licence=licence, made={"from": "arrays"})


def copy(
    writer: StoreWriter,
    catalogue: Catalogue,
    added: Overlay,
    words: NDArray[Any],
    outputs: NDArray[Any] | None,
    entities: NDArray[Any],
) -> None:
    """Copy a store, added entities among the others, replaced ones in their places."""
    for start in range(0, len(words), PAGE):
        rows = catalogue.described("words", start, start + PAGE)
        counts = [count for _, _, count, _ in rows]
        learned = None if outputs is None else outputs[start : start + PAGE]
        block = words[start : start + PAGE]
        writer.add("words", [word for _, word, _, _ in rows], block, counts=counts, outputs=learned)
    places: dict[int, int] = {}  # from rows of the overlay to rows of the copy
    later: list[Added] = []
    replaced: dict[int, Added] = {}
    for entity in added.all():
        if entity.hides is None:
            places[entity.row[0]] = len(entities) + len(later)
            later.append(entity)
        else:
            places[entity.row[0]] = entity.hides
            replaced[entity.hides] = entity
    for start in range(0, len(entities), PAGE):
        rows = catalogue.described("entities", start, start + PAGE)
        block = np.array(entities[start : start + PAGE], np.float32)
        for index, row in enumerate(rows):
            if row[0] in replaced:
                rows[index], block[index] = replaced[row[0]].row, replaced[row[0]].vector
        _add_entities(writer, rows, block)
    for start in range(0, len(later), PAGE):
        part = later[start : start + PAGE]
        _add_entities(writer, [entity.row for entity in part], np.stack([entity.vector for entity in part]))
    if added:
        writer.redirects(added.redirects())  # first, as they go before the store's own
    writer.redirects(catalogue.redirects())
    ids = dict(catalogue.ids())
    ids.update({places[row]: own for row, own in added.ids() if row in places} if added else {})
    writer.ids(sorted(ids.items()))
    writer.surfaces(_surfaces(catalogue, added, places))


def _add_entities(writer: StoreWriter, rows: Sequence[EntityRow], vectors: NDArray[np.float32]) -> None:
    writer.add(
        "entities",
        [title for _, title, _, _ in rows],
        vectors,
        counts=[count for _, _, count, _ in rows],
        wikidata=[number for _, _, _, number in rows],
    )


def _surfaces(catalogue: Catalogue, added: Overlay, places: Mapping[int, int]) -> Iterator[Surface]:
    """Go through the surfaces of a store, those of added entities among them: each counts as linked once."""
    more: dict[str, list[int]] = {}
    for surface, row in added.surfaces():
        if row in places:  # others may have been added since
            more.setdefault(surface, []).append(places[row])
    for surface, occurrences, mentions in catalogue.surfaces():
        known = {row for row, _ in mentions}
        new = [row for row in more.pop(surface, ()) if row not in known]
        yield surface, occurrences + len(new), [*mentions, *((row, 1) for row in new)]
    for surface, rows in more.items():
        yield surface, unlinked(catalogue, surface) + len(rows), [(row, 1) for row in rows]


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
