"""The folder of a long job: one process at a time, resumed by the same command, never mixed with another job.

A marker file (`run.json` and the like) says what the job is about. Its `identity` is everything that the results
depend on; a job continues only with the same identity. A journal keeps what is done, one line at a time.
Probing, training, bulk work and corpus building all use these pieces.
"""

import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from ebert._io import staging
from ebert.errors import EbertError

if TYPE_CHECKING:
    import torch

LOCK = ".lock"
SHOWN = 5  # differences in a message


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
            file.name == LOCK or staging.is_temporary(file.name, marker) or ours(file) for file in folder.iterdir()
        )
    ):
        raise EbertError(f"{folder} contains something else (it has no {marker}); choose another --out")
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
    staging.sweep(folder)
    for file in folder.iterdir():
        if file.is_file() and staging.is_temporary(file.name, *of):
            file.unlink(missing_ok=True)


@contextmanager
def saying_where(path: Path) -> Iterator[None]:
    """Add to an error of writing, such as that of a full disk, where it was and how to continue."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        why = f"{error.strerror}; what is done is kept: run the same command again to continue"
        raise OSError(error.errno, why, error.filename or str(path)) from error


def refuse_other(
    folder: Path, before: Mapping[str, Any], now: Mapping[str, Any], *, what: str, overwrite: bool
) -> bool:
    """Return whether the job in a folder is another one, which `overwrite` allows to replace; else raise an error."""
    changes = differences(before, now)
    if changes and not overwrite:
        shown = "; ".join(changes[:SHOWN]) + (f"; and {len(changes) - SHOWN} more" if len(changes) > SHOWN else "")
        raise EbertError(
            f"{folder} is {what} of something else: {shown}. Choose another --out, or replace it (--overwrite)"
        )
    return bool(changes)


def key_of(identity: Mapping[str, Any]) -> str:
    """Return a short hash of everything that the results depend on."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]


def hash_weights(module: "torch.nn.Module") -> str:
    """Return a hash of all weights of an encoder, for an identity."""
    import torch

    digest = hashlib.blake2b(digest_size=32)
    for name, weight in sorted(module.state_dict().items()):
        digest.update(name.encode())
        if isinstance(weight, torch.Tensor):
            digest.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def machine() -> dict[str, Any]:
    """Return what a run was made with: versions, processor, cores."""
    import torch
    import transformers

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "processor": platform.machine(),
        "threads": torch.get_num_threads(),
    }


def processor() -> str:
    """Return the name of the processor and its cores, for readers of timings."""
    name = ""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{name or platform.machine()}, {os.cpu_count()} cores"


class Journal:
    """JSON lines that are appended one by one; half a line at the end, as a kill leaves it, is dropped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def __enter__(self) -> "Journal":
        self._file = self._path.open("a+b")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._file is not None
        self._file.close()

    def read(self) -> Iterator[Any]:
        """Yield what is there, and cut off what is not whole."""
        assert self._file is not None
        self._file.seek(0)
        good = 0
        for line in self._file:
            try:
                value = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                value = None
            if value is None:
                break
            good += len(line)
            yield value
        self._file.seek(good)
        self._file.truncate()

    def add(self, value: Any) -> None:
        """Write a line; it is there even if this process is killed at once."""
        assert self._file is not None
        self._file.write(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n")
        self._file.flush()


def differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return what differs between what a job was begun with and what is asked for."""
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
