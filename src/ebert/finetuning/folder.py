"""The folder of a training run: `run.json` says what is trained on what, `metrics.json` how well; the best is kept."""

import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ebert._io import files
from ebert._runs import LOCK, alone_in
from ebert.errors import EbertError
from ebert.model import EBert
from ebert.model.encoder import fingerprint

RUN, METRICS, CHECKPOINTS = "run.json", "metrics.json", "checkpoints"


def leads() -> bool:
    """Whether this is the process that writes and speaks, of those that a launcher has started for one training."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Make the folder of a run, or take the one that is there, for this training alone.

    One that was made for a training that did not even begin is removed again.
    """
    if not leads():  # the others of the same training
        yield
        return
    new = not out.exists()
    try:
        with alone_in(out, marker=RUN):
            yield
    except BaseException:
        if new and out.is_dir() and [file.name for file in out.iterdir()] == [LOCK]:
            shutil.rmtree(out, ignore_errors=True)
        raise


def begin(out: Path, info: Mapping[str, Any], same: Sequence[str]) -> dict[str, Any] | None:
    """See that the folder is new or has the same run in it; give the metrics of one that is complete.

    `same` are the parts of `run.json` that a run must have in common with one it goes on with.
    """
    if not (out / RUN).is_file():
        return None
    old = files.read_json(out / RUN, "a run")
    if old.get("format") != info.get("format"):
        raise EbertError(
            f"{out} holds a run of another version of ebert (format {old.get('format')}, not {info.get('format')}), "
            "which can be used if it is complete but not gone on with; choose another --out, or remove the folder"
        )
    if different := [key for key in same if old.get(key) != info[key]]:
        raise EbertError(
            f"{out} holds a run with other {', '.join(different)}; choose another --out, or remove the folder"
        )
    if not old.get("complete"):
        return None
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)  # a kill may have come before that
    return files.read_json(out / METRICS, "a complete run")


def announce(out: Path, info: Mapping[str, Any]) -> None:
    """Say in the folder what is being trained there."""
    if leads():
        files.write_json(out / RUN, {**info, "complete": False})


def finish(out: Path, info: Mapping[str, Any], metrics: Mapping[str, Any]) -> None:
    """Write the metrics, say that the run is complete, and remove its checkpoints."""
    if not leads():
        return
    files.write_json(out / METRICS, _finite(dict(metrics)))
    files.write_json(out / RUN, {**info, "complete": True})
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)


def describe(model: EBert) -> dict[str, Any]:
    """Say which encoder, store and alignment a model has."""
    facts: dict[str, Any] = {
        "encoder": {"name": model.name, "fingerprint": fingerprint(model.encoder, model.tokenizer)}
    }
    if model.vectors is not None and model.alignment is not None:
        store = model.vectors
        facts["vectors"] = {
            "name": store.path.name,
            "fingerprint": store.fingerprint,
            "dimension": store.dimension,
            "entities": len(store),
        }
        facts["alignment"] = asdict(model.alignment.options)
    return facts


def _finite(value: Any) -> Any:
    """Put null where a number is not one: JSON has no other word for it."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
