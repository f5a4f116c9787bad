"""How sure a macro F1 is, and a difference between two of them: a (paired) bootstrap over the samples.

Samples are drawn with replacement within each relation, as many as it has; a pair of runs gets the same draws.
"""

import numpy as np
from numpy.typing import NDArray

from ebert._bootstrap import SEED, Interval, bounds
from ebert.errors import EbertError
from ebert.relations.scores import scores

RESAMPLES = 1000

Numbers = NDArray[np.int64]


def macro_f1(gold: Numbers, given: Numbers, relations: int, *, resamples: int = RESAMPLES) -> Interval:
    """Give a macro F1 in percent with its interval."""
    value = _f1(gold, given, relations, np.ones(len(gold)))
    return Interval(value, *bounds([_f1(gold, given, relations, w) for w in _weights(gold, relations, resamples)]))


def difference(gold: Numbers, one: Numbers, other: Numbers, relations: int, *, resamples: int = RESAMPLES) -> Interval:
    """Give by how many points the macro F1 of one run is above that of another on the same samples."""
    if not len(gold) == len(one) == len(other):
        raise EbertError("two runs can be compared on the same samples only")
    even = np.ones(len(gold))
    value = _f1(gold, one, relations, even) - _f1(gold, other, relations, even)
    drawn = [
        _f1(gold, one, relations, w) - _f1(gold, other, relations, w) for w in _weights(gold, relations, resamples)
    ]
    return Interval(value, *bounds(drawn))


def _weights(gold: Numbers, relations: int, resamples: int) -> list[NDArray[np.float64]]:
    """Give, for every resample, how often each sample was drawn."""
    random = np.random.default_rng(SEED)
    groups = [np.flatnonzero(gold == relation) for relation in range(relations)]
    drawn = []
    for _ in range(resamples):
        picks = [group[random.integers(len(group), size=len(group))] for group in groups if len(group)]
        drawn.append(np.bincount(np.concatenate(picks), minlength=len(gold)).astype(np.float64))
    return drawn


def _f1(gold: Numbers, given: Numbers, relations: int, weights: NDArray[np.float64]) -> float:
    pairs = np.bincount(gold * relations + given, weights=weights, minlength=relations * relations)
    return scores(np.rint(pairs).astype(np.int64).reshape(relations, relations)).macro()["f1"]
