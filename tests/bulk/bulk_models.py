"""Small random models for jobs: an encoder with a store, and one whose store has a mention table to link with."""

import sys
from pathlib import Path

import encoders
import numpy as np

from ebert import EBert, Vectors

sys.path.append(str(Path(__file__).parents[1] / "linking"))
import link_world

WORDS = ["the", "capital", "of", "is", "Paris", "Rome", "and", "France", "Italy", "in", "a", "city", *link_world.WORDS]
CITED = ["Rome", "Italy", "Germany", "France"]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
PIECES = [*encoders.SPECIAL, ".", ",", "/", "*", "'", *WORDS, *LETTERS,
          *(f"##{letter}" for letter in LETTERS)]  # fmt: skip


def write_bert(folder: Path) -> str:
    return encoders.write_small(folder, PIECES, layers=2, inner=24, spread=0.5)


def write_model(folder: Path) -> str:
    """A model that knows three entities."""
    rng = np.random.default_rng(0)
    store = Vectors.from_arrays(
        words=WORDS, word_vectors=rng.normal(size=(len(WORDS), 8)), entities=["France", "Italy", "Paris"],
        entity_vectors=rng.normal(size=(3, 8)), entity_counts=[50, 7, 3], path=folder / "store",
    )  # fmt: skip
    EBert.fit(write_bert(folder / "bert"), store).save_pretrained(
        folder / "model", include_vectors=False, include_encoder=False
    )
    return str(folder / "model")


def write_linker(folder: Path, name: str = "model") -> str:
    """A model that can link without training, also what docs/howto/bulk.md has."""
    table = {**link_world.TABLE, **{title: (10, {title: 9}) for title in CITED}}
    store = link_world.write_store(folder / "store", table=table, entities=[*link_world.ENTITIES, *CITED])
    EBert.fit(write_bert(folder / "bert"), store).save_pretrained(
        folder / name, include_vectors=False, include_encoder=False
    )
    return str(folder / name)
