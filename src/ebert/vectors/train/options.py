"""How vectors are trained. The defaults come from experiments (docs/concepts/training.md)."""

from dataclasses import dataclass, fields
from typing import Any

from ebert._options import Options, option
from ebert.errors import EbertError


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorTrainingOptions(Options):
    """How vectors are trained: the objectives of Section 2.3 of the paper and what they are trained on."""

    dim: int = option(300, "Length of the vectors.", low=1, high=65536)
    epochs: int = option(6, "Passes over the text.", low=1)
    window: int = option(5, "How many words on each side a word predicts.", low=1, high=1000)
    anchor_window: int = option(5, "How many words on each side of an anchor its entity predicts.", low=1, high=1000)
    negative: int = option(5, "Negatives for each positive.", low=1)
    shared: int = option(16, "Negatives drawn for a block of inputs together.", low=1, high=4096)
    sample: float = option(1e-4, "Subsample words above this share of the text; 0 keeps all.", low=0)
    rate: float = option(0.025, "Learning rate at the beginning.", low=0)
    min_rate: float = option(0.0001, "Learning rate at the end.", low=0)
    word_power: float = option(0.75, "Negative words are drawn by their count to this power.")
    entity_power: float = option(0.0, "Negative entities are drawn by their count to this power.")
    min_word_count: int = option(5, "Words that occur less often get no vector.", low=1)
    min_entity_count: int = option(5, "Entities with fewer links to them get no vector ...", low=0)
    min_opening: int = option(5, "... unless their page opens with this many words. 0: no such exception.", low=0)
    openings: bool = option(True, "Entities predict the words of their page's opening.")
    opening_words: int = option(200, "How many words of an opening to use.", low=1)
    repeats: int = option(4, "How many times entities are trained in an epoch.", low=1)
    finish: int = option(0, "Passes over the entities at the end, with the words fixed.", low=0)
    links: bool = option(True, "Entities predict their neighbours in the link graph.")
    seed: int = option(0, "With one thread, the same seed gives the same vectors.", low=0)

    def __post_init__(self) -> None:
        self.check()
        if self.min_rate > self.rate:
            raise EbertError(f"min_rate {self.min_rate} is above rate {self.rate}; the learning rate decreases")


# `paper`: the three objectives of Section 2.3 as in the paper, entities with at least 5 links.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"dim": 768, "min_opening": 0, "openings": False, "repeats": 1, "finish": 0},
}


def preset(name: str, **changes: Any) -> VectorTrainingOptions:
    """Return the options of a preset, with changes."""
    if name not in PRESETS:
        raise EbertError(f"unknown preset {name!r}; choose one of {', '.join(PRESETS)}")
    known = {field.name for field in fields(VectorTrainingOptions)}
    if unknown := set(changes) - known:
        raise EbertError(f"unknown option {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    return VectorTrainingOptions(**(PRESETS[name] | changes))
