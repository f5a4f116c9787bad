"""What can be chosen about a model: the mode of injection (Section 3.2), and how W is fitted (Section 3.1)."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from ebert._options import Options, option
from ebert.errors import EbertError

MASK = "[MASK]"  # is understood in every text, whatever an encoder calls its mask
Mode = Literal["bert", "concat", "replace"]
MODES: tuple[Mode, ...] = get_args(Mode)

# What the encoder is fed where a text mentions an entity. A new mode is a line here and one of `Mode`: sequences,
# commands, the service and the reports take the modes from here.
TEMPLATES: dict[Mode, str] = {
    "bert": "{surface}",  # wordpieces only
    "concat": "{entity} / {surface}",  # the entity, a slash and the wordpieces
    "replace": "{entity}",  # the entity in the place of the wordpieces
}


def feeds_entities(mode: Mode) -> bool:
    """Return whether a mode makes a difference between texts with and without mentions."""
    return "{entity}" in TEMPLATES[mode]


def check_mode(mode: str) -> None:
    """Raise `EbertError` if there is no such mode."""
    if mode not in MODES:
        raise EbertError(f"unknown mode {mode!r}; choose one of {', '.join(MODES)}")


def parse_modes(given: str | None, *, with_entities: bool) -> list[Mode]:
    """Read a list such as "bert,concat", or "all": all modes, or only `bert` without entities, as if none is given."""
    if not given or given == "all":
        return [mode for mode in MODES if with_entities or not feeds_entities(mode)]
    names = dict.fromkeys(name.strip() for name in given.split(","))
    if unknown := [name for name in names if name not in MODES]:
        raise EbertError(f"unknown mode {unknown[0]!r}; choose from {', '.join(MODES)}")
    chosen = [mode for name in names for mode in MODES if mode == name]
    if not with_entities and (needy := [mode for mode in chosen if feeds_entities(mode)]):
        raise EbertError(f"the mode {needy[0]} needs entity vectors: give a --model made by 'ebert align'")
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentOptions(Options):
    """The defaults are the paper's: unconstrained least squares, every word the same weight, no intercept."""

    method: Literal["linear", "orthogonal", "none"] = option(
        "linear",
        "'linear': least squares; 'orthogonal': keep angles; 'none': use vectors as they are (dimensions must match).",
    )
    ridge: float = option(0.0, "Penalty on the size of W (times its squared norm).", low=0)
    weight_power: float = option(0.0, "Weight each word by its count to this power. The store must have counts.")
    intercept: bool = option(False, "Also fit a constant vector.")
    length: float | None = option(None, "Scale every projected entity vector to this length.", above=0)
    held_out: float = option(
        0.1, "Share of the words to hold out for the report; the final W is fitted on all words.", low=0, high=0.5
    )
    seed: int = option(0, "Seed for the choice of held-out words.", low=0)

    def check(self) -> None:
        """Raise `EbertError` also if options do not go together."""
        Options.check(self)
        if self.ridge and self.method != "linear":
            raise EbertError(f"ridge goes with the method 'linear', not {self.method!r}")
        if (self.intercept or self.weight_power) and self.method == "none":
            raise EbertError("the method 'none' fits nothing: intercept and weight_power do not go with it")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningOptions(Options):
    """How W is learned through the encoder; the defaults were chosen on held-out passages."""

    steps: int = option(4000, "Maximum number of gradient steps.", low=1)
    minutes: float | None = option(None, "Time limit for the steps, without loading and evaluation.", above=0)
    rate: float = option(3e-4, "Adam's learning rate at the start; it falls linearly.", above=0)
    tokens: int = option(1000, "Wordpieces in a batch.", low=16)
    longest: int = option(30, "Maximum wordpieces in a passage; longer passages are not used.", low=8)
    passages: int = option(150_000, "Maximum number of passages to learn from.", low=1)
    held_passages: int = option(
        2000, "Maximum number of held-out passages; nothing is learned from their pages.", low=1
    )
    mask: float = option(0.25, "Share of the content words to mask.", above=0, high=1)
    evaluate: int = option(250, "Steps between evaluations. Each evaluation also saves a checkpoint.", low=1)
    patience: int = option(3, "Stop after this many evaluations without a better loss.", low=1)
    hidden: int = option(
        0, "Width of a hidden layer to learn in addition to W, starting at zero; 0: no hidden layer.", low=0
    )
    precision: Literal["auto", "fp32", "bf16"] = option(
        "auto", "Number type of the encoder's computations; auto: bf16 if the processor has it."
    )
    seed: int = option(0, "Seed for the choice of passages and words, and for their order.", low=0)


@dataclass(frozen=True, slots=True)
class LearningReport:
    """What learning achieved: the mean loss of masked words in held-out passages, by mode."""

    steps: int
    best_step: int
    """The step whose state was kept."""
    seconds: float
    passages: int
    held_out: int
    left_out: int
    """Titles whose passages were not used."""
    without: dict[str, float]
    """With a vector of zeros in the place of each entity."""
    least_squares: dict[str, float]
    learned: dict[str, float]
    options: dict[str, Any]
    precision: str


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
