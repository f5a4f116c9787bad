"""A small linker on disk, whose encoder is a very small BERT with random weights, and pipelines that use it."""

import sys
from pathlib import Path

import encoders
import pytest
import spacy
import torch

from ebert import EBert, Linker

sys.path.append(str(Path(__file__).parents[1] / "linking"))

import link_world

PIECES = [*encoders.SPECIAL, "/", "*", ".", "'", "s", "Adams", "Platt", *link_world.WORDS]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A linker that takes every span for an entity."""
    place = tmp_path_factory.mktemp("linker")
    model = EBert.fit(encoders.write_small(place / "bert", PIECES), link_world.write_store(place / "store"))
    model.save_pretrained(place / "ebert", include_vectors=False, include_encoder=False)
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
