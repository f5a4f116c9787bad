"""The five inputs that the paper compares (Section 4.2): how entities are shown, and whether they are carried by W."""

from dataclasses import dataclass

import numpy as np

from ebert.alignment import Alignment, AlignmentOptions
from ebert.errors import EbertError
from ebert.model import EBert, Mode


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to feed a sample."""

    mode: Mode
    aligned: bool = True
    published: str = ""
    """What the paper's table calls it."""


VARIANTS = {
    "bert": Variant("bert", published="BERT"),
    "concat": Variant("concat", published="E-BERT-concat"),
    "replace": Variant("replace", published="E-BERT-replace"),
    "wikipedia2vec-concat": Variant("concat", aligned=False, published="Wikipedia2Vec-BERT-concat"),
    "wikipedia2vec-replace": Variant("replace", aligned=False, published="Wikipedia2Vec-BERT-replace"),
}


def variant(name: str) -> Variant:
    """Give the variant with a name."""
    if name not in VARIANTS:
        raise EbertError(f"unknown mode {name!r}; choose one of {', '.join(VARIANTS)}")
    return VARIANTS[name]


def alignment_for(model: EBert, name: str) -> Alignment | None:
    """Give what carries the entities of a variant: W, or nothing for the paper's unaligned baselines.

    Where W scales its vectors to a length, the baselines' have it too, so that both differ in W only.
    """
    chosen = variant(name)
    if model.vectors is None or model.alignment is None:
        if chosen.mode != "bert":
            raise EbertError(
                f"the mode {name} needs entity vectors: give a model made by 'ebert align' instead of an encoder"
            )
        return None
    if chosen.aligned:
        return model.alignment
    width = model.alignment.target
    if model.vectors.dimension != width:
        raise EbertError(
            f"the mode {name} feeds vectors as they are, so that they must be {width} long, as the wordpiece "
            f"vectors of {model.name} are; those of {model.vectors.path} have {model.vectors.dimension}"
        )
    return Alignment.fit(model.vectors, {}, np.zeros((1, width), np.float32),
                         AlignmentOptions(method="none", length=model.alignment.options.length))  # fmt: skip
