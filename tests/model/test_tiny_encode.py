"""Hidden states and the way back to the words of the passage, for every kind of tokenizer."""

import unicodedata

import numpy as np
import pytest
import torch

from ebert import EBert, EbertError, Mention, Passage
from ebert.model.options import MODES

TEXT = "The actor [[Jean Marais]] was born in [[Paris]] ( [MASK] ) ."


def states_of(model: EBert, text: str, *, mode: str = "bert") -> torch.Tensor:
    with torch.inference_mode():
        return model.encoder.base_model(**model.collator(mode=mode)([text])).last_hidden_state[0]


def test_states_are_the_encoders_own(model):
    encoding = model.encode(TEXT, mode="concat")
    assert list(encoding.tokens) == model.pieces(TEXT, mode="concat")
    torch.testing.assert_close(encoding.states, states_of(model, TEXT, mode="concat"), atol=1e-5, rtol=0)
    assert encoding.states.shape[1] == model.encoder.config.hidden_size
    embeddings = model.encode(TEXT, layer=0)
    last = model.encode(TEXT, layer=2)
    assert not torch.allclose(embeddings.states, last.states, atol=1e-2)
    with pytest.raises(EbertError, match=r"has no layer 3: 0 \(the embeddings\) to 2"):
        model.encode(TEXT, layer=3)


def test_words_and_their_states(model):
    encoding = model.encode(TEXT, mode="concat")
    passage = encoding.passage
    words = [word.text for word in encoding.words]
    assert words == ["The", "actor", "Jean", "Marais", "was", "born", "in", "Paris", "(", "[MASK]", ")", "."]
    assert all(passage.text[word.start : word.end] == word.text for word in encoding.words)
    assert encoding.word_states.shape == (len(words), encoding.states.shape[1])
    mask = encoding.tokens.index(model.tokenizer.mask_token)
    assert encoding.word_states[words.index("[MASK]")].equal(encoding.states[mask])
    # A word of several pieces has their mean; the first piece of Marais follows that of Jean.
    second = encoding.tokens.index("Jean_Marais") + 3
    last = next(i for i in range(second, len(encoding.tokens)) if encoding.tokens[i].strip("Ġ▁") == "was")
    torch.testing.assert_close(encoding.word_states[3], encoding.states[second:last].mean(dim=0))


def test_entities_and_replaced_words(model):
    for mode in ("concat", "replace"):
        encoding = model.encode(TEXT, mode=mode)
        for mention in encoding.passage.mentions:
            place = encoding.tokens.index(mention.entity.replace(" ", "_"))
            assert encoding.entity(mention).equal(encoding.states[place])
        assert encoding.entity(Mention(0, 3, "Paris")) is None
        words = {word.text: state for word, state in zip(encoding.words, encoding.word_states, strict=True)}
        jean = encoding.entity(encoding.passage.mentions[0])
        assert words["Jean"].equal(jean) == words["Marais"].equal(jean) == (mode == "replace")
    plain = model.encode(TEXT, mode="bert")
    assert plain.entity(plain.passage.mentions[0]) is None


TEXTS = {
    "accents": ("Beyoncé sang in Zürich , naïve Å .", ["Beyoncé", "sang", "in", "Zürich", ",", "naïve", "Å", "."]),
    "accents of their own": ("Beyonce\u0301 sang", ["Beyonce\u0301", "sang"]),
    "emoji": ("She sang 😀 in 😀Rome!", ["She", "sang", "😀", "in", "😀", "Rome", "!"]),
    "right to left": ("in القاهرة and שלום .", ["in", "القاهرة", "and", "שלום", "."]),
    "vowel signs": ("in हिन्दी and", ["in", "हिन्दी", "and"]),
    "no blanks": ("a(b)c'd", ["a", "(", "b", ")", "c", "'", "d"]),
    "blanks": ("  in \t the\n\nworld ", ["in", "the", "world"]),
}


@pytest.mark.parametrize("case", TEXTS)
def test_words_of_any_script(tokenizer_of, tiny, case):
    text, words = TEXTS[case]
    # An entity before the text shifts everything in what the tokenizer sees, but nothing in what comes back.
    passage = Passage(f"Paris {text}", (Mention(0, 5, "Paris"),))
    for mode in MODES:
        encoding = tiny.model(tokenizer_of.name).encode(passage, mode=mode)
        assert [word.text for word in encoding.words] == ["Paris", *words], mode
        assert all(passage.text[word.start : word.end] == word.text for word in encoding.words), mode
        covered = [span for span in encoding.pieces.spans if span[0] < span[1]]
        assert all(passage.text[start:end].strip() == passage.text[start:end] for start, end in covered), mode
        letters = {i for word in encoding.words for i in range(word.start, word.end)}
        marks = {i for i in letters if unicodedata.category(passage.text[i]).startswith("M")}
        # Some encoders do without accents.
        assert {i for start, end in covered for i in range(start, end)} >= letters - marks, mode


def test_a_span_that_no_piece_covers(model):
    with pytest.raises(EbertError, match="no piece of the encoder covers characters 2:3"):
        model.encode("in the world").span(2, 3)


def test_encodings_come_in_order_whatever_the_batches(model):
    texts = [TEXT, "a [[Rome]] film", "the king", "a [[Paris]] film in the best world of [[Rome]] and Spain"]
    for budget in (1, 1000):
        for text, encoding in zip(texts, model.encode(texts, budget=budget), strict=True):
            assert encoding.passage == Passage.parse(text)
            torch.testing.assert_close(encoding.states, model.encode(text).states, atol=1e-4, rtol=0)


def test_pooling_gives_arrays(tiny):
    model = tiny.model("bert")
    encoding = model.encode(TEXT)
    hidden = encoding.states.shape[1]
    rows = {pooling: model.encode(TEXT, pooling=pooling) for pooling in ("none", "cls", "mean", "entity")}
    assert all(type(row) is np.ndarray and row.dtype == np.float32 for row in rows.values())
    np.testing.assert_allclose(rows["none"], encoding.states.numpy(), atol=1e-6)
    np.testing.assert_allclose(rows["cls"], encoding.states[0].numpy(), atol=1e-6)
    inside = [place for place, (start, end) in enumerate(encoding.pieces.spans) if start < end]
    np.testing.assert_allclose(rows["mean"], encoding.states[inside].mean(0).numpy(), atol=1e-6)
    assert rows["entity"].shape == (len(encoding.passage.mentions), hidden)
    np.testing.assert_allclose(rows["entity"][0], encoding.entity(encoding.passage.mentions[0]).numpy(), atol=1e-6)
    assert [row.shape for row in model.encode(["no one", TEXT], pooling="mean")] == [(hidden,), (hidden,)]
    assert model.encode("nobody is here", pooling="entity").shape == (0, hidden)
    streamed = model.stream(iter([TEXT]), task="encode", pooling="cls")
    np.testing.assert_allclose(next(streamed), rows["cls"], atol=1e-6)
    with pytest.raises(EbertError, match="unknown pooling 'max'"):
        model.encode(TEXT, pooling="max")
