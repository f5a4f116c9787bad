"""A model folder: saved and loaded, moved, and refused when it does not belong to what it is given."""

import json
import shutil

import pytest
import torch
import transformers
from answers import same, same_masks
from architectures import ARCHITECTURES, LONGEST, bert, store

from ebert import AlignmentOptions, EBert, EbertError, Vectors
from ebert.bert.load import quiet

TEXT = "The native language of [[Jean Marais]] is [MASK] ."
EXACT = 1e-6


def test_a_folder_can_go_anywhere(model, tmp_path):
    model.save_pretrained(tmp_path / "model")
    names = [part["name"] for part in json.loads((tmp_path / "model" / "ebert.json").read_text()).values()
             if isinstance(part, dict)]  # fmt: skip
    assert names == ["encoder", "vectors"]
    shutil.move(tmp_path / "model", tmp_path / "moved")
    again = EBert.from_pretrained(tmp_path / "moved")
    for mode in ("bert", "concat", "replace"):
        assert same(again.fill(TEXT, mode=mode), model.fill(TEXT, mode=mode), within=EXACT)
    assert again.alignment.report == model.alignment.report
    again.save_pretrained(tmp_path / "moved")  # over itself
    assert same(EBert.from_pretrained(tmp_path / "moved").fill(TEXT), model.fill(TEXT), within=EXACT)


def test_an_encoder_kept_in_half_precision(tiny, tmp_path):
    model = EBert.fit(tiny.folder("bert"), tiny.vectors, dtype=torch.float16)
    model.save_pretrained(tmp_path / "model", include_encoder=True)
    again = EBert.from_pretrained(tmp_path / "model")
    assert again.encoder.dtype == torch.float16
    assert again.fill(TEXT).best == model.fill(TEXT).best


@pytest.mark.parametrize(
    "options",
    [
        AlignmentOptions(method="orthogonal", intercept=True),
        AlignmentOptions(ridge=0.1, length=2.0, held_out=0.2, seed=3),
    ],
)
def test_options_are_kept(tiny, tmp_path, options):
    model = EBert.fit(tiny.folder("bert"), tiny.vectors, options=options)
    model.save_pretrained(tmp_path / "model")
    again = EBert.from_pretrained(tmp_path / "model")
    assert again.alignment.options == options
    assert again.project(["Paris"]).equal(model.project(["Paris"]))


def test_a_store_that_moved(tiny, tmp_path):
    model = EBert.fit(tiny.folder("bert"), store(tmp_path / "store"))
    model.save_pretrained(tmp_path / "model", include_vectors=False, include_encoder=False)
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == [
        "README.md", "alignment.safetensors", "ebert.json",
    ]  # fmt: skip
    wanted = model.fill(TEXT)
    shutil.move(tmp_path / "store", tmp_path / "elsewhere")
    with pytest.raises(EbertError, match=r"the store of .*model is not at .*store; give its new path \(vectors="):
        EBert.from_pretrained(tmp_path / "model")
    for place in (tmp_path / "elsewhere", str(tmp_path / "elsewhere"), Vectors.open(tmp_path / "elsewhere")):
        assert same(EBert.from_pretrained(tmp_path / "model", vectors=place).fill(TEXT), wanted, within=EXACT)


def test_an_encoder_that_moved(tiny, tmp_path):
    shutil.copytree(tiny.folder("albert"), tmp_path / "encoder")
    model = EBert.fit(tmp_path / "encoder", tiny.vectors)
    model.save_pretrained(tmp_path / "model", include_encoder=False)
    shutil.move(tmp_path / "encoder", tmp_path / "elsewhere")
    with pytest.raises(EbertError, match="encoder"):
        EBert.from_pretrained(tmp_path / "model")
    again = EBert.from_pretrained(tmp_path / "model", encoder=tmp_path / "elsewhere")
    assert same(again.fill(TEXT), model.fill(TEXT), within=EXACT)


def test_other_words_and_other_wordpieces_are_refused(tiny, tmp_path):
    tiny.model("bert").save_pretrained(tmp_path / "model")
    with pytest.raises(EbertError, match=r"has other words than the store .* was made with; give the right store"):
        EBert.from_pretrained(tmp_path / "model", vectors=store(seed=1))
    for other in (tiny.folder("bert-uncased"), str(ARCHITECTURES["bert"].save(tmp_path / "other", seed=1))):
        with pytest.raises(EbertError, match="has other wordpieces or wordpiece vectors than the encoder"):
            EBert.from_pretrained(tmp_path / "model", encoder=other)


def test_entities_added_later_do_not_matter(tiny, tmp_path):
    vectors = store(tmp_path / "store")
    EBert.fit(tiny.folder("bert"), vectors).save_pretrained(tmp_path / "model", include_vectors=False)
    vectors.add("Zorblax Inc.", vectors["Paris"])
    again = EBert.from_pretrained(tmp_path / "model")
    text = "The king of [[Zorblax Inc.|it]] is [MASK] ."
    assert "Zorblax_Inc." in again.pieces(text)
    paris = again.fill(text.replace("Zorblax Inc.", "Paris"), mode="replace")
    assert same_masks(again.fill(text, mode="replace"), paris, within=EXACT)


def test_damage_is_named(tiny, tmp_path):
    folder = tmp_path / "model"
    with pytest.raises(EbertError, match=r"there is no model at .*ebert align"):
        EBert.from_pretrained(folder)
    tiny.model("bert").save_pretrained(folder)
    info = json.loads((folder / "ebert.json").read_text())

    def broken(message: str, **change: object) -> None:
        (folder / "ebert.json").write_text(json.dumps({**info, **change}))
        with pytest.raises(EbertError, match=message):
            EBert.from_pretrained(folder)

    broken("has model format 99; this version of ebert reads up to 1: upgrade", format=99)
    broken("is damaged .*make the model again", vectors={})
    broken("is not the one that ebert.json belongs to", alignment_sha256="0")
    (folder / "ebert.json").write_text("{")
    with pytest.raises(EbertError, match="is damaged"):
        EBert.from_pretrained(folder)
    (folder / "ebert.json").write_text(json.dumps(info))
    matrix = folder / "alignment.safetensors"
    matrix.write_bytes(matrix.read_bytes()[:-100])
    with pytest.raises(EbertError, match="is damaged"):
        EBert.from_pretrained(folder)


def test_a_plain_encoder(tiny, tmp_path):
    plain = EBert.plain(tiny.folder("bert"))
    assert same_masks(plain.fill(TEXT), tiny.model("bert").fill(TEXT, mode="bert"), within=EXACT)
    assert plain.fill(TEXT).missing == ("Jean Marais",)
    for mode in ("concat", "replace"):
        with pytest.raises(EbertError, match=f"the mode {mode} needs entities, and this model has no entity vectors"):
            plain.fill(TEXT, mode=mode)
    assert "no entities" in repr(plain)
    assert "Alignment(linear, from 24 to 32" in repr(tiny.model("bert").alignment)
    with pytest.raises(EbertError, match="nothing to save"):
        plain.save_pretrained(tmp_path / "model")
    with pytest.raises(EbertError, match="has no entity vectors"):
        plain.project(["Paris"])


def test_dimensions_must_match(tiny):
    with pytest.raises(EbertError, match="dimension 24 cannot go without alignment into an encoder of width 32"):
        EBert.fit(tiny.folder("bert"), tiny.vectors, options=AlignmentOptions(method="none"))
    bert_, electra = tiny.model("bert"), tiny.model("electra")
    with pytest.raises(EbertError, match=r"the alignment is for an encoder of width 16, .* has 32"):
        EBert(bert_._encoder, tiny.vectors, electra.alignment)


def test_text_that_is_too_long(model):
    rest = len(model.pieces("the [MASK]")) - 1  # everything but a "the"
    text = "the " * (LONGEST - rest) + "[MASK]"
    assert len(model.pieces(text)) == LONGEST
    assert model.fill(text).best
    with pytest.raises(
        EbertError, match=f"the text has {LONGEST + 1} wordpieces; .* takes {LONGEST}: shorten or split"
    ):
        model.fill("the " + text)
    with pytest.raises(EbertError, match="the text is empty"):
        model.fill("  \n")


def save(folder, module, tokenizer) -> str:
    with quiet():
        module.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return str(folder)


def test_an_encoder_that_takes_no_vectors(tiny, tmp_path):
    config = transformers.PerceiverConfig(
        num_latents=4, d_latents=8, d_model=8, num_blocks=1, num_self_attends_per_block=1, num_self_attention_heads=2,
        num_cross_attention_heads=2, max_position_embeddings=16, vocab_size=262,
    )  # fmt: skip
    folder = save(tmp_path / "it", transformers.PerceiverForMaskedLM(config), bert())
    with pytest.raises(
        EbertError, match="PerceiverForMaskedLM takes no inputs_embeds, so entity vectors cannot be fed"
    ):
        EBert.fit(folder, tiny.vectors)


def test_an_encoder_with_a_decoder(tiny, tmp_path):
    config = transformers.BartConfig(
        d_model=8, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=8, decoder_ffn_dim=8, encoder_attention_heads=2,
        decoder_attention_heads=2, vocab_size=300, max_position_embeddings=16,
    )  # fmt: skip
    folder = save(tmp_path / "it", transformers.BartForConditionalGeneration(config), bert())
    with pytest.raises(EbertError, match="BartForConditionalGeneration is an encoder and a decoder"):
        EBert.plain(folder)


def test_a_tokenizer_without_offsets_or_without_a_mask(tiny, tmp_path):
    module = tiny.model("bert").encoder
    bytes_ = save(tmp_path / "bytes", module, transformers.PerceiverTokenizer())
    with pytest.raises(EbertError, match=r"PerceiverTokenizer cannot tell where its pieces come from.*'fast'"):
        EBert.plain(bytes_)
    tokenizer = bert()
    plain = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, pad_token="[PAD]")
    with pytest.raises(EbertError, match="the tokenizer has no mask token: is this a masked language model"):
        EBert.plain(save(tmp_path / "maskless", module, plain))


def test_a_folder_that_is_no_masked_language_model(tiny, tmp_path):
    body = transformers.AutoModel.from_pretrained(tiny.folder("roberta"))
    with pytest.raises(EbertError, match=r"is not a complete masked language model: it lacks .*lm_head"):
        EBert.plain(save(tmp_path / "body", body, ARCHITECTURES["roberta"].tokenizer()))


def test_a_misspelt_argument_is_noticed(tiny, tmp_path):
    tiny.model("bert").save_pretrained(tmp_path / "model")
    with pytest.raises(TypeError, match="no vector"):
        EBert.from_pretrained(tmp_path / "model", vector="elsewhere")


def test_a_store_that_would_vanish_comes_along(tiny, tmp_path):
    passing = Vectors.from_arrays(
        words=["the"], word_vectors=[[1.0, 2.0]], entities=["Jean Marais"], entity_vectors=[[3.0, 4.0]]
    )
    EBert.fit(tiny.folder("bert"), passing).save_pretrained(tmp_path / "model", include_vectors=False)
    assert EBert.from_pretrained(tmp_path / "model").vectors.path == tmp_path / "model" / "vectors"
