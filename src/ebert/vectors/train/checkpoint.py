"""Checkpoints: a folder beside the store in training, replaced as a whole, so that there is always a good one."""

import hashlib
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ebert import _runs
from ebert._io import files, staging
from ebert.errors import EbertError
from ebert.vectors.train.options import VectorTrainingOptions
from ebert.vectors.train.trainer import MATRICES, TrainingState
from ebert.wikipedia import corpus as corpora

INFO = "training.json"
FORMAT = 1


def folder_of(store: Path) -> Path:
    """Return the folder for the checkpoints of a store, after putting back one that a kill left aside."""
    store = store.absolute()
    folder = store.with_name(f"{store.name}.training")
    files.recover(folder)
    return folder


def identity(corpus: corpora.Corpus, options: VectorTrainingOptions, keep: Collection[str]) -> dict[str, Any]:
    """Return all that the vectors of a run depend on: a checkpoint of another run is refused."""
    kept = hashlib.sha256("\n".join(sorted(keep)).encode()).hexdigest() if keep else None
    return {"corpus": files.sha256(corpus.path / corpora.INFO), "options": asdict(options), "keep": kept}


def save(folder: Path, run: dict[str, Any], state: TrainingState) -> None:
    """Write a checkpoint."""
    with files.replacing_folder(folder, overwrite=True, marker=INFO) as place:
        for name in MATRICES:
            np.save(place / f"{name}.npy", getattr(state, name))
        progress = {"done": state.done, "seconds": state.seconds, "flops": state.flops}
        files.write_json(place / INFO, {"format": FORMAT, "run": run, **progress})


def load(folder: Path, run: dict[str, Any], fresh: TrainingState) -> TrainingState:
    """Read the checkpoint of the same run; `fresh` has the shapes."""
    value = files.read_json(folder / INFO, "a checkpoint of a training")
    _runs.refuse_other(folder, value.get("run", {}), run, what="an unfinished training", overwrite=False)
    matrices = {name: _read(folder / f"{name}.npy", getattr(fresh, name).shape) for name in MATRICES}
    return TrainingState(**matrices, done=value["done"], seconds=value["seconds"], flops=value["flops"])


def remove(folder: Path) -> None:
    """Remove the checkpoint of a training that is complete."""
    if folder.is_dir():
        staging.discard(folder)


def _read(path: Path, shape: tuple[int, ...]) -> Any:
    try:
        matrix = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise EbertError(f"{path} is damaged ({error}); begin the training again (--overwrite)") from None
    if matrix.shape != shape or matrix.dtype != np.float32:
        raise EbertError(f"{path} has shape {matrix.shape}, not {shape}; begin the training again (--overwrite)")
    return matrix
