"""Filling and encoding through the public API, with the real BERT."""

import pytest
import torch

from ebert import EbertError, Passage

pytestmark = pytest.mark.real

QUESTION = "The native language of Jean Marais is [MASK] ."


def test_probabilities_are_those_of_the_whole_vocabulary(bert):
    filled = bert.fill(QUESTION, mode="bert", top=28996)
    assert sum(answer.probability for answer in filled.answers) == pytest.approx(1, abs=1e-4)
    assert filled.answers[0].token == "French"
    assert filled.answers[0].probability == pytest.approx(0.7105, abs=1e-3)


def test_candidates_share_all_the_probability(bert):
    filled = bert.fill(QUESTION, mode="bert", candidates=["Spanish", "German", "English"])
    assert {answer.token for answer in filled.answers} == {"English", "German", "Spanish"}
    assert filled.best == "English"
    assert sum(answer.probability for answer in filled.answers) == pytest.approx(1, abs=1e-5)


def test_candidates_must_be_wordpieces(bert):
    with pytest.raises(EbertError, match=r"2 of 3 candidates are not one wordpiece.*'Demazis', 'Ceccaldi'"):
        bert.fill(QUESTION, mode="bert", candidates=["French", "Demazis", "Ceccaldi"])


def test_several_masks(bert):
    filled = bert.fill("[MASK] is the capital of [MASK] .", mode="bert", top=3)
    assert [len(answers) for answers in filled.masks] == [3, 3]
    with pytest.raises(EbertError, match="one mask is expected, but the text has 2"):
        _ = filled.best


def test_an_empty_list_has_no_answers(bert):
    assert bert.fill([], mode="bert") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Paris is a city .", "no mask"),
        ("", "the text is empty"),
        ("  ", "the text is empty"),
        ("[MASK] " + "word " * 511, "514 wordpieces; bert-base-cased takes 512"),
        ("[[Paris [MASK]", "never closes"),
    ],
)
def test_what_cannot_be_filled(bert, text, message):
    with pytest.raises(EbertError, match=message):
        bert.fill(text, mode="bert")


def test_a_text_of_just_the_longest_length(bert):
    assert bert.fill("[MASK] " + "word " * 509, mode="bert", top=1).best


@pytest.mark.parametrize(
    "bad", [{"mode": "magic"}, {"top": 0}, {"candidates": []}, {"candidates": "French"}, {"budget": -1}]
)
def test_bad_arguments(bert, bad):
    with pytest.raises(EbertError):
        bert.fill(QUESTION, **bad)


def test_plain_bert_reports_every_entity_as_missing(bert):
    filled = bert.fill("[[Jean Marais]] speaks [MASK] .")
    assert filled.missing == ("Jean Marais",)
    assert filled.masks == bert.fill("Jean Marais speaks [MASK] .", mode="bert").masks


def test_layers(bert):
    text = Passage("Paris is a city .")
    first, last = bert.encode(text, layer=0), bert.encode(text)
    assert first.states.shape == last.states.shape == (7, 768)
    torch.testing.assert_close(bert.encode(text, layer=12).states, last.states)
    with pytest.raises(EbertError, match="no layer 13"):
        bert.encode(text, layer=13)


def test_float16_keeps_the_answer(encoder):
    from ebert import EBert

    model = EBert.plain("bert-base-cased", dtype=torch.float16)
    assert model.encoder.dtype == torch.float16
    assert model._encoder.fingerprint == encoder.fingerprint


def test_dropout_is_off_even_in_the_middle_of_a_training(bert):
    expected = bert.fill(QUESTION, mode="bert").answers
    bert.encoder.train()
    try:
        assert bert.fill(QUESTION, mode="bert").answers == expected
        assert bert.encoder.training
    finally:
        bert.encoder.eval()
