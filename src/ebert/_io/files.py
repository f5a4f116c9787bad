"""Writing files and folders so that a crash leaves the old or the new one, never half of either."""

import ctypes
import errno
import hashlib
import json
import lzma
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ebert._io import compressed, staging
from ebert.errors import EbertError

BLOCK = 1 << 20  # bytes to copy at a time


@contextmanager
def replacing(path: Path, mode: str = "wb", *, sweep: bool = True) -> Iterator[IO[Any]]:
    """Open a temporary file beside `path`, which takes its place when the block ends well and is removed otherwise.

    What killed processes left of the same file is removed, unless told otherwise: that costs a look at the folder.
    """
    make_parent(path)
    if sweep:
        staging.sweep(path.parent, path.name)
    with staging.beside(path) as place:
        with (place / staging.NEW).open(mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        (place / staging.NEW).replace(path)
        staging.sync(path.parent)


@contextmanager
def replacing_folder(path: Path, *, overwrite: bool = False, marker: str | None = None) -> Iterator[Path]:
    """Make a temporary folder beside `path`, which takes its place when the block ends well and is removed otherwise.

    Only a folder that has the file `marker` is ever overwritten, so a mistyped path destroys nothing. If `path`
    is a link to a folder, that folder is replaced and the link stays.
    Where the system can swap two folders in one step, it does. Elsewhere an existing folder is put aside for a moment;
    readers wait that long (`recover`), and if this process is killed right then, they put the new one in its place.
    """
    path = _behind_links(path)
    refuse_existing(path, overwrite=overwrite, marker=marker)
    make_parent(path)
    staging.sweep(path.parent, path.name)
    with staging.beside(path) as place:
        (place / staging.NEW).mkdir()
        yield place / staging.NEW
        for file in (place / staging.NEW).rglob("*"):
            if not file.is_symlink():
                staging.sync(file)
        staging.sync(place / staging.NEW)
        refuse_existing(path, overwrite=overwrite, marker=marker)  # somebody may have made one meanwhile
        _swap(place, path)
        staging.sync(path.parent)


def refuse_existing(path: Path, *, overwrite: bool, marker: str | None = None) -> None:
    """Raise an error if a target holds something, unless it may be overwritten. An empty folder is no obstacle."""
    recover(path)
    if path.is_file():
        raise EbertError(f"{path} is a file; choose another place")
    if not path.is_dir() or not any(path.iterdir()):
        return
    if not overwrite:
        raise EbertError(f"{path} exists; choose another place, or allow it to be overwritten (--overwrite)")
    if marker and not (path / marker).is_file():
        raise EbertError(
            f"{path} contains something else (it has no {marker}) and is not overwritten; choose another place"
        )


def make_parent(path: Path) -> None:
    """Make the folder that `path` is to stand in."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise EbertError(f"{path} cannot be written: {path.parent} is not a folder") from None


def refuse_unwritable(path: Path) -> None:
    """Raise `EbertError` for a place where no file can be written, before the work whose result is to stand there."""
    if path.is_dir():
        raise EbertError(f"{path} is a folder; give the name of a file")
    make_parent(path)
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise EbertError(f"{path} cannot be written ({error.strerror}); choose another place") from None


def recover(path: Path) -> None:
    """Put a folder back that an interrupted swap left aside; wait for a swap that is under way."""
    staging.recover(_behind_links(path))


def visible(folder: Path) -> list[Path]:
    """Return all files in a folder and in those inside it, sorted; what is hidden (``.git``, ``.DS_Store``) is not."""
    inside = (file.relative_to(folder) for file in folder.rglob("*"))
    shown = sorted(file for file in inside if not any(part.startswith(".") for part in file.parts))
    return [folder / file for file in shown if (folder / file).is_file()]


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file for people to read too."""
    with replacing(path, "w") as file:
        json.dump(value, file, indent=1, ensure_ascii=False)
        file.write("\n")


def read_json(path: Path, what: str) -> dict[str, Any]:
    """Read a JSON object, compressed if its name says so; `what` names the thing it belongs to in the error."""
    try:
        if path.exists() and not path.is_file():
            raise EbertError(f"{path} is not a file; make {what} again or restore it")  # a pipe would be waited for
        with path.open("rb") if path.suffix == ".json" else compressed.bounded(path) as file:
            value = json.loads(file.read())
    except FileNotFoundError:
        raise EbertError(f"{path.parent} is not {what}: it has no {path.name}") from None
    except (ValueError, RecursionError, EOFError, lzma.LZMAError) as error:  # a ValueError: 5,000 digits, or not UTF-8
        raise EbertError(f"{path} is damaged ({error}); make {what} again or restore the file") from None
    if not isinstance(value, dict):
        raise EbertError(f"{path} is damaged (not a JSON object); make {what} again or restore the file")
    return value


def sha256(path: Path) -> str:
    """Hash a file without reading it into memory at once."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make a folder among the system's temporary ones; it stays if the block ends well, for `remove_with`."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def remove_with(owner: object, folder: Path) -> None:
    """Remove a folder when an object is gone or the program ends."""
    weakref.finalize(owner, _remove, folder, os.getpid())


def _remove(folder: Path, process: int) -> None:
    if process == os.getpid():  # a forked copy of the object is not the last one
        shutil.rmtree(folder, ignore_errors=True)


def _swap(place: Path, path: Path) -> None:
    """Put what is new in a place where `path` is. What was there before is in the place then."""
    new, old = place / staging.NEW, place / staging.OLD
    try:
        while True:
            if path.exists():
                if _exchange(new, path):
                    return
                shutil.rmtree(old, ignore_errors=True)
                with suppress(FileNotFoundError):
                    path.rename(old)
            try:
                new.rename(path)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
            else:
                return  # or another writer was faster: what it has written goes aside, too
    except BaseException:
        if old.is_dir() and not path.exists():
            old.rename(path)
        raise


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step, if the system can: Linux has a call for it that Python does not know."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _behind_links(path: Path) -> Path:
    """Return the absolute path of a folder, or of what it is a link to."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path.absolute()
