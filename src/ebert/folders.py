"""Folders that a long job works in: one process at a time, and only to go on with what was begun there."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ebert import places
from ebert.errors import EbertError

LOCK = ".lock"


@contextmanager
def alone_in(folder: Path, *, marker: str, ours: Callable[[Path], bool] = lambda _file: False) -> Iterator[bool]:
    """Make a folder, or take one that has the file `marker`, for this process alone; yield whether it was there.

    A folder without the marker is taken too if there is nothing in it but what we write half before it, and what `ours`
    knows. What killed processes left half written in the folder is removed.
    """
    if folder.exists() and not folder.is_dir():
        raise EbertError(f"{folder} is a file; choose another --out")
    known = (folder / marker).exists()
    if (
        folder.is_dir()
        and not known
        and not all(
            file.name == LOCK or places.is_temporary(file.name, marker) or ours(file) for file in folder.iterdir()
        )
    ):
        raise EbertError(f"{folder} holds something else (it has no {marker}); choose another --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise EbertError(f"{folder} cannot be made: {folder.parent} is not a folder") from None
    except OSError as error:
        raise EbertError(f"{folder} cannot be made ({error.strerror}); choose another --out") from None
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise EbertError(f"another process works on {folder}; wait for it or choose another --out") from None
    try:
        remove_halves(folder, marker)
        yield known
    finally:
        lock.release()  # the file stays: whoever has it open could lock what nobody else sees


def remove_halves(folder: Path, *of: str) -> None:
    """Remove what killed processes left half written in a folder that is this process's: by 0.1, of these files."""
    places.sweep(folder)
    for file in folder.iterdir():
        if file.is_file() and places.is_temporary(file.name, *of):
            file.unlink(missing_ok=True)


@contextmanager
def saying_where(path: Path) -> Iterator[None]:
    """Add to an error of writing, such as that of a full disk, where it was and how to go on."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        why = f"{error.strerror}; what is done is kept: run the same command again to go on"
        raise OSError(error.errno, why, error.filename or str(path)) from error


def differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Say what differs between what a job was begun with and what is asked for."""
    found = []
    for name in {**before, **now}:
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        label = f"{prefix}{name}"
        if isinstance(old, dict) and isinstance(new, dict):
            found += differences(old, new, f"{label} ")
        elif all(isinstance(value, str) and len(value) > 30 for value in (old, new)):
            found.append(f"{label} has changed")
        else:
            found.append(f"{label} was {_shown(old)}, is {_shown(new)}")
    return found


def _shown(value: object) -> str:
    if value is None:
        return "not given"
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) < 60 else f"{text[:57]}..."
