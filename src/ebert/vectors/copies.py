"""Make stores from another store: with its additions merged in, of your own, temporary, or with other surfaces."""

import bisect
import itertools
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ebert._io import files, staging
from ebert.errors import EbertError
from ebert.vectors import layout
from ebert.vectors.catalogue import PAGE, SCHEMA, Merge, Surface
from ebert.vectors.entity import Entity
from ebert.vectors.writer import FAST, StoreWriter, insert_surfaces

if TYPE_CHECKING:
    from ebert.vectors.store import Vectors


def copy_on_write(store: "Vectors") -> "Vectors":
    """Return a store like this one whose additions are its own. It lives as long as the object does.

    The big files are linked, not copied, so the copy is made at once and takes no room on the disk.
    """
    with files.temporary_folder("ebert-store-") as folder:
        for name in (layout.INFO, *layout.BIG):
            if (store.path / name).exists():
                _link(store.path / name, folder / name, Path.symlink_to)
        store.overlay.copy(folder / store.info.added)
        own = type(store).open(folder)
    files.remove_with(own, folder)
    own.overlay.temporary = True
    return own


def copy_store(store: "Vectors", out: str | Path, *, overwrite: bool = False) -> "Vectors":
    """Make a store like this one at `out`, whose additions are its own. The big files are linked where the disk allows.

    An existing copy of the same store stays as it is.
    """
    target = Path(out).absolute()
    if target.resolve() == store.path.resolve():
        raise EbertError(f"{target} is the store itself; choose another place")
    if not overwrite and is_copy(store, target):
        return type(store).open(target)
    with files.replacing_folder(target, overwrite=overwrite, marker=layout.INFO) as folder:
        for name in layout.BIG:
            if (store.path / name).exists():
                _link(store.path / name, folder / name, Path.hardlink_to)
        store.info.write(folder)
        store.overlay.copy(folder / store.info.added)
    return type(store).open(target)


def is_copy(store: "Vectors", folder: Path) -> bool:
    """Return whether a folder holds a store with the same big files, whatever was added to it."""
    there = (folder / layout.INFO).is_file() and layout.StoreInfo.read(folder)
    return bool(store.info.sha256) and there == store.info


def with_surfaces(
    vectors: "Vectors", out: str | Path, surfaces: Iterable[Surface] | None, *, made: dict[str, Any] | None = None,
    merged: Sequence[Merge] | None = None, overwrite: bool = False,
) -> "Vectors":  # fmt: skip
    """Make a store at `out` with the vectors and names of another one and these surfaces instead of its own.

    The big files are linked, not copied, where the disk allows it: they never change. Entities that were added stay.
    Without surfaces the store keeps its own. Entities are merged as `merged` says; without it merges stay as they are.
    """
    target = Path(out).absolute()
    if target.resolve() == vectors.path.resolve():
        raise EbertError(
            f"{target} is the store itself; choose another place (the copy is small, because vectors are shared)"
        )
    with files.replacing_folder(target, overwrite=overwrite, marker=layout.INFO) as folder:
        for name in (layout.WORDS, layout.ENTITIES, layout.OUTPUTS):
            if (vectors.path / name).exists():
                _link(vectors.path / name, folder / name, Path.hardlink_to)
        shutil.copyfile(vectors.path / layout.CATALOGUE, folder / layout.CATALOGUE)
        try:
            if merged is not None:
                _replace_merged(folder / layout.CATALOGUE, merged)
            nameless = _replace_surfaces(folder / layout.CATALOGUE, surfaces) if surfaces is not None else 0
        except sqlite3.OperationalError as error:  # a full disk, as SQLite puts it
            raise OSError(f"cannot write {target}: {error}") from error
        hashes = vectors.info.sha256 or layout.hashes(folder)
        hashes = hashes | {layout.CATALOGUE: files.sha256(folder / layout.CATALOGUE)}
        counted = {**(made or {}), **({"surfaces without letters": nameless} if nameless else {})}
        kept = vectors.info.made | ({} if surfaces is None else {"mentions": counted})
        info = replace(vectors.info, made=kept, sha256=hashes)
        info.write(folder)
        vectors.overlay.copy(folder / info.added)
    return type(vectors).open(target)


def _replace_surfaces(path: Path, surfaces: Iterable[Surface]) -> int:
    """Put other surfaces into a catalogue, and return how many were left out because they have no letters."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FAST)
        for statement in SCHEMA:
            table = statement.split()[2]
            if table in ("surfaces", "mentions", "keys"):
                connection.execute(f"DROP TABLE IF EXISTS {table}")
                connection.execute(statement)
        kept, nameless = insert_surfaces(connection, surfaces)
        if not kept:
            raise EbertError("no surface of the new table has an entity that the store knows; is it for this store?")
        connection.commit()
        connection.execute("VACUUM")
    staging.sync(path)
    return nameless


def _replace_merged(path: Path, merged: Sequence[Merge]) -> None:
    """Undo all merges of a catalogue and make others. An entity without a Wikidata id takes that of a merged one."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FAST)
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'merged'").fetchone():
            took = "SELECT into_row FROM merged WHERE wikidata IS NOT NULL"
            connection.execute(f"UPDATE entities SET wikidata = NULL WHERE row IN ({took})")
            connection.execute("DROP TABLE merged")
        connection.execute(next(statement for statement in SCHEMA if statement.split()[2] == "merged"))
        take = (
            "UPDATE entities SET wikidata = (SELECT wikidata FROM entities WHERE row = ?1)"
            " WHERE row = ?2 AND wikidata IS NULL AND (SELECT wikidata FROM entities WHERE row = ?1) IS NOT NULL"
        )
        for row, into, why, _ in merged:
            taken = connection.execute(take, (row, into)).rowcount
            given = "(SELECT wikidata FROM entities WHERE row = ?1)" if taken else "NULL"
            connection.execute(f"INSERT INTO merged VALUES (?1, ?2, ?3, {given})", (row, into, why))
        connection.commit()
    staging.sync(path)


def _link(source: Path, target: Path, link: Callable[[Path, Path], None]) -> None:
    try:
        link(target, source.resolve())  # which may be a link itself, as in the hub's cache
    except OSError:  # another disk, one without links, or Windows, which lets only some users make them
        shutil.copyfile(source, target)


class _Rows:
    """Where the entities of a store, and those added to it up to now, stand in a copy without removed ones."""

    def __init__(self, store: "Vectors") -> None:
        overlay = store.overlay
        with overlay.session().lock:  # others may add in the meantime
            self.hides = dict(overlay.rows("SELECT row, hides FROM added.entities"))
            self.added = list(overlay.all())
            self.gone = overlay.hidden() - set(self.hides.values())
            self.aliases = overlay.rows(
                "SELECT r.title, e.title FROM added.redirects r JOIN added.entities e ON e.row = r.row"
            )
            self.ids = overlay.rows("SELECT row, id FROM added.ids")
            self.surfaces = overlay.rows("SELECT surface, row FROM added.surfaces ORDER BY surface, row")
        self.merged = store.catalogue.merged
        self.gone |= {merge.row for merge in self.merged if merge.into in self.gone}
        self._removed = sorted(self.gone)
        new = (row for row in sorted(self.hides) if self.hides[row] is None)
        self._places = dict(zip(new, itertools.count(len(store.entity_matrix) - len(self.gone)), strict=False))

    def made(self, row: int) -> int:
        """Return the new row of an entity that the store was made with."""
        return row - bisect.bisect(self._removed, row)

    def later(self, row: int) -> int:
        """Return the new row of an added entity: after all others, or in place of the one it replaced."""
        hidden = self.hides[row]
        return self._places[row] if hidden is None else self.made(hidden)


def fill_from_store(writer: StoreWriter, store: "Vectors") -> None:
    """Copy a store: added entities become ordinary ones, replaced ones keep their places, removed ones are left out."""
    catalogue, rows = store.catalogue, _Rows(store)
    for start in range(0, len(store.word_matrix), PAGE):
        query = "SELECT word, count FROM words WHERE row >= ? AND row < ? ORDER BY row"
        words = catalogue.rows(query, (start, start + PAGE))
        learned = None if store.word_outputs is None else store.word_outputs[start : start + PAGE]
        names, counts = [word for word, _ in words], [count for _, count in words]
        writer.add("words", names, store.word_matrix[start : start + PAGE], counts=counts, outputs=learned)
    given = _entities(store, rows)
    while batch := list(itertools.islice(given, PAGE)):
        entities = [entity for entity, _ in batch]
        writer.add(
            "entities", [entity.title for entity in entities], np.stack([vector for _, vector in batch]),
            counts=[entity.count for entity in entities], wikidata=[entity.wikidata for entity in entities],
        )  # fmt: skip
    writer.redirects(rows.aliases)  # they go before the others
    query = (
        "SELECT r.title, e.title, e.row FROM redirects r JOIN entities e ON e.row = r.row WHERE r.title > ? ORDER BY 1"
    )
    writer.redirects((title, target) for title, target, row in catalogue.pages(query, "") if row not in rows.gone)
    ids = {rows.made(row): own for row, own in catalogue.rows("SELECT row, id FROM ids") if row not in rows.gone}
    writer.ids(sorted((ids | {rows.later(row): own for row, own in rows.ids}).items()))
    kept = (merge for merge in rows.merged if merge.row not in rows.gone)
    writer.merged(merge._replace(row=rows.made(merge.row), into=rows.made(merge.into)) for merge in kept)
    writer.surfaces(_surfaces(store, rows))


def _entities(store: "Vectors", rows: _Rows) -> Iterator[tuple[Entity, NDArray[Any]]]:
    replaced = {rows.hides[entity.row]: (entity, vector) for entity, vector in rows.added}
    query = "SELECT row, title, count, wikidata FROM entities WHERE row > ? ORDER BY row"
    for row, title, count, wikidata in store.catalogue.pages(query, -1):
        if row not in rows.gone:
            yield replaced.get(row) or (Entity(title, row, count, wikidata), store.entity_matrix[row])
    yield from (one for one in rows.added if rows.hides[one[0].row] is None)


def _surfaces(store: "Vectors", rows: _Rows) -> Iterator[Surface]:
    """Yield the surfaces of a store. Those of added entities each count as linked once."""
    more: dict[str, list[int]] = {}
    for surface, row in rows.surfaces:
        more.setdefault(surface, []).append(rows.later(row))
    for surface, occurrences, mentions in store.catalogue.surfaces():
        meant = {rows.made(row): count for row, count in mentions if row not in rows.gone}
        new = dict.fromkeys((row for row in more.pop(surface, ()) if row not in meant), 1)
        yield surface, occurrences + len(new), list((meant | new).items())
    for surface, places in more.items():
        yield surface, (store.word_count(surface) or 0) + len(places), [(row, 1) for row in places]
