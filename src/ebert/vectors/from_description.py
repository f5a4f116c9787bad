"""Make a vector from a description: the vector that predicts the words of a paragraph, with everything else frozen.

The words are weighted in the same way as training weights those of a page's opening. An entity with vector v predicts a
word with output vector u by the sigmoid of v·u, as in training (Section 2.3 of the paper). For words with weights w and
negatives with shares p, the objective is

    f(v) = sum w log sigmoid(v·u) + negative * sum w * sum p log sigmoid(-v·u)

Its maximum is not the goal: training takes a number of small steps uphill and stops long before it, and vectors beyond
that point are longer and overfit the words. In the limit of many small steps, training follows the gradient for a time
that is the sum of the learning rates. Here that path is followed in a few large steps of the implicit Euler method.
Each step maximises f(v) - |v - before|^2 / (2 * step) by a few conjugate gradients. All entities of a batch are
computed together, as products of matrices.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.vectors.catalogue import Catalogue
from ebert.vectors.matrix import Matrix
from ebert.wikipedia.tokens import WordsOf

DRAWN = 2048  # places sampled from the distribution of negatives; frequent words take several
LARGEST = 1e6  # the largest option that is accepted: nobody trained with more, or with something that is not a number
REMEMBERED = 1 << 17  # words whose vectors are cached
# As `ebert vectors train` has them: for stores that do not tell how they were trained.
OPTIONS: dict[str, float] = {
    "negative": 5, "sample": 1e-4, "word_power": 0.75, "rate": 0.025, "min_rate": 0.0001, "epochs": 6, "repeats": 4,
    "finish": 0, "opening_words": 200,
}  # fmt: skip
STEPS, INNER = 4, 4  # within 10 % of the path's end, and less than 2 degrees off, on trained stores
CELLS = 1 << 22  # numbers in a batch: 16 MB

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Objective:
    """What all entities of a store share."""

    negatives: Floats  # (negatives, dimension) output vectors
    shares: Floats  # (negatives,) how likely each is drawn; they sum to one
    negative: float  # how many are drawn for each word
    time: float  # the sum of the learning rates


@dataclass(frozen=True)
class Bag:
    """The words of a description."""

    outputs: Floats  # (words, dimension) output vectors
    weights: Floats  # (words,) how often each is expected to be trained in a pass


def solve(objective: Objective, bags: Sequence[Bag]) -> Floats:
    """Return a vector for each bag of words, shape (bags, dimension)."""
    dimension = objective.negatives.shape[1]
    vectors = np.zeros((len(bags), dimension), np.float32)
    order = sorted(range(len(bags)), key=lambda index: len(bags[index].weights))  # so that little padding is needed
    while order:
        longest = max(1, len(bags[order[-1]].weights))
        count = max(1, CELLS // (longest * dimension + len(objective.negatives)))
        chosen, order = order[-count:], order[:-count]
        outputs = np.zeros((len(chosen), longest, dimension), np.float32)
        weights = np.zeros((len(chosen), longest), np.float32)
        for place, index in enumerate(chosen):
            size = len(bags[index].weights)
            outputs[place, :size], weights[place, :size] = bags[index].outputs, bags[index].weights
        vectors[chosen] = _follow(objective, outputs, weights)
    return vectors


def _follow(objective: Objective, outputs: Floats, weights: Floats) -> Floats:
    """Follow the gradient from zero; `outputs` is (bags, words, dimension), `weights` (bags, words)."""
    negatives = objective.negatives
    pushing = objective.shares[:, None] * negatives
    total = np.float32(objective.negative) * weights.sum(axis=1, keepdims=True)  # of negatives for each bag
    step = np.float32(objective.time / STEPS)
    vectors = np.zeros((len(outputs), negatives.shape[1]), np.float32)
    wanted = np.zeros_like(weights)  # scores v·u of words
    unwanted = np.zeros((len(outputs), len(negatives)), np.float32)  # and of negatives
    for _ in range(STEPS):
        before, slope, direction, steepness = vectors, vectors, vectors, np.zeros_like(total)
        for inner in range(INNER):
            likely, unlikely = _sigmoid(wanted), _sigmoid(unwanted)
            pulled = ((weights * (1 - likely))[:, None, :] @ outputs)[:, 0]  # (bags, dimension)
            last, slope = slope, pulled - total * (unlikely @ pushing)
            slope -= (vectors - before) / step
            # Polak and Ribière's rule, which drops the last direction when it did not help
            turn = np.maximum(_dot(slope - last, slope) / np.maximum(steepness, 1e-30), 0) if inner else 0
            direction, steepness = slope + turn * direction, _dot(slope, slope)
            ahead = (outputs @ direction[:, :, None])[:, :, 0]  # (bags, words)
            ahead_negatives = direction @ negatives.T  # (bags, negatives)
            bend = _dot(weights * likely * (1 - likely), ahead**2) + _dot(direction, direction) / step
            unlikely -= unlikely**2
            unlikely *= ahead_negatives**2
            bend += total * (unlikely @ objective.shares)[:, None]
            length = _dot(slope, direction) / np.maximum(bend, 1e-30)  # to where the slope would be zero
            vectors = vectors + length * direction
            wanted += length * ahead
            ahead_negatives *= length
            unwanted += ahead_negatives
    return vectors


def _sigmoid(scores: Floats) -> Floats:
    out: Floats = np.tanh(np.float32(0.5) * scores)
    out += 1
    out *= np.float32(0.5)
    return out


def _dot(one: Floats, other: Floats) -> Floats:
    """Return the products of rows, shape (bags, 1)."""
    return np.einsum("bd,bd->b", one, other)[:, None]


class Describer:
    """Makes vectors of descriptions, for one store."""

    def __init__(
        self, catalogue: Catalogue, outputs: Matrix | None, made: Mapping[str, Any], words_of: WordsOf
    ) -> None:
        if outputs is None:
            raise EbertError(
                f"{catalogue.path.parent} has no output vectors, which a description needs: train the store with ebert "
                "(ebert vectors train), import a Wikipedia2Vec model file instead of its text, or give a vector "
                "(--vector)"
            )
        self._catalogue, self._outputs, self._words_of = catalogue, outputs, words_of
        self._find = lru_cache(REMEMBERED)(catalogue.word)
        trained = made.get("options")
        self._options = OPTIONS | {
            name: value
            for name, value in (trained.items() if isinstance(trained, dict) else ())
            if name in OPTIONS and isinstance(value, int | float) and 0 <= value < LARGEST
        }

    def vector(self, description: str) -> Floats:
        """Return the vector of a description."""
        found = self.vectors([description])[0]
        if isinstance(found, EbertError):
            raise found
        return found

    def vectors(self, descriptions: Sequence[str]) -> list[Floats | EbertError]:
        """Return the vector of each description, or why it has none."""
        bags = [self._bag(description) for description in descriptions]
        with np.errstate(over="ignore", invalid="ignore"):  # seen below
            solved = iter(solve(self._objective, [bag for bag in bags if bag]))
        return [
            _checked(next(solved) if bag else None, description)
            for bag, description in zip(bags, descriptions, strict=True)
        ]

    def _bag(self, description: str) -> Bag | None:
        """Count the words of a description as often as subsampling would keep them on average."""
        counts = Counter(self._words_of(description))
        found = [(known, count) for word, count in counts.items() if (known := self._find(word))]
        if not found:
            return None
        weights = np.array([count * self._kept(seen) for (_, seen), count in found])
        weights *= min(1.0, self._options["opening_words"] / counts.total())  # no more than an opening has
        outputs = np.asarray(self._outputs[[row for (row, _), _ in found]], np.float32)
        return Bag(outputs, weights.astype(np.float32))

    def _kept(self, count: int | None) -> float:
        """Return how likely a word of this count survives subsampling."""
        sample, share = self._options["sample"], (count or 0) / self._total
        return 1.0 if sample <= 0 or share <= 0 else float(min(1.0, np.sqrt(sample / share) + sample / share))

    @cached_property
    def _counts(self) -> NDArray[np.float64]:
        return np.array([max(count or 1, 1) for count in self._catalogue.word_counts()], np.float64)

    @cached_property
    def _total(self) -> float:
        return float(self._counts.sum())

    @cached_property
    def _objective(self) -> Objective:
        """Prepare what all descriptions share: the negatives, sampled at even distances from their distribution."""
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


def _checked(vector: Floats | None, description: str) -> Floats | EbertError:
    """Return the vector of a description if it is valid, or the error that says why not."""
    shown = repr(description if len(description) <= 60 else description[:57] + "...")
    if vector is None:
        return EbertError(f"the store knows no word of the description {shown}; describe it in other words")
    if not np.isfinite(vector).all():
        return EbertError(
            f"the description {shown} gives a vector with values that are infinite or not numbers: the output vectors "
            "of the store are damaged; restore them, make the store again, or give a vector (--vector)"
        )
    return vector
