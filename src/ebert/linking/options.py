"""How a linker reads a text, and how it is trained; where the paper has a best configuration, it is the default."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from ebert.errors import EbertError

Strategy = Literal["paper", "packed"]
Mask = Literal["candidates", "standard"]
Variant = Literal["e-bert-mlm", "wikipedia2vec-bert-mlm", "wikipedia2vec-bert-random"]
Block = Literal["markers", "copy"]
Precision = Literal["fp32", "bf16", "fp16"]

RATES = (2e-5, 3e-5, 5e-5)
BATCHES = (16, 32, 64, 128)
"""The paper's grid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkerOptions:
    """What a linker feeds to its encoder. It belongs to the trained weights and is saved with them."""

    strategy: Strategy = "packed"
    """`paper`: one pass of the encoder for each span; `packed`: one for all spans of a chunk."""
    mask: Mask | None = None
    """What stands for the entity to find: the mean of the `candidates`' vectors, or the `standard` mask token. If not
    given, the candidates for E-BERT-MLM and the standard mask for the baselines, as in the paper."""
    variant: Variant = "e-bert-mlm"
    """E-BERT-MLM, or one of the paper's baselines without alignment."""
    chunk: int = 512
    """Wordpieces that the encoder sees at once; longer documents are split."""
    block: Block = "markers"
    """What packed appends for a span: `markers` are ``[E-MASK] / *``, `copy` has its wordpieces in between."""
    link_prior: bool = True
    """Whether the null entity has a prior too, where the generator knows one: how rarely a span's words are a link. The
    paper's way, whose generator knows none, is without."""
    rounds: int = 3
    """Iterations of refinement (J of the paper); 1 is none."""

    def __post_init__(self) -> None:
        choices = {"strategy": Strategy, "variant": Variant, "block": Block}
        for name, kind in choices.items():
            _among(name, getattr(self, name), get_args(kind))
        if self.mask is None:
            object.__setattr__(self, "mask", "candidates" if self.aligned else "standard")
        _among("mask", str(self.mask), get_args(Mask))
        _at_least("chunk", self.chunk, 16)
        _at_least("rounds", self.rounds, 1)

    @property
    def aligned(self) -> bool:
        """Whether entities are carried by W."""
        return self.variant == "e-bert-mlm"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """AdamW with a linear schedule; wordpiece and entity vectors are fixed."""

    epochs: int = 10
    """Passes over the training set."""
    learning_rate: float = 2e-5
    """The highest rate of the schedule."""
    batch: int = 128
    """Spans in a step; packed takes as many whole chunks as have about that many."""
    warmup: float = 0.1
    """Share of the steps in which the rate rises."""
    weight_decay: float = 0.01
    """AdamW's own default."""
    nulls: float = 1.0
    """Share of the over-generated spans that an epoch sees, others in each; they weigh more in the loss for it."""
    seed: int = 0
    """Of a new head, the dropout, the order of the documents and the choice of over-generated spans."""
    checkpoint_steps: int = 50
    """Steps after which the state is written, so that a run that is killed goes on there."""
    evaluations: int = 1
    """How often in an epoch the dev set is linked; the best linker is kept."""
    tokens: int | None = None
    """Wordpieces that are computed at a time, which is a matter of memory only; what suits the device if not given."""
    tune: bool = True
    """Whether the dev set also decides how ready the linker is to link, by a shift of the null entity's score."""
    precision: Precision = "fp32"
    """What is computed in; the mixed ones are for GPUs."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "checkpoint_steps", "evaluations", "tokens"):
            value = getattr(self, name)
            if value is not None:
                _at_least(name, value, 1)
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise EbertError(f"learning-rate is {self.learning_rate}; it must be positive")
        if not 0 <= self.warmup < 1:
            raise EbertError(f"warmup is {self.warmup}; it must be at least 0 and below 1")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise EbertError(f"weight-decay is {self.weight_decay}; it cannot be negative")
        if not 0 < self.nulls <= 1:
            raise EbertError(f"nulls is {self.nulls}; it must be above 0 and at most 1")
        if not 0 <= self.seed < 2**32:
            raise EbertError(f"seed is {self.seed}; it must be between 0 and {2**32 - 1}")
        _among("precision", self.precision, get_args(Precision))


def _among(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise EbertError(f"unknown {name} {value!r}; choose one of {', '.join(allowed)}")


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise EbertError(f"{name.replace('_', '-')} is {value}; it must be at least {least}")
