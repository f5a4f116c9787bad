"""Nearest neighbours, against all cosines computed at once, and corrected for hubs."""

import numpy as np
import pytest

from ebert import EbertError, Vectors
from ebert.errors import UnknownNameError
from ebert.vectors import nearest, neighbours

ROWS, DIMENSION = 500, 16


@pytest.fixture
def matrix():
    return np.random.default_rng(3).standard_normal((ROWS, DIMENSION)).astype(np.float32)


def cosines(matrix, vector):
    matrix, vector = np.asarray(matrix, np.float64), np.asarray(vector, np.float64)
    return matrix @ vector / np.linalg.norm(matrix, axis=1) / np.linalg.norm(vector)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("rows_at_a_time", "top"), [(1, 10), (7, 1), (499, 10), (500, 500), (10_000, 600)])
def test_one_pass_in_chunks_gives_what_all_cosines_give(monkeypatch, matrix, dtype, rows_at_a_time, top):
    monkeypatch.setattr(nearest, "CHUNK_BYTES", 4 * DIMENSION * rows_at_a_time)
    stored, queries = matrix.astype(dtype), matrix[:3] + 0.1
    rows, scores = nearest.nearest(stored, queries, top)
    assert rows.shape == scores.shape == (3, min(top, ROWS))
    for query, row, score in zip(queries, rows, scores, strict=True):
        expected = cosines(stored, query)
        np.testing.assert_allclose(score, np.sort(expected)[::-1][:top], atol=1e-5)
        np.testing.assert_allclose(score, expected[row], atol=1e-5)
        assert len(set(row)) == len(row)


@pytest.mark.parametrize("rows_at_a_time", [3, 100])
def test_of_equals_the_first_rows_go_first(monkeypatch, rows_at_a_time):
    monkeypatch.setattr(nearest, "CHUNK_BYTES", 4 * 2 * rows_at_a_time)
    rows, _ = nearest.nearest(np.ones((20, 2), np.float32), np.ones((1, 2), np.float32), 20)
    assert rows[0].tolist() == list(range(20))


def test_half_precision_is_carried_over_exactly():
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)].reshape(-1, 16)
    single = nearest._single(halves)
    np.testing.assert_array_equal(single, halves.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(single), np.signbit(halves))
    np.testing.assert_array_equal(nearest._single(halves[:, ::2]), halves[:, ::2].astype(np.float32))


def test_zeros_are_near_nothing():
    matrix = np.array([[0, 0], [-1, 0], [1, 0]], np.float32)
    rows, scores = nearest.nearest(matrix, np.array([[2, 0], [0, 0]], np.float32), 3)
    assert rows[0].tolist() == [2, 0, 1]
    assert scores.tolist() == [[1, 0, -1], [0, 0, 0]]


@pytest.fixture(params=["float32", "float16"])
def store(request, matrix):
    half = ROWS // 2
    with Vectors.from_arrays(
        words=[f"w{i}" for i in range(half)],
        word_vectors=matrix[:half],
        entities=[f"E{i}" for i in range(half)],
        entity_vectors=matrix[half:],
        dtype=request.param,
    ) as vectors:
        yield vectors


def expected(store, vector, kinds, without=None, changed=None):
    """All names and cosines, the best first."""
    everything = {("word", f"w{i}"): row for i, row in enumerate(store.word_matrix)}
    everything |= {("entity", f"E{i}"): row for i, row in enumerate(store.entity_matrix)}
    everything |= {("entity", name): row for name, row in (changed or {}).items()}
    names = [name for name in everything if name[0] in kinds and name != without]
    scores = cosines([everything[name] for name in names], vector)
    return [(names[i], scores[i]) for i in np.argsort(-scores)]


def check(found, wanted):
    assert [(n.kind, n.name) for n in found] == [name for name, _ in wanted[: len(found)]]
    np.testing.assert_allclose([n.similarity for n in found], [score for _, score in wanted[: len(found)]], atol=1e-5)


def test_entities_near_an_entity_without_itself(store):
    check(store.nearest("E5", top=7, by="cosine"), expected(store, store["E5"], {"entity"}, ("entity", "E5")))


def test_words_near_an_entity(store):
    check(store.nearest("E5", kind="words", top=7, by="cosine"), expected(store, store["E5"], {"word"}))


def test_both_near_a_word_without_itself(store):
    found = store.nearest("w5", word=True, kind="both", top=9, by="cosine")
    assert len(found) == 9
    check(found, expected(store, store.word_vector("w5"), {"word", "entity"}, ("word", "w5")))


def test_a_vector_leaves_nothing_out(store):
    found = store.nearest(store["E5"], top=3, by="cosine")
    assert found[0].name == "E5"
    assert found[0].similarity == pytest.approx(1, abs=1e-5)
    assert len(store.nearest(store["E5"], top=10_000, by="cosine")) == len(store)


def test_added_and_replaced_entities_count_and_their_old_vectors_do_not(store):
    vector = store["E5"]
    new = {"New": vector * 2, "E7": vector + 0.01, "E9": -vector, "Far": -vector - 0.01}
    for name, row in new.items():
        store.add(name, row, replace=True)
    found = store.nearest("E5", top=len(store), by="cosine")
    assert len(found) == len(store) - 1
    assert [n.name for n in found[:2]] == ["New", "E7"]
    assert {n.name for n in found[-2:]} == {"E9", "Far"}
    check(found, expected(store, vector, {"entity"}, ("entity", "E5"), changed=new))


def test_the_nearest_ones_replaced_by_far_ones_make_room_for_others(store):
    vector = store["E5"]
    near = [neighbour.name for neighbour in store.nearest("E5", top=8, by="cosine")]
    changed = dict.fromkeys(near[:5], -vector)
    for name, row in changed.items():
        store.add(name, row, replace=True)
    found = store.nearest("E5", top=3, by="cosine")
    assert [neighbour.name for neighbour in found] == near[5:]
    check(found, expected(store, vector, {"entity"}, ("entity", "E5"), changed=changed))


def test_many_entities_replaced(store):
    matrix = np.array(store.entity_matrix)
    for i in range(40):
        store.add(f"E{i}", matrix[(i + 1) % 40], replace=True)
    assert store.nearest(matrix[6], top=1, by="cosine")[0].name == "E5"


@pytest.mark.parametrize("options", [{"top": 0}, {"top": -3}, {"kind": "word"}, {"by": "euclid"}])
def test_impossible_wishes(store, options):
    with pytest.raises(EbertError):
        store.nearest("E5", **options)


def test_impossible_queries(store):
    with pytest.raises(UnknownNameError):
        store.nearest("xyzzy")
    with pytest.raises(UnknownNameError):
        store.nearest("E5", word=True)
    with pytest.raises(EbertError, match="dimension 16"):
        store.nearest(np.ones(15))
    with pytest.raises(EbertError, match="not a number"):
        store.nearest(np.full(16, np.nan))


# Corrected for hubs


def corrected(store, name, everything, queries):
    """All names and their CSLS with one of them, the best first; how near each is to others is told by `queries`."""

    def crowding(name, vector):
        others = [row for title, row in queries.items() if title != name]
        return np.sort(cosines(others, vector))[-neighbours.NEAR :].mean()

    vector = everything[name]
    scores = {
        other: 2 * cosines([row], vector)[0] - crowding(other, row) - crowding(name, vector)
        for other, row in everything.items()
        if other != name
    }
    return sorted(scores.items(), key=lambda one: -one[1])


def test_csls_is_what_all_cosines_give(store):
    """In a small store the sample is all of it."""
    made = {f"E{i}": row for i, row in enumerate(store.entity_matrix)}
    wanted = corrected(store, "E5", made, made)
    found = store.nearest("E5", top=len(store))
    assert [n.name for n in found] == [name for name, _ in wanted]
    np.testing.assert_allclose([n.score for n in found], [score for _, score in wanted], atol=1e-5)
    similarities = {n.name: n.similarity for n in store.nearest("E5", top=len(store), by="cosine")}
    assert {n.name: n.similarity for n in found} == similarities
    assert all(n.score == n.similarity for n in store.nearest("E5", by="cosine"))


def test_added_entities_are_corrected_too(store):
    made = {f"E{i}": row for i, row in enumerate(store.entity_matrix)}
    hub = store.entity_matrix.astype(np.float32).mean(axis=0)
    new = {"New": store["E5"] + 0.01, "Hub": hub, "E7": store["E9"] * 2}
    for name, row in new.items():
        store.add(name, row, replace=True)
    for name in ("E5", "New", "E7"):
        wanted = corrected(store, name, made | new, made)
        # An entity in the place of another one is not told from it in the sample, where the old one stays.
        top = [one.name for one in store.nearest(name, top=5)]
        assert top[:2] == [other for other, _ in wanted[:2]], name


def test_a_hub_goes_after_neighbours():
    """Vectors that have a direction in common, and each a partner: what lies in the middle is nearest, but none."""
    own, other = np.random.default_rng(4).standard_normal((2, 100, 400))
    vectors = np.concatenate([1 + own, 1 + 0.36 * own + 0.93 * other])
    names = [f"E{i}" for i in range(len(vectors))]
    with Vectors.from_arrays(entities=names, entity_vectors=vectors) as store:
        store.add("Hub", vectors.mean(axis=0))
        first = {by: [store.nearest(f"E{i}", top=1, by=by)[0].name for i in range(100)] for by in ("cosine", "csls")}
    assert first["cosine"].count("Hub") > 60
    assert first["csls"].count("Hub") < 10
    assert sum(name == f"E{100 + i}" for i, name in enumerate(first["csls"])) > 80


def test_words_are_corrected_by_what_is_asked_about(store):
    words = {f"w{i}": row for i, row in enumerate(store.word_matrix)}
    wanted = corrected(store, "w5", words, words)[:9]
    found = store.nearest("w5", word=True, kind="words", top=9)
    assert [n.name for n in found] == [name for name, _ in wanted]
    both = store.nearest("E5", kind="both", top=20)
    assert {n.kind for n in both} == {"word", "entity"}
    assert [n.score for n in both] == sorted((n.score for n in both), reverse=True)


def test_a_large_store_is_corrected_from_a_sample(monkeypatch, matrix):
    monkeypatch.setattr(neighbours, "POOL", 30)
    rows = neighbours.RowSample(matrix, 50).rows
    assert (len(rows), rows[0], rows[-1]) == (50, 0, ROWS - 1)
    odd = matrix.copy()
    odd[0, 0], odd[1] = np.inf, 0
    sample = neighbours.RowSample(odd, ROWS)
    assert 0 not in sample.rows
    assert np.isfinite(sample.crowding(odd[1:20], np.arange(1, 20))).all()


def test_stores_of_one_thing():
    with Vectors.from_arrays(entities=["A"], entity_vectors=[[1.0, 2]], words=["w"], word_vectors=[[2.0, 1]]) as store:
        assert store.nearest("A") == []
        assert [n.name for n in store.nearest("A", kind="words")] == ["w"]
        assert [n.name for n in store.nearest("w", word=True)] == ["A"]
    with Vectors.from_arrays(words=["w", "v"], word_vectors=[[2.0, 1], [1, 0]]) as store:
        assert [n.name for n in store.nearest([1.0, 0], kind="both")] == ["v", "w"]
