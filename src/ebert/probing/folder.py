"""A run's folder: what it is about, how far it has come, and its results (DESIGN: files on disk).

``run.json`` says what was asked of what. While the run is on, a journal has what is done, a line for every batch; the
results are written at the end, each at once. The same command goes on with a run that was stopped; other options are
refused, as results of two kinds would be mixed.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ebert._io import files
from ebert._io.staging import is_temporary
from ebert._runs import alone_in, refuse_other, remove_halves

RUN, PREDICTIONS, METRICS = "run.json", "predictions.jsonl", "metrics.json"
QUESTIONS, NAMES, SKIPPED = "questions.jsonl", "names.jsonl", "skipped.jsonl"
ASKED, GUESSED = "asked.journal", "guessed.journal"
FILES = (ASKED, GUESSED, PREDICTIONS, METRICS, QUESTIONS, NAMES, SKIPPED, RUN)  # the last one says what it is
FORMAT = 1


@contextmanager
def opened(folder: Path, identity: Mapping[str, Any], *, overwrite: bool = False) -> Iterator[bool]:
    """Begin a run or go on with it, alone; give whether it is complete already."""
    folder = folder.absolute()
    with alone_in(folder, marker=RUN, ours=_is_ours) as known:
        remove_halves(folder, *FILES)
        complete = False
        if known:
            before = files.read_json(folder / RUN, "a run")
            changes = refuse_other(folder, before.get("identity", {}), identity, what="a run", overwrite=overwrite)
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


def finish(folder: Path, facts: Mapping[str, Any]) -> None:
    """Say that a run is complete, and take its journals away."""
    files.write_json(folder / RUN, {"kind": "probe", "format": FORMAT, "complete": True, **facts})
    _remove_journals(folder)


def _remove_journals(folder: Path) -> None:
    for name in (ASKED, GUESSED):
        (folder / name).unlink(missing_ok=True)
