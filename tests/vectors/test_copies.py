"""A shadow of a store: additions are its own, and the store stays as it is."""

import gc

import numpy as np
import pytest

from ebert import Vectors
from ebert.vectors.copies import copy_on_write


@pytest.fixture
def store(tmp_path):
    random = np.random.default_rng(0)
    with Vectors.from_arrays(
        words=["a", "b"], word_vectors=random.normal(size=(2, 4)), word_outputs=random.normal(size=(2, 4)),
        entities=["Paris", "London"], entity_vectors=random.normal(size=(2, 4)), path=tmp_path / "store",
    ) as store:  # fmt: skip
        yield store


def contents(store):
    return {file.name: file.read_bytes() for file in store.path.iterdir()}


def test_additions_do_not_reach_the_store(store):
    before = contents(store)
    own = copy_on_write(store)
    own.add("Cairo", description="a b a")
    own.add("Paris", np.ones(4), replace=True)
    assert "Cairo" in own
    assert "Cairo" not in store
    assert (own["Paris"] == 1).all()
    assert not (store["Paris"] == 1).all()
    assert own.fingerprint == store.fingerprint
    assert contents(store) == before


def test_what_was_added_before_is_there_and_what_is_added_later_is_not(store):
    store.add("Cairo", np.ones(4))
    own = copy_on_write(store)
    assert (own["Cairo"] == 1).all()
    store.add("Rome", np.ones(4))
    own.add("Oslo", np.ones(4))
    assert ("Rome" in own, "Oslo" in store) == (False, False)
    assert len(own) == len(store) == 4


def test_it_takes_no_room_and_leaves_no_trace(store):
    own = copy_on_write(store)
    folder = own.path
    assert (folder / "entities.safetensors").is_symlink()
    del own
    gc.collect()
    assert not folder.exists()
    assert "Paris" in Vectors.open(store.path)


def test_where_links_cannot_be_made_files_are_copied(store, monkeypatch):
    from pathlib import Path

    def refuse(*_):
        raise OSError("a required privilege is not held")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    own = copy_on_write(store)
    assert not (own.path / "entities.safetensors").is_symlink()
    assert (own["Paris"] == store["Paris"]).all()
