"""Training: labels, weights, what is trained, and going on after a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import linking_tiny as tiny
import pytest
import torch
from safetensors.torch import load_file

from ebert import EbertError, Linker
from ebert.finetuning.run import expected_maximum
from ebert.linking.document import Document
from ebert.linking.examples import GOLD, IGNORED, NOT_AMONG, OVER, TrainingSet, examples
from ebert.linking.options import LinkerOptions, LinkTrainingOptions
from ebert.linking.train import search, train
from ebert.text.passage import Mention

TEXT = tiny.TEXT
STRATEGIES = ("paper", "packed")


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def documents(count):
    texts = (
        TEXT,
        "Platt will miss England",
        "Adams and Platt are both injured",
        "opening World Cup qualifier and Adams",
    )
    return [tiny.gold(texts[number % 4], str(number)) for number in range(count)]


def learn(path, count=8, *, strategy="packed", variant="e-bert-mlm", **options):
    told = []
    chosen = {"epochs": 3, "batch": 8, "learning_rate": 5e-3, **options}
    metrics = train(
        documents(count), documents(4), tiny.model(path / "store"),
        path / "run", linker_options=LinkerOptions(strategy=strategy, variant=variant),
        options=LinkTrainingOptions(**chosen), generator=tiny.spans, device="cpu", say=told.append,
    )  # fmt: skip
    return metrics, told


def test_labels():
    adams, england = Mention(0, 5, "Tony Adams (footballer)"), Mention(47, 54, "Nowhere")
    assert TEXT[47:54] == "England"
    document = Document("1", TEXT, (adams, england), ignore=((10, 15),))
    (one,), counts = examples(tiny.linker(), [document])
    assert [(TEXT[p.span.start : p.span.end], label) for p, label in one.gold] == [("Adams", 2)]  # the second choice
    assert [TEXT[p.span.start : p.span.end] for p in one.nulls] == ["injured", "World Cup", "Cup"]
    assert counts == {GOLD: 1, OVER: 3, NOT_AMONG: 1, IGNORED: 1}


def test_a_name_that_is_gold_but_for_its_marks_is_not_taught_as_none():
    text = TEXT.replace("England", '"England"')
    document = Document("1", text, (Mention(47, 56, "England"),))
    (one,), counts = examples(tiny.linker(), [document])
    assert not one.gold
    assert [text[p.span.start : p.span.end] for p in one.nulls] == ["Adams", "Platt", "injured", "World Cup", "Cup"]
    assert counts == {OVER: 5, IGNORED: 1}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_epoch_without_subsampling_has_every_span_once(strategy):
    linker = tiny.linker(strategy=strategy)
    given, counts = examples(linker, documents(4))
    data = TrainingSet(linker, given, nulls=1.0, seed=0)
    seen = Counter(
        (chunk, placed.span, label, weight)
        for chunk in range(len(data))
        for laid, labels, weights in data[chunk]
        for placed, label, weight in zip(laid.spans, labels, weights, strict=True)
    )
    assert data.spans == counts[GOLD] + counts[OVER] == len(seen)
    assert set(seen.values()) == {1}
    assert all(weight == 1.0 for _, _, _, weight in seen)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_subsampled_nulls_weigh_more_and_change_from_epoch_to_epoch(strategy):
    linker = tiny.linker(strategy=strategy)
    given, counts = examples(linker, documents(40))
    data = TrainingSet(linker, given, nulls=0.5, seed=0)

    def nulls(epoch):
        data.begin(epoch)
        return [
            (number, placed.span.start, weight)
            for number in range(len(data))
            for laid, labels, weights in data[number]
            for placed, label, weight in zip(laid.spans, labels, weights, strict=True)
            if label == 0
        ]

    first, again, second = nulls(0), nulls(0), nulls(1)
    assert first == again != second
    assert len(first) == len(second) < counts[OVER]
    assert sum(weight for _, _, weight in first) == pytest.approx(counts[OVER])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_order_depends_on_seed_and_epoch_only(strategy):
    linker = tiny.linker(strategy=strategy)
    given, _ = examples(linker, documents(8))
    one, other = (TrainingSet(linker, given, nulls=1.0, seed=1) for _ in range(2))

    def order(data):
        return [(laid.ids, laid.masks) for number in range(len(data)) for laid, _, _ in data[number]]

    first = order(one)
    assert first == order(other)
    other.begin(1)
    assert first != order(other)
    assert sorted(first) == sorted(order(other))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_training_learns_and_the_best_linker_is_loaded(tmp_path, strategy):
    before = tiny.linker(strategy=strategy)
    wanted = {(m.start, m.entity) for m in tiny.gold().gold}
    assert {(m.start, m.entity) for m in before(TEXT)} != wanted
    metrics, told = learn(tmp_path, 16, strategy=strategy, epochs=6, learning_rate=1e-2)
    assert metrics["dev"]["f1"] == 100.0
    assert metrics["dev"] == max((point["dev"] for point in metrics["epochs"]), key=lambda dev: dev["f1"])
    assert any("gold spans" in line for line in told)
    linker = Linker.from_pretrained(tmp_path / "run", generator=tiny.spans)
    linked = linker.link(tiny.gold(), rounds=1)  # as the dev set is linked
    assert {(m.start, m.entity) for m in linked.mentions} == wanted
    assert linker.options.strategy == strategy
    assert not (tmp_path / "run" / "checkpoints").exists()
    assert learn(tmp_path, 16, strategy=strategy, epochs=6, learning_rate=1e-2)[1] == [
        f"{tmp_path / 'run'} is complete already"
    ]


def test_the_readiness_to_link_is_kept_with_the_weights_it_was_tuned_for(tmp_path):
    metrics, _ = learn(tmp_path, epochs=2, evaluations=3, learning_rate=2e-2)
    *_, best, last = [point["dev"] for point in metrics["epochs"]]
    assert metrics["dev"] == best  # the first of equals
    assert best["shift"] != last["shift"]
    linker = Linker.from_pretrained(tmp_path / "run", generator=tiny.spans)
    assert linker.null_shift == best["shift"]
    for document, linked in zip(documents(4), linker.link(documents(4), rounds=1), strict=True):
        assert {(m.start, m.end, m.entity) for m in linked.mentions} == {
            (m.start, m.end, m.entity) for m in document.gold
        }


def test_wordpiece_and_entity_vectors_are_fixed_and_all_else_is_trained(tmp_path):
    learn(tmp_path, epochs=1, learning_rate=1e-2, warmup=0.0)
    fresh = tiny.linker()
    before = fresh.module.state_dict()
    after = load_file(tmp_path / "run" / "model" / "weights.safetensors")
    assert before.keys() == after.keys()
    same = {name for name in before if torch.equal(before[name], after[name])}
    # Keys' biases change nothing in a softmax, and the second segment is never seen.
    assert {name for name in same if "key.bias" not in name} == {"encoder.bert.embeddings.word_embeddings.weight"}
    assert before["null_bias"].item() == 0.0
    assert not before["null"].any()
    assert after["null"].any()


@pytest.mark.parametrize("variant", ["wikipedia2vec-bert-mlm", "wikipedia2vec-bert-random"])
def test_baselines_train_and_load(tmp_path, variant):
    learn(tmp_path, epochs=1, variant=variant)
    linker = Linker.from_pretrained(tmp_path / "run", generator=tiny.spans)
    assert linker.options.mask == "standard"
    assert (linker.module.head is not None) == (variant == "wikipedia2vec-bert-random")
    assert linker.alignment.options.method == "none"
    linker(TEXT)


def test_a_run_of_other_options_is_not_overwritten(tmp_path):
    learn(tmp_path, epochs=1)
    with pytest.raises(EbertError, match="contains a run with other options"):
        learn(tmp_path, epochs=2)


def test_documents_without_usable_gold_are_refused(tmp_path):
    with pytest.raises(EbertError, match="none of the 1 documents has a gold mention"):
        train(
            [Document("1", TEXT)], documents(1), tiny.model(tmp_path / "store"), tmp_path / "run",
            linker_options=LinkerOptions(), options=LinkTrainingOptions(), generator=tiny.spans, say=lambda line: None,
        )  # fmt: skip


def long_training(path, run, strategy="packed", say=print):
    """Train with dropout and subsampling, so that whatever is random counts; checkpoints come every other step."""
    texts = [tiny.gold(name=str(number)) for number in range(12)]
    options = LinkTrainingOptions(epochs=3, batch=8, learning_rate=1e-3, checkpoint_steps=2, nulls=0.5)
    return train(
        texts, texts[:1], tiny.model(path / "store", dropout=0.1), path / run,
        linker_options=LinkerOptions(strategy=strategy), options=options, generator=tiny.spans, device="cpu", say=say,
    )  # fmt: skip


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import torch
torch.set_num_threads(1)
from test_linker_training import long_training
long_training(Path({path!r}), "stopped")
"""


def assert_same(path, one, other):
    curves = [json.loads((path / run / "metrics.json").read_text())["epochs"] for run in (one, other)]
    assert [point["step"] for point in curves[0]] == [point["step"] for point in curves[1]]
    for a, b in zip(*curves, strict=True):
        assert a["dev"] == b["dev"]
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-5)
    weights = [load_file(path / run / "model" / "weights.safetensors") for run in (one, other)]
    for name in weights[0]:
        torch.testing.assert_close(weights[0][name], weights[1][name], atol=1e-6, rtol=0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_stopped_training_goes_on_and_ends_the_same(tmp_path, strategy):
    long_training(tmp_path, "whole", strategy)

    def stop(line):
        if line.startswith("epoch 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        long_training(tmp_path, "stopped", strategy, say=stop)
    (tmp_path / "stopped" / "checkpoints" / "checkpoint-999").mkdir()  # as a kill in the middle of writing leaves it
    told = []
    long_training(tmp_path, "stopped", strategy, say=told.append)
    assert any("continuing after step" in line for line in told)
    assert_same(tmp_path, "whole", "stopped")


def test_ctrl_c_loses_no_step(tmp_path):
    long_training(tmp_path, "whole", "packed")
    told = []

    def stop(line):
        told.append(line)
        if line.startswith("epoch 1 "):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        long_training(tmp_path, "stopped", "packed", say=stop)
    assert told[-1].startswith("stopping: ")
    [checkpoint] = (tmp_path / "stopped" / "checkpoints").iterdir()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    step = int(checkpoint.name.removeprefix("checkpoint-"))
    assert step % 2  # between two of those that are written anyway
    told.clear()
    long_training(tmp_path, "stopped", "packed", say=told.append)
    assert any(f"continuing after step {step} " in line for line in told)
    assert_same(tmp_path, "whole", "stopped")


def test_two_trainings_do_not_share_a_folder(tmp_path):
    def again(line):
        if line.startswith("epoch 1 "):
            with pytest.raises(EbertError, match="another process works on"):
                long_training(tmp_path, "one", "packed")

    long_training(tmp_path, "one", "packed", say=again)


def test_so_does_a_killed_one(tmp_path):
    code = SCRIPT.format(tests=str(Path(__file__).parent), path=str(tmp_path))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    killed = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, env=environment)
    checkpoints = tmp_path / "stopped" / "checkpoints"
    while last_complete(checkpoints) < 4 and killed.poll() is None:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    told = []
    long_training(tmp_path, "stopped", say=told.append)
    assert any("continuing after step" in line for line in told)
    long_training(tmp_path, "whole")
    assert_same(tmp_path, "whole", "stopped")


def last_complete(checkpoints):
    steps = [int(path.parent.name.split("-")[1]) for path in checkpoints.glob("checkpoint-*/trainer_state.json")]
    return max(steps, default=0)


def test_a_search_keeps_the_best(tmp_path):
    told = []
    result = search(
        documents(8), documents(4), lambda: tiny.model(tmp_path / "store"), tmp_path / "out",
        linker_options=LinkerOptions(), options=LinkTrainingOptions(epochs=1), rates=[1e-2, 1e-6], batches=[8],
        generator=tiny.spans, device="cpu", say=told.append,
    )  # fmt: skip
    runs = {one["run"]: one["dev"]["f1"] for one in result["configurations"]}
    assert result["best"] == max(runs, key=runs.get)
    kept = [path.parent.name for path in (tmp_path / "out").glob("*/model")]
    assert kept == [result["best"]]


def test_the_expected_maximum_by_hand():
    # Two of 10 and 20: one draw gives 15 on average, two give 10/4 + 20 * 3/4 = 17.5.
    assert expected_maximum([20.0, 10.0]) == pytest.approx([15.0, 17.5])


def test_training_is_public_with_the_options_of_the_command(tmp_path):
    documents = [tiny.gold(name=str(number)) for number in range(4)]
    model, told = tiny.model(tmp_path / "store"), []
    linker = Linker.train(
        documents, model, tmp_path / "run", dev=documents[:1], generator=tiny.spans, say=told.append,
        strategy="paper", epochs=1, batch=8, learning_rate=1e-2,
    )  # fmt: skip
    assert (linker.options.strategy, linker.vectors) == ("paper", model.vectors)
    assert linker(TEXT).mentions == Linker.from_pretrained(tmp_path / "run", generator=tiny.spans)(TEXT).mentions
    assert any("epoch 1 of 1" in line for line in told)
    with pytest.raises(TypeError, match="no option epoch"):
        Linker.train(documents, model, tmp_path / "other", epoch=3)
