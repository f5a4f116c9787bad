"""A plain transformers checkpoint with entities as added tokens, read back with transformers alone."""

import json
import subprocess
import sys

import pytest
import torch
from architectures import ARCHITECTURES, ENTITIES, store
from transformers import AutoModelForMaskedLM, AutoTokenizer

from ebert import EBert, EbertError, Passage
from ebert.bert.load import quiet
from ebert.text.titles import read_titles

TEXTS = (
    "The native language of [[Jean Marais]] is [MASK] .",
    "[[Paris]] is in ( [MASK] )",
    "a film in [[Paris|Rome]]'s [MASK] about [[Jean Marais|Jean]]",
    "the [MASK] of [[Jean Marais]] [[Paris]]",
)
CHOSEN = ["Jean Marais", "Paris"]


def spelled(text: str, mode: str, mask: str) -> str:
    """Write a passage for the exported checkpoint: the entity's token, and in `concat` a slash and the surface."""
    passage, out, done = Passage.parse(text), "", 0
    for mention in passage.mentions:
        out += passage.text[done : mention.start] + f"[[{mention.entity}]]"
        done = mention.end
        if mode == "concat":
            out += f" / {passage.surface(mention)}"
    return (out + passage.text[done:]).replace("[MASK]", mask)


def load(folder):
    with quiet():
        return AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).eval()


@pytest.fixture(scope="module")
def exported(architecture, model, tmp_path_factory):
    """An export of two entities, by transformers alone."""
    folder = tmp_path_factory.mktemp("exported") / architecture.name
    assert model.export(CHOSEN, folder) == {"Jean Marais": "[[Jean Marais]]", "Paris": "[[Paris]]"}
    return load(folder)


@pytest.mark.parametrize("mode", ["concat", "replace"])
def test_same_sequences_and_probabilities(model, exported, mode):
    tokenizer, module = exported
    for text in TEXTS:
        batch = tokenizer(spelled(text, mode, tokenizer.mask_token), return_tensors="pt")
        tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0].tolist())
        shown = [token.strip("[]").replace(" ", "_") if token.startswith("[[") else token for token in tokens]
        assert shown == model.pieces(text, mode=mode)
        with torch.inference_mode():
            logits = module(**batch).logits[0, tokens.index(tokenizer.mask_token)]
        probabilities = logits.softmax(-1)
        pieces = len(model.tokenizer)
        assert probabilities[pieces:].max() == 0
        ours = model.fill(text, mode=mode, top=10_000).answers
        wanted = torch.tensor([answer.probability for answer in ours])
        torch.testing.assert_close(probabilities[:pieces].sort(descending=True).values, wanted, atol=1e-4, rtol=0)
        best = int(probabilities.argmax())
        assert model.vocabulary.show(best) == ours[0].token


def test_rows_are_the_carried_vectors(model, exported):
    tokenizer, module = exported
    ids = tokenizer.convert_tokens_to_ids([f"[[{title}]]" for title in CHOSEN])
    projected = model.project(CHOSEN)
    assert module.get_input_embeddings().weight[ids].detach().equal(projected)
    old = model.encoder.get_input_embeddings().weight
    assert module.get_input_embeddings().weight[: len(model.tokenizer)].equal(old[: len(model.tokenizer)])
    outputs = module.get_output_embeddings().weight
    if outputs.shape[0] == module.config.vocab_size:  # DeBERTa-v3 has no output matrix at all
        assert outputs[ids].detach().equal(projected)
    assert module.config.vocab_size == module.get_input_embeddings().weight.shape[0] >= len(tokenizer)


def test_the_model_itself_stays_as_it_was(tiny, architecture, model, exported):
    tokenizer, module = load(tiny.folder(architecture.name))
    assert len(model.tokenizer) == len(tokenizer)
    assert all(a.equal(b) for a, b in zip(module.parameters(), model.encoder.parameters(), strict=True))


def test_entities_can_be_answers(model, tmp_path):
    """With predict_entities, an entity's logit is that of any token: its projected vector and a mean bias."""
    model.export(CHOSEN, tmp_path / "out", predict_entities=True)
    tokenizer, module = load(tmp_path / "out")
    batch = tokenizer(spelled(TEXTS[0], "concat", tokenizer.mask_token), return_tensors="pt")
    place = batch["input_ids"][0].tolist().index(tokenizer.mask_token_id)
    with torch.inference_mode():
        logits = module(**batch).logits[0, place]
    ids = tokenizer.convert_tokens_to_ids([f"[[{title}]]" for title in CHOSEN])
    probabilities = logits.softmax(-1)
    assert all(probabilities[ids] > 1e-12)
    assert probabilities[len(tokenizer) :].sum() == 0
    # Logits are linear in the rows: a least-squares fit over the wordpieces gives those of the entities.
    rows = model.encoder.get_input_embeddings().weight.detach()[: len(model.tokenizer)]
    bias = next(p for p in module.parameters() if p.shape == (module.config.vocab_size,)).detach()
    state = torch.linalg.lstsq(rows.double(), (logits - bias)[: len(rows)].double()[:, None]).solution[:, 0]
    wanted = model.project(CHOSEN).double() @ state + bias[: len(rows)].double().mean()
    torch.testing.assert_close(logits[ids].double(), wanted, atol=1e-3, rtol=0)


ALONE = """
import json, sys
from transformers import AutoModelForMaskedLM, AutoTokenizer
tokenizer, module = AutoTokenizer.from_pretrained(sys.argv[1]), AutoModelForMaskedLM.from_pretrained(sys.argv[1]).eval()
batch = tokenizer(sys.argv[2], return_tensors="pt")
ids = batch["input_ids"][0].tolist()
values, best = module(**batch).logits[0, ids.index(tokenizer.mask_token_id)].softmax(-1).topk(3)
assert "ebert" not in sys.modules
print(json.dumps([tokenizer.convert_ids_to_tokens(ids), best.tolist(), values.tolist()]))
"""


def test_nothing_of_ebert_is_needed(tiny, tmp_path):
    model = tiny.model("roberta")
    model.export(CHOSEN, tmp_path / "out")
    text = spelled(TEXTS[0], "concat", model.tokenizer.mask_token)
    command = [sys.executable, "-c", ALONE, str(tmp_path / "out"), text]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    tokens, best, values = json.loads(done.stdout)
    assert tokens.count("[[Jean Marais]]") == 1
    answers = model.fill(TEXTS[0], top=3).answers
    assert [model.vocabulary.show(piece) for piece in best] == [answer.token for answer in answers]
    assert values == pytest.approx([answer.probability for answer in answers], abs=1e-4)


def test_titles_with_all_kinds_of_characters(model, tmp_path):
    tokens = model.export(ENTITIES, tmp_path / "out")
    assert tokens == {title: f"[[{title}]]" for title in ENTITIES}
    assert json.loads((tmp_path / "out" / "entities.json").read_text(encoding="utf-8")) == tokens
    tokenizer, module = load(tmp_path / "out")
    ids = tokenizer.convert_tokens_to_ids(list(tokens.values()))
    assert len(set(ids)) == len(ENTITIES)
    assert module.get_input_embeddings().weight[ids].detach().equal(model.project(ENTITIES))
    for title, number in zip(ENTITIES, ids, strict=True):
        seen = tokenizer(f"the king of [[{title}]] / Spain, or [[{title}]].")["input_ids"]
        assert seen.count(number) == 2
        assert not set(ids) & set(seen) - {number}


def test_an_export_can_be_fitted_again(tiny, tmp_path):
    tiny.model("roberta").export(CHOSEN, tmp_path / "out")
    again = EBert.fit(tmp_path / "out", tiny.vectors)
    assert again.fill("the king of [[Rome]] is [MASK]").passage.mentions[0].entity == "Rome"
    assert again.alignment.report.pairs == tiny.model("roberta").alignment.report.pairs
    with pytest.raises(EbertError, match="1 of the entities' tokens are in the tokenizer already"):
        again.export(["Rome", "Paris"], tmp_path / "again")


def test_names_of_one_entity_are_one_token(tiny, tmp_path):
    names = ["Paris", "paris", "Marais", "Jean_Marais", " Paris ", "https://en.wikipedia.org/wiki/Jean_Marais"]
    tokens = tiny.model("bert").export(names, tmp_path / "out")
    assert list(tokens) == ["Paris", "Jean Marais"]


def test_an_entity_added_to_the_store_can_be_exported(tiny, tmp_path):
    vectors = store(tmp_path / "store")
    model = EBert.fit(tiny.folder("bert"), vectors)
    vectors.add("Zorblax Inc.", vectors["Paris"])
    model.export(["Zorblax Inc."], tmp_path / "out")
    tokenizer, module = load(tmp_path / "out")
    row = module.get_input_embeddings().weight[tokenizer.convert_tokens_to_ids("[[Zorblax Inc.]]")]
    assert row.detach().equal(model.project(["Paris"])[0])


def test_what_is_refused(tiny, tmp_path):
    model, out = tiny.model("bert"), tmp_path / "out"
    with pytest.raises(EbertError, match="no vector for 'Jean Maris'; nearest titles: 'Jean Marais'"):
        model.export(["Paris", "Jean Maris"], out)
    with pytest.raises(EbertError, match="no entities were given"):
        model.export([], out)
    with pytest.raises(EbertError, match="a plain encoder has no entities"):
        EBert.plain(tiny.folder("bert")).export(["Paris"], out)
    assert not out.exists()
    model.export(["Paris"], out)
    with pytest.raises(EbertError, match="exists; choose another place, or allow it to be overwritten"):
        model.export(["Rome"], out)
    assert load(out)[0].convert_tokens_to_ids("[[Paris]]") == len(model.tokenizer)
    model.export(["Rome"], out, overwrite=True)
    assert "[[Paris]]" not in load(out)[0].get_vocab()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_layer_as_wide_as_the_vocabulary(tiny, tmp_path):
    """Only the output bias is written to, not every bias of that length."""
    bert = ARCHITECTURES["bert"]
    folder = bert.save(tmp_path / "encoder", intermediate_size=len(bert.tokenizer()) + 1)
    model = EBert.fit(folder, tiny.vectors)
    model.export(["Paris"], tmp_path / "out")
    _, module = load(tmp_path / "out")
    ours = dict(model.encoder.base_model.named_parameters())
    for name, parameter in module.base_model.named_parameters():
        assert "word_embeddings" in name or parameter.equal(ours[name])


def test_an_encoder_without_an_output_bias(tiny, tmp_path):
    folder = ARCHITECTURES["modernbert"].save(tmp_path / "encoder", decoder_bias=False)
    model = EBert.fit(folder, tiny.vectors)
    with pytest.raises(EbertError, match=r"has no output bias here.*--predict-entities"):
        model.export(["Paris"], tmp_path / "out")
    model.export(["Paris"], tmp_path / "out", predict_entities=True)


def test_a_file_of_titles(tmp_path):
    file = tmp_path / "titles.txt"
    file.write_bytes("\ufeffJean Marais\r\n\r\n  Beyoncé \nParis".encode())
    assert read_titles(file) == ["Jean Marais", "Beyoncé", "Paris"]
    for content, message in ((b" \n\n", "has no titles in it"), (b"\xff\xfe", "is not UTF-8")):
        file.write_bytes(content)
        with pytest.raises(EbertError, match=message):
            read_titles(file)
    with pytest.raises(EbertError, match=r"there is no file .*one title per line"):
        read_titles(tmp_path / "none")
