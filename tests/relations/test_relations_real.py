"""The real BERT learns 40 sentences by heart."""

import json

import numpy as np
import pytest

from ebert import EBert, RelationClassifier, Vectors
from ebert.relations.data import read
from ebert.relations.evaluate import evaluate
from ebert.relations.options import RelationTrainingOptions, ResolvingOptions
from ebert.relations.train import train

pytestmark = pytest.mark.real

PAIRS = [
    ("Anna", "Oslo"), ("Boris", "Lima"), ("Clara", "Rome"), ("David", "Cairo"), ("Edith", "Paris"),
    ("Felix", "Delhi"), ("Greta", "Tokyo"), ("Henry", "Quito"), ("Irene", "Kiev"), ("Jonas", "Bern"),
]  # fmt: skip
SAYING = {
    "born": "{} was born in {} .",
    "died": "{} died in {} .",
    "works": "{} works in {} .",
    "rules": "{} rules {} .",
}


def rows():
    for label, saying in SAYING.items():
        for person, place in PAIRS:
            text = saying.format(person, place)
            start = text.index(place)
            yield {
                "text": text,
                "subject": [0, len(person)],
                "object": [start, start + len(place), place],
                "label": label,
            }


def test_forty_sentences_are_learnt(tmp_path):
    lines = "".join(json.dumps(row) + "\n" for row in rows())
    for split in ("train", "dev"):
        (tmp_path / f"{split}.jsonl").write_text(lines)
    cities = [place for _, place in PAIRS]
    random = np.random.default_rng(0)
    vectors = Vectors.from_arrays(
        words=["city", "man", "woman", "king"], word_vectors=random.normal(size=(4, 8)), entities=cities,
        entity_vectors=random.normal(size=(10, 8)),
    )  # fmt: skip
    metrics = train(
        tmp_path, EBert.fit("bert-base-cased", vectors), tmp_path / "run", mode="concat",
        options=RelationTrainingOptions(epochs=6, learning_rate=1e-4, batch=20, checkpoint_steps=1000),
        resolving=ResolvingOptions(), device="cpu", say=lambda line: None,
    )  # fmt: skip
    losses = [epoch["loss"] for epoch in metrics["epochs"]]
    assert losses[-1] < losses[0] / 2
    found = evaluate(RelationClassifier.from_pretrained(tmp_path / "run"), read(tmp_path / "train.jsonl")).as_json()
    assert found["accuracy"] == 100
    assert found["coverage"]["ways"]["named"] == 40
