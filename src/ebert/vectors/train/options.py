"""How vectors are trained."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from ebert.errors import EbertError


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorTrainingOptions:
    """The defaults come from the experiments in the documentation (How the defaults were found)."""

    dim: int = 300
    """Length of the vectors."""
    epochs: int = 6
    """Passes over the text."""
    window: int = 5
    """Words to each side that a word predicts; a random part of them each time."""
    anchor_window: int = 5
    """Words to each side of an anchor that its entity predicts."""
    negative: int = 5
    """Negatives for each positive."""
    shared: int = 16
    """Negatives drawn for a whole block of inputs, weighted so that each positive meets `negative` of them."""
    sample: float = 1e-4
    """Share of the text above which words are subsampled; 0 keeps all."""
    rate: float = 0.025
    """Learning rate at the beginning; it falls linearly."""
    min_rate: float = 0.0001
    """Learning rate at the end."""
    word_power: float = 0.75
    """Negative words are drawn by their count to this power."""
    entity_power: float = 0.0
    """Negative entities are drawn by their count to this power."""
    min_word_count: int = 5
    """Words that are rarer have no vector."""
    min_entity_count: int = 5
    """Entities with fewer links to them have no vector, unless `min_opening` or a list says otherwise."""
    min_opening: int = 5
    """Entities whose page opens with this many words have a vector too, whatever their count; 0: they do not."""
    openings: bool = True
    """Let an entity predict the words of its page's opening."""
    opening_words: int = 200
    """Words of an opening that are used."""
    repeats: int = 4
    """How often the objectives of entities and words are trained in an epoch: most entities are rare."""
    finish: int = 0
    """Passes over the entities at the end, with the words fixed."""
    links: bool = True
    """Let entities predict their neighbours in the link graph."""
    seed: int = 0
    """Makes a run with one thread reproducible."""

    def __post_init__(self) -> None:
        for name, low in _AT_LEAST.items():
            value = getattr(self, name)
            if not math.isfinite(value) or value < low:
                raise EbertError(f"{name} is {value}; it must be at least {low}")
        if self.min_rate > self.rate:
            raise EbertError(f"min_rate {self.min_rate} is above rate {self.rate}; the learning rate falls")
        if self.dim > 65536 or self.shared > 4096 or self.window > 1000 or self.anchor_window > 1000:
            raise EbertError("dim above 65,536, shared above 4,096 or a window above 1,000 is surely a slip")


_AT_LEAST: dict[str, float] = {
    "dim": 1, "epochs": 1, "window": 1, "anchor_window": 1, "negative": 1, "shared": 1, "sample": 0, "rate": 0,
    "min_rate": 0, "min_word_count": 1, "min_entity_count": 0, "min_opening": 0, "opening_words": 1, "repeats": 1,
    "finish": 0, "seed": 0,
}  # fmt: skip

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"dim": 768, "min_opening": 0, "openings": False, "repeats": 1, "finish": 0},
}
"""`paper`: the three objectives of Section 2.3 as in the paper, entities with at least 5 links."""


def preset(name: str, **changes: Any) -> VectorTrainingOptions:
    """Give the options of a preset, with changes."""
    if name not in PRESETS:
        raise EbertError(f"unknown preset {name!r}; choose one of {', '.join(PRESETS)}")
    known = {field.name for field in fields(VectorTrainingOptions)}
    if unknown := set(changes) - known:
        raise EbertError(f"unknown option {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    return replace(VectorTrainingOptions(), **{**PRESETS[name], **changes})
