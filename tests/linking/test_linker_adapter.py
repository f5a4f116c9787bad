"""A linker whose encoder stays as it is: low-rank updates, the weights of the evidence, spans decided together."""

from itertools import combinations

import linking_tiny as tiny
import pytest
import torch
from link_world import write_store

from ebert import EBert, EbertError, Linker
from ebert.linking.adapter import ADAPTER
from ebert.linking.candidates.table import MentionTable
from ebert.linking.document import Choice, Document, Span
from ebert.linking.evidence import CANDIDATE, SPAN, gather
from ebert.linking.options import CandidateOptions, LinkerOptions, LinkTrainingOptions
from ebert.linking.refine import Verdict, best_set, choose
from ebert.linking.sequences import Placed
from ebert.linking.train import train

TEXT = tiny.TEXT


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def saved_model(path):
    """A model on disk with its encoder, as a linker with an adapter names both."""
    if not (path / "model").exists():
        tiny.model(path / "store", dropout=0.1).save_pretrained(path / "model", include_encoder=True)
    return EBert.from_pretrained(path / "model")


def learn(path, run="run", model=None, say=print, **options):
    chosen = {"epochs": 6, "batch": 8, "adapter_rate": 2e-2, "evidence_rate": 5e-2, "checkpoint_steps": 2, **options}
    return train(
        [tiny.gold(name=str(number)) for number in range(12)], [tiny.gold()],
        model or saved_model(path), path / run,
        linker_options=LinkerOptions(adapter=True, rank=2), options=LinkTrainingOptions(**chosen),
        generator=tiny.spans, device="cpu", say=say,
    )  # fmt: skip


def links(linker, text=TEXT):
    return [(m.start, m.end, m.entity, round(m.probability, 5)) for m in linker(text)]


def test_a_fresh_adapter_scores_as_no_adapter_does():
    plain, adapted = tiny.linker(block="mask", rounds=1), tiny.linker(adapter=True)
    assert (adapted.options.block, adapted.options.rounds) == ("mask", 1)
    scores = [
        {(v.placed.first, v.placed.stop): v.scores for v in linker.judge(_states(linker))[0]}
        for linker in (plain, adapted)
    ]
    assert scores[0].keys() == scores[1].keys()
    for place, expected in scores[0].items():
        assert scores[1][place] == pytest.approx(expected, abs=1e-4)


def _states(linker):
    from ebert.linking.refine import ChunkState

    return [ChunkState(chunk) for chunk in linker.chunks([Document("1", TEXT)])]


def test_an_adapter_learns_and_the_encoder_stays_as_it_is(tmp_path):
    model = saved_model(tmp_path)
    before = {name: tensor.clone() for name, tensor in model.encoder.state_dict().items()}
    metrics = learn(tmp_path, model=model)
    assert metrics["dev"]["f1"] == 100.0
    after = model.encoder.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert {(m.start, m.entity) for m in Linker.from_pretrained(tmp_path / "run", generator=tiny.spans)(TEXT)} == {
        (m.start, m.entity) for m in tiny.gold().gold
    }


def test_a_saved_adapter_is_small_and_is_loaded_into_the_same_model(tmp_path):
    learn(tmp_path)
    folder = tmp_path / "run" / "model"
    weights = (folder / "encoder" / "model.safetensors").stat().st_size
    assert (folder / ADAPTER).stat().st_size < weights / 2  # the encoder has no name here, so it is in the folder
    first, again = (Linker.from_pretrained(tmp_path / "run", generator=tiny.spans) for _ in range(2))
    assert links(first) == links(again) != []
    again.save_pretrained(tmp_path / "copy", include_vectors=True)
    assert links(Linker.from_pretrained(tmp_path / "copy", generator=tiny.spans)) == links(first)
    model = EBert.from_pretrained(tmp_path / "copy")  # it is a model, too
    assert model.vectors is not None
    assert "England" in model.vectors


@pytest.mark.parametrize("damage", ["cut", "other rank", "not a number"])
def test_a_damaged_adapter_is_refused(tmp_path, damage):
    from safetensors.torch import load_file, save_file

    learn(tmp_path, epochs=1)
    path = tmp_path / "run" / "model" / ADAPTER
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-40])
    else:
        tensors = load_file(path)
        name = next(name for name in tensors if name.endswith("down"))
        tensors[name] = tensors[name][:1].contiguous() if damage == "other rank" else tensors[name] * torch.nan
        save_file(tensors, path)
    with pytest.raises(EbertError, match="train the linker again"):
        Linker.from_pretrained(tmp_path / "run", generator=tiny.spans)


def test_a_stopped_training_goes_on_and_ends_the_same(tmp_path):
    whole = learn(tmp_path, "whole")

    def stop(line):
        if line.startswith("epoch 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(tmp_path, "stopped", say=stop)
    (checkpoint,) = (tmp_path / "stopped" / "checkpoints").iterdir()
    assert (checkpoint / "model.safetensors").stat().st_size < 20_000  # what is trained only
    told = []
    metrics = learn(tmp_path, "stopped", say=told.append)
    assert any("continuing after step" in line for line in told)
    assert [p["loss"] for p in metrics["epochs"]] == pytest.approx([p["loss"] for p in whole["epochs"]], abs=1e-5)
    assert links(Linker.from_pretrained(tmp_path / "stopped", generator=tiny.spans)) == links(
        Linker.from_pretrained(tmp_path / "whole", generator=tiny.spans)
    )


def test_the_random_head_has_no_adapter():
    with pytest.raises(EbertError, match="trained as a whole"):
        LinkerOptions(adapter=True, variant="wikipedia2vec-bert-random")


# Evidence


def known(text, *spans):
    found = gather(text, [Span(start, end, (Choice(title, 1.0),), p) for start, end, title, p in spans])
    return [(dict(zip(SPAN, one.span, strict=True)), one.choices) for one in found]


def test_how_a_span_is_written_is_evidence():
    text = "We saw apple pie. Apple sold WHO phones"
    (lower, _), (begin, named), (capitals, _) = known(
        text, (7, 12, "Apple", 0.1), (18, 23, "Apple (fruit)", 0.5), (29, 32, "WHO", None)
    )
    assert lower["in lower case where other words have capitals"] == 1
    assert begin["in lower case where other words have capitals"] == 0
    assert (begin["begins a sentence"], lower["begins a sentence"]) == (1, 0)
    assert named == ((1.0, 0.0, 0.0),)  # what is in brackets is not written in text
    assert capitals["all in capitals"] == 1
    assert capitals["nobody knows how often they are a link"] == 1
    assert begin["odds that its words are no link"] == 0
    (tweet, _), *_ = known(text.lower(), (7, 12, "Apple", 0.1))
    assert tweet["in lower case where other words have capitals"] == 0
    assert tweet["in lower case among words without capitals"] == 1


def test_nested_spans_know_of_each_other():
    text = "Real Madrid won"
    (short, _), (whole, _), (inner, _) = known(
        text, (0, 4, "Real", 0.1), (0, 11, "Real Madrid CF", 0.7), (5, 11, "M", 0.6)
    )
    around, inside = (
        f"link probability of a {kind} span {where} it" for kind, where in (("longer", "around"), ("shorter", "in"))
    )
    assert [one[around] for one in (short, whole, inner)] == [0.7, 0, 0.7]
    assert [one[inside] for one in (short, whole, inner)] == [0, 0.6, 0]
    assert [one["two words"] for one in (short, whole, inner)] == [0, 1, 0]


def test_the_mention_table_says_how_often_and_how_words_are_known(tmp_path):
    table = MentionTable(write_store(tmp_path / "store"), CandidateOptions(ignore_case=True))
    spans = {span.start: span for span in table(Document("1", "london and England"))}
    assert (spans[0].links, spans[0].respelt) == (100, True)
    assert (spans[11].links, spans[11].respelt) == (300, False)


def test_likeness_to_the_candidates_of_the_others_counts(tmp_path):
    linker = tiny.linker(adapter=True)
    weights = linker.module.weights
    states = _states(linker)
    (before,) = linker.judge(states)
    with torch.no_grad():
        weights.candidate[CANDIDATE.index("likeness to the other spans' candidates")] = 50.0
    (after,) = linker.judge(states)
    moved = [abs(a.scores[1] - b.scores[1]) for a, b in zip(before, after, strict=True)]
    assert max(moved) > 1
    assert [a.scores[0] for a in before] == pytest.approx([b.scores[0] for b in after])  # of no entity


# Deciding together


def verdict(first, stop, probability):
    span = Placed(Span(first, stop, (Choice(f"{first}-{stop}", 1.0),)), first, stop)
    return Verdict(span, (0.0, 0.0), (1 - probability, probability))


def test_the_best_set_is_the_best_of_all_sets():
    verdicts = [
        verdict(0, 2, 0.9), verdict(1, 3, 0.95), verdict(2, 5, 0.8), verdict(3, 4, 0.7), verdict(4, 6, 0.85),
        verdict(6, 7, 0.4), verdict(5, 7, 0.6),
    ]  # fmt: skip

    def worth(chosen):
        return sum(one.worth for one in chosen)

    sets = [
        some for size in range(len(verdicts) + 1) for some in combinations(verdicts, size)
        if not any(a.placed.overlaps(b.placed) for a, b in combinations(some, 2))
    ]  # fmt: skip
    assert set(best_set(verdicts)) == set(max(sets, key=worth))
    assert best_set([]) == []
    assert len(choose(verdicts, 1, together=True)) == 1


def test_the_longer_name_wins_when_both_together_are_less_sure():
    real, madrid, both = verdict(0, 1, 0.6), verdict(1, 2, 0.7), verdict(0, 2, 0.9)
    assert best_set([real, madrid, both]) == [both]
    real, madrid, both = verdict(0, 1, 0.9), verdict(1, 2, 0.9), verdict(0, 2, 0.91)
    assert best_set([real, madrid, both]) == [real, madrid]
