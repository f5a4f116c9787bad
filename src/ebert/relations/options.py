"""How a classifier is trained; the defaults are the paper's best configuration."""

from dataclasses import dataclass
from typing import ClassVar

from ebert.finetuning.options import FinetuningOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationTrainingOptions(FinetuningOptions):
    """How long, how fast and on how much a classifier is trained."""

    counts: ClassVar[tuple[str, ...]] = ("samples", "dev_samples")

    samples: int | None = None
    """Training samples to use, evenly over the relations; all if not given."""
    dev_samples: int | None = None
    """Dev samples to choose the epoch by, evenly over the relations and always the same ones; all if not given."""
