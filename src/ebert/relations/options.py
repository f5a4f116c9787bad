"""How a classifier is trained; the defaults are the paper's best configuration."""

from dataclasses import dataclass

from ebert._options import option
from ebert.finetuning.options import FinetuningOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationTrainingOptions(FinetuningOptions):
    """How long, how fast and on how much a classifier is trained."""

    samples: int | None = option(None, "Training samples to use, evenly over the relations; all if not given.", low=1)
    dev_samples: int | None = option(
        None,
        "Dev samples to choose the epoch by, evenly over the relations, always the same ones; all if not given.",
        low=1,
    )
