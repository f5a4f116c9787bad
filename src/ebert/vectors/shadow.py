"""A store that takes additions and leaves the one it stands on as it is.

The big files are linked, not copied, so a shadow of any store is there at once and takes no room on the disk.
"""

import shutil
from pathlib import Path

from ebert.vectors import building, layout
from ebert.vectors.store import Vectors

FIXED = (layout.INFO, *layout.BIG)


def shadow(store: Vectors) -> Vectors:
    """Give a store like this one whose additions are its own. It lives as long as the object does."""
    with building.scratch() as folder:
        for name in FIXED:
            if (store.path / name).exists():
                _link(store.path / name, folder / name)
        store.copy_added(folder)
        own = Vectors.open(folder)
    building.remove_with(own, folder)
    own.temporary = True
    return own


def _link(source: Path, target: Path) -> None:
    try:
        target.symlink_to(source)
    except OSError:  # Windows lets only some users make links
        shutil.copyfile(source, target)
