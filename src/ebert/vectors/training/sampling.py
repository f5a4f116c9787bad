"""What is drawn at random in training: which words are left out, which are negatives."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_ALL = (1 << 64) - 1


def keep_thresholds(counts: NDArray[np.int64], *, sample: float) -> NDArray[np.uint32]:
    """Give, of 2^32 - 1, how often each word survives subsampling: ``sqrt(t/f) + t/f`` for the share f of the text.

    Zero means never, so a word that is trained at all has at least one.
    """
    if sample <= 0:
        return np.full(len(counts), 0xFFFFFFFF, np.uint32)
    share = counts / max(int(counts.sum()), 1)
    kept = np.minimum(np.sqrt(sample / share) + sample / share, 1.0)
    return np.maximum(kept * 0xFFFFFFFF, 1).astype(np.uint32)


def alias_table(weights: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Prepare drawing in constant time (Walker 1977): a share for each column, and which one has the rest."""
    count = len(weights)
    share = np.asarray(weights, np.float64) * (count / np.sum(weights))
    alias = np.arange(count, dtype=np.int32)
    poor, rich = list(np.flatnonzero(share < 1)), list(np.flatnonzero(share >= 1))
    while poor and rich:
        low, high = poor.pop(), rich[-1]
        alias[low] = high
        share[high] -= 1 - share[low]
        if share[high] < 1:
            poor.append(rich.pop())
    share[poor + rich] = 1  # what rounding left over
    return share.astype(np.float32), alias


def stream(*numbers: int) -> NDArray[np.uint64]:
    """Give the state of a random generator of its own for each combination of numbers (splitmix64)."""
    value = 0
    for number in numbers:
        value = (value + number + 1) * 0x9E3779B97F4A7C15 & _ALL
        value = (value ^ value >> 30) * _MIX[0] & _ALL
        value = (value ^ value >> 27) * _MIX[1] & _ALL
        value ^= value >> 31
    return np.array([value or 1], np.uint64)
