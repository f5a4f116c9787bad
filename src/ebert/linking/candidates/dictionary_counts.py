"""The counts of a corpus and the scores of a dictionary put together, with a link probability for every surface.

What a surface means weighs w(e) = c(e) + k s(e), with its links c(e) in the corpus and the dictionary's score s(e). A
score based on few links says little, so it gets a smaller k. The dictionary does not say how many links there were, but
0.975610 must be at least 40 of 41, and most rare mentions have 1 of 1.

The link probability of a surface is counted in pages of the corpus that have links: (L + a p0) / (O + a), for L links
among O occurrences. p0 is the mean of L / O over surfaces of the dictionary of the same class: as many words, written
with the same capitals, and about as frequent. Surfaces that never occur belong to the class of those that occur once.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert.wikipedia.names import NameList

FACTORS = (1, 2, 5, 10, 20, 50, 100)  # the smallest will do: spellings are counted together
NEAR = 0.002  # how far rounding to whole numbers may move a prior
CLOSE = 0.05  # how far it may move a link probability, as a share of it
TRIALS = 500  # the largest number of links that a score may stand for
DIGITS = 0.6e-6  # half of the last digit of a score, and a little
COARSE = 10  # surfaces a class needs to weigh as much as all classes of its capitals and words together

Array = NDArray[Any]


@dataclass(frozen=True)
class MergeOptions:
    """The constants, chosen on held-out articles of Wikipedia, and the limits for a surface and an entity."""

    score: float = 2.0  # links that a well-founded score counts as
    doubt: float = 5.0  # links behind a score for which it counts half of that
    links: float = 0.5  # occurrences that the class of a surface counts as in its link probability
    surfaces: int = 10_000  # of an entity, of those that only the dictionary has
    entities: int = 100  # of a surface


@dataclass(frozen=True, slots=True)
class Counted:
    """Surfaces in a corpus."""

    tokens: Array  # words of all surfaces, concatenated
    sizes: Array  # (surfaces) how many words each has
    pairs: Array  # (meanings) surface << 32 | row, sorted and unique
    counts: Array  # (meanings) how often it was linked so
    occurrences: Array  # (surfaces) in pages with links
    links: Array  # (surfaces) of its occurrences that are links


def merge(
    counted: Counted, pairs: Array, scores: Array, words: NameList, dropped: Counter[str], options: MergeOptions
) -> tuple[Array, Array, Array]:
    """Return surfaces and what they mean, as pairs and counts, and the occurrences of each surface, as whole numbers.

    `pairs` and `scores` are the lines of the dictionary; tokens are indices into `words`.
    """
    named = np.zeros(len(counted.sizes), bool)
    named[pairs >> 32] = True
    probability = link_probability(counted, named, words, options)
    trials = behind(scores)
    worth = options.score * trials / (trials + options.doubt) * scores
    both = np.concatenate([counted.pairs, pairs])
    both, number = np.unique(both, return_inverse=True)
    weights = np.bincount(number, np.concatenate([counted.counts, worth]), len(both))
    kept = _within(both, weights, np.bincount(number[: len(counted.pairs)], minlength=len(both)) > 0, dropped, options)
    both, weights = both[kept], weights[kept]
    surface = both >> 32
    total = np.bincount(surface, weights, len(counted.sizes))
    natural = probability * (counted.occurrences + options.links)  # links that there would be
    return both, *whole(surface, weights / total[surface], natural, probability)


def behind(scores: Array) -> Array:
    """Return the least number of links that can be behind each score.

    >>> behind(np.array([1.0, 0.666667, 0.97561])).tolist()
    [1, 3, 41]
    """
    values, number = np.unique(scores, return_inverse=True)
    found = np.full(len(values), TRIALS, np.int64)
    open_ = np.arange(len(values))
    for trials in range(1, TRIALS):
        near = np.abs(np.rint(values[open_] * trials) / trials - values[open_]) <= DIGITS
        found[open_[near]] = trials
        open_ = open_[~near]
    return found[number]


def link_probability(counted: Counted, named: Array, words: NameList, options: MergeOptions) -> Array:
    """Return the link probability of each surface; `named` are those that the dictionary has."""
    occurrences, links = counted.occurrences, np.minimum(counted.links, counted.occurrences)
    bucket = np.minimum(np.frexp(np.maximum(occurrences, 1))[1], 10)
    coarse = _class(counted, words)
    fine = coarse * 11 + bucket
    known = named & (occurrences > 0)
    ratio = links[known] / occurrences[known]

    def mean(classes: Array, before: Array | float) -> Array:
        size = int(classes.max(initial=0)) + 1
        number = np.bincount(classes[known], minlength=size)
        ratios = np.bincount(classes[known], ratio, size)
        prior = np.zeros(size)
        prior[classes] = before
        return ((ratios + COARSE * prior) / (number + COARSE))[classes]

    base = mean(fine, mean(coarse, float(ratio.mean()) if len(ratio) else 0.5))
    return np.maximum((links + options.links * base) / (occurrences + options.links), 1e-6)


def _class(counted: Counted, words: NameList) -> Array:
    """Return a number for how many words a surface has, up to four, and how they are written."""
    written = words.data.tobytes().decode("utf-8", "replace").split("\n")[:-1]
    capital = np.fromiter((word[:1].isupper() for word in written), bool, len(written))
    shouted = np.fromiter((len(word) > 1 and word.isupper() for word in written), bool, len(written))
    digits = np.fromiter((word[:1].isdigit() for word in written), bool, len(written))
    starts = np.cumsum(counted.sizes) - counted.sizes

    def count(flags: Array) -> Array:
        return np.add.reduceat(flags[counted.tokens].astype(np.int32), starts) if len(starts) else starts

    capitals, numbers, sizes = count(capital), count(digits), counted.sizes
    kinds = (numbers == sizes, count(shouted) + numbers == sizes, capitals + numbers == sizes, capitals == 0)
    kind = np.select(kinds, range(len(kinds)), len(kinds))
    first = capital[counted.tokens[starts]] if len(starts) else capital[:0]
    kind = np.where((kind == len(kinds)) & first, len(kinds) + 1, kind)
    return (np.minimum(sizes, 4) - 1) * (len(kinds) + 2) + kind


def _within(pairs: Array, weights: Array, own: Array, dropped: Counter[str], options: MergeOptions) -> Array:
    """Return which meanings to keep so that no entity and no surface has too many; drop the lightest."""
    kept = np.ones(len(pairs), bool)
    limits = (
        (pairs & 0xFFFFFFFF, options.surfaces, "mentions of entities that have more than {:,}"),
        (pairs >> 32, options.entities, "entities of mentions that mean more than {:,}"),
    )
    for key, most, reason in limits:
        over = np.flatnonzero(np.bincount(key)[key] > most)
        order = over[np.lexsort((-weights[over], ~own[over], key[over]))]
        first = np.searchsorted(key[order], key[order])
        gone = order[(np.arange(len(order)) - first >= most) & ~own[order]]
        dropped[reason.format(most)] += int(np.count_nonzero(kept[gone]))
        kept[gone] = False
    return kept


def whole(surface: Array, priors: Array, natural: Array, probability: Array) -> tuple[Array, Array]:
    """Return counts of meanings and occurrences of surfaces as whole numbers that give the priors and probabilities.

    `natural` are the links of each surface. Counts are multiplied if rounding would change too much.
    """
    counts = np.zeros(len(surface), np.int64)
    occurrences = np.zeros(len(natural), np.int64)
    left = np.ones(len(natural), bool)  # surfaces
    for factor in FACTORS:
        of = np.flatnonzero(left[surface])
        if not len(of):
            break
        one, wanted = surface[of], priors[of]
        rounded = np.maximum(1, np.rint(wanted * (natural * factor)[one])).astype(np.int64)
        total = np.bincount(one, rounded, len(natural)).astype(np.int64)
        often = np.maximum(np.rint(total / probability).astype(np.int64), total)
        far = np.abs(rounded / np.maximum(total, 1)[one] - wanted) > NEAR
        good = left & (np.abs(total / np.maximum(often, 1) - probability) <= CLOSE * probability)
        good &= np.bincount(one, far, len(natural)) == 0
        if factor == FACTORS[-1]:
            good = left
        taken = good[one]
        counts[of[taken]] = rounded[taken]
        occurrences[good] = often[good]
        left &= ~good
    return counts, occurrences
