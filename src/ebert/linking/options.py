"""The options of linking; where the paper has a best configuration, it is the default. Nothing heavy is imported."""

from dataclasses import dataclass
from typing import Literal

from ebert._options import Options, option
from ebert.errors import EbertError
from ebert.finetuning.options import FinetuningOptions

Strategy = Literal["paper", "packed"]
Mask = Literal["candidates", "standard"]
Variant = Literal["e-bert-mlm", "wikipedia2vec-bert-mlm", "wikipedia2vec-bert-random"]
Block = Literal["markers", "copy", "mask"]
Overlaps = Literal["surest", "together"]
Rule = Literal["longest", "probability"]
LinkPrecision = Literal["auto", "fp32", "bf16", "int8"]
PRECISION_HELP = (
    "Number type of the encoder's computations; int8 is for CPUs only. With an adapter, auto takes the type that suits "
    "the processor; for other linkers, auto is fp32."
)
BATCHES = (16, 32, 64, 128)
"""Batch sizes of the paper's grid; its learning rates are those of every fine-tuning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkerOptions(Options):
    """What a linker feeds to its encoder. It belongs to the trained weights and is saved with them."""

    strategy: Strategy = option(
        "packed", "One pass of the encoder for each span (paper), or for all spans of a chunk (packed)."
    )
    variant: Variant = option("e-bert-mlm", "E-BERT-MLM, or one of the paper's baselines without alignment.")
    mask: Mask | None = option(
        None,
        "What represents the entity: the mean of its candidates' vectors (default for E-BERT-MLM), or the standard "
        "[MASK] (default for the baselines).",
    )
    link_prior: bool = option(
        True, "Take into account how rarely a span's words are a link. The paper does not do this."
    )
    block: Block | None = option(
        None,
        "What packed appends for a span: the mask and markers (default without an adapter), its wordpieces between "
        "them, or the mask alone (default with an adapter).",
    )
    chunk: int = option(512, "Wordpieces that the encoder sees at once; longer documents are split.", low=16)
    rounds: int | None = option(
        None, "Rounds of refinement (J in the paper): 3, or 1 (no refinement) with an adapter.", low=1, cli=False
    )
    adapter: bool = option(
        False, "Train only a small adapter and the weights of the evidence. The encoder does not change."
    )
    rank: int = option(8, "Rank of the adapter's updates.", low=1)
    overlaps: Overlaps | None = option(
        None, "Of spans that overlap, take the surest one by one, or all together (the default with an adapter).",
        cli=False,
    )  # fmt: skip

    def __post_init__(self) -> None:
        self.check()
        if self.mask is None:
            object.__setattr__(self, "mask", "candidates" if self.aligned else "standard")
        defaults = {"block": ("markers", "mask"), "rounds": (3, 1), "overlaps": ("surest", "together")}
        for name, values in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, values[self.adapter])
        if self.adapter and self.new_head:
            raise EbertError(
                "an adapter leaves the head as it is; the variant with a random head is trained as a whole"
            )

    @property
    def aligned(self) -> bool:
        """Whether W projects the entity vectors."""
        return self.variant == "e-bert-mlm"

    @property
    def new_head(self) -> bool:
        """Whether a random linear layer takes the place of the MLM head."""
        return self.variant == "wikipedia2vec-bert-random"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTrainingOptions(FinetuningOptions):
    """How long, how fast and on which spans a linker is trained."""

    learning_rate: float = option(2e-5, "The highest learning rate of the schedule.", above=0)
    adapter_rate: float = option(5e-4, "The highest learning rate of an adapter.", above=0)
    evidence_rate: float = option(
        1e-2, "The highest learning rate of the evidence weights that are trained with an adapter.", above=0
    )
    batch: int = option(128, "Spans in a step; packed takes whole chunks with about that many spans.", low=1)
    checkpoint_steps: int = option(50, "Steps between checkpoints. A killed run continues from the last one.", low=1)
    nulls: float = option(
        1.0,
        "Share of the over-generated spans that each epoch uses; the loss weights them accordingly.",
        above=0,
        high=1,
    )
    evaluations: int = option(1, "How many times in an epoch the dev set is linked; the best linker is kept.", low=1)
    tune: bool = option(True, "Tune on the dev set how readily the linker links. The paper does not do this.")
    tokens: int | None = option(
        None, "Wordpieces computed at a time, a matter of memory; what suits the device if not given.", low=1, cli=False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateOptions(Options):
    """How the mention table's spans and their candidates are chosen."""

    candidates: int = option(30, "Maximum number of candidates for a span.", low=1)
    min_link_probability: float = option(
        0.005, "Ignore spans whose words have a lower link probability.", low=0, high=1
    )
    min_prior: float = option(0.0, "Least prior of a candidate, before renormalisation.", low=0, below=1, cli=False)
    longest: int = option(10, "Maximum words in a span.", low=1, cli=False)
    ignore_case: bool = option(False, "Treat capitals and small letters alike, for text such as tweets.")
    dates: bool = option(False, "Whether numbers, months and dates can be spans, as in early Wikipedia.", cli=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorOptions(Options):
    """How the prior-only baseline decides."""

    threshold: float = option(0.1, "Link a span if its link probability is at least this.", low=0, high=1)
    rule: Rule = option("longest", "Which of several overlapping spans is linked.")


@dataclass(frozen=True, slots=True, kw_only=True)
class WikipediaOptions(Options):
    """Which documents are made of Wikipedia's articles."""

    documents: int = option(2000, "Documents to train on.", low=1)
    held_out: int = option(200, "Documents to tune on.", low=0)
    words: int = option(300, "About how many words a document has: the first paragraphs of its article.", low=10)
    usual: float = option(
        0.1, "Leave an unlinked span out of the loss if its link probability is at least this.", low=0, high=1
    )
    later: float = option(
        0.02,
        "Leave a later mention out instead of labelling it if its link probability is below this.",
        low=0,
        high=1,
        cli=False,
    )
    part: float = option(
        0.1, "Least prior for a part of a longer name to mean what that name was linked to.", low=0, high=1, cli=False
    )
    min_links: int = option(4, "Least number of links in a document.", low=1, cli=False)
    names: bool = option(
        True, "Label names only. Common nouns, whose links are usually in lower case (steel, water), are no entities."
    )
    styles: float = option(
        0.25, "Share of the training documents to put into another style: lower case, no punctuation, a headline.",
        low=0, high=1,
    )  # fmt: skip
    seed: int = option(0, "Seed for the choice of articles.", low=0)
