"""Every architecture, end to end with tiny random models: what the encoder sees, and that it sees exactly that."""

import numpy as np
import pytest
import torch
from architectures import ARCHITECTURES, WORDS, Architecture, store
from transformers import AutoModelForMaskedLM, AutoTokenizer

from ebert import AlignmentOptions, EBert, EbertError, Passage, Vectors
from ebert.model.options import MODES

LONG = "the king of Spain lives in Madrid , and She sang in Albanian , Dutch , Danish , Greek and [MASK] in the world ."

# text, concat, replace: for WordPiece, byte-level and SentencePiece
SEQUENCES = {
    "in the middle": (
        "The native language of [[Jean Marais]] is [MASK] .",
        "The native language of Jean_Marais / Jean Mar ##ais is <mask> .",
        "The native language of Jean_Marais is <mask> .",
        "The Ġnative Ġlanguage Ġof Jean_Marais Ġ/ ĠJean ĠMar a is Ġis <mask> Ġ.",
        "The Ġnative Ġlanguage Ġof Jean_Marais Ġis <mask> Ġ.",
        "▁The ▁native ▁language ▁of Jean_Marais ▁/ ▁Jean ▁Mar ais ▁is <mask> ▁.",
        "▁The ▁native ▁language ▁of Jean_Marais ▁is <mask> ▁.",
    ),
    "at the beginning": (
        "[[Jean Marais|Jean]] sang",
        "Jean_Marais / Jean sang",
        "Jean_Marais sang",
        "Jean_Marais Ġ/ ĠJean Ġsang",
        "Jean_Marais Ġsang",
        "Jean_Marais ▁/ ▁Jean ▁sang",
        "Jean_Marais ▁sang",
    ),
    "before an apostrophe": (
        "in [[Le Monde|Rome]]'s films",
        "in Le_Monde / Rome ' s films",
        "in Le_Monde ' s films",
        "in Le_Monde Ġ/ ĠRome ' s Ġfilms",
        "in Le_Monde ' s Ġfilms",
        "▁in Le_Monde ▁/ ▁Rome ' s ▁films",
        "▁in Le_Monde ▁'s ▁films",  # SentencePiece begins a word after every special token
    ),
    "in parentheses": (
        "a film ([[France]]) is",
        "a film ( France / France ) is",
        "a film ( France ) is",
        "a Ġfilm Ġ( France Ġ/ ĠFrance ) Ġis",
        "a Ġfilm Ġ( France ) Ġis",
        "▁a ▁film ▁( France ▁/ ▁France ) ▁is",
        "▁a ▁film ▁( France ▁) ▁is",
    ),
    "at the end": (
        "the king of [[France]]",
        "the king of France / France",
        "the king of France",
        "the Ġking Ġof France Ġ/ ĠFrance",
        "the Ġking Ġof France",
        "▁the ▁king ▁of France ▁/ ▁France",
        "▁the ▁king ▁of France",
    ),
    "one after the other": (
        "a [[Rome]] [[Paris]] film",
        "a Rome / Rome Paris / Paris film",
        "a Rome Paris film",
        "a Rome Ġ/ ĠRome Paris Ġ/ ĠParis Ġfilm",
        "a Rome Paris Ġfilm",
        "▁a Rome ▁/ ▁Rome Paris ▁/ ▁Paris ▁film",
        "▁a Rome Paris ▁film",
    ),
    "without a blank between": (
        "a [[Rome]][[Paris]] film",
        "a Rome / Rome Paris / Paris film",
        "a Rome Paris film",
        "a Rome Ġ/ ĠRome Paris Ġ/ ĠParis Ġfilm",
        "a Rome Paris Ġfilm",
        "▁a Rome ▁/ ▁Rome Paris ▁/ ▁Paris ▁film",
        "▁a Rome Paris ▁film",
    ),
    "inside a word": (
        "the un[[Paris]]ian king",
        "the un Paris / Paris ##ian king",
        "the un Paris ian king",
        "the Ġ u n Paris Ġ/ ĠParis ian Ġking",
        "the Ġ u n Paris ian Ġking",
        "▁the ▁un Paris ▁/ ▁Paris ian ▁king",
        "▁the ▁un Paris ▁ian ▁king",
    ),
}
COLUMNS = {"wordpiece": 1, "byte-level": 3, "sentencepiece": 5}


def expected(architecture: Architecture, model: EBert, text: str, pieces: str) -> list[str]:
    """Spell a sequence as one architecture does: its case, its special tokens."""
    titles = {m.entity.replace(" ", "_") for m in Passage.parse(text).mentions}
    tokens = pieces.split()
    seen: set[str] = set()
    for place, token in enumerate(tokens):
        entity = token in titles and token not in seen  # each entity once, its surface afterwards
        seen.add(token)
        if architecture.lower_cases and not entity:
            tokens[place] = token.lower()
        if token == "<mask>":
            tokens[place] = model.tokenizer.mask_token
            if architecture.name == "deberta":  # its mask leaves the blank before it to a piece of its own
                tokens[place - 1] += " Ġ"
    return f"{model.tokenizer.cls_token} {' '.join(tokens)} {model.tokenizer.sep_token}".split()


@pytest.mark.parametrize("case", SEQUENCES)
def test_what_the_encoder_sees(tokenizer_of, tiny, case):
    architecture, model = tokenizer_of, tiny.model(tokenizer_of.name)
    text, *sequences = SEQUENCES[case]
    concat, replace = sequences[COLUMNS[architecture.style] - 1 :][:2]
    assert model.pieces(text, mode="concat") == expected(architecture, model, text, concat)
    assert model.pieces(text, mode="replace") == expected(architecture, model, text, replace)


TEXTS = {
    "mask": "The native language of Jean Marais is [MASK] .",
    "blanks": "  two blanks  and\ta tab\nand a line ",
    "punctuation": 'She said "no" -- Rome\'s (old) rivers, 3.14% of them!',
    "scripts": "Beyoncé, Zürich, Ångström e\u0301, 😀👩\u200d💻 القاهرة שלום 東京",
    "short": "#",
}


@pytest.mark.parametrize("case", TEXTS)
def test_without_entities_the_sequence_is_the_tokenizers_own(tiny, tokenizer_of, case):
    architecture, model = tokenizer_of, tiny.model(tokenizer_of.name)
    text = TEXTS[case]
    own = AutoTokenizer.from_pretrained(tiny.folder(architecture.name))
    plain = own.convert_ids_to_tokens(own(text.replace("[MASK]", own.mask_token))["input_ids"])
    for mode in MODES:
        assert model.pieces(text, mode=mode) == plain
    mentioned = text.replace("Jean Marais", "[[Jean Marais]]").replace("Rome", "[[Nobody knows|Rome]]")
    assert model.pieces(mentioned, mode="bert") == plain


def test_an_entity_without_a_vector_is_fed_as_wordpieces(model):
    text = "The king of [[Nowhere|Spain]] is [MASK] in [[Paris]] ."
    assert model.pieces(text) == model.pieces("The king of Spain is [MASK] in [[Paris]] .")
    assert model.fill(text).missing == ("Nowhere",)


def test_logits_are_those_of_plain_input_ids(tiny, architecture, model):
    """Positions, segments and padding as transformers itself makes them: a short text beside a longer one."""
    folder = tiny.folder(architecture.name)
    own, plain = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).eval()
    texts = ["The king is [MASK] .", LONG]
    batch = own([text.replace("[MASK]", own.mask_token) for text in texts], return_tensors="pt", padding=True)
    ours = model.collator(mode="bert")(texts)
    assert ours["attention_mask"].equal(batch["attention_mask"])
    with torch.inference_mode():
        wanted, given = plain(**batch).logits, model.encoder(**ours).logits
    real = batch["attention_mask"].bool()
    torch.testing.assert_close(given[real], wanted[real], atol=1e-5, rtol=0)


def test_positions_start_after_the_padding_index(architecture, model):
    """RoBERTa and its kin number from padding index + 1, all others from 0."""
    seen = []
    hook = model.encoder.base_model.register_forward_pre_hook(
        lambda _module, _arguments, options: seen.append(options["position_ids"]), with_kwargs=True
    )
    try:
        model.fill(["the king is [MASK]", LONG])
    finally:
        hook.remove()
    (positions,) = seen
    first = architecture.first_position
    assert first == (model.encoder.config.pad_token_id + 1 if first else 0)
    assert positions[1].tolist() == list(range(first, first + positions.shape[1]))
    length = len(model.pieces("the king is [MASK]"))
    assert positions[0].tolist()[:length] == list(range(first, first + length))
    assert set(positions[0].tolist()[length:]) == {max(first - 1, 0)}


def test_a_wordpieces_own_vector_as_an_entity_changes_nothing(tiny, architecture, model):
    text, words = "The king of Spain is [MASK] in the world .", ["king", "Spain"]
    table = model.encoder.get_input_embeddings().weight.detach()
    ids = [model.vocabulary.words[word.lower() if architecture.lower_cases else word] for word in words]
    unaligned = EBert.fit(
        tiny.folder(architecture.name),
        Vectors.from_arrays(entities=["The Monarch", "España"], entity_vectors=table[ids].numpy()),
        options=AlignmentOptions(method="none"),
    )
    entities = text.replace("king", "[[The Monarch|king]]").replace("Spain", "[[España|Spain]]")
    assert "The_Monarch" in unaligned.pieces(entities, mode="replace")
    feed = unaligned.collator(mode="replace")
    with torch.inference_mode():
        for others in ([], [LONG]):
            wanted = unaligned.encoder(**feed([text, *others])).logits
            given = unaligned.encoder(**feed([entities, *others])).logits
            torch.testing.assert_close(given, wanted, atol=1e-5, rtol=0)


def test_alignment_goes_to_the_width_of_the_embedding(architecture, model):
    assert model.alignment.target == architecture.width == model.encoder.get_input_embeddings().weight.shape[1]
    assert model.project(["Paris", "Rome"]).shape == (2, architecture.width)


def test_words_count_with_their_leading_space_form(architecture, model):
    mark = {"wordpiece": "", "byte-level": "Ġ", "sentencepiece": "▁"}[architecture.style]
    vocab = model.tokenizer.get_vocab()
    forms = [mark + (word.lower() if architecture.lower_cases else word) for word in WORDS]
    words = model.vocabulary.words
    assert words["king"] == vocab[mark + "king"]
    assert all(vocab[mark + word] == piece for word, piece in words.items())
    # Marais is cut into Mar and ais: neither is a word, with or without the mark of what continues one.
    inner = {"Mar", "ais", "##ais", "mar"} & vocab.keys() - {mark + word for word in words}
    assert inner
    assert not {vocab[piece] for piece in inner} & set(words.values())
    # The store's words are those of the vocabulary: all that are one piece are pairs of the fit.
    pieces = {vocab[form] for form in forms if form in vocab and vocab[form] in words.values()}
    assert model.alignment.report.pairs == len(pieces) > 50


@pytest.mark.parametrize("name", [name for name, a in ARCHITECTURES.items() if a.lower_cases])
def test_an_uncased_encoder_takes_the_words_of_a_cased_store(tiny, name):
    words = ("Paris", "Jean", "FRANCE", "the", "The", "Nothing")
    model = EBert.fit(tiny.folder(name), store(words=words), options=AlignmentOptions(held_out=0))
    assert model.alignment.report.pairs == 4
    assert set(model.vocabulary.words_in(model.vectors.find_word)) == {"Paris", "Jean", "FRANCE", "the"}


def test_a_cased_encoder_does_not(tiny):
    with pytest.raises(EbertError, match=r"none of the 2 words .* is a wordpiece.*cased"):
        EBert.fit(tiny.folder("roberta"), store(words=("paris", "JEAN")))


@pytest.mark.parametrize("name", ["bert", "roberta", "xlm-roberta"])  # a tokenizer of each style
def test_a_fit_can_be_repeated(tiny, name):
    model, again = tiny.model(name), EBert.fit(tiny.folder(name), tiny.vectors)
    assert again.alignment.report == model.alignment.report
    np.testing.assert_array_equal(again.alignment.weight, model.alignment.weight)


def test_w_is_the_least_squares_solution_over_the_pairs(model):
    words = model.vocabulary.words_in(model.vectors.find_word)
    x = np.stack([model.vectors.word_vector(word) for word in words]).astype(float)
    y = model.encoder.get_input_embeddings().weight.detach().numpy()[list(words.values())]
    wanted = np.linalg.lstsq(x, y, rcond=None)[0]
    vector = model.vectors["Paris"] @ wanted
    np.testing.assert_allclose(model.project(["Paris"])[0].numpy(), vector, atol=1e-5)
