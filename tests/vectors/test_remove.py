"""Removing entities: those that were added, and those that the store was made with."""

import numpy as np
import pytest

from ebert import EbertError, Vectors
from ebert.errors import UnknownNameError
from ebert.vectors.copies import copy_on_write
from ebert.vectors.formats.exporter import export_text

NEW = np.arange(6, dtype=np.float32)


def test_an_added_entity_is_gone_by_every_name_and_for_every_reader(store):
    with Vectors.open(store.path) as other:
        kept = store.add("Kept", NEW)
        entity = store.add("New", NEW, aliases=["Newer"], wikidata=5, id="n-1")
        assert other.candidates("Newer")
        assert other.remove("Newer") == entity
        for vectors in (store, other, Vectors.open(store.path)):
            assert len(vectors) == 10
            assert [vectors.find(name) for name in ("New", "Newer", "Q5", "n-1")] == [None] * 4
            assert not vectors.candidates("New")
            assert not vectors.candidates("Newer")
            assert [found.title for found in vectors.complete("new")] == []
            assert list(vectors)[-1] == "Kept"
        with pytest.raises(EbertError, match="replaced or removed"):
            store[entity]  # and not the vector of what is added next
        again = store.add("New", NEW + 1)
        assert again.row not in (entity.row, kept.row)
        np.testing.assert_array_equal(other["New"], NEW + 1)


@pytest.mark.parametrize("replaced", [False, True])
def test_an_entity_of_the_store_is_hidden_and_the_files_stay(store, replaced):
    before = (store.path / "catalogue.sqlite").read_bytes()
    if replaced:
        store.add("Paris", NEW, replace=True)
    near = store["Paris"]
    assert store.remove("paris").title == "Paris"
    assert (store.path / "catalogue.sqlite").read_bytes() == before
    for vectors in (store, Vectors.open(store.path), copy_on_write(store)):
        assert len(vectors) == 8
        assert "Paris" not in vectors
        assert "Paname" not in vectors
        assert "Q90" not in vectors
        assert "Paris" not in vectors.suggest("Pariss")
        assert "Paris" not in list(vectors)
        assert [found.title for found in vectors.complete("Paris")] == ["Paris (mythology)"]
        assert "Paris" not in [found.name for found in vectors.nearest(near, top=9)]
        with pytest.raises(UnknownNameError, match="no vector for 'Paris'; nearest titles: 'Paris \\(mythology\\)'"):
            vectors.remove("Paris")


def test_what_was_removed_can_be_added_again(store):
    store.remove("Paris")
    assert store.add("Paris", NEW).wikidata == 90
    np.testing.assert_array_equal(store["Paname"], NEW)
    assert len(store) == 9
    store.remove("Paris")
    assert store.find("Paname") is None
    assert store.add("Panama", NEW, aliases=["Paris", "Paname"], wikidata=90).title == store.find("Paris").title


def test_a_name_that_cannot_be_removed_leaves_the_search_as_it_was(store):
    store.add("Zorblax Incorporated", NEW)
    with pytest.raises(UnknownNameError, match="Zorblax"):
        store.remove("Incorporated Zorblaxx")
    assert store.suggest("Incorporated Zorblax") == ["Zorblax Incorporated"]


def test_removed_entities_are_not_saved(store, tmp_path):
    for title in ("Jean Marais", "IPhone", "AC/DC"):
        store.remove(title)
    store.add("IPhone", NEW)
    store.add("New", NEW, id="n-1", aliases=["Newer"])
    with store.save(tmp_path / "saved") as saved:
        assert saved.info.entities == len(saved) == len(store) == 8
        assert sorted(saved) == sorted(store)
        for title in saved:
            np.testing.assert_array_equal(saved[title], store[title])
            assert [c.entity.title for c in saved.candidates(title)] == [
                c.entity.title for c in store.candidates(title)
            ]
        assert saved.find("Marais, Jean") is None
        assert "redirects" not in saved.info.made.get("dropped", {})
        assert saved.find_id("n-1").title == saved.find("Newer").title == "New"


def test_removed_entities_are_not_exported(store, tmp_path):
    store.add("New", NEW)
    store.add("IPhone", NEW, replace=True)
    store.remove("AC/DC")
    assert export_text(store, tmp_path / "store.txt") == store.info.words + 9
    lines = (tmp_path / "store.txt").read_text().splitlines()
    titles = [line.split("\t")[0].removeprefix("ENTITY/") for line in lines if line.startswith("ENTITY/")]
    assert titles == list(store)
