"""With the real BERT: the paper's wordpieces, and a text that packing does not change by a bit."""

import linking_tiny as tiny
import numpy as np
import pytest
import torch

from ebert import EBert, Vectors
from ebert.linking.document import Document
from ebert.linking.linker import Linker
from ebert.linking.options import LinkerOptions
from ebert.linking.refine import ChunkState
from ebert.model.alignment import Alignment
from ebert.model.options import AlignmentOptions

pytestmark = pytest.mark.real

TEXT = tiny.TEXT


@pytest.fixture(scope="module")
def model(encoder):
    vectors = np.random.default_rng(0).normal(size=(len(tiny.TITLES), encoder.width)) * 0.05
    store = Vectors.from_arrays(entities=tiny.TITLES, entity_vectors=vectors)
    plain = Alignment.fit(store, {}, np.zeros((1, encoder.width)), AlignmentOptions(method="none"))
    return EBert(encoder, store, plain)


def test_the_papers_example(model):
    linker = Linker.fresh(model, options=LinkerOptions(strategy="paper"), generator=tiny.spans)
    (chunk,) = linker.chunks([Document("1", TEXT)])
    laid = next(
        one for one in linker.sequences(ChunkState(chunk)) if TEXT[one.spans[0].span.start :].startswith("Platt")
    )
    assert linker.tokenizer.convert_ids_to_tokens(laid.ids) == [
        "[CLS]", "Adams", "and", "[MASK]", "/", "P", "##latt", "*", "are", "both", "injured", "and", "will", "miss",
        "England", "'", "s", "opening", "World", "Cup", "qualifier", "[SEP]",
    ]  # fmt: skip


def test_the_text_does_not_change_by_a_bit(model):
    text = TEXT + " and" * (64 - 19)  # whole groups of keys: see the same test with the tiny encoder
    linker = Linker.fresh(model, options=LinkerOptions(strategy="packed"), generator=tiny.spans)
    (chunk,) = linker.chunks([Document("1", text)])
    (laid,) = linker.sequences(ChunkState(chunk))
    assert laid.text == 64
    batch = linker.batcher([laid])
    inputs = {name: batch[name] for name in ("inputs_embeds", "attention_mask", "position_ids")}
    body = model.encoder.base_model
    with torch.inference_mode():
        packed = body(**inputs).last_hidden_state[0, : laid.text]
        plain = body(input_ids=torch.tensor([laid.ids[: laid.text]])).last_hidden_state[0]
    assert torch.equal(packed, plain)
