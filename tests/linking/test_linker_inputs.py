"""The input X, Eq. 2 and the packed layout, by numbers worked out by hand on the paper's example."""

import math

import linking_tiny as tiny
import numpy as np
import pytest
import torch

from ebert.linking.document import Choice, Document, Span
from ebert.linking.refine import ChunkState, Verdict
from ebert.linking.scorer import unaligned
from ebert.linking.sequences import Placed
from ebert.vectors.store import Vectors

TEXT = tiny.TEXT
WORDS = tiny.PIECES


def state(linker, decoded=()):
    """The paper's example as a chunk, some spans of it linked already."""
    (chunk,) = linker.chunks([Document("1", TEXT)])
    found = {TEXT[p.span.start : p.span.end]: p for p in chunk.spans}
    return ChunkState(chunk, {found[surface]: _certain(found[surface], title) for surface, title in decoded}), found


def _certain(placed: Placed, title: str) -> Verdict:
    share = [float(choice.title == title) for choice in placed.span.choices]
    return Verdict(placed, (0.0, *share), (0.0, *share))


def shown(linker, laid):
    tokens = linker.tokenizer.convert_ids_to_tokens([max(0, piece) for piece in laid.ids])
    return [laid.entities.get(place, token) for place, token in enumerate(tokens)]


def test_x_is_the_papers():
    linker = tiny.linker(strategy="paper")
    here, found = state(linker)
    laid = linker.sequences(here)
    assert [one.spans for one in laid] == [[placed] for placed in here.chunk.spans]
    platt = next(one for one in laid if one.spans == [found["Platt"]])
    assert shown(linker, platt) == [
        "[CLS]", *WORDS[:2], "[MASK]", "/", "P", "##latt", "*", *WORDS[4:], "[SEP]",
    ]  # fmt: skip
    assert platt.masks == [3]  # T_l + 1, counted from [CLS] = 0
    assert platt.positions == list(range(22))
    assert not platt.blocks


def test_decoded_entities_take_the_place_of_their_wordpieces():
    linker = tiny.linker(strategy="paper")
    here, found = state(linker, [("Adams", "Tony Adams (footballer)"), ("World Cup", "1998 FIFA World Cup")])
    laid = linker.sequences(here)
    assert {TEXT[one.spans[0].span.start : one.spans[0].span.end] for one in laid} == {"Platt", "injured", "England"}
    platt = next(one for one in laid if one.spans == [found["Platt"]])
    assert shown(linker, platt) == [
        "[CLS]", "Tony Adams (footballer)", "and", "[MASK]", "/", "P", "##latt", "*", "are", "both", "injured", "and",
        "will", "miss", "England", "'", "s", "opening", "1998 FIFA World Cup", "qualifier", "[SEP]",
    ]  # fmt: skip
    vectors = linker.batcher([platt])["inputs_embeds"][0]
    torch.testing.assert_close(vectors[1], torch.from_numpy(linker.vectors["Tony Adams (footballer)"]))
    torch.testing.assert_close(vectors[18], torch.from_numpy(linker.vectors["1998 FIFA World Cup"]))


@pytest.mark.parametrize("strategy", ["paper", "packed"])
def test_e_mask_is_the_mean_of_the_candidates(strategy):
    linker = tiny.linker(strategy=strategy)
    here, _ = state(linker)
    laid = linker.sequences(here)
    embeds = linker.batcher(laid)["inputs_embeds"]
    for row, one in enumerate(laid):
        for place, placed in zip(one.masks, one.spans, strict=True):
            vectors = [linker.vectors[choice.title] for choice in placed.span.choices]
            torch.testing.assert_close(embeds[row, place], torch.from_numpy(np.mean(vectors, axis=0)))
    slash = linker.module.embedding.weight[linker.tokenizer.convert_tokens_to_ids("/")]
    torch.testing.assert_close(embeds[0, laid[0].masks[0] + 1], slash)


def test_the_standard_mask_is_the_wordpiece():
    linker = tiny.linker(strategy="paper", mask="standard")
    (laid, *_) = linker.sequences(state(linker)[0])
    mask = linker.module.embedding.weight[linker.tokenizer.mask_token_id]
    torch.testing.assert_close(linker.batcher([laid])["inputs_embeds"][0, laid.masks[0]], mask)


def test_packed_blocks_have_the_positions_of_their_spans():
    linker = tiny.linker(strategy="packed")
    here, found = state(linker)
    (laid,) = linker.sequences(here)
    assert shown(linker, laid)[: laid.text] == ["[CLS]", *WORDS, "[SEP]"]
    assert laid.text == 19
    assert len(laid) == 19 + 6 * 3
    number = laid.spans.index(found["Platt"])
    block = laid.blocks[number]
    assert shown(linker, laid)[block.start : block.stop] == ["[MASK]", "/", "*"]
    assert laid.masks[number] == block.start
    assert laid.positions[block.start : block.stop] == [3, 3, 4]  # P is piece 3 of the text, ##latt piece 4


def test_packed_copies_hold_the_span_and_do_not_see_it_twice():
    linker = tiny.linker(strategy="packed", block="copy")
    here, found = state(linker)
    (laid,) = linker.sequences(here)
    block = laid.blocks[laid.spans.index(found["Platt"])]
    assert shown(linker, laid)[block.start : block.stop] == ["[MASK]", "/", "P", "##latt", "*"]
    assert laid.positions[block.start : block.stop] == [3, 3, 3, 4, 4]
    mask = linker.batcher([laid])["attention_mask"][0, 0]
    seen = set((mask[block.start] == 0).nonzero()[:, 0].tolist())
    assert seen == {*range(19), *range(block.start, block.stop)} - {3, 4}


def test_the_packed_mask_is_of_floats_and_lets_the_text_see_the_text_only():
    linker = tiny.linker(strategy="packed")
    (laid,) = linker.sequences(state(linker)[0])
    mask = linker.batcher([laid])["attention_mask"]
    assert mask.shape == (1, 1, 37, 37)
    assert mask.dtype == torch.float32
    sees = mask[0, 0] == 0
    assert (mask[0, 0][~sees] == torch.finfo(torch.float32).min).all()
    assert sees[:19, :19].all()
    assert not sees[:19, 19:].any()
    for block in laid.blocks:
        own = torch.zeros(18, dtype=torch.bool)
        own[block.start - 19 : block.stop - 19] = True
        assert (sees[block.start : block.stop, 19:] == own).all()
        assert sees[block.start : block.stop, :19].all()


class Fixed(torch.nn.Module):
    """Says the same MLM(h) for every span."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, inputs, rows, columns):
        return self.answer.expand(len(rows), -1)


def test_eq_2_by_hand(monkeypatch):
    # Two dimensions matter: MLM(h) = (2, 1), e = (1, 0) for John Adams with prior 3/4, e = (0.5, 2) for Tony Adams with
    # prior 1/4, and a null entity with e = (0, -1) and b = 0.5.
    linker = tiny.linker(strategy="paper")
    answer = torch.zeros(tiny.WIDTH)
    answer[:2] = torch.tensor([2.0, 1.0])
    monkeypatch.setattr(linker.module, "answers", Fixed(answer).forward)
    entities = torch.zeros(2, tiny.WIDTH)
    entities[0, :2], entities[1, :2] = torch.tensor([1.0, 0.0]), torch.tensor([0.5, 2.0])
    with torch.no_grad():
        linker.module.null[1] = -1.0
        linker.module.null_bias.fill_(0.5)
    place = torch.zeros(1, dtype=torch.long)
    result = linker.module(
        rows=place, columns=place, entities=entities, choices=torch.tensor([[0, 1]]),
        log_priors=torch.tensor([[math.log(0.75), math.log(0.25)]]), labels=torch.tensor([2]),
    )  # fmt: skip
    # null: 2*0 + 1*(-1) + 0.5 = -0.5; John: 2 + ln 0.75 = 1.712318; Tony: 1 + 2 + ln 0.25 = 1.613706
    assert result["scores"][0].tolist() == pytest.approx([-0.5, 1.712318, 1.613706], abs=1e-6)
    # 0.606531 + 0.75 * 7.389056 + 0.25 * 20.085537 = 0.606531 + 5.541792 + 5.021384 = 11.169707
    # -ln(5.021384 / 11.169707) = -ln(0.449554) = 0.799500
    assert result["loss"].item() == pytest.approx(0.799500, abs=1e-6)


@pytest.mark.parametrize(
    ("known", "prior"), [(0.2, math.log(4)), (0.5, 0.0), (None, 0.0), (1.0, math.log(0.01 / 0.99))]
)
def test_the_null_entity_has_the_odds_that_a_span_is_no_link(known, prior):
    def spans(document):
        return [Span(0, 5, (Choice("John Adams", 0.3), Choice("Tony Adams (footballer)", 0.7)), known)]

    with_prior, without = (tiny.linker(generator=spans, link_prior=given) for given in (True, False))
    scores = []
    for linker in (with_prior, without):
        states = [ChunkState(chunk) for chunk in linker.chunks([Document("1", TEXT)])]
        scores.append(linker.judge(states)[0][0].scores)
    assert scores[1][0] == 0.0  # before training
    assert scores[0] == pytest.approx((prior, *scores[1][1:]), abs=1e-5)


def test_scores_are_those_of_the_masked_lm_itself():
    linker = tiny.linker(strategy="paper")
    here, found = state(linker)
    laid = next(one for one in linker.sequences(here) if one.spans == [found["Platt"]])
    batch = linker.batcher([laid])
    inputs = {name: batch[name] for name in ("inputs_embeds", "attention_mask", "position_ids")}
    with torch.inference_mode():
        hidden = linker.encoder.module.bert(**inputs).last_hidden_state[0, 3]
        answer = linker.encoder.module.cls.predictions.transform(hidden)
        scores = linker.module(**batch)["scores"][0]
    platt = [float(answer @ torch.from_numpy(linker.vectors[title])) + math.log(0.5)
             for title in ("Platt (Florida)", "David Platt (footballer)")]  # fmt: skip
    assert scores.tolist() == pytest.approx([0.0, *platt], abs=1e-5)  # before training the null entity's are zero


def test_the_models_own_head_stays():
    linker = tiny.linker(strategy="paper")
    masked_lm = linker.encoder.module
    assert masked_lm.cls.predictions.decoder.out_features == len(linker.tokenizer)
    shared = dict(linker.module.named_parameters())["encoder.cls.predictions.transform.dense.weight"]
    assert shared is masked_lm.cls.predictions.transform.dense.weight


def test_a_candidate_without_a_vector_is_left_out_and_counted():
    def spans(document):
        return [Span(0, 5, (Choice("Nobody", 0.5), Choice("John Adams", 0.3), Choice("Tony Adams (footballer)", 0.2))),
                Span(10, 15, (Choice("Nobody", 1.0),))]  # fmt: skip

    linker = tiny.linker(generator=spans)
    (chunk,) = linker.chunks([Document("1", TEXT)])
    (placed,) = chunk.spans
    assert [(c.title, c.prior) for c in placed.span.choices] == [
        ("John Adams", pytest.approx(0.6)), ("Tony Adams (footballer)", pytest.approx(0.4)),
    ]  # fmt: skip
    assert dict(linker.dropped) == {"candidates without a vector": 2, "spans without a candidate": 1}


def test_narrow_vectors_keep_their_angles_unaligned():
    random = np.random.default_rng(1)
    vectors = random.normal(size=(5, 6)).astype(np.float32)
    store = Vectors.from_arrays(entities=list("abcde"), entity_vectors=vectors)
    carried = unaligned(store, 10).project(vectors)
    assert carried.shape == (5, 10)
    np.testing.assert_allclose(carried @ carried.T, vectors @ vectors.T, atol=1e-4)
    np.testing.assert_array_equal(unaligned(store, 6).project(vectors), vectors)
    lengths = np.linalg.norm(unaligned(store, 10, length=2.5).project(vectors), axis=1)
    np.testing.assert_allclose(lengths, 2.5, rtol=1e-5)
    with pytest.raises(ValueError, match="dimension 6 do not fit unaligned"):
        unaligned(store, 5)


def test_a_sign_does_not_make_the_name_unknown_that_it_touches():
    linker = tiny.linker()
    for text in ("Platt🎉 and Adams", "Platt🎉and\fAdams"):
        (chunk,) = linker.chunks([Document("1", text)])
        pieces = linker.tokenizer.convert_ids_to_tokens(list(chunk.ids))
        assert [(text[p.span.start : p.span.end], "".join(pieces[p.first : p.stop])) for p in chunk.spans] == [
            ("Platt", "P##latt"), ("Adams", "Adams"),
        ]  # fmt: skip
