"""Macro precision, recall and F1, as scikit-learn computes them: the mean over relations, in percent."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Scores:
    """Precision, recall and F1 of every relation, as shares, and how often each occurs."""

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]
    support: NDArray[np.int64]
    given: NDArray[np.int64]
    """How often each was the classifier's answer."""

    def macro(self) -> dict[str, float]:
        """Give the means over the relations that occur or were given, in percent."""
        present = (self.support > 0) | (self.given > 0)
        return {
            name: 100 * float(values[present].mean()) if present.any() else 0.0
            for name, values in (("precision", self.precision), ("recall", self.recall), ("f1", self.f1))
        }


Numbers = Sequence[int] | NDArray[np.int64]


def confusion(gold: Numbers, given: Numbers, relations: int) -> NDArray[np.int64]:
    """Count, for each true relation (row), how often each relation (column) was given."""
    pairs = np.asarray(gold, np.int64) * relations + np.asarray(given, np.int64)
    return np.bincount(pairs, minlength=relations * relations).reshape(relations, relations)


def scores(table: NDArray[np.int64]) -> Scores:
    """Score a table of confusions. A relation that is never given has precision 0, as usual."""
    right = np.diagonal(table).astype(np.float64)
    support, given = table.sum(axis=1), table.sum(axis=0)
    precision = right / np.maximum(given, 1)
    recall = right / np.maximum(support, 1)
    f1 = 2 * right / np.maximum(support + given, 1)
    return Scores(precision, recall, f1, support, given)
