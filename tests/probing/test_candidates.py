"""Candidates of an encoder: one wordpiece, small letters, or several pieces."""

import pytest
from transformers import BertTokenizer

from ebert import EbertError
from ebert.probing.ask import choose


def tokenizer(*pieces, lower=False):
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", *pieces]
    return BertTokenizer(vocab={piece: row for row, piece in enumerate(vocabulary)}, do_lower_case=lower)


def test_only_single_wordpieces_of_a_list_count():
    candidates, unused = choose(tokenizer("Paris", "Rome", "##s"), ["Paris", "Rome", "Romes", "Quito", "Paris"])
    assert candidates.words == ["Paris", "Rome"]
    assert candidates.pieces == {1: [[6], [7]]}
    assert (candidates.find("Rome"), candidates.find("rome"), candidates.find("Quito")) == (1, None, None)
    assert unused == 2


def test_an_encoder_that_lower_cases_gets_the_list_in_small_letters():
    candidates, unused = choose(tokenizer("paris", "sao", "us", lower=True), ["Paris", "PARIS", "São", "Sao", "US"])
    assert candidates.words == ["paris", "são", "us"]
    assert unused == 0
    assert candidates.find("Sao") == candidates.find("SÃO") == 1
    assert candidates.find("Us") == 2


def test_answers_of_several_pieces_are_candidates_too():
    pieces = tokenizer("Rome", "New", "York", "##er", "is")
    candidates, _ = choose(pieces, ["Rome"], ["New York", "Yorker", "Rome", "Zürich"])
    assert candidates.words == ["Rome", "New York", "Yorker"]
    assert candidates.pieces == {1: [[6]], 2: [[7, 8], [8, 9]]}
    assert candidates.sizes == [1, 2]
    assert candidates.find("Yorker") == 2
    assert candidates.find("Zürich") is None  # an unknown letter cannot be predicted


def test_without_a_list_all_words_of_the_vocabulary():
    candidates, _ = choose(tokenizer("Rome", "##er", "."), None, ["Rome"])
    assert candidates.words == ["a", "Rome", "."]


def test_a_list_that_does_not_fit_at_all():
    with pytest.raises(EbertError, match="no candidate is a wordpiece"):
        choose(tokenizer("Rome"), ["Лима"])
