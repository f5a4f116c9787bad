"""Writing files and folders so that a crash leaves the old or the new one, never half of either."""

import ctypes
import hashlib
import json
import lzma
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ebert.errors import EbertError

BLOCK = 1 << 20  # bytes to copy at a time


@contextmanager
def replacing(path: Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path`, which takes its place when the block ends well and is removed otherwise."""
    make_parent(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def replacing_folder(path: Path, *, overwrite: bool = False, marker: str | None = None) -> Iterator[Path]:
    """Give a temporary folder beside `path`, which takes its place when the block ends well and is removed otherwise.

    Only a folder that has the file `marker` is ever overwritten, so that a slip of the pen costs no thesis.
    Where the system can swap two folders in one step, it does. Elsewhere an existing folder is put aside for a moment,
    and put back by `recover` if the power fails right then.
    """
    path = path.absolute()
    refuse_existing(path, overwrite=overwrite, marker=marker)
    make_parent(path)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        temporary.chmod(0o777 & ~_umask())
        yield temporary
        if path.exists() and _exchange(temporary, path):
            shutil.rmtree(temporary, ignore_errors=True)  # the old one by now
            return
        aside = _aside(path)
        if path.exists():
            shutil.rmtree(aside, ignore_errors=True)
            path.replace(aside)
        temporary.replace(path)
        shutil.rmtree(aside, ignore_errors=True)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        recover(path)
        raise


def refuse_existing(path: Path, *, overwrite: bool, marker: str | None = None) -> None:
    """Complain about a target that holds something, unless it may be overwritten. An empty folder is no obstacle."""
    if path.is_file():
        raise EbertError(f"{path} is a file; choose another place")
    if not path.is_dir() or not any(path.iterdir()):
        return
    if not overwrite:
        raise EbertError(f"{path} exists; choose another place or allow it to be overwritten (--overwrite)")
    if marker and not (path / marker).is_file():
        raise EbertError(
            f"{path} holds something else (it has no {marker}) and is not overwritten; choose another place"
        )


def make_parent(path: Path) -> None:
    """Make the folder that `path` is to stand in."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise EbertError(f"{path} cannot be written: {path.parent} is not a folder") from None


def refuse_unwritable(path: Path) -> None:
    """Complain about a place where no file can be written, before the work whose result is to stand there."""
    if path.is_dir():
        raise EbertError(f"{path} is a folder; give the name of a file")
    make_parent(path)
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise EbertError(f"{path} cannot be written ({error.strerror}); choose another place") from None


def recover(path: Path) -> None:
    """Put a folder back that an interrupted swap left aside."""
    aside = _aside(path)
    if aside.is_dir() and not path.exists():
        aside.replace(path)


def visible(folder: Path) -> list[Path]:
    """Give all files in a folder and in those inside it, sorted; what is hidden (``.git``, ``.DS_Store``) is not."""
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
        data = path.read_bytes()
        value = json.loads(lzma.decompress(data) if path.suffix == ".xz" else data)
    except FileNotFoundError:
        raise EbertError(f"{path.parent} is not {what}: it has no {path.name}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, lzma.LZMAError) as error:
        raise EbertError(f"{path} is damaged ({error}); make {what} again or restore the file") from None
    if not isinstance(value, dict):
        raise EbertError(f"{path} is damaged (not a JSON object); make {what} again or restore the file")
    return value


def sha256(path: Path) -> str:
    """Hash a file without reading it into memory at once."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
