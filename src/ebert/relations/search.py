"""The grid of learning rates and epochs (appendix of the paper)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ebert.finetuning import search as searching
from ebert.finetuning.trainer import Say
from ebert.model import EBert
from ebert.relations.folder import MODEL
from ebert.relations.options import TrainingOptions
from ebert.relations.resolving import ResolvingOptions
from ebert.relations.run import train


def search(
    data: Path,
    load: Callable[[], EBert],
    out: Path,
    *,
    mode: str,
    options: TrainingOptions,
    rates: Sequence[float],
    epochs: Sequence[int],
    resolving: ResolvingOptions,
    ids: Mapping[int, str] | None = None,
    device: str | None = None,
    keep_all: bool = False,
    command: str = "",
    say: Say,
) -> dict[str, Any]:
    """Train a classifier with every learning rate and number of epochs; see `ebert.finetuning.search`.

    `load` gives the model afresh each time, because training changes its encoder.
    """

    def chosen(one: searching.Configuration) -> TrainingOptions:
        return replace(options, learning_rate=one["learning_rate"], epochs=int(one["epochs"]))

    def run(one: searching.Configuration, folder: Path) -> dict[str, Any]:
        return train(
            data, load(), folder, mode=mode, options=chosen(one), resolving=resolving, ids=ids, device=device,
            command=command, say=say,
        )  # fmt: skip

    grid = searching.grid(learning_rate=rates, epochs=epochs)
    for one in grid:
        chosen(one)  # a bad value is told before the first hour of training, not after it
    return searching.search(
        grid, run, out, model=MODEL, keep_all=keep_all, say=say,
        info={"kind": "relations search", "command": command, "mode": mode},
    )  # fmt: skip
