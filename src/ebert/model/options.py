"""How W is fitted, and how well it fits."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from ebert.errors import EbertError

Method = Literal["linear", "orthogonal", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentOptions:
    """The defaults are the paper's: unconstrained least squares, every word the same weight, no intercept."""

    method: Method = "linear"
    """`linear` is least squares, `orthogonal` keeps angles, `none` leaves vectors as they are (dimensions must match):
    the paper's Wikipedia2Vec-BERT baselines."""
    ridge: float = 0.0
    """Penalty on the size of W (times its squared norm)."""
    weight_power: float = 0.0
    """Weigh each word by its count to this power, where the store knows counts."""
    intercept: bool = False
    """Also fit a constant vector."""
    length: float | None = None
    """Scale every carried entity vector to this length."""
    held_out: float = 0.1
    """Share of the words that is kept back to report how well W carries words it has not seen."""
    seed: int = 0
    """Decides which words are kept back. The final W is fitted on all words."""

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise EbertError(f"unknown method {self.method!r}; choose one of {', '.join(get_args(Method))}")
        for name in ("ridge", "weight_power", "length", "held_out"):
            if not math.isfinite(getattr(self, name) or 0.0):
                raise EbertError(f"{name} is {getattr(self, name)}; a finite number is needed")
        if self.ridge < 0:
            raise EbertError(f"ridge is {self.ridge}; it cannot be negative")
        if self.seed < 0:
            raise EbertError(f"seed is {self.seed}; it cannot be negative")
        if self.ridge and self.method != "linear":
            raise EbertError(f"ridge goes with the method 'linear', not {self.method!r}")
        if (self.intercept or self.weight_power) and self.method == "none":
            raise EbertError("the method 'none' fits nothing: intercept and weight_power do not go with it")
        if self.length is not None and self.length <= 0:
            raise EbertError(f"length is {self.length}; it must be positive")
        if not 0 <= self.held_out <= 0.5:
            raise EbertError(f"held_out is {self.held_out}; it must be between 0 and 0.5")


@dataclass(frozen=True, slots=True)
class AlignmentReport:
    """What the fit achieved."""

    pairs: int
    """Words that are also wordpieces."""
    r2: float | None
    """Share of the variance of their wordpiece vectors that W explains."""
    held_out_pairs: int = 0
    """Words kept back for the three figures below, which come from a W fitted on the others."""
    held_out_r2: float | None = None
    """The same share on the words kept back."""
    top1: float | None = None
    """Percentage of the words kept back whose carried vector is nearest (by cosine) to their own wordpiece."""
    top10: float | None = None
    """Percentage with their own wordpiece among the ten nearest."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is None and not name.endswith("pairs"):
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not -1e300 < value < 1e300:
                raise TypeError(f"{name} is {value!r:.60}, not a number")
