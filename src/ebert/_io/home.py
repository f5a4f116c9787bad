"""The folder for all that ebert fetches and unpacks: `EBERT_HOME`, or the user's cache folder."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from ebert.errors import EbertError

STARTER = "starter"  # the folder in it of the model that ships, and the model's name


def home() -> Path:
    """Return the folder for all that ebert fetches: `EBERT_HOME`, or the user's cache folder."""
    chosen = os.environ.get("EBERT_HOME")
    return (
        Path(chosen).expanduser().absolute() if chosen else Path(platformdirs.user_cache_dir("ebert", appauthor=False))
    )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let only one process at a time make `path`; a second one waits."""
    from filelock import FileLock

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_name(f".{path.name}.lock"))
        lock.acquire()
    except OSError as error:
        raise EbertError(f"cannot write into the cache ({error}); set EBERT_HOME to a folder that you own") from None
    try:
        yield
    finally:
        lock.release()


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes left behind when they made `folder`. Needs its lock."""
    pattern = re.compile(rf"\.{re.escape(folder.name)}\.[a-z0-9_]{{8}}")  # as tempfile names them
    for path in folder.parent.iterdir():
        if pattern.fullmatch(path.name) and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
