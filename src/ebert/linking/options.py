"""How a linker reads a text, and how it is trained; where the paper has a best configuration, it is the default."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from ebert.errors import EbertError
from ebert.finetuning.options import FinetuningOptions, among, at_least

Strategy = Literal["paper", "packed"]
Mask = Literal["candidates", "standard"]
Variant = Literal["e-bert-mlm", "wikipedia2vec-bert-mlm", "wikipedia2vec-bert-random"]
Block = Literal["markers", "copy"]
BATCHES = (16, 32, 64, 128)
"""The paper's grid, together with the learning rates of every fine-tuning."""


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
            among(name, getattr(self, name), get_args(kind))
        if self.mask is None:
            object.__setattr__(self, "mask", "candidates" if self.aligned else "standard")
        among("mask", str(self.mask), get_args(Mask))
        at_least("chunk", self.chunk, 16)
        at_least("rounds", self.rounds, 1)

    @property
    def aligned(self) -> bool:
        """Whether entities are carried by W."""
        return self.variant == "e-bert-mlm"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions(FinetuningOptions):
    """How long, how fast and on which spans a linker is trained."""

    counts: ClassVar[tuple[str, ...]] = ("evaluations", "tokens")

    learning_rate: float = 2e-5
    """The highest rate of the schedule."""
    batch: int = 128
    """Spans in a step; packed takes as many whole chunks as have about that many."""
    nulls: float = 1.0
    """Share of the over-generated spans that an epoch sees, others in each; they weigh more in the loss for it."""
    checkpoint_steps: int = 50
    """Steps after which the state is written, so that a run that is killed goes on there."""
    evaluations: int = 1
    """How often in an epoch the dev set is linked, evenly over all epochs; the best linker is kept."""
    tokens: int | None = None
    """Wordpieces that are computed at a time, which is a matter of memory only; what suits the device if not given."""
    tune: bool = True
    """Whether the dev set also decides how ready the linker is to link, by a shift of the null entity's score."""

    def __post_init__(self) -> None:
        FinetuningOptions.__post_init__(self)
        if not 0 < self.nulls <= 1:
            raise EbertError(f"nulls is {self.nulls}; it must be above 0 and at most 1")
