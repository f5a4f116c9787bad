"""A small linker on disk, whose encoder is a very small BERT with random weights, and pipelines that use it."""

import sys
from pathlib import Path

import pytest
import spacy
import torch

from ebert import EBert, Linker

sys.path.append(str(Path(__file__).parents[1] / "linking"))

import link_world

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "/", "*", ".", "'", "s", "Adams", "Platt", *link_world.WORDS]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A linker that takes every span for an entity."""
    from transformers import BertConfig, BertForMaskedLM, BertTokenizer

    torch.manual_seed(0)
    place = tmp_path_factory.mktemp("linker")
    config = BertConfig(
        vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64,
    )  # fmt: skip
    BertForMaskedLM(config).save_pretrained(place / "bert")
    pieces = {piece: row for row, piece in enumerate(PIECES)}
    BertTokenizer(vocab=pieces, do_lower_case=False, model_max_length=64).save_pretrained(place / "bert")
    model = EBert.fit(str(place / "bert"), link_world.write_store(place / "store"))
    model.save_pretrained(place / "ebert")
    linker = Linker.fresh(model)
    with torch.no_grad():
        linker.module.null_bias.fill_(-10)
    linker.save_pretrained(place / "linker")
    return place / "linker"


@pytest.fixture
def pipeline(folder):
    """Makes an English pipeline with the linker in it."""

    def make(**config):
        nlp = spacy.blank("en")
        nlp.add_pipe("ebert_linker", config={"linker": str(folder), **config})
        return nlp

    return make
