"""Adding entities, and saving them among the others."""

import numpy as np
import pytest

from ebert import EbertError, Vectors

NEW = np.arange(6, dtype=np.float32)
OTHER = NEW[::-1].copy()


def test_an_added_entity_is_there_at_once_and_after_reopening(store):
    entity = store.add(" Zorblax_Inc. ", NEW, aliases=["zorblax", "The Zorblax"], wikidata=999)
    assert (entity.title, entity.added, entity.qid) == ("Zorblax Inc.", True, "Q999")
    with Vectors.open(store.path) as other:
        for vectors in (store, other):
            assert len(vectors) == 10
            for name in ("Zorblax Inc.", "zorblax_Inc.", "Zorblax", "the Zorblax", "Q999"):
                np.testing.assert_array_equal(vectors[name], NEW)
            assert [title for title, _ in vectors.added()] == ["Zorblax Inc."]
            assert vectors.describe()["added"] == 1
            assert "Zorblax Inc." in vectors.suggest("Zorblaxx Inc")
            assert "Zorblax Inc." in vectors.suggest("the Inc. Zorblax")


def test_a_reader_that_was_open_before_sees_what_another_adds(store):
    with Vectors.open(store.path) as other:
        assert store.find("New") is None
        other.add("New", NEW)
        np.testing.assert_array_equal(store["New"], NEW)


def test_take_mixes_added_and_other_entities(store):
    store.add("New", NEW)
    taken = store.take([store.find(name) for name in ("Paris", "New", "AC/DC")])
    np.testing.assert_array_equal(taken, [store["Paris"], NEW, store["AC/DC"]])


def test_one_may_add_while_going_through_what_was_added(store):
    store.add("New", NEW)
    for title, vector in store.added():
        if len(title) < 8:
            store.add(title + "!", vector)
    assert [title for title, _ in store.added()] == ["New" + "!" * n for n in range(6)]


@pytest.mark.parametrize("name", ["Paris", "Q90", "Paname", "https://en.wikipedia.org/wiki/Paris", "paname"])
def test_a_replaced_entity_has_its_new_vector_by_every_name(store, name):
    store.add("Paris", NEW, replace=True)
    found = store.find(name)
    np.testing.assert_array_equal(store.take([found])[0], NEW)
    assert (found.title, found.wikidata) == ("Paris", 90)
    assert len(store) == 9


def test_a_vector_is_replaced_only_on_request(store):
    with pytest.raises(EbertError, match="has a vector already; use replace=True"):
        store.add("Paris", NEW)
    store.add("New", NEW, wikidata=5)
    with pytest.raises(EbertError, match="was added before; use replace=True"):
        store.add("New", OTHER)
    np.testing.assert_array_equal(store["New"], NEW)
    store.add("New", OTHER, replace=True)
    np.testing.assert_array_equal(store["Q5"], OTHER)
    assert len(store) == 10


def test_an_exact_title_goes_before_one_with_another_first_letter(store):
    old = store["IPhone"]
    store.add("iPhone", NEW)
    np.testing.assert_array_equal(store["iPhone"], NEW)
    np.testing.assert_array_equal(store["IPhone"], old)


def test_a_title_goes_before_a_redirect(store):
    store.add("Paname", NEW)  # a redirect to Paris so far
    np.testing.assert_array_equal(store["Paname"], NEW)


def test_an_alias_takes_a_name_over_only_on_request(store):
    with pytest.raises(EbertError, match="'Paname' is a name of 'Paris'"):
        store.add("Panama City", NEW, aliases=["Paname"])
    assert store.find("Paname").title == "Paris"
    store.add("Panama City", NEW, aliases=["Paname"], replace=True)
    assert store.find("Paname").title == "Panama City"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"title": "X", "vector": np.ones(5)}, r"'X' has shape \(5,\); this store has dimension 6"),
        ({"title": "X", "vector": np.ones((1, 6))}, "dimension 6"),
        ({"title": "X", "vector": np.full(6, np.nan)}, "not a number"),
        ({"title": "X", "vector": np.full(6, 1e300)}, "too large"),
        ({"title": " _ "}, "cannot be called ''"),
        ({"title": "\ud800"}, "cannot be called"),
        ({"title": "X", "aliases": [""]}, "cannot be called ''"),
        ({"title": "X", "aliases": ["Paris"]}, "'Paris' cannot be another name of 'X'"),
        ({"title": "X", "aliases": ["Old"]}, "'Old' cannot be another name of 'X'"),
        ({"title": "X", "wikidata": 2**70}, "not the number of a Wikidata id"),
        ({"title": "X", "wikidata": -1}, "not the number of a Wikidata id"),
        ({"title": "X", "wikidata": 90}, "Q90 is 'Paris' already"),
        ({"title": "X", "wikidata": 7}, "Q7 is 'Old' already"),
    ],
)
def test_what_cannot_be_added_changes_nothing(store, options, message):
    store.add("Old", NEW, wikidata=7)
    with pytest.raises(EbertError, match=message):
        store.add(**({"vector": OTHER} | options))
    assert len(store) == 10
    assert store.find("X") is None


@pytest.mark.parametrize("dtype", [None, "float16", "float32"])
def test_saving_puts_added_and_replaced_entities_among_the_others(store, tmp_path, dtype):
    store.add("New", NEW, aliases=["Newer", "Paname"], wikidata=5, replace=True)
    store.add("Paris", OTHER, replace=True, aliases=["Panam"])
    store.add("Marais, Jean", NEW + 1)  # a redirect so far
    before = {name: store[name] for name in (*NAMES, "New", "Newer", "Panam", "Paname", "Q5")}
    with store.save(tmp_path / "saved", dtype=dtype) as saved:
        assert len(saved) == len(store) == 11
        assert list(saved.added()) == []
        assert saved.find("Newer").title == saved.find("Paname").title == "New"
        assert saved.find("Q5").title == "New"
        assert saved.find("Q90").title == saved.find("Panam").title == "Paris"
        assert saved.info.dtype == dtype or (dtype is None and saved.info.dtype == "float32")
        assert [saved.word_count(word) for word in ("paris", "New York")] == [10, None]
        for name, vector in before.items():
            np.testing.assert_array_equal(saved[name], vector.astype(saved.info.dtype))
        for word in ("paris", "Paris", "New York"):
            np.testing.assert_array_equal(saved.word_vector(word), store.word_vector(word).astype(saved.info.dtype))
        assert saved.fingerprint == store.fingerprint or dtype == "float16"


NAMES = ("Jean Marais", "Marais, Jean", "AC/DC", "Q168359", "Q90", "Paris", "Beyonce", "ß")


def test_saving_half_precision_in_full_keeps_replaced_vectors_exact(make, tmp_path):
    exact = np.full(6, 1 / 3, np.float32)
    with make(dtype="float16") as store:
        store.add("Paris", exact, replace=True)
        with store.save(tmp_path / "saved", dtype="float32") as saved:
            np.testing.assert_array_equal(saved["Paris"], exact)


def test_saving_what_does_not_fit_names_the_entity(make, tmp_path):
    with make(dtype="float16") as store:
        store.add("Big", np.full(6, 1e6))
        with pytest.raises(EbertError, match="'Big' has a value that is too large for float16"):
            store.save(tmp_path / "saved")
        assert not (tmp_path / "saved").exists()
        store.save(tmp_path / "saved", dtype="float32").close()


def test_a_store_may_be_saved_in_its_own_place(store):
    store.add("New", NEW)
    with pytest.raises(EbertError, match="is this store"):
        store.save(store.path)
    with store.save(store.path, overwrite=True) as saved:
        np.testing.assert_array_equal(saved["New"], NEW)
        assert list(saved.added()) == []
        assert not [path for path in store.path.parent.iterdir() if path != store.path]


def test_whoever_has_a_replaced_store_open_is_told_to_open_it_again(store):
    with Vectors.open(store.path) as other:
        other.add("Old", NEW)
        store.save(store.path, overwrite=True).close()
        np.testing.assert_array_equal(other["Old"], NEW)  # the old files are still mapped
        with pytest.raises(EbertError, match="moved or replaced since it was opened: open it again"):
            other.add("New", NEW)


def test_saving_does_not_overwrite_by_itself(store, tmp_path):
    store.save(tmp_path / "saved").close()
    with pytest.raises(EbertError, match="exists"):
        store.save(tmp_path / "saved")
    store.save(tmp_path / "saved", overwrite=True).close()


def test_a_folder_of_other_things_is_never_overwritten(store, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("years of work")
    with pytest.raises(EbertError, match="contains something else"):
        store.save(tmp_path / "home", overwrite=True)
    assert (tmp_path / "home" / "thesis.txt").read_text() == "years of work"
