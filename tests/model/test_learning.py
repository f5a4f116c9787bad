"""Learning through the encoder: W from passages, the vector of a new entity from its description."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from encoders import SPECIAL, write_small
from safetensors import safe_open
from safetensors.numpy import save_file
from torch.nn.functional import cross_entropy

from ebert import AlignmentOptions, EBert, EbertError, Passage, Vectors
from ebert.finetuning.run import describe
from ebert.model.encoder import Encoder
from ebert.model.options import LearningOptions
from ebert.model.passages import Passages
from ebert.model.refine import Refiner

COLOURS = ("red", "green", "blue", "yellow")
WORDS = [f"{colour[0]}{number}" for colour in COLOURS for number in range(10)]  # words that BERT knows the colour of
ENTITIES = [f"Thing {number}" for number in range(400)]
FIT = AlignmentOptions(intercept=True, length=2.0)
LEARN = LearningOptions(steps=150, rate=0.01, tokens=400, mask=1.0, evaluate=50, precision="fp32", held_passages=60)


def colour_of(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A small BERT that knows the colours of words, and a store whose entities have theirs in another direction."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("colours")
    pieces = [*SPECIAL, "is", ".", "/", "Thing", *map(str, range(400)), *COLOURS, *WORDS]
    encoder = Encoder.load(write_small(folder / "bert", pieces, width=32, layers=2, inner=64))
    texts = [f"{word} is [MASK] ." for word in WORDS]
    answers = torch.tensor(encoder.tokenizer.convert_tokens_to_ids([colour_of(i // 10) for i in range(len(WORDS))]))
    batch = encoder.tokenizer(texts, return_tensors="pt")
    optimiser = torch.optim.Adam(encoder.module.parameters(), lr=0.003)
    for _ in range(150):
        loss = cross_entropy(encoder.module(**batch).logits[:, 3], answers)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    encoder.module.save_pretrained(folder / "bert")
    rng = np.random.default_rng(0)
    words = np.hstack([np.eye(4)[np.arange(40) // 10], np.zeros((40, 4)), rng.normal(0, 0.1, (40, 4))])
    entities = np.hstack([np.zeros((400, 4)), np.eye(4)[np.arange(400) % 4], rng.normal(0, 0.1, (400, 4))])
    store = Vectors.from_arrays(words=WORDS, word_vectors=words, entities=ENTITIES, entity_vectors=entities)
    store.save(folder / "store").close()
    with (folder / "passages.jsonl").open("w", encoding="utf-8") as file:
        for number, title in enumerate(ENTITIES):
            mention = {"start": 0, "end": len(title), "entity": title}
            row = {"page": title, "text": f"{title} is {colour_of(number)} .", "mentions": [mention]}
            file.write(json.dumps(row) + "\n")
    return folder


def fit(world, work=None, learning=LEARN, leave_out=(), **options):
    passages = Passages.of(world / "passages.jsonl", leave_out)
    return EBert.fit(
        world / "bert", world / "store", options=FIT, learn=passages, learning=learning, work=work, **options
    )


def right(model, numbers, mode):
    """Return the share of entities whose colour a model tells."""
    passages = [Passage.parse(f"[[{ENTITIES[number]}]] is [MASK] .") for number in numbers]
    filled = model.fill(passages, mode=mode, candidates=COLOURS, top=1)
    return np.mean([one.best == colour_of(number) for one, number in zip(filled, numbers, strict=True)])


def test_a_fact_that_least_squares_does_not_see_is_learned(world):
    unseen = range(300, 400)
    plain = EBert.fit(world / "bert", world / "store", options=FIT)
    learned = fit(world, leave_out=[ENTITIES[number] for number in unseen])
    for mode in ("concat", "replace"):
        assert right(plain, unseen, mode) < 0.5
        assert right(learned, unseen, mode) > 0.9
    report = learned.alignment.learned
    assert report.passages + report.held_out == 300
    assert report.left_out == 100
    assert report.learned["replace"] < 0.5 * report.least_squares["replace"]
    assert torch.equal(learned.encoder.get_input_embeddings().weight, plain.encoder.get_input_embeddings().weight)
    assert all(parameter.requires_grad for parameter in learned.encoder.parameters())


@pytest.mark.parametrize("hidden", [0, 16])
def test_a_stopped_run_goes_on_to_the_same_bytes(world, tmp_path, hidden):
    short = replace(LEARN, steps=40, evaluate=10, hidden=hidden)
    whole = fit(world, tmp_path / "whole", short)
    said = []

    def stop(text):
        said.append(text)
        if text.startswith("step 20"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(world, tmp_path / "stopped", short, say=stop)
    with pytest.raises(
        EbertError, match=r"an unfinished alignment of something else: options rate was 0\.01, is 0\.02"
    ):
        fit(world, tmp_path / "stopped", replace(short, rate=0.02))
    said.clear()
    again = fit(world, tmp_path / "stopped", short, say=said.append)
    assert "going on at step 10" in said
    assert again.alignment.weight.tobytes() == whole.alignment.weight.tobytes()
    assert again.alignment.bias.tobytes() == whole.alignment.bias.tobytes()
    assert again.alignment.options == whole.alignment.options
    assert not (tmp_path / "stopped").exists()


def test_it_stops_when_held_out_passages_get_no_better_and_keeps_the_best(world):
    destroying = replace(LEARN, rate=3.0, steps=1000, evaluate=1, patience=2)
    report = fit(world, learning=destroying).alignment.learned
    assert report.steps < 100
    assert report.best_step == report.steps - 3


def test_the_budget_of_time_ends_it(world):
    report = fit(world, learning=replace(LEARN, steps=10**6, minutes=0.02)).alignment.learned
    assert report.steps < 10**6
    assert report.seconds >= 1.2


def test_every_encoder_learns(architecture, tiny, tmp_path):
    """Sentences about entities that always say the same: any encoder soon predicts them better."""
    with (tmp_path / "passages.jsonl").open("w", encoding="utf-8") as file:
        for number in range(40):
            title, word = (("Rome", "Italian"), ("Paris", "French"))[number % 2]
            mention = {"start": 4, "end": 4 + len(title), "entity": title}
            row = {"page": f"{number}", "text": f"the {title} is {word} and {word} in English", "mentions": [mention]}
            file.write(json.dumps(row) + "\n")
    few = replace(LEARN, steps=12, evaluate=12, rate=0.05, tokens=200, held_passages=8)
    learn = Passages.of(tmp_path / "passages.jsonl")
    learned = EBert.fit(tiny.folder(architecture.name), tiny.vectors, options=FIT, learn=learn, learning=few)
    report = learned.alignment.learned
    assert sum(report.learned.values()) < sum(report.least_squares.values())


@pytest.mark.parametrize("hidden", [0, 16])
def test_it_is_saved_with_the_model(world, tmp_path, hidden):
    model = fit(world, learning=replace(LEARN, steps=5, hidden=hidden))
    model.save_pretrained(tmp_path / "model")
    loaded = EBert.from_pretrained(tmp_path / "model")
    assert loaded.alignment.learned == model.alignment.learned
    assert describe(loaded)["alignment"]["learned"]["steps"] == 5  # runs of other alignments are other runs
    assert torch.equal(loaded.project(ENTITIES[:9]), model.project(ENTITIES[:9]))


def test_a_hidden_layer_starts_at_zero_and_adds_to_w(world):
    learned = fit(world, learning=replace(LEARN, steps=30, hidden=16)).alignment
    layer, vectors = learned.correction, np.random.default_rng(1).normal(size=(7, 12)).astype(np.float32)
    assert layer.inner.shape == (16, 12)
    inside = np.where((before := vectors @ layer.inner.T + layer.constant) > 0, before, 0)  # (7, hidden)
    whole = vectors @ learned.weight.T + learned.bias + inside @ layer.outer.T
    scaled = whole / np.linalg.norm(whole, axis=1, keepdims=True) * learned.options.length
    np.testing.assert_allclose(learned.project(vectors), scaled, atol=1e-4)
    assert np.abs(inside @ layer.outer.T).max() > 0.01  # it is not idle
    assert learned.learned.least_squares == fit(world, learning=replace(LEARN, steps=1)).alignment.learned.least_squares


def test_a_damaged_hidden_layer_is_refused(world, tmp_path):
    fit(world, learning=replace(LEARN, steps=1, hidden=16)).save_pretrained(tmp_path / "model")
    path = tmp_path / "model" / "alignment.safetensors"
    with safe_open(str(path), framework="np") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file({name: tensors[name] for name in tensors if name != "correction.outer"}, path, metadata)
    with pytest.raises(EbertError, match="hidden layer is missing"):
        EBert.from_pretrained(tmp_path / "model")
    save_file(tensors | {"correction.outer": tensors["correction.outer"][:, :3].copy()}, path, metadata)
    with pytest.raises(EbertError, match="other shapes"):
        EBert.from_pretrained(tmp_path / "model")


@pytest.mark.parametrize("hidden", [0, 16])
def test_a_new_entity_is_refined_through_the_encoder(world, tmp_path, hidden):
    model = fit(world, learning=replace(LEARN, hidden=hidden))
    w, start = model.alignment.weight.copy(), np.full(12, 0.3, np.float32)
    refiner = Refiner(model._encoder, model.vectors, model.alignment, steps=60, pull=0.1)
    with model.vectors.copy(tmp_path / "mine") as mine:
        for number, colour in enumerate(COLOURS):
            title = f"Thing 40{number}"
            mine.add(title, start)
            before = answer(model.with_vectors(mine), title)
            mine.add(title, refiner(title, f"{title} is {colour} .", start), replace=True)
            assert answer(model.with_vectors(mine), title) == colour, before
    assert np.array_equal(model.alignment.weight, w)


def answer(model, title):
    return model.fill(f"[[{title}]] is [MASK] .", candidates=COLOURS, mode="replace").best


def test_align_learn_on_the_command_line(ebert, world, tmp_path):
    (tmp_path / "titles.txt").write_text("Thing 3\nThing 4\n")
    done = ebert(
        "align", world / "store", "--bert", world / "bert", "--out", tmp_path / "model", "--steps", 3, "--json",
        "--learn", world / "passages.jsonl", "--leave-out", tmp_path / "titles.txt", "--held-passages", 60,
    )  # fmt: skip
    assert done.code == 0
    assert done.json["learned"]["left_out"] == 2
    assert done.json["learned"]["steps"] == 3
    assert "held-out loss with least squares: concat" in done.err
    assert not (tmp_path / "model.learning").exists()


LINE = '{"text": "Thing 1 is red .", "mentions": [{"start": 0, "end": 7, "entity": "Thing 1"}]}\n'


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (LINE + "{}\n", "line 2: it has no 'mentions'; a passage has text and mentions"),
        (LINE + "nonsense\n", "line 2: it is not JSON"),
        (LINE.replace('"end": 7', '"end": 70'), "line 1: mention of 'Thing 1' at 0:70 is not a span of the text"),
        (LINE.replace("Thing 1", "Nobody!"), "has 0 passages whose entities have a vector"),
        ("", "has 0 passages whose entities have a vector"),
    ],
)
def test_passages_that_cannot_be_learned_from(ebert, world, tmp_path, lines, message):
    (tmp_path / "own.jsonl").write_text(lines)
    done = ebert(
        "align", world / "store", "--bert", world / "bert", "--out", tmp_path / "out", "--learn", tmp_path / "own.jsonl"
    )
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--learn", "nowhere"], "there is no corpus and no file nowhere"),
        (["--learn", "store"], "store is neither a corpus nor a file of passages"),
        (["--leave-out", "passages.jsonl"], "--leave-out goes with --learn"),
        (["--learn", "passages.jsonl", "--leave-out", "nobody.txt"], "nobody.txt"),
        (["--learn", "passages.jsonl", "--rate", "0"], "rate"),
    ],
)
def test_what_cannot_be_asked_for(ebert, world, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(world)
    done = ebert("align", "store", "--bert", "bert", "--out", tmp_path / "out", *arguments)
    assert done.code == 2
    assert message in done.err
