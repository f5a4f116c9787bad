"""The grid of learning rates and batch sizes (appendix of the paper)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ebert.finetuning import search as searching
from ebert.finetuning.options import RATES
from ebert.finetuning.trainer import Say
from ebert.linking.document import Document, Generator
from ebert.linking.folder import MODEL
from ebert.linking.generator import GeneratorOptions
from ebert.linking.options import BATCHES, LinkerOptions, TrainingOptions
from ebert.linking.run import train
from ebert.model import EBert


def search(
    documents: Sequence[Document],
    dev: Sequence[Document],
    load: Callable[[], EBert],
    out: Path,
    *,
    linker_options: LinkerOptions,
    options: TrainingOptions,
    rates: Sequence[float] = RATES,
    batches: Sequence[int] = BATCHES,
    generator: Generator | GeneratorOptions | None = None,
    data: Mapping[str, Any] | None = None,
    device: str | None = None,
    keep_all: bool = False,
    command: str = "",
    say: Say,
) -> dict[str, Any]:
    """Train a linker with every learning rate and batch size; see `ebert.finetuning.search`.

    `load` gives the model afresh each time, because training changes its encoder.
    """

    def chosen(one: searching.Configuration) -> TrainingOptions:
        return replace(options, learning_rate=one["learning_rate"], batch=int(one["batch"]))

    def run(one: searching.Configuration, folder: Path) -> dict[str, Any]:
        return train(
            documents, dev, load(), folder, linker_options=linker_options, generator=generator, data=data,
            options=chosen(one), device=device, command=command, say=say,
        )  # fmt: skip

    grid = searching.grid(learning_rate=rates, batch=batches)
    for one in grid:
        chosen(one)  # a bad value is told before the first hour of training, not after it
    return searching.search(
        grid, run, out, model=MODEL, keep_all=keep_all, say=say,
        info={"kind": "linking search", "command": command, "linker": asdict(linker_options)},
    )  # fmt: skip
