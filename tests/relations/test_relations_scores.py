"""Scores, intervals and the expected maximum, against values worked out by hand or by brute force."""

import itertools

import numpy as np
import pytest

from ebert import EbertError
from ebert.finetuning.run import expected_maximum
from ebert.relations.evaluate import confusion, difference, macro_f1, scores


def test_macro_scores():
    gold, given = [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 0, 0]
    table = confusion(gold, given, 3)
    assert table.tolist() == [[2, 1, 0], [1, 1, 0], [1, 0, 0]]
    found = scores(table)
    assert found.precision.tolist() == [0.5, 0.5, 0.0]
    np.testing.assert_allclose(found.recall, [2 / 3, 1 / 2, 0])
    np.testing.assert_allclose(found.f1, [4 / 7, 1 / 2, 0])
    macro = found.macro()
    assert macro["precision"] == pytest.approx(100 / 3)
    assert macro["recall"] == pytest.approx(100 * (2 / 3 + 1 / 2) / 3)
    assert macro["f1"] == pytest.approx(100 * (4 / 7 + 1 / 2) / 3)  # the mean of F1s, not the F1 of the means


def test_relations_that_neither_occur_nor_are_given_do_not_count():
    assert scores(confusion([0, 1], [0, 1], 5)).macro() == {"precision": 100, "recall": 100, "f1": 100}
    assert scores(confusion([0, 0], [0, 4], 5)).macro()["recall"] == 25


def samples(right, count=400, relations=4, seed=0):
    random = np.random.default_rng(seed)
    gold = np.arange(count) % relations
    given = np.where(random.random(count) < right, gold, (gold + 1) % relations)
    return gold, given


def test_an_interval_holds_the_value_and_shrinks_with_samples():
    small = macro_f1(*samples(0.8), 4, resamples=300)
    large = macro_f1(*samples(0.8, count=6400), 4, resamples=300)
    assert small.low < small.value < small.high
    assert 2 < (small.high - small.low) / (large.high - large.low) < 8  # four times, up to chance


def test_differences_are_paired():
    gold, one = samples(0.8)
    other = one.copy()
    other[:8] = (gold[:8] + 2) % 4
    change = difference(gold, one, other, 4, resamples=300)
    assert change.value > 0
    assert change.clear
    apart = macro_f1(gold, one, 4, resamples=300)
    assert change.high - change.low < (apart.high - apart.low) / 2
    same = difference(gold, one, one, 4, resamples=100)
    assert (same.value, same.low, same.high, same.clear) == (0, 0, 0, False)
    assert difference(gold, other, one, 4, resamples=300).value == pytest.approx(-change.value)
    with pytest.raises(EbertError, match="only on the same samples"):
        difference(gold, one, other[:5], 4)


@pytest.mark.parametrize("values", [[3.0], [1.0, 5.0], [80.0, 81.0, 85.0, 81.0]])
def test_the_expected_maximum_is_the_mean_over_all_draws(values):
    wanted = [np.mean([max(draw) for draw in itertools.product(values, repeat=n)]) for n in range(1, len(values) + 1)]
    np.testing.assert_allclose(expected_maximum(values), wanted)
