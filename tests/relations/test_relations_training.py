"""Training: it learns, it goes on after a kill as if nothing had been, and a run folder says what it is."""

import dataclasses
import json

import pytest

from ebert import EBert, RelationClassifier
from ebert.relations.inputs import Inputs
from ebert.relations.options import TrainingOptions
from ebert.relations.resolving import ResolvingOptions
from ebert.relations.run import train

OPTIONS = TrainingOptions(epochs=3, learning_rate=3e-3, batch=8, checkpoint_steps=4)


def run(data, model, out, *, mode="concat", options=OPTIONS, say=lambda line: None):
    return train(data, model, out, mode=mode, options=options, resolving=ResolvingOptions(), device="cpu", say=say)


def weights(out):
    return RelationClassifier.from_pretrained(out).module.state_dict()


def test_it_learns_and_says_so(data, tiny, tmp_path):
    lines = []
    metrics = run(data, tiny, tmp_path / "run", options=dataclasses.replace(OPTIONS, epochs=40), say=lines.append)
    losses = [epoch["loss"] for epoch in metrics["epochs"]]
    assert losses[-1] < 0.2 < losses[0]
    assert metrics["dev"]["f1"] == 100
    best = metrics["best epoch"]
    assert all(epoch["dev"]["f1"] < 100 for epoch in metrics["epochs"][: best - 1])
    assert any("padding is" in line for line in lines)
    assert sum(line.startswith("epoch ") for line in lines) == 40
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_what_is_trained_and_what_is_not(data, tiny, tmp_path):
    before = {name: tensor.clone() for name, tensor in tiny.encoder.base_model.state_dict().items()}
    run(data, tiny, tmp_path / "run")
    after = weights(tmp_path / "run")
    same = {name for name, tensor in before.items() if tensor.equal(after[f"encoder.{name}"])}
    assert same == {"embeddings.word_embeddings.weight"}


def interrupted(monkeypatch, at):
    """Let the collator fail at the given batch."""
    original, seen = Inputs.__call__, []

    def fail(self, rows):
        seen.append(len(rows))
        if len(seen) == at:
            raise KeyboardInterrupt
        return original(self, rows)

    monkeypatch.setattr(Inputs, "__call__", fail)


@pytest.mark.parametrize("at", [6, 9, 13, 20])
def test_an_interrupted_run_ends_as_if_nothing_had_been(data, tiny_folder, tmp_path, monkeypatch, at):
    """6 training and 3 dev batches an epoch, a checkpoint every 4 steps: inside an epoch and while evaluating."""
    wanted = run(data, EBert.from_pretrained(tiny_folder), tmp_path / "whole")
    with monkeypatch.context() as patch:
        interrupted(patch, at)
        with pytest.raises(KeyboardInterrupt):
            run(data, EBert.from_pretrained(tiny_folder), tmp_path / "parts")
    assert json.loads((tmp_path / "parts" / "run.json").read_text())["complete"] is False
    lines = []
    given = run(data, EBert.from_pretrained(tiny_folder), tmp_path / "parts", say=lines.append)
    assert any("going on after step" in line for line in lines)
    assert given == wanted
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all(tensor.equal(other[name]) for name, tensor in one.items())
