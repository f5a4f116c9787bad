"""A store that takes additions and leaves the one it stands on as it is.

The big files are linked, not copied, so a shadow of any store is there at once and takes no room on the disk.
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from ebert.vectors import building, layout
from ebert.vectors.store import Vectors

FIXED = (layout.INFO, layout.WORDS, layout.ENTITIES, layout.CATALOGUE, layout.OUTPUTS)


def shadow(store: Vectors) -> Vectors:
    """Give a store like this one whose additions are its own. It lives as long as the object does."""
    with building.scratch() as folder:
        for name in FIXED:
            if (store.path / name).exists():
                _link(store.path / name, folder / name)
        if (store.path / layout.ADDED).exists():
            _copy_database(store.path / layout.ADDED, folder / layout.ADDED)
        own = Vectors.open(folder)
    building.remove_with(own, folder)
    own.temporary = True
    return own


def _link(source: Path, target: Path) -> None:
    try:
        target.symlink_to(source)
    except OSError:  # Windows lets only some users make links
        shutil.copyfile(source, target)


def _copy_database(source: Path, target: Path) -> None:
    """Copy a file that others may be adding to right now."""
    with (
        closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)
