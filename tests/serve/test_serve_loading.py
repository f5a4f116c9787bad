"""What a service loads: whose store it writes to, which linker it has, and what it says if something is missing."""

import pytest
from answers import same
from serve_world import write_model, write_store

from ebert import EBert, EbertError, Linker, Vectors
from ebert.model import encoder
from ebert.serve.explore import Explorer
from ebert.serve.metrics import Metrics
from ebert.serve.options import ServeOptions
from ebert.serve.schemas import Problem
from ebert.serve.work import Working, load


def test_the_store_is_a_copy_that_goes_unless_it_is_to_be_kept(tiny_folder):
    trial, kept = load(str(tiny_folder)), load(str(tiny_folder), keep=True)
    assert trial.vectors.temporary
    assert trial.vectors.path != kept.vectors.path
    assert (trial.keeps, kept.keeps) == (False, True)
    assert trial.stores == [trial.vectors]
    assert trial.linker is not None
    assert trial.linker.vectors is trial.vectors
    assert trial.name == "model"


def test_the_embedding_matrix_is_hashed_once(tiny_folder, monkeypatch):
    """For a large vocabulary that takes seconds; the model and its linker share an encoder."""
    hashed, fingerprint = [], encoder.fingerprint
    monkeypatch.setattr(encoder, "fingerprint", lambda *given: hashed.append(given) or fingerprint(*given))
    working = Working(load(str(tiny_folder)), ServeOptions(), Metrics())
    working.close()
    assert working.link is not None
    assert len(hashed) == 1


@pytest.fixture
def folders(tmp_path):
    """A model, and a linker with a store of its own."""
    folder = write_model(tmp_path)
    linker = Linker.from_pretrained(folder, vectors=write_store(tmp_path / "other"))
    linker.threshold = 0.25
    linker.save_pretrained(tmp_path / "linker")
    return str(folder), str(tmp_path / "linker")


def test_a_linker_may_have_a_store_of_its_own(folders, tmp_path):
    folder, _ = folders
    loaded = load(str(folder), str(tmp_path / "linker"))
    assert loaded.linker is not None
    assert loaded.linker_name == "linker"
    assert loaded.linker.threshold == 0.25
    assert len(loaded.stores) == 2
    assert all(store.temporary for store in loaded.stores)
    assert [store.path for store in load(str(folder), str(tmp_path / "linker"), keep=True).stores] == [
        tmp_path / "store", tmp_path / "other",
    ]  # fmt: skip


def test_a_linker_with_a_store_of_its_own_is_taught_too(folders):
    loaded = load(*folders)
    Explorer(loaded, most_added=10).add("Zorblax", "both injured", ["Zorb"], replace=False)
    assert all("Zorblax" in store for store in loaded.stores)
    assert "Zorblax" in [one.entity for one in loaded.linker("Zorblax", threshold=0.0)]


def test_what_one_store_cannot_take_no_store_takes(folders, tmp_path):
    (tmp_path / "other" / "outputs.safetensors").unlink()
    loaded = load(*folders)
    with pytest.raises(EbertError, match="has no output vectors"):
        Explorer(loaded, most_added=10).add("Zorblax", "both injured", [], replace=False)
    assert not any("Zorblax" in store for store in loaded.stores)


def test_an_entity_that_only_the_linker_has_is_not_replaced_unasked(folders):
    loaded = load(*folders)
    loaded.stores[1].add("Zorblax", description="opening match")
    before = loaded.stores[1]["Zorblax"]
    with pytest.raises(Problem, match="there is an entity 'Zorblax' already"):
        Explorer(loaded, most_added=10).add("Zorblax", "both injured", [], replace=False)
    assert "Zorblax" not in loaded.stores[0]
    assert (loaded.stores[1]["Zorblax"] == before).all()


def test_a_store_that_was_moved_is_found_for_model_and_linker(tmp_path):
    folder = write_model(tmp_path)
    Linker.from_pretrained(folder).save_pretrained(tmp_path / "linker")
    (tmp_path / "store").rename(tmp_path / "moved")
    with pytest.raises(EbertError, match="give its new path"):
        load(str(folder), str(tmp_path / "linker"))
    loaded = load(str(folder), str(tmp_path / "linker"), vectors=str(tmp_path / "moved"))
    assert loaded.stores == [loaded.vectors]
    assert loaded.linker is not None
    assert loaded.linker.vectors is loaded.vectors


def test_what_is_missing_is_said(tiny_folder, tmp_path):
    with pytest.raises(EbertError, match="there is no linker"):
        load(str(tiny_folder), str(tmp_path / "nowhere"))
    with pytest.raises(EbertError, match="there is no model"):
        load(str(tmp_path / "nowhere"))


def test_a_model_with_another_store_of_the_same_words(tiny_folder, tmp_path):
    model = EBert.from_pretrained(tiny_folder)
    other = model.with_vectors(write_store(tmp_path / "same"))
    text = "[[England]] will miss [MASK]"
    assert same(other.fill(text), model.fill(text), within=1e-6)
    with pytest.raises(EbertError, match="other words"):
        model.with_vectors(Vectors.from_arrays(words=["x"], word_vectors=[[0.0] * 16]))
