"""Checkpoints: a folder beside the store in training, replaced in one step, so that there is always a good one."""

import hashlib
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert import _runs
from ebert._io import files
from ebert.errors import EbertError
from ebert.vectors.train.options import VectorTrainingOptions
from ebert.vectors.train.trainer import MATRICES, TrainingState
from ebert.wikipedia import corpus as corpora

INFO = "training.json"
FORMAT = 1
PROGRESS = ("done", "seconds", "flops")


def folder_of(store: Path) -> Path:
    """Return the folder for the checkpoints of a store. First put back one that a killed process left aside."""
    folder = store.absolute().with_name(f"{store.absolute().name}.training")
    files.recover(folder)
    return folder


def identity(corpus: corpora.Corpus, options: VectorTrainingOptions, keep: Collection[str]) -> dict[str, Any]:
    """Return everything that the vectors of a run depend on; a checkpoint of another run is refused."""
    kept = hashlib.sha256("\n".join(sorted(keep)).encode()).hexdigest() if keep else None
    return {"corpus": files.sha256(corpus.path / corpora.INFO), "options": asdict(options), "keep": kept}


def save(folder: Path, run: dict[str, Any], state: TrainingState) -> None:
    """Write a checkpoint."""
    with files.replacing_folder(folder, overwrite=True, marker=INFO) as place:
        for name in MATRICES:
            np.save(place / f"{name}.npy", getattr(state, name))
        progress = {name: getattr(state, name) for name in PROGRESS}
        files.write_json(place / INFO, {"format": FORMAT, "run": run, **progress})


def load(folder: Path, run: dict[str, Any], fresh: TrainingState) -> TrainingState:
    """Read the checkpoint of the same run; `fresh` has the shapes."""
    value = files.read_json(folder / INFO, "a checkpoint of a training")
    _runs.refuse_other(folder, value.get("run", {}), run, what="an unfinished training", overwrite=False)
    matrices = {name: _read(folder / f"{name}.npy", getattr(fresh, name)) for name in MATRICES}
    return TrainingState(**matrices, **{name: value[name] for name in PROGRESS})


def _read(path: Path, like: NDArray[np.float32]) -> Any:
    try:
        matrix = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise EbertError(f"{path} is damaged ({error}); start the training again (--overwrite)") from None
    if matrix.shape != like.shape or matrix.dtype != like.dtype:
        raise EbertError(f"{path} has shape {matrix.shape}, not {like.shape}; start the training again (--overwrite)")
    return matrix
