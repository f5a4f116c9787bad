"""How W is fitted, and how well it fits."""

from dataclasses import dataclass
from typing import Literal

from ebert._options import Options, option
from ebert.errors import EbertError


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentOptions(Options):
    """The defaults are the paper's: unconstrained least squares, every word the same weight, no intercept."""

    method: Literal["linear", "orthogonal", "none"] = option(
        "linear", "Least squares; 'orthogonal' keeps angles; 'none' leaves vectors as they are (dimensions must match)."
    )
    ridge: float = option(0.0, "Penalty on the size of W (times its squared norm).", low=0)
    weight_power: float = option(0.0, "Weigh words by their count to this power, where the store knows counts.")
    intercept: bool = option(False, "Also fit a constant vector.")
    length: float | None = option(None, "Scale every projected entity vector to this length.", above=0)
    held_out: float = option(0.1, "Share of words kept back for the report; W is fitted on all.", low=0, high=0.5)
    seed: int = option(0, "Decides which words are kept back.", low=0)

    def check(self) -> None:
        """Raise `EbertError` also if options do not go together."""
        Options.check(self)
        if self.ridge and self.method != "linear":
            raise EbertError(f"ridge goes with the method 'linear', not {self.method!r}")
        if (self.intercept or self.weight_power) and self.method == "none":
            raise EbertError("the method 'none' fits nothing: intercept and weight_power do not go with it")


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
    """Percentage of the words kept back whose projected vector is nearest (by cosine) to their own wordpiece."""
    top10: float | None = None
    """Percentage with their own wordpiece among the ten nearest."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is None and not name.endswith("pairs"):
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not -1e300 < value < 1e300:
                raise TypeError(f"{name} is {value!r:.60}, not a number")
