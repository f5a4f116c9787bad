"""Filling masks with every architecture: answers, candidates, batches, streams, threads."""

import copy
import itertools
import random
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from answers import same, same_masks
from architectures import ENTITIES
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from ebert import EBert, EbertError, Passage
from ebert.model.options import MODES

TEXT = "The native language of [[Jean Marais]] is [MASK] ."
EXACT = 1e-6
TITLES = [title for title in ENTITIES if "]" not in title]


def many(count: int) -> list[str]:
    """Texts of many lengths with one or two entities each."""
    filling = "the best films in the world are on the list of the king of Spain and She lives in Madrid "
    return [
        f"{filling[: filling.index(' ', number % 80)]} [[{TITLES[number % len(TITLES)]}]] is "
        f"[MASK] ( [[{TITLES[number * 7 % len(TITLES)]}|Jean]] )"
        for number in range(count)
    ]


@pytest.mark.parametrize("mode", MODES)
def test_answers_are_the_softmax_of_the_logits_at_the_mask(model, mode):
    batch = model.collator(mode=mode)([TEXT])
    place = model.pieces(TEXT, mode=mode).index(model.tokenizer.mask_token)
    with torch.inference_mode():
        logits = model.encoder(**batch).logits[0, place, : len(model.tokenizer)]
    values, ids = logits.softmax(-1).topk(5)
    answers = model.fill(TEXT, mode=mode).answers
    assert [a.probability for a in answers] == pytest.approx(values.tolist(), abs=1e-5)
    assert [a.token for a in answers] == [model.vocabulary.show(i) for i in ids.tolist()]


def test_modes_differ(model):
    shares = [model.fill(TEXT, mode=mode, candidates=["king"], top=1) for mode in MODES]
    assert all(filled.answers[0].probability == pytest.approx(1) for filled in shares)
    best = [model.fill(TEXT, mode=mode).answers[0].probability for mode in MODES]
    assert len({round(p, 6) for p in best}) == 3


def test_answers_are_shown_without_the_mark_of_a_blank(architecture, model):
    everything = model.fill(TEXT, top=10_000).answers
    assert len(everything) == len(model.tokenizer)
    assert sum(a.probability for a in everything) == pytest.approx(1, abs=1e-5)
    tokens = {a.token for a in everything}
    assert "king" in tokens
    assert not any(token[:1] in ("Ġ", "▁") and token[1:].isalpha() for token in tokens)
    assert ("##ais" in tokens) == (architecture.style == "wordpiece")
    assert "\ufffd" not in "".join(tokens)  # a byte that is no character alone is shown as the vocabulary writes it


@pytest.mark.parametrize("mark", ["[MASK]", "own"])
def test_a_mask_can_be_written_in_both_ways(model, mark):
    mark = model.tokenizer.mask_token if mark == "own" else mark
    text = f"{mark} and [[Paris]] and {mark}."
    filled = model.fill(text)
    assert len(filled.masks) == 2
    assert model.pieces(text).count(model.tokenizer.mask_token) == 2
    assert same_masks(filled, model.fill("[MASK] and [[Paris]] and [MASK]."), within=EXACT)
    with pytest.raises(EbertError, match="one mask is expected, but the text has 2"):
        _ = filled.best


def test_text_without_a_mask_is_refused(model):
    for text in ("no mask", "[mask]", "[ MASK ]"):
        with pytest.raises(EbertError, match=r"the text has no mask; write \[MASK\]"):
            model.fill(text)


def test_bad_options_are_refused_at_once(tiny):
    model = tiny.model("bert")
    for passages in (TEXT, [TEXT]):
        with pytest.raises(EbertError, match="unknown mode 'both'; choose one of bert, concat, replace"):
            model.fill(passages, mode="both")
        with pytest.raises(EbertError, match="top is 0"):
            model.fill(passages, top=0)
    with pytest.raises(EbertError, match=r"stream\(\) takes other iterables"):
        model.fill(text for text in [TEXT])
    with pytest.raises(EbertError, match="unknown task 'guess'"):
        model.stream([TEXT], task="guess")


def test_entities_by_arguments(tiny):
    model = tiny.model("bert")
    text, start = "The native language of Jean Marais is [MASK] .", 23
    wanted = model.fill(TEXT)
    assert same(model.fill(text, entities=["Jean Marais"], spans=[(start, start + 11)]), wanted, within=EXACT)
    assert model.fill(text, entities=["Jean_Marais"]).best == wanted.best
    assert model.fill([text], entities=[["Jean Marais"]])[0].passage == wanted.passage
    assert model.encode(text, entities=["Jean Marais"]).tokens == model.encode(TEXT).tokens
    for bad, message in [
        ({"entities": ["Paris"]}, "'Paris' does not occur in the text; give the spans"),
        ({"entities": ["Paris"], "spans": []}, "1 entities and 0 spans"),
        ({"spans": [(0, 3)]}, "spans go with entities"),
    ]:
        with pytest.raises(EbertError, match=message):
            model.fill(text, **bad)


def test_every_mention_is_looked_up_once(tiny, monkeypatch):
    model, asked = tiny.model("bert"), []
    find = type(model.vectors).find
    monkeypatch.setattr(type(model.vectors), "find", lambda self, name: asked.append(name) or find(self, name))
    list(model.fill_modes([TEXT, TEXT], MODES))
    assert asked == ["Jean Marais"]


def test_candidates(architecture, model):
    words = ["king", "language", "films", "king"]
    filled = model.fill(TEXT, candidates=words, top=10)
    assert sorted(a.token for a in filled.answers) == ["films", "king", "language"]
    assert sum(a.probability for a in filled.answers) == pytest.approx(1, abs=1e-6)
    full = {}
    for answer in model.fill(TEXT, top=10_000).answers:
        full.setdefault(answer.token, []).append(answer.probability)
    ratio = filled.answers[0].probability / filled.answers[1].probability
    first, second = (full[a.token] for a in filled.answers[:2])
    assert any(a / b == pytest.approx(ratio, rel=1e-3) for a in first for b in second)
    with pytest.raises(EbertError, match="2 of 3 candidates are not one wordpiece of this encoder: 'kingly', 'xyz'"):
        model.fill(TEXT, candidates=["king", "kingly", "xyz"])
    with pytest.raises(EbertError, match="candidate vocabulary is empty"):
        model.fill(TEXT, candidates=[])


def test_candidates_in_any_case_for_an_encoder_without_case(architecture, model):
    if architecture.lower_cases:
        assert model.fill(TEXT, candidates=["Paris", "KING"], top=1).best in ("paris", "king")
    else:
        with pytest.raises(EbertError, match="'KING'"):
            model.fill(TEXT, candidates=["KING"])


def test_padding_and_order_change_no_answer(model):
    texts = many(40)
    alone = [model.fill(text) for text in texts]
    order = list(range(len(texts)))
    random.Random(0).shuffle(order)
    for budget in (1, 200, 100_000):
        for number, filled in zip(order, model.fill([texts[i] for i in order], budget=budget), strict=True):
            assert filled.passage == Passage.parse(texts[number])
            assert same(filled, alone[number])


def test_fill_streams_over_a_source_without_end(tiny):
    taken = itertools.count()

    def endless():
        for text in itertools.cycle(many(7)):
            next(taken)
            yield text

    model = tiny.model("distilbert")
    first = list(itertools.islice(model.stream(endless(), top=1), 3))
    assert [f.passage.text for f in first] == [Passage.parse(text).text for text in many(3)]
    assert next(taken) <= 1024


def test_many_threads_get_the_answers_of_one(tiny):
    model, texts = tiny.model("roberta"), many(64)
    alone = [model.fill(text, top=3) for text in texts]

    def work(start: int) -> list[bool]:
        turned = [*range(start, len(texts)), *range(start)]
        filled = model.stream((texts[i] for i in turned), top=3, budget=60)
        return [same(f, alone[i]) for i, f in zip(turned, filled, strict=True)]

    with ThreadPoolExecutor(8) as pool:
        for right in pool.map(work, range(0, 64, 8)):
            assert len(right) == 64
            assert all(right)
    assert not model.encoder.base_model._forward_hooks


def test_a_tokenizer_that_cuts_and_pads(tiny, tmp_path):
    """Those of sentence-transformers ask for both in their tokenizer.json."""
    shutil.copytree(tiny.folder("mpnet"), tmp_path / "encoder")
    file = tmp_path / "encoder" / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=16, pad_id=1, pad_token="<pad>")
    tokenizer.save(str(file))
    assert AutoTokenizer.from_pretrained(tmp_path / "encoder").backend_tokenizer.truncation["max_length"] == 8
    model = EBert.fit(tmp_path / "encoder", tiny.vectors)
    with ThreadPoolExecutor(8) as pool:
        assert all(
            same(filled, tiny.model("mpnet").fill(TEXT), within=EXACT) for filled in pool.map(model.fill, [TEXT] * 16)
        )
    assert model.alignment.report == tiny.model("mpnet").alignment.report


def test_a_copy_gives_the_same_answers(tiny):
    model = tiny.model("bert")
    other = copy.deepcopy(model)
    assert other.encoder is not model.encoder
    assert same(other.fill(TEXT), model.fill(TEXT), within=EXACT)


def test_another_dtype(tiny, architecture):
    model = EBert.fit(tiny.folder(architecture.name), tiny.vectors, dtype=torch.float64)
    assert model.encoder.dtype == torch.float64
    assert same(model.fill(TEXT), tiny.model(architecture.name).fill(TEXT))
    assert model.to(dtype=torch.float32) is model
    assert same(model.fill(TEXT), tiny.model(architecture.name).fill(TEXT), within=EXACT)
