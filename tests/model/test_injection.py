"""Injection is exact: a wordpiece's own vector, fed as an entity, is that wordpiece. With the real BERT."""

import numpy as np
import pytest
import torch

from ebert import EBert, Vectors
from ebert.model.alignment import Alignment
from ebert.model.options import AlignmentOptions

pytestmark = pytest.mark.real

WORDS = ["Paris", "language", "king"]
LONG = (
    "[[Paris]] is far away from here , and nobody who lives there has ever heard of the [[king]] of [MASK] , I think ."
)


@pytest.fixture(scope="module")
def model(encoder):
    """A model whose entities are wordpieces under their own names, projected by a W that is the identity."""
    ids = encoder.tokenizer.convert_tokens_to_ids(WORDS)
    rows = encoder.embedding.weight.detach()[ids].numpy()
    store = Vectors.from_arrays(entities=WORDS, entity_vectors=rows)
    unaligned = Alignment.fit(store, {}, np.zeros((1, encoder.width)), AlignmentOptions(method="none"))
    return EBert(encoder, store, unaligned)


def logits(model, texts, mode):
    """The logits at the first mask of each text, all texts in one batch, in full."""
    pieces = model._injector.sequences([_passage(text) for text in texts], mode)
    rows, columns = torch.arange(len(texts)), torch.tensor([p.masks[0] for p in pieces])
    return model._encoder.logits(model._injector.tensors(pieces), (rows, columns))


def _passage(text):
    from ebert import Passage

    return Passage.of(text)


def test_a_wordpiece_as_an_entity_gives_the_logits_of_the_wordpiece(model):
    text = "The native [[language]] of the French [[king]] is [MASK] ."
    torch.testing.assert_close(logits(model, [text], "replace"), logits(model, [text], "bert"), atol=1e-5, rtol=0)


def test_also_in_a_padded_batch_with_other_lengths(model):
    texts = ["The [[language]] is [MASK] .", LONG, "A [[king]] of [MASK] ."]
    together = logits(model, texts, "replace")
    torch.testing.assert_close(together, logits(model, texts, "bert"), atol=1e-5, rtol=0)
    alone = torch.cat([logits(model, [text], "bert") for text in texts])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=0)


def test_the_logits_are_those_of_transformers_itself(model, encoder):
    text = "The native language of Jean Marais is [MASK] ."
    batch = encoder.tokenizer([text], return_tensors="pt")
    with torch.inference_mode():
        all_logits = encoder.module(**batch).logits[0]
    mask = batch["input_ids"][0].tolist().index(encoder.tokenizer.mask_token_id)
    torch.testing.assert_close(logits(model, [text], "bert")[0], all_logits[mask], atol=1e-5, rtol=0)


def test_another_vector_gives_other_logits(model):
    text = "The native [[king|language]] of the French is [MASK] ."
    assert (logits(model, [text], "replace") - logits(model, [text], "bert")).abs().max() > 0.1


def test_concat_is_the_slash_and_the_name_after_the_wordpiece(model):
    ours = logits(model, ["The [[language]] of France is [MASK] ."], "concat")
    spelled = logits(model, ["The language / language of France is [MASK] ."], "bert")
    torch.testing.assert_close(ours, spelled, atol=1e-5, rtol=0)


def test_order_and_company_do_not_change_answers(model):
    texts = ["The [[language]] is [MASK] .", LONG, "A [[king]] of [MASK] .", "[MASK] ."] * 3
    first = list(model.fill(texts, mode="concat", budget=40))
    second = list(model.fill(texts[::-1], mode="concat", budget=4096))[::-1]
    for one, other in zip(first, second, strict=True):
        assert one.passage == other.passage
        for a, b in zip(one.answers, other.answers, strict=True):
            assert a.probability == pytest.approx(b.probability, abs=1e-4)


def test_hidden_states_are_those_of_transformers_itself(model, encoder):
    text = "The native language of Jean Marais is French ."
    with torch.inference_mode():
        expected = encoder.module.bert(**encoder.tokenizer([text], return_tensors="pt")).last_hidden_state[0]
    encoded = model.encode([text, LONG.replace("[MASK]", "France")], mode="bert")[0]
    torch.testing.assert_close(encoded.states, expected, atol=1e-4, rtol=0)
    assert encoded.words[4].text == "Jean"
    mara, is_ = encoded.states[6], encoded.states[7]
    torch.testing.assert_close(encoded.word_states[5], (mara + is_) / 2)
