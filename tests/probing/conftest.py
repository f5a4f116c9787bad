"""A small random encoder with a store that fits it, and a small LAMA to ask it."""

from pathlib import Path

import encoders
import numpy as np
import pytest
import torch
from small_lama import PIECES, WORDS, write_lama

from ebert import EBert, Vectors


@pytest.fixture(autouse=True)
def one_thread(request):
    """Small models are slower on several threads than on one, above all beside other work."""
    threads = torch.get_num_threads()
    if "bert" not in request.fixturenames:
        torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def lama(tmp_path) -> Path:
    return write_lama(tmp_path / "lama")


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory) -> str:
    """The folder of a very small BERT."""
    return random_bert(tmp_path_factory.mktemp("small"))


def random_bert(folder: Path, *, lower: bool = False) -> str:
    """A very small BERT with random weights."""
    words = [piece.lower() if lower and piece[0] != "[" else piece for piece in PIECES]
    return encoders.write_small(folder, words, layers=2, inner=32, spread=0.5, lower=lower, seed=1)


@pytest.fixture(scope="session")
def lower_casing(tmp_path_factory) -> EBert:
    """One that knows no capitals."""
    return EBert.plain(random_bert(tmp_path_factory.mktemp("lower"), lower=True))


@pytest.fixture(scope="session")
def store(tmp_path_factory) -> Vectors:
    rng = np.random.default_rng(0)
    return Vectors.from_arrays(
        words=WORDS, word_vectors=rng.normal(size=(len(WORDS), 8)), entities=["France", "Italy", "Jean Marais"],
        entity_vectors=rng.normal(size=(3, 8)), entity_counts=[50, 7, 3], redirects=[("Republic of Peru", "France")],
        wikidata=[("Jean Marais", 168359), ("France", 142), ("Italy", 38)], path=tmp_path_factory.mktemp("s") / "store",
    )  # fmt: skip


@pytest.fixture(scope="session")
def small(small_folder, store) -> EBert:
    """The small BERT, fitted to the store."""
    return EBert.fit(small_folder, store)


@pytest.fixture(scope="session")
def small_model(small, tmp_path_factory) -> str:
    """The folder of that model."""
    folder = tmp_path_factory.mktemp("m") / "model"
    small.save_pretrained(folder, include_vectors=False, include_encoder=False)
    return str(folder)
