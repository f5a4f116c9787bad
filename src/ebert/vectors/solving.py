"""The small concave problem behind a description: a vector that predicts its words, everything else frozen.

An entity with vector v predicts a word with output vector u by the sigmoid of v·u, as in training (Section 2.3 of the
paper). For words that weigh w and negatives of which each has the share p, the objective is

    f(v) = sum w log sigmoid(v·u) + negative * sum w * sum p log sigmoid(-v·u)

Its maximum is not what is wanted: training takes a number of small steps uphill and stops long before, and what lies
beyond is longer and fits the words' accidents. In the limit of many small steps training follows the gradient for a
time that is the sum of the learning rates. That path is followed here in a few large steps of the implicit Euler
method, each of which maximises f(v) - |v - before|^2 / (2 * step) by a few conjugate gradients. All entities of a batch
go together, so that the work is products of matrices.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STEPS, INNER = 4, 4  # within 10 % of the path's end, and less than 2 degrees off, on trained stores
CELLS = 1 << 22  # numbers that a batch works on at a time: 16 MB

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
    """Give a vector for each bag of words, shape (bags, dimension)."""
    dimension = objective.negatives.shape[1]
    vectors = np.zeros((len(bags), dimension), np.float32)
    order = sorted(range(len(bags)), key=lambda index: len(bags[index].weights))  # so that little is padded
    while order:
        longest = max(1, len(bags[order[-1]].weights))
        count = max(1, CELLS // (longest * dimension + len(objective.negatives)))
        chosen, order = order[-count:], order[:-count]
        outputs = np.zeros((len(chosen), longest, dimension), np.float32)
        weights = np.zeros((len(chosen), longest), np.float32)
        for place, index in enumerate(chosen):
            bag = bags[index]
            outputs[place, : len(bag.weights)] = bag.outputs
            weights[place, : len(bag.weights)] = bag.weights
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
            last, slope = slope, _combine(weights * (1 - likely), outputs) - total * (unlikely @ pushing)
            slope -= (vectors - before) / step
            # Polak and Ribière's rule, which forgets the last direction when it was of no use
            turn = np.maximum(_dot(slope - last, slope) / np.maximum(steepness, 1e-30), 0) if inner else 0
            direction, steepness = slope + turn * direction, _dot(slope, slope)
            ahead, ahead_negatives = _scores(outputs, direction), direction @ negatives.T
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
    """Give the products of rows, shape (bags, 1)."""
    return np.einsum("bd,bd->b", one, other)[:, None]


def _scores(outputs: Floats, vectors: Floats) -> Floats:
    return (outputs @ vectors[:, :, None])[:, :, 0]  # (bags, words)


def _combine(weights: Floats, outputs: Floats) -> Floats:
    return (weights[:, None, :] @ outputs)[:, 0]  # (bags, dimension)
