"""From a description to a vector: the words of a paragraph, weighted as training weights those of a page's opening."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.vectors.catalogue import Catalogue
from ebert.vectors.solving import Bag, Objective, solve
from ebert.wikipedia.tokens import words_of

DRAWN = 2048  # places in the distribution of negatives that are looked at; frequent words take several
LARGEST = 1e6  # number that an option is taken for: anything above, or not a number, was never trained with
REMEMBERED = 1 << 17  # words that are looked up once
# As `ebert vectors train` has them: for stores that do not tell how they were trained.
OPTIONS: dict[str, float] = {
    "negative": 5, "sample": 1e-4, "word_power": 0.75, "rate": 0.025, "min_rate": 0.0001, "epochs": 6, "repeats": 4,
    "finish": 0, "opening_words": 200,
}  # fmt: skip


class Describer:
    """Makes vectors of descriptions, for one store."""

    def __init__(
        self, catalogue: Catalogue, outputs: NDArray[Any], made: Mapping[str, Any], *, lowercase: bool
    ) -> None:
        self._catalogue, self._outputs, self._lowercase = catalogue, outputs, lowercase
        trained = made.get("options")
        self._options = OPTIONS | {
            name: value
            for name, value in (trained.items() if isinstance(trained, dict) else ())
            if name in OPTIONS and isinstance(value, int | float) and 0 <= value < LARGEST
        }
        self._rows: dict[str, tuple[int, float] | None] = {}

    def vector(self, description: str) -> NDArray[np.float32]:
        """Give the vector of a description."""
        found = self.vectors([description])[0]
        if isinstance(found, EbertError):
            raise found
        return found

    def vectors(self, descriptions: Sequence[str]) -> list[NDArray[np.float32] | EbertError]:
        """Give the vector of each description, or why it has none."""
        bags = [self._bag(description) for description in descriptions]
        with np.errstate(over="ignore", invalid="ignore"):  # seen below
            solved = iter(solve(self._objective, [bag for bag in bags if isinstance(bag, Bag)]))
        made = [next(solved) if isinstance(bag, Bag) else bag for bag in bags]
        return [
            one if isinstance(one, EbertError) or np.isfinite(one).all() else _runaway(description)
            for one, description in zip(made, descriptions, strict=True)
        ]

    def _bag(self, description: str) -> Bag | EbertError:
        """Count the words of a description as often as subsampling would leave them, in the mean."""
        counts = Counter(words_of(description, lowercase=self._lowercase))
        found = [(known, count) for word, count in counts.items() if (known := self._known(word))]
        if not found:
            why = f"the store knows no word of the description {_shown(description)}; describe it in other words"
            return EbertError(why)
        weights = np.array([count * kept for (_, kept), count in found])
        weights *= min(1.0, self._options["opening_words"] / counts.total())  # no more than an opening has
        outputs = np.asarray(self._outputs[[row for (row, _), _ in found]], np.float32)
        return Bag(outputs, weights.astype(np.float32))

    def _known(self, word: str) -> tuple[int, float] | None:
        """Give a word's row, and how likely it survives subsampling."""
        if word not in self._rows:
            if len(self._rows) >= REMEMBERED:
                self._rows.clear()
            found = self._catalogue.word(word)
            self._rows[word] = (found[0], self._kept(found[1])) if found else None
        return self._rows[word]

    def _kept(self, count: int | None) -> float:
        sample, share = self._options["sample"], (count or 0) / self._total
        return 1.0 if sample <= 0 or share <= 0 else float(min(1.0, np.sqrt(sample / share) + sample / share))

    @cached_property
    def _counts(self) -> NDArray[np.float64]:
        counts = [count or 1 for count in self._catalogue.word_counts()]
        return np.maximum(np.array(counts, np.float64), 1)

    @cached_property
    def _total(self) -> float:
        return float(self._counts.sum())

    @cached_property
    def _objective(self) -> Objective:
        """Prepare what all descriptions share: the negatives, taken at even distances from their distribution."""
        options = self._options
        reach = np.cumsum(self._counts ** options["word_power"])
        places = np.searchsorted(reach, (np.arange(DRAWN) + 0.5) / DRAWN * reach[-1])
        rows, times = np.unique(places, return_counts=True)
        negatives = np.ascontiguousarray(self._outputs[rows], np.float32)
        if not negatives.any():
            raise EbertError("the output vectors of the store are all zero: train it, or give a vector (--vector)")
        mean_rate = (options["rate"] + options["min_rate"]) / 2
        passes = options["epochs"] * options["repeats"] + options["finish"]
        return Objective(negatives, (times / DRAWN).astype(np.float32), options["negative"], passes * mean_rate)


def _runaway(description: str) -> EbertError:
    return EbertError(
        f"the description {_shown(description)} gives a vector with values that are infinite or not numbers: the "
        "output vectors of the store are damaged; restore them, make the store again, or give a vector (--vector)"
    )


def _shown(description: str) -> str:
    return repr(description if len(description) <= 60 else description[:57] + "...")
