"""Adding an entity by a description."""

from functools import partial

import numpy as np
import pytest
from described import COUNTS, DIMENSION, TOPICS, WORDS, make_store, outputs

from ebert import EbertError, Vectors
from ebert.vectors import from_description
from ebert.vectors.from_description import Bag, Describer, Objective, solve
from ebert.vectors.train.options import VectorTrainingOptions
from ebert.vectors.train.run import train
from ebert.wikipedia.tokens import words_of


@pytest.fixture
def store(tmp_path):
    with make_store(tmp_path / "store") as vectors:
        yield vectors


def kept(count):
    share = count / sum(COUNTS)
    return min(1.0, np.sqrt(1e-4 / share) + 1e-4 / share)


def test_described_entities_are_near_those_that_are_described_alike(store):
    entity = store.add("Esbjerg", description="Esbjerg is a Danish city of the harbour.", aliases=["EBJ"])
    assert (entity.title, entity.added) == ("Esbjerg", True)
    store.add("Help!", description="A song of the band, with a guitar")
    store.add("Nyhavn", description="the river and harbour of Copenhagen")
    store.add("Yesterday", description="a singer, an album, a guitar")
    near = {name: store.nearest(name, top=1)[0].name for name in ("EBJ", "Nyhavn", "Help!", "Yesterday")}
    assert near == {"EBJ": "Nyhavn", "Nyhavn": "Esbjerg", "Help!": "Yesterday", "Yesterday": "Help!"}
    with Vectors.open(store.path) as other:
        np.testing.assert_array_equal(other["Esbjerg"], store["Esbjerg"])


def test_the_vector_is_the_solution_for_its_words_as_subsampling_weighs_them(store):
    """All 14 words, each with its own share, are few enough to write the whole problem down."""
    store.add("X", description="The city of THE song is: city, Xyzzy!")
    rows = [WORDS.index(word) for word in ("city", "of", "song", "is")]
    weights = np.array([2, 1, 1, 1]) * [kept(COUNTS[row]) for row in rows]
    shares = np.array(COUNTS) ** 0.75
    objective = Objective(outputs().astype("f"), (shares / shares.sum()).astype("f"), 5, 24 * (0.025 + 0.0001) / 2)
    expected = solve(objective, [Bag(outputs()[rows].astype("f"), weights.astype("f"))])[0]
    np.testing.assert_allclose(store["X"], expected, rtol=0.02, atol=0.005)


def test_words_weigh_as_often_as_subsampling_leaves_them(store):
    bag = store._describer._bag("the city of the city, the city")
    np.testing.assert_allclose(bag.weights, [3 * kept(60_000), 3 * kept(1000), kept(50_000)], rtol=1e-6)
    np.testing.assert_array_equal(
        bag.outputs, store.word_outputs[[WORDS.index(word) for word in ("the", "city", "of")]]
    )


def test_the_options_that_the_store_was_trained_with_count(store):
    def made(**options):
        describer = Describer(store.catalogue, store.word_outputs, {"options": options}, words_of)
        return describer.vector("a city of the harbour")

    usual = made()
    np.testing.assert_array_equal(usual, made(negative=5, sample=1e-4, word_power=0.75, epochs=6, repeats=4))
    for other in ({"negative": 1}, {"sample": 0}, {"word_power": 0}, {"epochs": 1}, {"rate": 0.1}, {"finish": 9}):
        assert not np.allclose(usual, made(**other), rtol=0.01)
    np.testing.assert_allclose(made(epochs=4, repeats=6), usual)
    assert np.linalg.norm(made(epochs=1)) < np.linalg.norm(usual) < np.linalg.norm(made(epochs=20))


def test_the_defaults_are_those_of_training():
    chosen = VectorTrainingOptions()
    assert {name: getattr(chosen, name) for name in from_description.OPTIONS} == from_description.OPTIONS


def test_negatives_are_taken_from_their_distribution(store):
    objective = store._describer._objective
    shares = np.array(COUNTS) ** 0.75
    shares /= shares.sum()
    assert abs(objective.shares.sum() - 1) < 1e-6
    for row, vector in enumerate(outputs().astype("f")):
        (place,) = np.flatnonzero((objective.negatives == vector).all(axis=1))
        assert abs(objective.shares[place] - shares[row]) < 1 / from_description.DRAWN


def test_subsampling_frequent_words_say_little(store):
    city, common = (store._describer.vector(text) for text in ("city", "city the of is a"))
    cosine = city @ common / np.linalg.norm(city) / np.linalg.norm(common)
    assert cosine > 0.99
    assert np.linalg.norm(store._describer.vector("the")) < 0.3 * np.linalg.norm(city)


def test_a_long_description_weighs_as_much_as_a_long_opening(store):
    words = " ".join(TOPICS["places"])
    at_most, more = (store._describer.vector(f"{words} " * times) for times in (40, 4000))
    np.testing.assert_allclose(more, at_most, atol=1e-4)
    assert np.linalg.norm(store._describer.vector(words)) < np.linalg.norm(at_most)


def test_words_are_lowered_where_the_store_is(tmp_path):
    with make_store(tmp_path / "cased") as cased:
        describers = [
            Describer(cased.catalogue, cased.word_outputs, {}, partial(words_of, lowercase=lowercase))
            for lowercase in (False, True)
        ]
    np.testing.assert_array_equal(describers[0].vector("Danish city"), describers[0].vector("Danish city CITY"))
    np.testing.assert_array_equal(describers[1].vector("CITY"), describers[0].vector("city"))
    np.testing.assert_array_equal(describers[1].vector("Danish city"), describers[0].vector("city"))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_outputs_may_be_of_half_precision(tmp_path, dtype, store):
    with make_store(tmp_path / "other", dtype=dtype) as other:
        assert other.word_outputs.dtype == dtype
        other.add("X", description="Danish harbour")
        store.add("X", description="Danish harbour")
        np.testing.assert_allclose(other["X"], store["X"], rtol=0.01, atol=0.01)


def test_words_without_counts_weigh_the_same(tmp_path):
    with make_store(tmp_path / "other", word_counts=None) as store:
        store.add("X", description="Danish harbour")
        assert {near.name for near in store.nearest("X", top=2)} == {"Aarhus", "Odense"}
        np.testing.assert_allclose(store._describer._objective.shares, 1 / len(WORDS), rtol=0.02)


@pytest.mark.parametrize("text", ["", "   ", "Xyzzy plugh!", "...", "\ud800", "danish"])
def test_a_description_without_a_known_word_is_refused(store, text):
    with pytest.raises(EbertError, match="the store knows no word of the description"):
        store.add("X", description=text)
    assert store.find("X") is None
    assert not list(store.path.glob("added-*"))


def test_a_store_without_outputs_says_how_to_get_them(tmp_path):
    with make_store(tmp_path / "other", word_outputs=None) as store:
        assert store.word_outputs is None
        with pytest.raises(EbertError, match=r"has no output vectors.*ebert vectors train.*--vector"):
            store.add("X", description="Danish harbour")
        store.add("X", np.ones(DIMENSION))
    with (
        make_store(tmp_path / "zero", word_outputs=np.zeros((len(WORDS), DIMENSION))) as store,
        pytest.raises(EbertError, match="all zero"),
    ):
        store.add("X", description="Danish harbour")


def test_a_vector_or_a_description_but_not_both_nor_neither(store):
    for options in ({}, {"vector": np.ones(DIMENSION), "description": "a city"}):
        with pytest.raises(EbertError, match="'X' needs a vector or a description: one of the two"):
            store.add("X", **options)


def test_an_entity_is_described_anew_only_on_request(store):
    store.add("Aarhus", description="a song", replace=True)
    assert store.nearest("Q25319", top=1)[0].name in ("Abbey Road", "Revolver (album)")
    with pytest.raises(EbertError, match="has a vector already"):
        store.add("Aarhus", description="a city")


def test_with_really_trained_vectors(world, tmp_path):
    """A capital that the text does not have, described as the others are."""
    pytest.importorskip("numba")
    options = VectorTrainingOptions(dim=16, epochs=20, min_word_count=1, rate=0.05, sample=0)
    train(world, tmp_path / "trained", options)
    with Vectors.open(tmp_path / "trained") as store:
        store.add("Kyoto", description="Kyoto is the capital of Japan, where rice is eaten")
        near = [neighbour.name.split()[0] for neighbour in store.nearest("Kyoto", top=10)]
        assert sum(name in ("Tokyo", "Japan") for name in near) >= 8
        cosine = max(neighbour.similarity for neighbour in store.nearest("Kyoto", top=10))
        assert cosine > 0.8
