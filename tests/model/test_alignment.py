"""W: closed form, planted maps, options, errors."""

import numpy as np
import pytest
import safetensors.numpy

from ebert import Alignment, AlignmentOptions, EbertError, Vectors
from ebert.model.alignment import least_squares, procrustes


def words(count):
    return [f"word{i}" for i in range(count)]


def store(vectors, counts=None):
    return Vectors.from_arrays(words=words(len(vectors)), word_vectors=vectors, word_counts=counts)


def identity_pieces(count):
    return {word: row for row, word in enumerate(words(count))}


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_small_case_equals_the_closed_form(rng):
    x, y = rng.normal(size=(12, 3)), rng.normal(size=(12, 4))
    alignment = Alignment.fit(store(x), identity_pieces(12), y)
    closed = y.T @ x @ np.linalg.inv(x.T @ x)
    np.testing.assert_allclose(alignment.weight, closed, atol=1e-5)
    assert alignment.bias is None
    assert alignment.report.pairs == 12


@pytest.mark.parametrize(("source", "target"), [(20, 20), (20, 32), (32, 20)])
def test_a_planted_map_is_recovered(rng, source, target):
    planted = rng.normal(size=(target, source))
    x = rng.normal(size=(500, source)).astype(np.float32).astype(np.float64)
    alignment = Alignment.fit(store(x), identity_pieces(500), x @ planted.T)
    np.testing.assert_allclose(alignment.weight, planted, atol=1e-6 * np.abs(planted).max())
    assert alignment.report.r2 == pytest.approx(1)
    assert alignment.report.top1 == 100


def test_a_larger_case_has_the_residual_of_lstsq(rng):
    x, y = rng.normal(size=(3000, 200)), rng.normal(size=(3000, 256))
    reference = np.linalg.lstsq(x, y, rcond=None)[0]
    ours = least_squares(x, y)
    assert ((x @ ours.T - y) ** 2).sum() == pytest.approx(((x @ reference - y) ** 2).sum(), rel=1e-12)


def test_nearly_dependent_columns_fall_back_to_the_stable_solver(rng):
    x = rng.normal(size=(300, 10))
    x = np.hstack([x, x[:, :1] + 1e-9 * rng.normal(size=(300, 1))])
    y = rng.normal(size=(300, 5))
    reference = np.linalg.lstsq(x, y, rcond=None)[0]
    ours = least_squares(x, y)
    assert ((x @ ours.T - y) ** 2).sum() == pytest.approx(((x @ reference - y) ** 2).sum(), rel=1e-9)


def test_fewer_words_than_dimensions_gives_the_smallest_map(rng):
    x, y = rng.normal(size=(5, 9)), rng.normal(size=(5, 4))
    np.testing.assert_allclose(least_squares(x, y), (np.linalg.pinv(x) @ y).T, atol=1e-10)


def test_ridge_equals_its_closed_form_and_spares_the_intercept(rng):
    x, y = rng.normal(size=(60, 6)) + 3, rng.normal(size=(60, 5)) + 5
    alignment = Alignment.fit(store(x), identity_pieces(60), y, AlignmentOptions(ridge=10.0, intercept=True))
    x = x.astype(np.float32).astype(np.float64)
    cx, cy = x - x.mean(axis=0), y - y.mean(axis=0)
    closed = cy.T @ cx @ np.linalg.inv(cx.T @ cx + 10 * np.eye(6))
    np.testing.assert_allclose(alignment.weight, closed, atol=1e-5)
    np.testing.assert_allclose(alignment.bias, y.mean(axis=0) - closed @ x.mean(axis=0), atol=1e-4)


def test_an_intercept_is_recovered(rng):
    planted, constant = rng.normal(size=(8, 6)), rng.normal(size=8)
    x = rng.normal(size=(100, 6))
    options = AlignmentOptions(intercept=True)
    alignment = Alignment.fit(store(x), identity_pieces(100), x @ planted.T + constant, options)
    np.testing.assert_allclose(alignment.bias, constant, atol=1e-5)
    projected = alignment.project(np.zeros((1, 6), np.float32))
    np.testing.assert_allclose(projected[0], constant, atol=1e-5)


def test_frequency_weights_equal_repeated_words(rng):
    x, y = rng.normal(size=(30, 4)), rng.normal(size=(30, 4))
    counts = rng.integers(1, 6, size=30)
    weighted = Alignment.fit(store(x, counts.tolist()), identity_pieces(30), y, AlignmentOptions(weight_power=1.0))
    repeated = least_squares(np.repeat(x, counts, axis=0), np.repeat(y, counts, axis=0))
    np.testing.assert_allclose(weighted.weight, repeated, atol=1e-5)


def test_frequency_weights_need_counts(rng):
    with pytest.raises(EbertError, match="does not know how often its words occur"):
        Alignment.fit(store(rng.normal(size=(9, 2))), identity_pieces(9), np.eye(9), AlignmentOptions(weight_power=0.5))


@pytest.mark.parametrize(("source", "target"), [(6, 6), (6, 9), (9, 6)])
def test_orthogonal_maps_keep_angles(rng, source, target):
    weight = procrustes(rng.normal(size=(80, source)), rng.normal(size=(80, target)))
    product = weight.T @ weight if source <= target else weight @ weight.T
    np.testing.assert_allclose(product, np.eye(min(source, target)), atol=1e-10)


def test_a_planted_rotation_is_recovered(rng):
    rotation = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    x = rng.normal(size=(200, 12))
    alignment = Alignment.fit(
        store(x), identity_pieces(200), x @ rotation.T, AlignmentOptions(method="orthogonal", held_out=0)
    )
    np.testing.assert_allclose(alignment.weight, rotation, atol=1e-5)
    assert alignment.report.top1 is None


def test_fixed_length(rng):
    x = rng.normal(size=(50, 5))
    alignment = Alignment.fit(store(x), identity_pieces(50), x, AlignmentOptions(length=2.0))
    projected = alignment.project(rng.normal(size=(7, 5)).astype(np.float32))
    np.testing.assert_allclose(np.linalg.norm(projected, axis=1), 2.0, rtol=1e-5)
    assert np.isfinite(alignment.project(np.zeros((1, 5), np.float32))).all()


def test_none_carries_vectors_as_they_are(rng):
    x = rng.normal(size=(5, 4)).astype(np.float32)
    alignment = Alignment.fit(store(x), identity_pieces(5), np.eye(5, 4), AlignmentOptions(method="none"))
    np.testing.assert_array_equal(alignment.project(x), x)
    with pytest.raises(EbertError, match="dimension 4 cannot go without alignment into an encoder of width 6"):
        Alignment.fit(store(x), identity_pieces(5), np.eye(5, 6), AlignmentOptions(method="none"))


def test_retrieval_counts_held_out_words_by_hand():
    # One dimension, every word's wordpiece is the word times two, except that all share one direction: the nearest by
    # cosine of a positive number is any positive wordpiece, so ties count as found; a negative one never is.
    x = np.arange(1.0, 41.0)[:, None] * np.array([[1.0, 0.0]])
    x[::2] = x[::2][:, ::-1]
    y = x @ np.array([[0.0, 1.0], [1.0, 0.0]])
    report = Alignment.fit(store(x), identity_pieces(40), y, AlignmentOptions(held_out=0.25)).report
    assert (report.held_out_pairs, report.top1, report.top10) == (10, 100.0, 100.0)
    shuffled = np.random.default_rng(0).normal(size=(40, 2))
    report = Alignment.fit(store(x), identity_pieces(40), shuffled, AlignmentOptions(held_out=0.25)).report
    assert report.top1 < 50


def test_no_word_is_a_wordpiece(rng):
    with pytest.raises(EbertError, match="none of the 5 words"):
        Alignment.fit(store(rng.normal(size=(5, 3))), {"other": 0}, np.eye(3))


@pytest.mark.parametrize(
    "options",
    [
        {"method": "magic"},
        {"ridge": -1.0},
        {"ridge": 1.0, "method": "orthogonal"},
        {"length": 0.0},
        {"held_out": 0.9},
        {"method": "none", "intercept": True},
    ],
)
def test_impossible_options(options):
    with pytest.raises(EbertError):
        AlignmentOptions(**options)


def test_save_and_load(rng, tmp_path):
    x = rng.normal(size=(50, 5))
    options = AlignmentOptions(intercept=True, length=2.0)
    fitted = Alignment.fit(store(x), identity_pieces(50), rng.normal(size=(50, 7)), options)
    fitted.save(tmp_path / "alignment.safetensors")
    loaded = Alignment.load(tmp_path / "alignment.safetensors")
    assert (loaded.options, loaded.report) == (options, fitted.report)
    probe = rng.normal(size=(3, 5)).astype(np.float32)
    np.testing.assert_array_equal(loaded.project(probe), fitted.project(probe))


def test_damaged_and_missing_files(tmp_path):
    with pytest.raises(EbertError, match="there is no alignment"):
        Alignment.load(tmp_path / "nothing.safetensors")
    (tmp_path / "short.safetensors").write_bytes(b"\x10\0\0")
    with pytest.raises(EbertError, match="damaged"):
        Alignment.load(tmp_path / "short.safetensors")
    safetensors.numpy.save_file({"weight": np.eye(2)}, tmp_path / "foreign.safetensors")
    with pytest.raises(EbertError, match="damaged"):
        Alignment.load(tmp_path / "foreign.safetensors")


def test_wrong_dimension(rng):
    x = rng.normal(size=(50, 5))
    alignment = Alignment.fit(store(x), identity_pieces(50), x)
    with pytest.raises(EbertError, match="do not fit an alignment from dimension 5"):
        alignment.project(np.zeros((2, 6), np.float32))
