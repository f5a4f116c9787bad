"""The options that every fine-tuning has; relations and linking add theirs."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

from ebert._options import Options, option

Say = Callable[[str], None]  # what trainings tell people
Precision = Literal["fp32", "bf16", "fp16"]
RATES = (2e-5, 3e-5, 5e-5)
"""Learning rates of the paper's grids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuningOptions(Options):
    """AdamW with a linear schedule; wordpiece and entity vectors are fixed."""

    epochs: int = option(10, "Passes over the training set.", low=1)
    learning_rate: float = option(5e-5, "The highest learning rate of the schedule.", above=0)
    batch: int = option(32, "Samples in a step, on all devices together.", low=1)
    seed: int = option(0, "Seed for everything that is random.", low=0, high=2**32 - 1)
    warmup: float = option(0.1, "Share of the steps in which the learning rate rises.", low=0, below=1)
    weight_decay: float = option(0.01, "AdamW's weight decay.", low=0)
    checkpoint_steps: int = option(125, "Steps between checkpoints. A killed run continues from the last one.", low=1)
    precision: Precision = option(
        "fp32", "Number type of the computations. bf16 and fp16 use mixed precision, on GPUs."
    )


def split_options(given: dict[str, Any], *classes: Any) -> tuple[Any, ...]:
    """Return an instance of each class with those of the given options that are its fields."""
    names = [{field.name for field in fields(cls)} for cls in classes]
    if unknown := given.keys() - set().union(*names):
        raise TypeError(f"there is no option {', '.join(sorted(unknown))}")
    return tuple(
        cls(**{name: value for name, value in given.items() if name in own})
        for cls, own in zip(classes, names, strict=True)
    )
