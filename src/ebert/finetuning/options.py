"""What every fine-tuning can be told; relations and linking add what is theirs."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from ebert.errors import EbertError

Precision = Literal["fp32", "bf16", "fp16"]
RATES = (2e-5, 3e-5, 5e-5)
"""Learning rates of the paper's grids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuningOptions:
    """AdamW with a linear schedule; wordpiece and entity vectors are fixed."""

    counts: ClassVar[tuple[str, ...]] = ()
    """Further options that are 1 at least, or not given."""

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
    """Of what is new in the model, the dropout and the order of the samples."""
    checkpoint_steps: int = 125
    """Steps after which the state is written, so that a run that is killed goes on there."""
    precision: Precision = "fp32"
    """What is computed in; the mixed ones are for GPUs."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "checkpoint_steps", *self.counts):
            value = getattr(self, name)
            if value is not None:
                at_least(name, value, 1)
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise EbertError(f"learning-rate is {self.learning_rate}; it must be positive")
        if not 0 <= self.warmup < 1:
            raise EbertError(f"warmup is {self.warmup}; it must be at least 0 and below 1")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise EbertError(f"weight-decay is {self.weight_decay}; it cannot be negative")
        if not 0 <= self.seed < 2**32:
            raise EbertError(f"seed is {self.seed}; it must be between 0 and {2**32 - 1}")
        among("precision", self.precision, get_args(Precision))


def among(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """See that an option is one of some words."""
    if value not in allowed:
        raise EbertError(f"unknown {name} {value!r}; choose one of {', '.join(allowed)}")


def at_least(name: str, value: int, least: int) -> None:
    """Raise an error if an option is not a whole number, or not large enough."""
    if not isinstance(value, int) or value < least:
        raise EbertError(f"{name.replace('_', '-')} is {value}; it must be at least {least}")
