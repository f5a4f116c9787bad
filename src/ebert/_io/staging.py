"""Places: folders of our own beside what is being written, each locked for as long as its maker lives.

A place is called ``.NAME.RANDOM.ebert-tmp``, where NAME is what is being written. In it are a lock, what is new, and
for a moment what was old. A process that is killed lets go of the lock, so that the next one can tell that the place
is nobody's, and removes it. Nothing else is ever removed.
"""

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import FileLock

LOCK, NEW, OLD = "lock", "new", "old"
_NAME = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{12}\.ebert-tmp", re.DOTALL)
_MOMENT, _MOMENTS = 0.05, 1200  # seconds to wait at a time for another process that is swapping folders; how often


def is_temporary(name: str, *of: str) -> bool:
    """Whether a file's name is one that we give to what is half written; 0.1 did so for files that are named in `of`.

    >>> is_temporary(".run.json.0123456789ab.ebert-tmp"), is_temporary(".run.json.k3_x9a1z", "run.json")
    (True, True)
    >>> is_temporary(".gitignore"), is_temporary(".thesis.tex.k3_x9a1z", "run.json")
    (False, False)
    """
    return bool(_NAME.fullmatch(name)) or any(re.fullmatch(rf"\.{re.escape(one)}\.[a-z0-9_]{{8}}", name) for one in of)


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Make a place beside `path` for the block; it is removed in the end, with all that is in it."""
    place, lock = _make(path)
    try:
        yield place
    finally:
        _remove(place, NEW, OLD, LOCK)
        lock.release()
        _remove_unlocked(place)


def discard(folder: Path) -> None:
    """Remove a folder of ours so that a kill on the way leaves the whole of it, or what `clean` knows."""
    with beside(folder) as place:
        folder.rename(place / OLD)


def places(folder: Path, of: str | None = None) -> list[Path]:
    """Return the places in a folder, or those for what is called `of`."""
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            named = _NAME.fullmatch(entry.name)
            if named and of in (None, named["name"]) and entry.is_dir(follow_symlinks=False):
                found.append(folder / entry.name)
    return sorted(found)


def settle(place: Path, *, wait: float = 0.0) -> int:
    """Remove a place that is nobody's and return how many bytes it had; raise an OSError if its maker lives.

    If its maker was killed between putting the old folder aside and the new one in its place, that is done first.
    """
    if any(file.name not in (LOCK, NEW, OLD) or file.is_symlink() for file in place.iterdir()):
        raise OSError(f"{place} contains something else")
    try:
        held = _lock(place).acquire(timeout=wait)
    except NotImplementedError as error:  # a disk without locks: nobody knows
        raise OSError(f"{place} cannot be locked") from error
    with held:
        path = place.parent / _NAME.fullmatch(place.name)["name"]  # type: ignore[index]
        if (place / OLD).is_dir() and (place / NEW).is_dir() and not path.exists():
            (place / NEW).rename(path)
            sync(path.parent)
        size = sum(file.lstat().st_size for file in place.rglob("*"))
        _remove(place, NEW, OLD, LOCK)
    _remove_unlocked(place)
    return size


def sweep(folder: Path, of: str | None = None) -> None:
    """Remove the places in a folder that are nobody's, or only those for what is called `of`."""
    for place in places(folder, of):
        with suppress(OSError):
            settle(place)


def recover(path: Path) -> None:
    """Put a folder back that an interrupted swap left aside; wait for a swap that is under way."""
    if path.exists():
        return
    for place in places(path.parent, path.name):
        for _ in range(_MOMENTS):
            if path.exists() or not (place / OLD).is_dir():
                break
            try:
                settle(place, wait=_MOMENT)
            except TimeoutError:
                continue
            except OSError:
                break
    aside = path.with_name(f".{path.name}.old")  # where 0.1 put it
    if aside.is_dir() and not path.exists():
        aside.rename(path)


def clean(path: Path) -> Iterator[tuple[Path, int | None]]:
    """Remove the places that are nobody's, for `path` and below it; yield each with its bytes, or None if it stays."""
    found = places(path.absolute().parent, path.absolute().name)
    for folder, inside, _ in os.walk(path):
        found += places(Path(folder))
        inside[:] = [name for name in inside if not is_temporary(name)]
    for place in found:
        try:
            yield place, settle(place)
        except OSError:
            yield place, None


def sync(path: Path) -> None:
    """Have the system write a file or the names in a folder to the disk, where it can be asked to."""
    if os.name == "nt":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError:
        if not path.is_dir():  # some network disks cannot sync a folder
            raise
    finally:
        os.close(number)


def _make(path: Path) -> tuple[Path, "FileLock"]:
    while True:
        place = path.with_name(f".{path.name}.{secrets.token_hex(6)}.ebert-tmp")
        place.mkdir()
        lock = _lock(place)
        # Before it is locked it may be taken for nobody's and removed: then there is another one.
        with suppress(TimeoutError, FileNotFoundError):
            with suppress(NotImplementedError):  # a disk without locks
                lock.acquire(timeout=0)
            if (place / LOCK).exists() or not lock.is_locked:
                return place, lock
            lock.release()


def _lock(place: Path) -> "FileLock":
    from filelock import FileLock  # late, as it takes longer to load than all of this

    return FileLock(place / LOCK, thread_local=False)


def _remove(place: Path, *names: str) -> None:
    """Remove what is in a place, the lock last, so that nobody can take a place that is about to go."""
    for name in names:
        if (place / name).is_dir():
            shutil.rmtree(place / name, ignore_errors=True)
        else:
            with suppress(OSError):
                (place / name).unlink(missing_ok=True)
    with suppress(OSError):
        place.rmdir()


def _remove_unlocked(place: Path) -> None:
    """Remove the lock of a place on Windows, which removes no file that is open.

    Elsewhere the lock is gone, and one that is there is of a process that has just locked the place for itself.
    """
    if os.name == "nt":
        _remove(place, LOCK)
