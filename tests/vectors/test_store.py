"""Looking up entities and words."""

import pickle
import warnings

import numpy as np
import pytest
from safetensors.numpy import load_file

from ebert import EbertError, Vectors
from ebert.errors import UnknownNameError


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Jean Marais", "Jean Marais"),
        ("jean_Marais", "Jean Marais"),
        (" Jean Marais ", "Jean Marais"),
        ("https://en.wikipedia.org/wiki/Jean_Marais#Career", "Jean Marais"),
        ("https://en.wikipedia.org/wiki/Beyonc%C3%A9", "Beyoncé"),
        ("Beyonce\u0301", "Beyoncé"),
        ("Beyonce", "Beyoncé"),
        ("marais,_Jean", "Jean Marais"),
        ("Q168359", "Jean Marais"),
        ("https://www.wikidata.org/wiki/Q90", "Paris"),
        ("https://en.wikipedia.org/wiki/AC/DC", "AC/DC"),
        ("100% (album)", "100% (album)"),
        ("https://en.wikipedia.org/wiki/100%25_(album)", "100% (album)"),
        ("C Sharp#History", "C Sharp"),
        ("iPhone", "IPhone"),
        ("ß", "ß"),
    ],
)
def test_an_entity_is_found_by_any_spelling(store, name, title):
    found = store.find(name)
    assert found is not None
    assert found.title == title
    assert name in store
    np.testing.assert_array_equal(store[name], store.entity_matrix[found.row])


@pytest.mark.parametrize("name", ["Jean Maris", "C#", "", "  ", "Q1", "Q" + "9" * 30, "\ud800", "paris (Mythology)"])
def test_what_is_not_there_is_not_found(store, name):
    assert store.find(name) is None
    assert name not in store


def test_an_entity_tells_what_is_known_of_it(store):
    found = store.find("Paris")
    assert (found.title, found.wikidata, found.qid, found.added) == ("Paris", 90, "Q90", False)
    assert store.find("AC/DC").qid is None


def test_a_miss_names_the_closest_titles(store):
    with pytest.raises(UnknownNameError, match=r"no vector for 'Jean Maris'; nearest titles: 'Jean Marais'") as caught:
        store["Jean Maris"]
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, EbertError)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("Jaen Marais", "Jean Marais"),
        ("jean marais", "Jean Marais"),
        ("Marais Jean", "Jean Marais"),
        ("Jean Marias", "Jean Marais"),
        ("Beyoncee", "Beyoncé"),
        ("ACDC", "AC/DC"),
        ("Paris mythology", "Paris (mythology)"),
        ('Paris" OR "mythology', "Paris (mythology)"),  # the language of the search is not reachable from outside
    ],
)
def test_a_slip_of_the_pen_is_understood(store, wrong, right):
    assert right in store.suggest(wrong)


@pytest.mark.parametrize("name", ["", "\ud800", "***", '"', "𝔘", "xyzzy", "a" * 5000])
def test_nothing_like_it_suggests_nothing(store, name):
    assert store.suggest(name) == []
    assert "no title looks like it" in str(store.unknown(name))


def test_a_word_and_an_entity_of_the_same_name_are_different(store):
    assert not np.array_equal(store.word_vector("Paris"), store["Paris"])
    np.testing.assert_array_equal(store.word_vector("Paris"), store.word_matrix[store.find_word("Paris")])
    assert store.find_word("Jean Marais") is None
    assert store.find("french") is None
    assert store.find_word("New York") is not None


def test_words_keep_their_case_and_counts(store):
    assert not np.array_equal(store.word_vector("Paris"), store.word_vector("paris"))
    assert [store.word_count(word) for word in ("paris", "french", "New York", "xyzzy")] == [10, 20, None, None]
    with pytest.raises(UnknownNameError, match="no vector for the word 'PARIS'"):
        store.word_vector("PARIS")
    assert store.find_word("\ud800") is None


def test_take_reads_rows_in_the_order_asked_for(store):
    names = ["Paris", "AC/DC", "Paris", "Jean Marais"]
    taken = store.take([store.find(name) for name in names])
    assert taken.dtype == np.float32
    np.testing.assert_array_equal(taken, [store[name] for name in names])
    assert store.take([]).shape == (0, store.dimension)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_matrices_are_ordinary_safetensors_files(make, dtype):
    with make(dtype=dtype) as store:
        for name, matrix in (("words", store.word_matrix), ("entities", store.entity_matrix)):
            tensors = load_file(store.path / f"{name}.safetensors")
            assert tensors["vectors"].dtype == dtype
            np.testing.assert_array_equal(tensors["vectors"], matrix)


def test_a_store_of_words_only(make):
    with make(entities=[], entity_vectors=None, redirects=[], wikidata=[]) as store:
        assert len(store) == 0
        assert store
        assert store.find("Paris") is None
        assert store.suggest("Paris") == []
        assert store.nearest("Paris", word=True) == []
        assert store.word_vector("Paris").shape == (store.dimension,)
        assert load_file(store.path / "entities.safetensors")["vectors"].shape == (0, store.dimension)


def test_describe_counts_what_is_there(store):
    facts = store.describe()
    assert facts["words"] == 4
    assert facts["words with a count"] == 3
    assert facts["entities"] == len(store) == 9
    assert facts["entities with a Wikidata id"] == 2
    assert facts["redirects"] == 3
    assert "4 words, 9 entities, dimension 6" in repr(store)


def test_the_fingerprint_is_of_the_words_only(make):
    rng = np.random.default_rng(5)
    with make("a") as a, make("b", entity_vectors=rng.standard_normal((9, 6))) as b:
        with make("c", word_vectors=rng.standard_normal((4, 6))) as c, make("d", words=["w", "x", "y", "z"]) as d:
            assert a.fingerprint == b.fingerprint
            assert len({a.fingerprint, c.fingerprint, d.fingerprint}) == 3
        a.add("New one", np.ones(6))
        with Vectors.open(a.path) as again:
            assert again.fingerprint == b.fingerprint


def test_what_is_dropped_is_counted(make):
    with make(
        words=["a", "", "a", "b"],
        entities=["A", "a_b", "a b", "A ", "B", "C", "D", "E", "_"],
        redirects=[("x", "A"), ("y", "nowhere"), ("A", "B"), ("x", "B"), ("", "A")],
        wikidata=[("A", 1), ("nobody", 2)],
    ) as store:
        assert store.info.words == 2
        assert len(store) == 6
        assert store.info.made["dropped"] == {
            "duplicates": 3,
            "empty": 2,
            "redirects": 4,
            "wikidata": 1,
            "examples": ["", "a", "a b", "A", ""],
        }
        np.testing.assert_allclose(store.word_vector("b"), store.word_matrix[1])
        assert store.find("X").title == "A"
        assert store.find("E").row == 5


def test_a_row_is_the_row_of_its_vector_whatever_was_dropped():
    names = [f"n{i % 700}" for i in range(3000)]
    matrix = np.arange(3000, dtype=np.float32)[:, None]
    with Vectors.from_arrays(words=names, word_vectors=matrix, entities=names, entity_vectors=matrix) as store:
        assert [store.word_vector(f"n{i}")[0] for i in range(700)] == list(range(700))
        assert [store[f"n{i}"][0] for i in range(700)] == list(range(700))


def test_counts_may_be_a_numpy_array(make):
    with make(word_counts=np.arange(4)) as store:
        assert store.word_count("french") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"word_vectors": np.zeros((3, 6))}, "4 names but 3 vectors"),
        ({"word_vectors": np.zeros((4, 5))}, r"shape \(9, 6\) do not fit a store of dimension 5"),
        ({"word_vectors": np.zeros(4)}, r"shape \(4,\)"),
        ({"word_vectors": np.zeros((4, 0)), "entities": [], "entity_vectors": None}, "dimension 0"),
        ({"word_vectors": None}, "4 words without vectors"),
        ({"word_counts": [1, 2]}, "2 counts for 4 names"),
        ({"words": ["a", "b", "c", "\ud800"]}, "surrogate"),
        ({"dtype": "float64"}, "choose one of float32, float16"),
        ({"word_vectors": np.full((4, 6), np.nan)}, "'paris' has a value that is not a number"),
        ({"entity_vectors": np.full((9, 6), 7e4), "dtype": "float16"}, "'Jean Marais' .* too large for float16"),
    ],
)
def test_arrays_that_do_not_fit(make, tmp_path, options, message):
    with pytest.raises(EbertError, match=message):
        make(**options)
    assert list(tmp_path.iterdir()) == []


def test_a_store_without_a_path_goes_with_its_object():
    vectors = Vectors.from_arrays(words=["a"], word_vectors=[[1.0]])
    path = vectors.path
    assert path.is_dir()
    del vectors
    assert not path.exists()


def test_a_failed_store_without_a_path_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(EbertError):
        Vectors.from_arrays(words=["a"], word_vectors=[[np.nan]])
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_not_overwritten(make, tmp_path):
    make().close()
    with pytest.raises(EbertError, match="exists"):
        make()


def test_a_store_goes_to_another_process_as_its_path(store):
    with pickle.loads(pickle.dumps(store)) as other:
        assert other.path == store.path
        np.testing.assert_array_equal(other["Paris"], store["Paris"])


def test_nothing_stays_open(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store = make()
        store.add("New", np.ones(6))
        store.find("New")
        del store


def test_a_store_reads_like_a_mapping_of_titles(store):
    store.add("New", np.ones(6))
    assert ("Paname" in store, "New" in store, "Nobody" in store) == (True, True, False)
    assert list(store)[-1] == "New"
    assert len(list(store)) == len(store)
    np.testing.assert_array_equal(store["Paname"], store[store.find("Paris")])
    assert repr(store) == "<Vectors store: 4 words, 10 entities, dimension 6>"


def test_names_are_found_together_and_each_once(store, monkeypatch):
    asked = []
    find = type(store).find
    monkeypatch.setattr(type(store), "find", lambda self, name: asked.append(name) or find(self, name))
    found = store.find_many(["Paris", "Nobody", "Paname", "Paris"])
    assert {name: entity.title for name, entity in found.items()} == {"Paris": "Paris", "Paname": "Paris"}
    assert asked == ["Paris", "Nobody", "Paname"]
