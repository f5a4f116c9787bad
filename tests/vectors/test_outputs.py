"""The words' output vectors, which descriptions need: optional, and in step with the words."""

import numpy as np
import pytest
from described import DIMENSION, WORDS, make_store, outputs
from safetensors.numpy import load_file

from ebert import EbertError, Vectors
from ebert.vectors.writer import writing


def test_they_are_mapped_in_the_order_of_the_words(tmp_path):
    with make_store(tmp_path / "store") as store:
        np.testing.assert_array_equal(store.word_outputs, outputs().astype("f"))
        assert store.describe()["output vectors"] == len(WORDS)
        np.testing.assert_array_equal(load_file(store.path / "outputs.safetensors")["vectors"], store.word_outputs)
    with make_store(tmp_path / "without", word_outputs=None) as store:
        assert store.word_outputs is None
        assert store.describe()["output vectors"] == 0
        assert not (store.path / "outputs.safetensors").exists()


def test_a_word_that_is_dropped_takes_its_output_along(tmp_path):
    words = ["a", "", "b", "a", "c"]
    with make_store(
        tmp_path / "store", words=words, word_vectors=np.zeros((5, 2)), word_outputs=np.arange(10).reshape(5, 2),
        word_counts=None, entities=[], entity_vectors=None, redirects=[], wikidata=[],
    ) as store:  # fmt: skip
        assert store.word_outputs.tolist() == [[0, 1], [4, 5], [8, 9]]
        assert [store.find_word(word) for word in "abc"] == [0, 1, 2]


@pytest.mark.parametrize("dtype", [None, "float16"])
def test_saving_keeps_them(tmp_path, dtype):
    with make_store(tmp_path / "store") as store:
        store.add("New", description="Danish harbour")
        with store.save(tmp_path / "saved", dtype=dtype) as saved:
            np.testing.assert_array_equal(saved.word_outputs, store.word_outputs.astype(dtype or "f"))
            saved.add("Newer", description="Danish harbour")
            np.testing.assert_allclose(saved["Newer"], store["New"], atol=0.01)
        with store.save(store.path, overwrite=True) as saved:
            assert len(saved.word_outputs) == len(WORDS)
    with make_store(tmp_path / "without", word_outputs=None) as store, store.save(tmp_path / "also") as saved:
        assert saved.word_outputs is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"word_outputs": np.ones((3, DIMENSION))}, "every word needs both"),
        ({"word_outputs": np.ones((len(WORDS), 5))}, "every word needs both"),
        ({"word_outputs": np.ones(5)}, "every word needs both"),
        ({"word_outputs": np.full((len(WORDS), DIMENSION), np.nan)}, "not a number"),
        ({"words": [], "word_vectors": None, "word_counts": None}, "every word needs both"),
    ],
)
def test_outputs_that_do_not_fit(tmp_path, options, message):
    with pytest.raises(EbertError, match=message):
        make_store(tmp_path / "store", **options)
    assert not (tmp_path / "store").exists()


def test_a_writer_that_gets_too_few(tmp_path):
    with (
        pytest.raises(EbertError, match="2 output vectors for 3 words"),
        writing(tmp_path / "s", dimension=1) as writer,
    ):
        writer.add("words", ["a", "b"], np.ones((2, 1)), outputs=np.ones((2, 1)))
        writer.add("words", ["c"], np.ones((1, 1)))
        writer.finish(licence="CC0", made={})
    assert not (tmp_path / "s").exists()


def test_damaged_outputs(tmp_path):
    with make_store(tmp_path / "store") as store:
        path = store.path / "outputs.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(EbertError, match=r"outputs\.safetensors is truncated"):
        Vectors.open(path.parent)
    with make_store(tmp_path / "other", words=["a"], word_vectors=np.ones((1, DIMENSION)), word_counts=None,
                    word_outputs=np.ones((1, DIMENSION))) as other:  # fmt: skip
        path.write_bytes((other.path / "outputs.safetensors").read_bytes())
    with pytest.raises(EbertError, match="the files are not of one store"):
        Vectors.open(path.parent)
    path.unlink()
    with Vectors.open(path.parent) as store:
        assert store.word_outputs is None
