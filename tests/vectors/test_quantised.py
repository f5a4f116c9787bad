"""Stores whose entities are product-quantised codes: a byte for four numbers."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ebert import Vectors
from ebert.errors import EbertError
from ebert.vectors.quantised import Quantised, encode, make_codebook

ENTITIES, DIMENSION = 2000, 30  # which is no multiple of four


@pytest.fixture(scope="module")
def matrix():
    return np.random.default_rng(5).normal(size=(ENTITIES, DIMENSION)).astype(np.float32)


@pytest.fixture(scope="module")
def made(matrix, tmp_path_factory):
    words = [f"w{row}" for row in range(20)]
    entities = [f"E{row}" for row in range(ENTITIES)]
    return Vectors.from_arrays(
        words=words, word_vectors=matrix[:20], entities=entities, entity_vectors=matrix, dtype="pq",
        path=tmp_path_factory.mktemp("quantised") / "store",
    )  # fmt: skip


@pytest.fixture
def store(made, tmp_path):
    return made.copy(tmp_path / "copy")


def cosines(one, other):
    return np.einsum("ij,ij->i", one, other) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


def test_vectors_are_near_what_was_stored_and_a_byte_stands_for_four_numbers(made, matrix):
    found = made.take([made.known(f"E{row}") for row in range(ENTITIES)])
    assert cosines(found, matrix).mean() > 0.96
    codes = load_file(made.path / "entities.safetensors")["codes"]
    assert (codes.shape, codes.dtype) == ((ENTITIES, 8), np.uint8)
    assert made.describe()["dtype"] == "pq"


def test_words_are_not_quantised(made, matrix):
    assert (made.word_matrix == matrix[:20].astype(np.float16)).all()


def test_all_ways_to_read_rows_give_the_same(made):
    whole = np.asarray(made.entity_matrix)
    assert whole.shape == made.entity_matrix.shape == (ENTITIES, DIMENSION)
    assert (made.entity_matrix[7:9] == whole[7:9]).all()
    assert (made.entity_matrix[[9, 7]] == whole[[9, 7]]).all()
    assert (made.entity_matrix[7] == whole[7]).all()
    assert (made["E7"] == whole[7]).all()
    assert made.take([]).shape == made.entity_matrix[[]].shape == (0, DIMENSION)
    assert (np.concatenate([block for _, block in made.entities()]) == whole).all()


def test_nearest_is_that_of_the_decoded_vectors(made):
    whole = np.asarray(made.entity_matrix)
    query = whole[7] + 0.1
    best = np.argsort(-cosines(whole, np.broadcast_to(query, whole.shape)))[:5]
    found = made.nearest(query, top=5, by="cosine")
    assert [one.name for one in found] == [f"E{row}" for row in best]


def test_a_few_vectors_are_kept_as_they_are(tmp_path):
    """All of them are in the codebook, in half precision."""
    matrix = np.random.default_rng(2).normal(size=(200, 9)).astype(np.float16)
    with Vectors.from_arrays(
        entities=[str(row) for row in range(200)], entity_vectors=matrix, dtype="pq", path=tmp_path / "store"
    ) as vectors:
        assert (vectors.entity_matrix[:] == matrix).all()


def test_saving_it_again_changes_no_vector_and_takes_what_was_added(store, tmp_path):
    vector = np.arange(DIMENSION, dtype=np.float32)
    store.add("New", vector)
    store.remove("E3")
    saved = store.save(tmp_path / "saved")
    assert saved.info.dtype == "pq"
    kept = [f"E{row}" for row in range(ENTITIES) if row != 3]
    assert (saved.take(list(map(saved.known, kept))) == store.take(list(map(store.known, kept)))).all()
    assert not saved.known("New").added
    assert cosines(saved["New"][None], vector[None])[0] > 0.6  # by a codebook that was not made for it
    assert saved.fingerprint == store.fingerprint


def test_it_can_be_saved_with_all_digits(made, tmp_path):
    saved = made.save(tmp_path / "saved", dtype="float32")
    assert (saved.entity_matrix[:] == made.entity_matrix[:]).all()


def test_a_store_without_entities_can_be_quantised(tmp_path):
    with Vectors.from_arrays(words=["a"], word_vectors=np.ones((1, 6)), dtype="pq", path=tmp_path / "s") as vectors:
        assert (len(vectors), vectors.entity_matrix.shape) == (0, (0, 6))
        assert vectors.nearest(np.ones(6), kind="entities") == []


def test_a_value_that_is_no_number_is_refused(tmp_path):
    with pytest.raises(EbertError, match="vector of 'B' has a value that is not a number"):
        Vectors.from_arrays(entities=["A", "B"], entity_vectors=[[1, 2], [3, np.nan]], dtype="pq", path=tmp_path / "s")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("change", ["few centroids", "other dimension", "codes of another kind", "cut"])
def test_damage_is_named(store, change):
    path = store.path / "entities.safetensors"
    tensors = load_file(path)
    if change == "few centroids":
        tensors["codebook"] = tensors["codebook"][:-1]
    elif change == "other dimension":
        tensors["codebook"] = np.ascontiguousarray(tensors["codebook"][:, :-4])
    elif change == "codes of another kind":
        tensors["codes"] = tensors["codes"].astype(np.int16)
    path.unlink()  # which is linked to the first one's
    save_file(tensors, path)
    if change == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(EbertError, match="restore it or make the store again"):
        Vectors.open(store.path)


def test_a_vector_of_the_codebook_gets_its_own_code():
    """So quantising twice is quantising once."""
    matrix = np.random.default_rng(3).normal(size=(1000, 8)).astype(np.float32)
    book = make_codebook(matrix)
    codes = encode(matrix, book)
    assert (encode(Quantised(codes, book)[:], book) == codes).all()
