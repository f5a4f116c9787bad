"""How a classifier is trained; the defaults are the paper's best configuration."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from ebert.errors import EbertError

Precision = Literal["fp32", "bf16", "fp16"]
RATES = (2e-5, 3e-5, 5e-5)
EPOCHS = (3, 4, 5, 6, 7, 8, 9, 10)
"""The paper's grid, which is that of ERNIE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """AdamW with a linear schedule; wordpiece and entity vectors are fixed."""

    epochs: int = 10
    """Passes over the training set."""
    learning_rate: float = 5e-5
    """The highest rate of the schedule."""
    batch: int = 32
    """Samples in a step, on all devices together."""
    warmup: float = 0.1
    """Share of the steps in which the rate rises."""
    weight_decay: float = 0.01
    """AdamW's own default."""
    seed: int = 0
    """Of the new layer, the dropout and the order of the samples."""
    samples: int | None = None
    """Training samples to use, evenly over the relations; all if not given."""
    dev_samples: int | None = None
    """Dev samples to choose the epoch by, evenly over the relations and always the same ones; all if not given."""
    checkpoint_steps: int = 125
    """Steps after which the state is written, so that a run that is killed goes on there."""
    precision: Precision = "fp32"
    """What is computed in; the mixed ones are for GPUs."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "checkpoint_steps", "samples", "dev_samples"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise EbertError(f"{name.replace('_', '-')} is {value}; it must be at least 1")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise EbertError(f"learning-rate is {self.learning_rate}; it must be positive")
        if not 0 <= self.warmup < 1:
            raise EbertError(f"warmup is {self.warmup}; it must be at least 0 and below 1")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise EbertError(f"weight-decay is {self.weight_decay}; it cannot be negative")
        if not 0 <= self.seed < 2**32:
            raise EbertError(f"seed is {self.seed}; it must be between 0 and {2**32 - 1}")
        if self.precision not in get_args(Precision):
            raise EbertError(f"unknown precision {self.precision!r}; choose one of {', '.join(get_args(Precision))}")
