"""Training: it learns, it goes on after a kill as if nothing had been, and a run folder says what it is."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from ebert import EBert, EbertError, Passage, RelationClassifier, Vectors
from ebert.relations.data import read
from ebert.relations.evaluate import evaluate
from ebert.relations.inputs import Inputs
from ebert.relations.options import RelationTrainingOptions, ResolvingOptions
from ebert.relations.train import train

OPTIONS = RelationTrainingOptions(epochs=3, learning_rate=3e-3, batch=8, checkpoint_steps=4)
LONG = dataclasses.replace(OPTIONS, epochs=40, checkpoint_steps=1000)


def run(data, model, out, *, mode="concat", options=OPTIONS, say=lambda line: None):
    return train(data, model, out, mode=mode, options=options, resolving=ResolvingOptions(), device="cpu", say=say)


def weights(out):
    return RelationClassifier.from_pretrained(out).module.state_dict()


def test_it_learns_and_says_so(data, tiny, tmp_path):
    lines = []
    metrics = run(data, tiny, tmp_path / "run", options=LONG, say=lines.append)
    losses = [epoch["loss"] for epoch in metrics["epochs"]]
    assert losses[-1] < 0.2 < losses[0]
    assert metrics["dev"]["f1"] == 100
    best = metrics["best epoch"]
    assert all(epoch["dev"]["f1"] < 100 for epoch in metrics["epochs"][: best - 1])
    assert any("padding is" in line for line in lines)
    assert sum(line.startswith("epoch ") for line in lines) == 40
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_the_best_epoch_is_kept_and_not_the_last(data, tiny, tmp_path):
    """What it learns is wrong on this dev set, so that it becomes worse and worse there."""
    folder = tmp_path / "data"
    shutil.copytree(data, folder)
    others = {"P19": "P20", "P20": "P69", "P69": "P19"}
    rows = json.loads((data / "dev.json").read_text())
    (folder / "dev.json").write_text(json.dumps([row | {"label": others[row["label"]]} for row in rows]))
    metrics = run(folder, tiny, tmp_path / "run", options=LONG)
    assert metrics["epochs"][-1]["dev"]["f1"] < metrics["dev"]["f1"]
    assert metrics["best epoch"] < 40
    found = evaluate(RelationClassifier.from_pretrained(tmp_path / "run"), read(folder / "dev.json"))
    assert found.as_json()["macro"] == pytest.approx(metrics["dev"])


def test_what_is_trained_and_what_is_not(tiny_folder, whole):
    before = EBert.from_pretrained(tiny_folder).encoder.base_model.state_dict()
    after = weights(whole)
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


@pytest.fixture(scope="module")
def whole(data, tiny_folder, tmp_path_factory):
    """The folder of a run that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole") / "run"
    run(data, EBert.from_pretrained(tiny_folder), out)
    return out


@pytest.mark.parametrize("at", [9, 13])
def test_an_interrupted_run_ends_as_if_nothing_had_been(data, tiny_folder, whole, tmp_path, monkeypatch, at):
    """6 training and 3 dev batches an epoch, a checkpoint every 4 steps: while evaluating and inside an epoch."""
    with monkeypatch.context() as patch:
        interrupted(patch, at)
        with pytest.raises(KeyboardInterrupt):
            run(data, EBert.from_pretrained(tiny_folder), tmp_path / "parts")
    assert json.loads((tmp_path / "parts" / "run.json").read_text())["complete"] is False
    lines = []
    given = run(data, EBert.from_pretrained(tiny_folder), tmp_path / "parts", say=lines.append)
    assert any("continuing after step" in line for line in lines)
    assert given == json.loads((whole / "metrics.json").read_text())
    one, other = weights(whole), weights(tmp_path / "parts")
    assert all(tensor.equal(other[name]) for name, tensor in one.items())


def test_a_killed_run_goes_on(data, tiny_folder, tmp_path):
    """SIGKILL, as the kernel or an operator sends it, at a moment of its own choosing."""
    out = tmp_path / "run"
    command = [
        sys.executable, "-m", "ebert", "relations", "train", str(data), "--model", tiny_folder, "--mode", "concat",
        "--epochs", "12", "--batch", "8", "--learning-rate", "1e-3", "--checkpoint-steps", "5", "--out", str(out),
    ]  # fmt: skip
    alone = os.environ | {"OMP_NUM_THREADS": "1"}  # as here: sums depend on the number of threads
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=alone) as process:
        while not list(out.glob("checkpoints/checkpoint-*/trainer_state.json")):
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    assert json.loads((out / "run.json").read_text())["complete"] is False
    options = RelationTrainingOptions(epochs=12, learning_rate=1e-3, batch=8, checkpoint_steps=5)
    lines = []
    metrics = run(data, EBert.from_pretrained(tiny_folder), out, options=options, say=lines.append)
    assert any("continuing after step" in line for line in lines)
    assert metrics == run(data, EBert.from_pretrained(tiny_folder), tmp_path / "whole", options=options)


def test_two_processes_share_the_batches(data, tiny_folder, tmp_path):
    """As a launcher starts them, one for each GPU; here on the CPU."""
    out = tmp_path / "run"
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m",
        "ebert", "relations", "train", str(data), "--model", tiny_folder, "--mode", "concat", "--epochs", "2",
        "--batch", "8", "--learning-rate", "3e-3", "--device", "cpu", "--json", "--out", str(out),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout)  # one of them speaks
    assert done.stderr.count("epoch 1 of 2") == 1
    assert [epoch["step"] for epoch in metrics["epochs"]] == [6, 12]  # as of one process alone
    found = evaluate(RelationClassifier.from_pretrained(out), read(data / "dev.json"))
    assert found.as_json()["macro"] == pytest.approx(metrics["dev"])


def test_a_complete_run_is_left_alone_and_another_one_refused(data, tiny_folder, whole, tmp_path):
    out = shutil.copytree(whole, tmp_path / "run")
    metrics = json.loads((out / "metrics.json").read_text())
    before = (out / "model" / "weights.safetensors").stat().st_mtime_ns
    lines = []
    assert run(data, EBert.from_pretrained(tiny_folder), out, say=lines.append) == metrics
    assert lines == [f"{out} is complete already"]
    assert (out / "model" / "weights.safetensors").stat().st_mtime_ns == before
    with pytest.raises(EbertError, match="contains a run with other options"):
        run(data, EBert.from_pretrained(tiny_folder), out, options=dataclasses.replace(OPTIONS, seed=5))
    with pytest.raises(EbertError, match="contains a run with other mode"):
        run(data, EBert.from_pretrained(tiny_folder), out, mode="replace")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("years of work")
    with pytest.raises(EbertError, match="other contains something else"):
        run(data, EBert.from_pretrained(tiny_folder), tmp_path / "other")


def test_the_new_layer_and_the_order_are_the_same_in_all_variants(data, tiny_folder):
    made = [
        RelationClassifier.fresh(EBert.from_pretrained(tiny_folder), mode=mode, labels=["a", "b"], seed=4)
        for mode in ("bert", "concat")
    ]
    assert made[0].module.classifier.weight.equal(made[1].module.classifier.weight)
    other = RelationClassifier.fresh(EBert.from_pretrained(tiny_folder), mode="bert", labels=["a", "b"], seed=5)
    assert not made[0].module.classifier.weight.equal(other.module.classifier.weight)


def test_a_classifier_comes_back_as_it_was(whole, store, tmp_path):
    classify = RelationClassifier.from_pretrained(whole)
    texts = ["then [[Ann Lee]] was born in [[Rome]] .", "[[Bob Ray]] died in [[Bern]]", "[[Oslo]] and [[Lima]]"]
    answers = classify(texts)
    assert isinstance(answers, list)
    assert list(classify.stream(iter(texts))) == classify.predict(texts) == answers
    assert classify.predict(texts[:1]) == [classify.predict(texts[0])]
    assert (
        repr(classify)
        == f"RelationClassifier({classify.setting.encoder!r}, 3 relations, mode 'concat', vectors 'store')"
    )
    assert [answer.entities for answer in answers] == [("Ann Lee", "Rome"), ("Bob Ray", None), ("Oslo", "Lima")]
    assert classify(texts[0]).relation == answers[0].relation
    classify.save_pretrained(tmp_path / "copy")
    again = RelationClassifier.from_pretrained(tmp_path / "copy", vectors=store.path)
    assert [a.relations for a in again(texts)] == [a.relations for a in answers]
    assert classify(Passage.parse(texts[0])).relation == answers[0].relation
    assert [label for label, _ in classify(texts[0], top=9).relations] == [label for label, _ in answers[0].relations]
    with pytest.raises(EbertError, match="passage 1: it has 0 mentions"):
        classify("nothing at all")
    with pytest.raises(EbertError, match="top is 0"):
        classify(texts[0], top=0)


def test_training_is_public(data, tiny_folder, whole, tmp_path):
    """With the options of the command line, by name."""
    classifier = RelationClassifier.train(
        data, tiny_folder, tmp_path / "run", mode="concat", epochs=3, learning_rate=3e-3, batch=8, checkpoint_steps=4,
        threshold=0.5, device="cpu",
    )  # fmt: skip
    assert (tmp_path / "run" / "metrics.json").read_text() == (whole / "metrics.json").read_text()
    assert all(tensor.equal(classifier.module.state_dict()[name]) for name, tensor in weights(whole).items())
    with pytest.raises(TypeError, match="there is no option epoch"):
        RelationClassifier.train(data, tiny_folder, tmp_path / "other", epoch=3)


def test_broken_classifiers(whole, tiny_folder, tmp_path):
    model = shutil.copytree(whole / "model", tmp_path / "model")
    with pytest.raises(EbertError, match="there is no classifier at"):
        RelationClassifier.from_pretrained(tmp_path / "nowhere")
    with pytest.raises(EbertError, match="is not a relation classifier"):
        RelationClassifier.from_pretrained(tiny_folder)
    with pytest.raises(EbertError, match="give its new path"):
        RelationClassifier.from_pretrained(model, vectors=tmp_path / "nowhere")
    info = json.loads((model / "relations.json").read_text())
    for changes, complaint in (({"format": 9}, "classifier format 9"), ({"labels": 5}, "is damaged")):
        (model / "relations.json").write_text(json.dumps(info | changes))
        with pytest.raises(EbertError, match=complaint):
            RelationClassifier.from_pretrained(model)
    (model / "relations.json").write_text(json.dumps(info))
    (model / "weights.safetensors").write_bytes(b"nothing")
    with pytest.raises(EbertError, match=r"the weights in .* cannot be loaded"):
        RelationClassifier.from_pretrained(model)


def test_vectors_of_another_length_do_not_fit_the_unaligned_baselines(tiny_bert):
    vectors = Vectors.from_arrays(words=["was", "in"], word_vectors=np.eye(2, 3), entities=["Rome"],
                                  entity_vectors=np.ones((1, 3)))  # fmt: skip
    model = EBert.fit(tiny_bert, vectors)
    with pytest.raises(EbertError, match=r"must be 16 long.*have 3"):
        RelationClassifier.fresh(model, mode="wikipedia2vec-concat", labels=["a", "b"])
    RelationClassifier.fresh(model, mode="concat", labels=["a", "b"])
    with pytest.raises(EbertError, match="unknown mode 'both'"):
        RelationClassifier.fresh(model, mode="both", labels=["a", "b"])
    with pytest.raises(EbertError, match="needs entity vectors"):
        RelationClassifier.fresh(EBert.plain(tiny_bert), mode="concat", labels=["a", "b"])
