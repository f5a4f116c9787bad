"""A small random encoder with a store that fits it, and a small LAMA to ask it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from small_lama import PIECES, WORDS, write_lama
from transformers import BertConfig, BertForMaskedLM, BertTokenizer

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
    torch.manual_seed(1)
    words = list(dict.fromkeys(piece.lower() if lower and piece[0] != "[" else piece for piece in PIECES))
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, initializer_range=0.5,
    )  # fmt: skip
    BertForMaskedLM(config).save_pretrained(folder)
    pieces = {piece: row for row, piece in enumerate(words)}
    BertTokenizer(vocab=pieces, do_lower_case=lower, model_max_length=64).save_pretrained(folder)
    return str(folder)


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
    small.save_pretrained(folder)
    return str(folder)
