"""Copies of a store whose additions are their own, for a while or for good; and the starter, which never changes."""

import gc
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ebert import EbertError, Vectors
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
    def refuse(*_):
        raise OSError("a required privilege is not held")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    own = copy_on_write(store)
    assert not (own.path / "entities.safetensors").is_symlink()
    assert (own["Paris"] == store["Paris"]).all()


@pytest.fixture
def shared(store, tmp_path, monkeypatch):
    """The store as it is in the cache, where everybody has the starter; somebody added to it long ago."""
    store.add("Cairo", np.ones(4))
    monkeypatch.setenv("EBERT_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "starter" / "0123456789ab" / "vectors"
    shutil.copytree(store.path, folder)
    with Vectors.open(folder) as shared:
        yield shared


def test_what_is_added_to_the_starter_goes_with_the_object(shared):
    before = contents(shared)
    with Vectors.open(shared.path) as other:
        shared.add("Oslo", np.ones(4))
        shared.add_many([{"title": "Rome", "vector": [1, 2, 3, 4]}])
        shared.remove("Paris")
        assert (len(shared), len(other)) == (4, 3)
        assert [title for title, _ in shared.added()] == ["Cairo", "Oslo", "Rome"]
        assert [title for title, _ in other.added()] == ["Cairo"]
        assert ("Paris" in shared, "Paris" in other) == (False, True)
    assert shared.temporary
    assert contents(shared) == before
    log = shared.overlay.path
    assert log.exists()
    shared.overlay = None
    gc.collect()
    assert not log.parent.exists()


def test_what_is_added_to_the_starter_goes_along_to_other_processes_and_copies(shared, tmp_path):
    with pickle.loads(pickle.dumps(shared)) as before:
        assert len(before) == 3
    shared.add("Oslo", np.ones(4))
    with pickle.loads(pickle.dumps(shared)) as sent, copy_on_write(shared) as own:
        assert [title for title, _ in sent.added()] == [title for title, _ in own.added()] == ["Cairo", "Oslo"]
        sent.add("Rome", np.ones(4))
        assert "Rome" in shared
        assert "Rome" not in own
    with shared.save(tmp_path / "saved") as saved:
        assert (len(saved), saved.shared) == (5, False)


def test_many_threads_may_add_first(shared):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: shared.add(f"E{n}", np.full(4, n)), range(1, 17)))
    assert [shared[f"E{n}"][0] for n in range(1, 17)] == list(range(1, 17))
    assert len(shared) == 19


def test_the_starter_is_not_saved_in_its_own_place(shared):
    with pytest.raises(EbertError, match="ebert vectors copy starter my-entities"):
        shared.save(shared.path, overwrite=True)


def test_a_copy_shares_big_files_and_has_its_own_additions(store, tmp_path):
    store.add("Cairo", np.ones(4))
    with store.copy(tmp_path / "own") as own:
        store.add("Rome", np.ones(4))
        own.add("Oslo", np.ones(4))
        assert ("Cairo" in own, "Rome" in own, "Oslo" in store) == (True, False, False)
        assert (own.path / "entities.safetensors").samefile(store.path / "entities.safetensors")
        assert own.verified() is own
    shutil.rmtree(store.path)
    with Vectors.open(tmp_path / "own") as own:
        assert (own["Oslo"] == 1).all()


def test_a_copy_is_made_once(store, tmp_path):
    with store.copy(tmp_path / "own") as own:
        own.add("Oslo", np.ones(4))
    with store.copy(tmp_path / "own") as own:
        assert "Oslo" in own
    with store.copy(tmp_path / "own", overwrite=True) as own:
        assert "Oslo" not in own
    store.add("Rome", np.ones(4))
    with store.save(tmp_path / "other") as other, pytest.raises(EbertError, match="exists; choose another place"):
        other.copy(tmp_path / "own")
    with pytest.raises(EbertError, match="is the store itself"):
        store.copy(store.path, overwrite=True)


def test_files_that_are_links_are_shared_as_files(store, tmp_path):
    """As in the hub's cache, where a snapshot is made of relative links."""
    (tmp_path / "snapshot").mkdir()
    for file in store.path.iterdir():
        (tmp_path / "snapshot" / file.name).symlink_to(Path("..") / "store" / file.name)
    with Vectors.open(tmp_path / "snapshot") as linked, linked.copy(tmp_path / "far" / "own") as own:
        assert (own["Paris"] == store["Paris"]).all()
        assert not (own.path / "entities.safetensors").is_symlink()
