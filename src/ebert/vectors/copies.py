"""Stores made from another store: all of it with what was added, one that takes additions, one with other surfaces."""

import bisect
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ebert._io import files
from ebert.errors import EbertError
from ebert.vectors import layout
from ebert.vectors.catalogue import PAGE, SCHEMA, Surface
from ebert.vectors.entity import Entity
from ebert.vectors.writer import StoreWriter, insert_surfaces

if TYPE_CHECKING:
    from ebert.vectors.added import Added
    from ebert.vectors.store import Vectors

TABLES = ("surfaces", "mentions")


def copy_on_write(store: "Vectors") -> "Vectors":
    """Return a store like this one whose additions are its own. It lives as long as the object does.

    The big files are linked, not copied, so that it is there at once and takes no room on the disk.
    """
    with files.temporary_folder("ebert-store-") as folder:
        for name in (layout.INFO, *layout.BIG):
            if (store.path / name).exists():
                _link(store.path / name, folder / name, Path.symlink_to)
        store.overlay.copy(folder / store.info.added)
        own = type(store).open(folder)
    files.remove_with(own, folder)
    own.temporary = True
    return own


def with_surfaces(
    vectors: "Vectors", out: str | Path, surfaces: Iterable[Surface], *, made: dict[str, Any], overwrite: bool = False
) -> "Vectors":
    """Make a store at `out` with the vectors and names of another one and these surfaces instead of its own.

    The big files are linked, not copied, where the disk allows it: they never change. Entities that were added stay.
    """
    target = Path(out).absolute()
    if target.resolve() == vectors.path.resolve():
        raise EbertError(f"{target} is the store itself; choose another place, which costs little: vectors are shared")
    with files.replacing_folder(target, overwrite=overwrite, marker=layout.INFO) as folder:
        for name in (layout.WORDS, layout.ENTITIES, layout.OUTPUTS):
            if (vectors.path / name).exists():
                _link(vectors.path / name, folder / name, Path.hardlink_to)
        shutil.copyfile(vectors.path / layout.CATALOGUE, folder / layout.CATALOGUE)
        try:
            _replace_surfaces(folder / layout.CATALOGUE, surfaces)
        except sqlite3.OperationalError as error:  # a full disk, as SQLite puts it
            raise OSError(f"cannot write {target}: {error}") from error
        hashes = vectors.info.sha256 or layout.hashes(folder)
        hashes = hashes | {layout.CATALOGUE: files.sha256(folder / layout.CATALOGUE)}
        info = replace(vectors.info, made={**vectors.info.made, "mentions": made}, sha256=hashes)
        info.write(folder)
        vectors.overlay.copy(folder / info.added)
    return type(vectors).open(target)


def _replace_surfaces(path: Path, surfaces: Iterable[Surface]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -100000;")
        for table in TABLES:
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in SCHEMA.split(";"):
            if any(f"CREATE TABLE {table} " in statement for table in TABLES):
                connection.execute(statement)
        given, first = iter(surfaces), 0
        while batch := list(islice(given, PAGE)):
            insert_surfaces(connection, batch, first)
            first += len(batch)
        if not first:
            raise EbertError("no surface of the new table has an entity that the store knows; is it for this store?")
        connection.commit()
        connection.execute("VACUUM")
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _link(source: Path, target: Path, link: Callable[[Path, Path], None]) -> None:
    try:
        link(target, source)
    except OSError:  # another disk, one without links, or Windows, which lets only some users make them
        shutil.copyfile(source, target)


def fill_from_store(writer: StoreWriter, store: "Vectors") -> None:
    """Copy a store, added entities among the others, replaced ones in their places, without removed ones."""
    catalogue, overlay = store.catalogue, store.overlay
    for start in range(0, len(store.word_matrix), PAGE):
        query = "SELECT word, count FROM words WHERE row >= ? AND row < ? ORDER BY row"
        words = catalogue.rows(query, (start, start + PAGE))
        learned = None if store.word_outputs is None else store.word_outputs[start : start + PAGE]
        names, counts = [word for word, _ in words], [count for _, count in words]
        writer.add("words", names, store.word_matrix[start : start + PAGE], counts=counts, outputs=learned)
    later: list[Added] = []
    replaced: dict[int, Added] = {}
    for added in overlay.all():
        if added.hides is None:
            later.append(added)
        else:
            replaced[added.hides] = added
    gone = overlay.hidden() - replaced.keys()
    removed = sorted(gone)
    total = len(store.entity_matrix) - len(removed)
    places = {added.entity.row: total + index for index, added in enumerate(later)}  # from rows of the overlay to here
    places |= {added.entity.row: row - bisect.bisect(removed, row) for row, added in replaced.items()}
    for start in range(0, len(store.entity_matrix), PAGE):
        rows = catalogue.entities("entities e WHERE row >= ? AND row < ? ORDER BY row", (start, start + PAGE))
        block = np.array(store.entity_matrix[start : start + PAGE], np.float32)
        for index, entity in enumerate(rows):
            if entity.row in replaced:
                rows[index], block[index] = replaced[entity.row].entity, replaced[entity.row].vector
        if gone:
            kept = [index for index in range(len(rows)) if start + index not in gone]
            rows, block = [rows[index] for index in kept], block[kept]
        _add_entities(writer, rows, block)
    for start in range(0, len(later), PAGE):
        part = later[start : start + PAGE]
        _add_entities(writer, [added.entity for added in part], np.stack([added.vector for added in part]))
    if overlay:
        writer.redirects((title, target.title) for title, target in overlay.redirects())  # they go before the others
    writer.redirects((title, target.title) for title, target in catalogue.redirects() if target.row not in gone)
    ids = {row - bisect.bisect(removed, row): own for row, own in catalogue.ids() if row not in gone}
    ids.update({places[row]: own for row, own in overlay.ids() if row in places} if overlay else {})
    writer.ids(sorted(ids.items()))
    writer.surfaces(_surfaces(store, places, removed))


def _add_entities(writer: StoreWriter, entities: Sequence[Entity], vectors: NDArray[np.float32]) -> None:
    counts, numbers = [entity.count for entity in entities], [entity.wikidata for entity in entities]
    writer.add("entities", [entity.title for entity in entities], vectors, counts=counts, wikidata=numbers)


def _surfaces(store: "Vectors", places: dict[int, int], removed: list[int]) -> Iterator[Surface]:
    """Yield the surfaces of a store, those of added entities among them: each counts as linked once."""
    more: dict[str, list[int]] = {}
    for surface, row in store.overlay.surfaces():
        if row in places:  # others may have been added since
            more.setdefault(surface, []).append(places[row])
    gone = set(removed)
    for surface, occurrences, mentions in store.catalogue.surfaces():
        if removed:
            mentions = [(row - bisect.bisect(removed, row), count) for row, count in mentions if row not in gone]
        known = {row for row, _ in mentions}
        new = [row for row in more.pop(surface, ()) if row not in known]
        yield surface, occurrences + len(new), [*mentions, *((row, 1) for row in new)]
    for surface, rows in more.items():
        yield surface, store.catalogue.mentions(surface)[0] + len(rows), [(row, 1) for row in rows]
