"""Checkpoints: a folder beside the store in training, replaced as a whole, so that there is always a good one."""

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ebert._io import files, staging
from ebert.errors import EbertError
from ebert.vectors.train.options import VectorTrainingOptions
from ebert.vectors.train.trainer import MATRICES, State
from ebert.wikipedia import corpus as corpora

INFO = "training.json"
FORMAT = 1


def folder_of(store: Path) -> Path:
    """Return the folder for the checkpoints of a store; one that a kill left aside is there again."""
    store = store.absolute()
    folder = store.with_name(f"{store.name}.training")
    files.recover(folder)
    return folder


def identity(corpus: corpora.Corpus, options: VectorTrainingOptions, keep: list[str]) -> dict[str, Any]:
    """Say what a run is: a checkpoint of another one is not gone on with."""
    kept = hashlib.sha256("\n".join(sorted(keep)).encode()).hexdigest() if keep else None
    return {"corpus": files.sha256(corpus.path / corpora.INFO), "options": asdict(options), "keep": kept}


def save(folder: Path, run: dict[str, Any], state: State) -> None:
    """Write a checkpoint."""
    with files.replacing_folder(folder, overwrite=True, marker=INFO) as place:
        for name in MATRICES:
            np.save(place / f"{name}.npy", getattr(state, name))
        files.write_json(
            place / INFO,
            {"format": FORMAT, "run": run, "done": state.done, "seconds": state.seconds, "flops": state.flops},
        )


def load(folder: Path, run: dict[str, Any], fresh: State) -> State:
    """Read the checkpoint of the same run; `fresh` tells the shapes."""
    value = files.read_json(folder / INFO, "a checkpoint of a training")
    for key, told in (("corpus", "another corpus"), ("keep", "another list of entities to keep")):
        if value.get("run", {}).get(key) != run[key]:
            raise EbertError(f"{folder} is of {told}; give the same, or begin again (--overwrite)")
    before, now = value["run"].get("options", {}), run["options"]
    if changed := [name for name in now if before.get(name) != now[name]]:
        told = ", ".join(f"{name} {before.get(name)}, not {now[name]}" for name in changed)
        raise EbertError(f"{folder} was trained with {told}; give the same options, or begin again (--overwrite)")
    state = State(**{name: _read(folder / f"{name}.npy", getattr(fresh, name).shape) for name in MATRICES})
    state.done, state.seconds, state.flops = value["done"], value["seconds"], value["flops"]
    return state


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
