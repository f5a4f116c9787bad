"""A small random encoder, a store that fits it, and a way to run commands as the shell does."""

import json
import sys

import numpy as np
import pytest

from ebert import EBert, Vectors, cli

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
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [*SPECIAL, *WORDS, ".", "/", "##s", "Jean", "Mara", "##is"]


@pytest.fixture(scope="session")
def small_bert(tmp_path_factory):
    """The folder of a very small BERT with random weights."""
    import torch
    from transformers import BertConfig, BertForMaskedLM, BertTokenizer

    folder = tmp_path_factory.mktemp("small-bert")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64,
    )  # fmt: skip
    BertForMaskedLM(config).save_pretrained(folder)
    pieces = {piece: row for row, piece in enumerate(PIECES)}
    BertTokenizer(vocab=pieces, do_lower_case=False, model_max_length=64).save_pretrained(folder)
    return str(folder)


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
    EBert.fit(small_bert, Vectors.open(store_template)).save_pretrained(path)
    return str(path)


class Done:
    """What a command printed and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def ebert(monkeypatch, capsys):
    """Runs a command in this process, through the same door as the shell."""

    def run(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["ebert", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return Done(stop.value.code or 0, captured.out, captured.err)

    return run
