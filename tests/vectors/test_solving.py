"""A vector from words: against slow, plain gradient ascent on the same objective."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebert.vectors import from_description
from ebert.vectors.from_description import Bag, Objective, solve

DIMENSION = 20


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def slope(objective, bag, v):
    """The gradient of the objective."""
    u, n = bag.outputs.astype(float), objective.negatives.astype(float)
    towards = (bag.weights * (1 - sigmoid(u @ v))) @ u
    return towards - bag.weights.sum() * objective.negative * (objective.shares * sigmoid(n @ v)) @ n


def value(objective, bag, v):
    positive = (bag.weights * np.log(sigmoid(bag.outputs @ v))).sum()
    negative = (objective.shares * np.log(sigmoid(-objective.negatives @ v))).sum()
    return positive + bag.weights.sum() * objective.negative * negative


def ascent(objective, bag, steps=400):
    v = np.zeros(objective.negatives.shape[1])
    for _ in range(steps):
        v += objective.time / steps * slope(objective, bag, v)
    return v


def make(seed, *, words=6, negatives=30, time=0.15, scale=1.0, common=0.5):
    """Outputs as trained ones are: a direction in common, and words of a description that resemble each other."""
    rng = np.random.default_rng(seed)
    shared, topic = rng.normal(size=DIMENSION), rng.normal(size=DIMENSION)
    spread = rng.normal(size=(negatives, DIMENSION)) + common * shared
    shares = rng.random(negatives)
    objective = Objective((scale * spread).astype("f"), (shares / shares.sum()).astype("f"), 5.0, time)
    outputs = scale * (rng.normal(size=(words, DIMENSION)) + common * shared + 0.7 * topic)
    return objective, Bag(outputs.astype("f"), (rng.random(words) * 4 + 0.1).astype("f"))


def apart(one, other):
    """The angle between two vectors in degrees, and how much their lengths differ."""
    lengths = np.linalg.norm(one), np.linalg.norm(other)
    return np.degrees(np.arccos(min(1, one @ other / np.prod(lengths)))), abs(lengths[0] / lengths[1] - 1)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("time", [0.01, 0.15, 0.6])
def test_it_ends_where_many_small_steps_end(seed, time):
    objective, bag = make(seed, time=time)
    angle, longer = apart(solve(objective, [bag])[0], ascent(objective, bag))
    assert angle < 5
    assert longer < 0.15


def test_more_steps_come_as_close_as_one_likes(monkeypatch):
    monkeypatch.setattr(from_description, "STEPS", 200)
    monkeypatch.setattr(from_description, "INNER", 12)
    objective, bag = make(3)
    np.testing.assert_allclose(solve(objective, [bag])[0], ascent(objective, bag, 4000), atol=0.005)


def test_the_first_step_goes_to_the_top_of_the_parabola(monkeypatch):
    monkeypatch.setattr(from_description, "STEPS", 1)
    monkeypatch.setattr(from_description, "INNER", 1)
    objective, bag = make(6)
    g = slope(objective, bag, np.zeros(DIMENSION))
    pull = np.linalg.norm(g) ** 2 / objective.time
    bend = (bag.weights * (bag.outputs @ g) ** 2).sum() / 4
    bend += bag.weights.sum() * objective.negative * (objective.shares * (objective.negatives @ g) ** 2).sum() / 4
    np.testing.assert_allclose(solve(objective, [bag])[0], g * (g @ g) / (bend + pull), rtol=1e-4)


def test_one_word_and_one_negative_by_hand():
    """For orthogonal outputs the objective falls apart into two functions of one number each."""
    u, n = np.array([2.0, 0, 0]), np.array([0, 1.0, 0])
    objective = Objective(n[None].astype("f"), np.ones(1, "f"), 5.0, 0.1)
    x = y = 0.0
    for _ in range(10_000):
        x += 1e-5 * 3 * (1 - sigmoid(2 * x)) * 2
        y -= 1e-5 * 3 * 5 * sigmoid(y)
    found = solve(objective, [Bag(u[None].astype("f"), np.array([3.0], "f"))])[0]
    np.testing.assert_allclose(found, [x, y, 0], rtol=0.05, atol=1e-6)


def test_a_batch_gives_what_each_gives_alone(monkeypatch):
    objective, _ = make(0)
    bags = [make(seed, words=1 + seed * 3 % 11)[1] for seed in range(40)]
    alone = np.concatenate([solve(objective, [bag]) for bag in bags])
    np.testing.assert_allclose(solve(objective, bags), alone, atol=1e-5)
    monkeypatch.setattr(from_description, "CELLS", 2000)  # a few bags at a time
    np.testing.assert_allclose(solve(objective, bags), alone, atol=1e-5)
    assert solve(objective, []).shape == (0, DIMENSION)


def test_it_is_the_same_every_time():
    objective, bag = make(5)
    np.testing.assert_array_equal(solve(objective, [bag]), solve(objective, [bag]))


def test_weights_count_as_repetitions():
    objective, bag = make(2, words=3)
    weights = np.array([1, 2, 3], "f")
    repeated = Bag(np.repeat(bag.outputs, [1, 2, 3], axis=0), np.ones(6, "f"))
    one, other = solve(objective, [Bag(bag.outputs, weights), repeated])
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_longer_time_leads_further_uphill():
    values, lengths = [], []
    for time in (0.001, 0.01, 0.1, 1.0, 10.0, 100.0):
        objective, bag = make(4, time=time)
        found = solve(objective, [bag])[0].astype(float)
        values.append(value(objective, bag, found))
        lengths.append(np.linalg.norm(found))
    assert values == sorted(values)
    assert lengths == sorted(lengths)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([1e-4, 0.1, 3.0, 1000.0]),
    st.sampled_from([0.001, 1.0, 10.0]), st.sampled_from([0.0, 3.0]),
)  # fmt: skip
def test_it_never_leads_downhill_nor_to_infinity(seed, words, time, scale, common):
    objective, bag = make(seed, words=words, time=time, scale=scale, common=common)
    found = solve(objective, [bag])[0]
    assert np.isfinite(found).all()
    with np.errstate(divide="ignore"):
        assert value(objective, bag, found.astype(float)) >= value(objective, bag, np.zeros(DIMENSION)) - 1e-4


def test_words_of_no_weight_and_outputs_of_zero_are_harmless():
    objective, bag = make(1)
    found = solve(objective, [Bag(bag.outputs, np.zeros_like(bag.weights)), Bag(bag.outputs * 0, bag.weights)])
    assert np.isfinite(found).all()
    assert not found[0].any()
