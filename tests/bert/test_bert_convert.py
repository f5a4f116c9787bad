import numpy as np
import pytest
from bundle_writer import SIZES, bert_variables, write_bundle

from ebert.bert.tensor_bundle import Bundle, config_of, convert, expected_tensors, tensor_name
from ebert.errors import EbertError

POOLER = "module/bert/pooler/dense/kernel"


def converted(folder, variables):
    write_bundle(folder / "v", variables)
    bundle = Bundle.open(folder / "v")
    return convert(bundle, expected_tensors(config_of(bundle, heads=12)))


def test_sizes_come_from_the_variables(tmp_path):
    write_bundle(tmp_path / "v", bert_variables())
    config = config_of(Bundle.open(tmp_path / "v"), heads=12)
    found = (config.vocab_size, config.hidden_size, config.max_position_embeddings, config.type_vocab_size)
    assert found == (SIZES["vocabulary"], SIZES["hidden"], SIZES["positions"], SIZES["types"])
    assert (config.num_hidden_layers, config.intermediate_size) == (SIZES["layers"], SIZES["intermediate"])


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("module/bert/embeddings/word_embeddings", "bert.embeddings.word_embeddings.weight"),
        ("module/bert/encoder/layer_10/output/LayerNorm/gamma", "bert.encoder.layer.10.output.LayerNorm.weight"),
        ("module/bert/encoder/layer_0/attention/self/key/kernel", "bert.encoder.layer.0.attention.self.key.weight"),
        ("module/cls/predictions/transform/LayerNorm/beta", "cls.predictions.transform.LayerNorm.bias"),
        ("module/cls/predictions/output_bias", "cls.predictions.bias"),
    ],
)
def test_names_are_those_of_transformers(variable, name):
    assert tensor_name(variable) == name


def test_the_model_computes_what_the_equations_say(tmp_path):
    """The head and the pooler, computed by hand from the variables as Google's code does, x @ kernel + bias."""
    import torch
    from transformers import BertForMaskedLM, BertModel

    variables = {name.removeprefix("module/"): value for name, value in bert_variables().items()}
    tensors = {name: torch.tensor(value) for name, value in converted(tmp_path, bert_variables()).items()}
    write_bundle(tmp_path / "v", bert_variables())
    config = config_of(Bundle.open(tmp_path / "v"), heads=12)
    masked, encoder = BertForMaskedLM(config).eval(), BertModel(config).eval()
    masked.load_state_dict(tensors, strict=False)
    masked.tie_weights()
    encoder.load_state_dict({name.removeprefix("bert."): value for name, value in tensors.items()}, strict=False)
    pieces = torch.tensor([[2, 5, 6, 7, 4, 3]])
    with torch.no_grad():
        logits, output = masked(pieces).logits[0].numpy(), encoder(pieces)
    states, pooled = output.last_hidden_state[0].numpy(), output.pooler_output[0].numpy()

    head = "cls/predictions/transform"
    dense = states @ variables[f"{head}/dense/kernel"] + variables[f"{head}/dense/bias"]
    dense = torch.nn.functional.gelu(torch.from_numpy(dense)).numpy()
    norm = (dense - dense.mean(-1, keepdims=True)) / np.sqrt(dense.var(-1, keepdims=True) + 1e-12)
    norm = norm * variables[f"{head}/LayerNorm/gamma"] + variables[f"{head}/LayerNorm/beta"]
    expected = norm @ variables["bert/embeddings/word_embeddings"].T + variables["cls/predictions/output_bias"]
    np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-4)
    first = states[0] @ variables["bert/pooler/dense/kernel"] + variables["bert/pooler/dense/bias"]
    np.testing.assert_allclose(pooled, np.tanh(first), rtol=1e-4, atol=1e-5)


def test_a_variable_without_use_is_refused(tmp_path):
    with pytest.raises(EbertError, match="no use for the variables module/cls/seq_relationship/output_bias"):
        converted(tmp_path, bert_variables() | {"module/cls/seq_relationship/output_bias": np.zeros(2)})


def test_a_missing_variable_is_refused(tmp_path):
    variables = bert_variables()
    del variables[POOLER]
    with pytest.raises(EbertError, match=r"no variables for the tensors bert\.pooler\.dense\.weight"):
        converted(tmp_path, variables)


def test_two_variables_for_one_tensor_are_refused(tmp_path):
    twice = "bert/pooler/dense/kernel"  # without the prefix, which the rules take away
    with pytest.raises(EbertError, match=f"the same tensor: {twice}, {POOLER}"):
        converted(tmp_path, bert_variables() | {twice: bert_variables()[POOLER]})


def test_a_wrong_shape_is_refused(tmp_path):
    with pytest.raises(
        EbertError, match=rf"{POOLER} has shape \(23, 24\), but bert.pooler.dense.weight needs \(24, 24\)"
    ):
        converted(tmp_path, bert_variables() | {POOLER: np.zeros((24, 23))})


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_a_number_that_is_not_finite_is_refused(tmp_path, bad):
    variables = bert_variables()
    variables[POOLER][3, 5] = bad
    with pytest.raises(EbertError, match=f"{POOLER} has 1 numbers that are not finite"):
        converted(tmp_path, variables)


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    write_bundle(tmp_path / "v", {"resnet/conv1/kernel": np.zeros((3, 3))})
    with pytest.raises(EbertError, match="no variable module/bert/embeddings/word_embeddings"):
        config_of(Bundle.open(tmp_path / "v"), heads=12)


def test_heads_must_divide_the_hidden_size(tmp_path):
    write_bundle(tmp_path / "v", bert_variables())
    with pytest.raises(EbertError, match="24 cannot be split into 7 heads"):
        config_of(Bundle.open(tmp_path / "v"), heads=7)
