"""Packing changes nothing: the text is encoded as without blocks, and a span is judged as if it were alone."""

import sys
from pathlib import Path

import linking_tiny as tiny
import pytest
import torch

from ebert import EBert, EbertError
from ebert.linking.document import Choice, Document, Span
from ebert.linking.linker import Linker
from ebert.linking.options import LinkerOptions
from ebert.linking.refine import ChunkState
from ebert.linking.sequences import MOST_BLOCKS

sys.path.append(str(Path(__file__).parents[1] / "model"))
from architectures import ARCHITECTURES, store

TEXT = tiny.TEXT
RELATIVE = ("mpnet", "deberta", "deberta-v2", "deberta-v3", "modernbert")


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny models are slower on several threads than on one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def hidden(linker, laid):
    batch = linker.batcher(laid)
    inputs = {name: batch[name] for name in ("inputs_embeds", "attention_mask", "position_ids")}
    with torch.inference_mode():
        return linker.encoder.module.base_model(**inputs).last_hidden_state


def lay(linker, spans, text=TEXT):
    (chunk,) = linker.chunks([Document("1", text)], [spans])
    return linker.sequences(ChunkState(chunk))


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("block", ["markers", "copy"])
def test_the_text_does_not_change_by_a_bit(block, attention):
    linker = tiny.linker(block=block, longest=80)
    linker.encoder.module.set_attn_implementation(attention)
    # Fused attention adds keys up in groups, so that only a full last group is the same with and without more of them.
    text = TEXT + " and" * (64 - 19)
    spans = tiny.spans(Document("1", text))
    (many,) = lay(linker, spans, text)
    (one,) = lay(linker, spans[:1], text)
    assert many.text == 64
    states = hidden(linker, [many])[0, : many.text]
    assert torch.equal(states, hidden(linker, [one])[0, : many.text])
    ids = torch.tensor([many.ids[: many.text]])
    with torch.inference_mode():
        plain = linker.encoder.module.base_model(input_ids=ids).last_hidden_state[0]
    assert torch.equal(states, plain)


@pytest.mark.parametrize("block", ["markers", "copy"])
def test_a_spans_scores_do_not_depend_on_the_other_spans(block):
    linker = tiny.linker(block=block)
    spans = tiny.spans(Document("1", TEXT))
    (together,) = linker.judge([ChunkState(*linker.chunks([Document("1", TEXT)], [spans]))])
    for span, verdict in zip(spans, together, strict=True):
        ((alone,),) = linker.judge([ChunkState(*linker.chunks([Document("1", TEXT)], [[span]]))])
        assert alone.placed.span == verdict.placed.span == span
        assert alone.scores == pytest.approx(verdict.scores, abs=1e-5)


@pytest.mark.parametrize("strategy", ["paper", "packed"])
def test_nor_on_the_other_documents_of_a_batch(strategy):
    linker = tiny.linker(strategy=strategy)
    texts = [TEXT, "Platt will miss England", "Adams", "both injured"]
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    together = list(linker.link(documents, budget=10_000))
    for document, linked in zip(documents, together, strict=True):
        alone = linker.link(document, budget=1)
        assert linked.document is document
        assert [(m.start, m.entity) for m in alone.mentions] == [(m.start, m.entity) for m in linked.mentions]
        for one, other in zip(alone.mentions, linked.mentions, strict=True):
            assert one.probability == pytest.approx(other.probability, abs=1e-5)


def test_very_many_spans_are_spread_over_several_passes():
    places = [(start, end) for start in range(len(TEXT)) for end in range(start + 1, len(TEXT) + 1)]
    spans = [Span(start, end, (Choice("England", 1.0),)) for start, end in places if TEXT[start:end].strip()]
    linker = tiny.linker()
    laid = lay(linker, spans)
    assert len(laid) > 1
    assert [placed.span for one in laid for placed in one.spans] == spans
    assert all(len(one) <= one.text + MOST_BLOCKS for one in laid)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_packs_or_is_refused(name, tmp_path):
    model = EBert.fit(str(ARCHITECTURES[name].save(tmp_path / name)), store())
    text = "Jean was born in Paris ( France ) and spoke Italian"
    spans = [Span(0, 4, (Choice("Jean Marais", 0.7), Choice("A", 0.3))), Span(17, 22, (Choice("Paris", 1.0),))]
    if name in RELATIVE:
        with pytest.raises(EbertError, match="strategy packed does not work with it; use the strategy paper"):
            Linker.fresh(model, options=LinkerOptions(strategy="packed"), generator=lambda document: spans)
        options = LinkerOptions(strategy="paper")
    else:
        options = LinkerOptions(strategy="packed")
    linker = Linker.fresh(model, options=options, generator=lambda document: spans)
    (chunk,) = linker.chunks([Document("1", text)])
    (both,) = linker.judge([ChunkState(chunk)])
    assert_answers(linker, linker.sequences(ChunkState(chunk))[:1])
    assert [surface(text, verdict) for verdict in both] == ["Jean", "Paris"]
    if options.strategy == "packed":
        (laid,) = linker.sequences(ChunkState(chunk))
        (alone,) = linker.sequences(ChunkState(linker.chunks([Document("1", text)], [spans[:1]])[0]))
        torch.testing.assert_close(
            hidden(linker, [laid])[0, : laid.text], hidden(linker, [alone])[0, : laid.text], atol=1e-5, rtol=0
        )
        ((one,),) = linker.judge([ChunkState(linker.chunks([Document("1", text)], [spans[:1]])[0])])
        assert one.scores == pytest.approx(both[0].scores, abs=1e-4)


def surface(text, verdict):
    return text[verdict.placed.span.start : verdict.placed.span.end]


def assert_answers(linker, laid):
    """What the model answers, compared to all wordpieces, is what the masked LM itself says."""
    batch = linker.batcher(laid)
    inputs = {name: batch[name] for name in ("inputs_embeds", "attention_mask", "position_ids") if name in batch}
    masked_lm = linker.encoder.module
    with torch.inference_mode():
        logits = masked_lm(**inputs).logits[0, laid[0].masks]
        answers = linker.module.answers(inputs, batch["rows"], batch["columns"])
        compared = answers @ linker.module.embedding.weight.T
    shift = logits[:, : compared.shape[1]] - compared  # the output bias, the same for all spans
    torch.testing.assert_close(shift, shift[:1].expand_as(shift), atol=1e-4, rtol=0)
    spread = (logits - logits.mean(dim=0)).abs().max()
    assert len(laid[0].masks) == 1 or spread > 1e-3  # else this would hold for anything
