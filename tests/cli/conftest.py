"""A small random encoder, and a store and a model that fit it."""

import encoders
import numpy as np
import pytest

from ebert import EBert, Vectors

WORDS = [
    "the",
    "native",
    "language",
    "of",
    "French",
    "Italian",
    "Paris",
    "France",
    "is",
    "a",
    "city",
    "in",
    "actor",
    "spoke",
]
PIECES = [*encoders.SPECIAL, *WORDS, ".", "/", "##s", "Jean", "Mara", "##is"]


@pytest.fixture(scope="session")
def small_bert(tmp_path_factory):
    """The folder of a very small BERT with random weights."""
    return encoders.write_small(tmp_path_factory.mktemp("small-bert"), PIECES)


@pytest.fixture(scope="session")
def store_template(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "store"
    rng = np.random.default_rng(0)
    Vectors.from_arrays(
        words=WORDS,
        word_vectors=rng.normal(size=(len(WORDS), 8)),
        entities=["Jean Marais", "Paris", "France"],
        entity_vectors=rng.normal(size=(3, 8)),
        wikidata=[("Jean Marais", 168359)],
        path=path,
    ).close()
    return path


@pytest.fixture
def store(store_template, tmp_path):
    """The path of a store of this test's own."""
    import shutil

    return str(shutil.copytree(store_template, tmp_path / "store"))


@pytest.fixture(scope="session")
def model(small_bert, store_template, tmp_path_factory):
    """The path of a model of the small BERT and the store."""
    path = tmp_path_factory.mktemp("models") / "model"
    EBert.fit(small_bert, Vectors.open(store_template)).save_pretrained(
        path, include_vectors=False, include_encoder=False
    )
    return str(path)
