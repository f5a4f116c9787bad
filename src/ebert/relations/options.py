"""How a classifier is fed and trained; the defaults are the paper's best configuration. Nothing heavy is imported."""

from dataclasses import dataclass

from ebert._options import Options, option
from ebert.errors import EbertError
from ebert.finetuning.options import FinetuningOptions
from ebert.model.options import Mode


@dataclass(frozen=True, slots=True)
class InputVariant:
    """One way to feed a sample."""

    mode: Mode
    aligned: bool = True  # whether entity vectors are projected by W
    published: str = ""  # its name in the paper's table


# The five inputs that the paper compares (Section 4.2).
VARIANTS = {
    "bert": InputVariant("bert", published="BERT"),
    "concat": InputVariant("concat", published="E-BERT-concat"),
    "replace": InputVariant("replace", published="E-BERT-replace"),
    "wikipedia2vec-concat": InputVariant("concat", aligned=False, published="Wikipedia2Vec-BERT-concat"),
    "wikipedia2vec-replace": InputVariant("replace", aligned=False, published="Wikipedia2Vec-BERT-replace"),
}


def variant(name: str) -> InputVariant:
    """Return the variant with a name."""
    if name not in VARIANTS:
        raise EbertError(f"unknown mode {name!r}; choose one of {', '.join(VARIANTS)}")
    return VARIANTS[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationTrainingOptions(FinetuningOptions):
    """How long, how fast and on how much a classifier is trained."""

    samples: int | None = option(None, "Training samples to use, evenly over the relations.  [default: all]", low=1)
    dev_samples: int | None = option(None, "Dev samples for choosing the best epoch.  [default: all]", low=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvingOptions(Options):
    """How the entities of mentions are found."""

    ids_only: bool = option(False, "Use only entities that are named in the data.")
    threshold: float = option(0.5, "Share of a surface's links that its most common entity must have.", low=0, high=1)
