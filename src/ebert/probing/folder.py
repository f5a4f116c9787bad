"""A run's folder: what it is about, how far it has come, and its results (DESIGN: files on disk).

``run.json`` says what was asked of what. While the run is on, a journal has what is done, a line for every batch; the
results are written at the end, each at once. The same command goes on with a run that was stopped; other options are
refused, as results of two kinds would be mixed.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ebert import files
from ebert.errors import EbertError
from ebert.folders import alone_in, differences, remove_halves
from ebert.places import is_temporary

RUN, PREDICTIONS, METRICS = "run.json", "predictions.jsonl", "metrics.json"
QUESTIONS, NAMES, SKIPPED = "questions.jsonl", "names.jsonl", "skipped.jsonl"
ASKED, GUESSED = "asked.journal", "guessed.journal"
FILES = (ASKED, GUESSED, PREDICTIONS, METRICS, QUESTIONS, NAMES, SKIPPED, RUN)  # the last one says what it is
FORMAT = 1


class Journal:
    """Lines of JSON that are added one by one; half a line at the end, as a kill leaves it, is dropped."""

    def __init__(self, path: Path) -> None:
        """Open a journal, or begin it."""
        self._path = path
        self._file: IO[bytes] | None = None

    def __enter__(self) -> "Journal":
        self._file = self._path.open("a+b")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._file is not None
        self._file.close()

    def read(self) -> Iterator[Any]:
        """Give what is there, and cut off what is not whole."""
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


@contextmanager
def opened(folder: Path, identity: Mapping[str, Any], *, overwrite: bool = False) -> Iterator[bool]:
    """Begin a run or go on with it, alone; give whether it is complete already."""
    folder = folder.absolute()
    with alone_in(folder, marker=RUN, ours=_is_ours) as known:
        remove_halves(folder, *FILES)
        complete = False
        if known:
            before = files.read_json(folder / RUN, "a run")
            changes = differences(before.get("identity", {}), identity)
            if changes and not overwrite:
                raise EbertError(
                    f"{folder} is a run of something else: {'; '.join(changes)}. Choose another --out, or replace it "
                    "(--overwrite)"
                )
            complete = not changes and bool(before.get("complete"))
            if changes or overwrite:
                _clear(folder)
                complete = False
        if complete:
            _remove_journals(folder)
        else:
            files.write_json(folder / RUN, {"kind": "probe", "format": FORMAT, "complete": False, "identity": identity})
        yield complete


def _clear(folder: Path) -> None:
    for name in FILES:
        (folder / name).unlink(missing_ok=True)


def _is_ours(file: Path) -> bool:
    """Whether a file in a folder is a run's, or one that a run was about to write."""
    return file.name in FILES or is_temporary(file.name, *FILES)


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines."""
    with files.replacing(path, "w") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
            file.write("\n")


def finish(folder: Path, facts: Mapping[str, Any]) -> None:
    """Say that a run is complete, and take its journals away."""
    files.write_json(folder / RUN, {"kind": "probe", "format": FORMAT, "complete": True, **facts})
    _remove_journals(folder)


def _remove_journals(folder: Path) -> None:
    for name in (ASKED, GUESSED):
        (folder / name).unlink(missing_ok=True)


def machine() -> str:
    """Name the processor and its cores, for whoever reads timings."""
    name = ""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{name or os.uname().machine}, {os.cpu_count()} cores"
