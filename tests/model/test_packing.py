"""Several sequences in one row: the logits are those of each alone, for every architecture that can do it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ebert import Passage
from ebert.model.batching import ROW, additive, fill_rows, sight
from ebert.model.encoder import Encoder

TEXTS = [
    "[MASK]", "The native language of [[Jean Marais]] is [MASK] .", "[[Jean Marais]] was born in [MASK] or [MASK] .",
    "[MASK] is a city in [[France]] , and [[Paris]] is one too .", "Nobody knows [MASK] .",
]  # fmt: skip


def test_sequences_in_one_row_do_not_see_each_other(model, tiny):
    filler = model.filler()
    batch = filler.sequences([Passage.parse(text) for text in TEXTS], "concat")
    alone = torch.cat([filler.logits([pieces]) for pieces in batch])
    together = filler.logits(batch, packed=True)
    assert torch.allclose(together, alone, atol=1e-4)


def test_which_encoders_can_do_it(tiny):
    able = {name: tiny.model(name).filler().packs for name in ("bert", "roberta", "deberta", "mpnet")}
    assert able == {"bert": True, "roberta": True, "deberta": False, "mpnet": False}


@given(st.lists(st.integers(1, 300), min_size=1, max_size=60))
def test_every_sequence_is_in_one_row_and_rows_are_about_equal(lengths):
    rows = fill_rows(lengths)
    assert sorted(number for row in rows for number in row) == list(range(len(lengths)))
    sizes = [sum(lengths[number] for number in row) for row in rows]
    assert max(sizes) - min(sizes) <= max(lengths) or len(rows) == 1
    assert len(rows) <= max(1, -(-sum(lengths) // max(ROW, *lengths)))


def test_what_sees_what():
    sees = sight([[2, 1], [3]], 4)
    assert sees.int().tolist() == [
        [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        [[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]],
    ]
    mask = additive(sees, torch.float32)
    assert mask.shape == (2, 1, 4, 4)
    assert set(mask.unique().tolist()) == {0.0, torch.finfo(torch.float32).min}


@pytest.mark.real
def test_the_real_bert_answers_the_same(encoder: Encoder):
    from ebert import EBert

    filler = EBert(encoder).filler()
    batch = filler.sequences([Passage.parse(text) for text in TEXTS * 9], "bert")
    padded, packed = filler.logits(batch), filler.logits(batch, packed=True)
    assert torch.allclose(padded, packed, atol=2e-3)
    assert torch.equal(padded.argmax(1), packed.argmax(1))
