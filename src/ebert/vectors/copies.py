"""A store that takes additions and leaves the one it stands on as it is.

The big files are linked, not copied, so a shadow of any store is there at once and takes no room on the disk.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from ebert._io import files
from ebert.errors import EbertError
from ebert.vectors import catalogue, layout
from ebert.vectors.catalogue import PAGE, Surface
from ebert.vectors.store import Vectors

FIXED = (layout.INFO, *layout.BIG)


def copy_on_write(store: Vectors) -> Vectors:
    """Give a store like this one whose additions are its own. It lives as long as the object does."""
    with files.temporary_folder("ebert-store-") as folder:
        for name in FIXED:
            if (store.path / name).exists():
                _link(store.path / name, folder / name)
        store.copy_added(folder)
        own = Vectors.open(folder)
    files.remove_with(own, folder)
    own.temporary = True
    return own


def _link(source: Path, target: Path) -> None:
    try:
        target.symlink_to(source)
    except OSError:  # Windows lets only some users make links
        shutil.copyfile(source, target)


TABLES = ("surfaces", "mentions")


def with_surfaces(
    vectors: Vectors, out: str | Path, surfaces: Iterable[Surface], *, made: dict[str, Any], overwrite: bool = False
) -> Vectors:
    """Make a store at `out` with the vectors and names of another one and these surfaces instead of its own.

    The big files are linked, not copied, where the disk allows it: they never change. Entities that were added stay.
    """
    target = Path(out).absolute()
    if target.resolve() == vectors.path.resolve():
        raise EbertError(f"{target} is the store itself; choose another place, which costs little: vectors are shared")
    with files.replacing_folder(target, overwrite=overwrite, marker=layout.INFO) as folder:
        for name in (layout.WORDS, layout.ENTITIES, layout.OUTPUTS):
            if (vectors.path / name).exists():
                _share(vectors.path / name, folder / name)
        shutil.copyfile(vectors.path / layout.CATALOGUE, folder / layout.CATALOGUE)
        try:
            _replace(folder / layout.CATALOGUE, surfaces)
        except sqlite3.OperationalError as error:  # a full disk, as SQLite puts it
            raise OSError(f"cannot write {target}: {error}") from error
        info = replace(
            vectors.info,
            format=layout.FORMAT,
            made={**vectors.info.made, "mentions": made},
            sha256=(vectors.info.sha256 or layout.hashes(folder))
            | {layout.CATALOGUE: files.sha256(folder / layout.CATALOGUE)},
        )
        info.write(folder)
        vectors.copy_added(folder, info)
    return Vectors.open(target)


def _replace(path: Path, surfaces: Iterable[Surface]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -100000;")
        for table in TABLES:
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in catalogue.SCHEMA.split(";"):
            if any(f"CREATE TABLE {table} " in statement for table in TABLES):
                connection.execute(statement)
        given, first = iter(surfaces), 0
        while batch := list(islice(given, PAGE)):
            catalogue.insert_surfaces(connection, batch, first)
            first += len(batch)
        if not first:
            raise EbertError("no surface of the new table has an entity that the store knows; is it for this store?")
        connection.commit()
        connection.execute("VACUUM")
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _share(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:  # another disk, or one without links
        shutil.copyfile(source, target)
