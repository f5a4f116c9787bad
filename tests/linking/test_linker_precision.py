"""A linker in bf16 and int8: nearly the same scores, the weights that were trained untouched, and what auto is."""

import linking_tiny as tiny
import pytest
import torch

from ebert import EbertError, Linker
from ebert.linking.precision import suited

CPU = torch.device("cpu")


def trained(**options):
    """A linker whose updates are not zero any more."""
    linker = tiny.linker(adapter=True, rank=2, **options)
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in linker.module.named_parameters():
            if name.endswith(".up"):
                parameter.normal_(std=0.1)
        linker.module.null.normal_(std=0.1)
    return linker


def probabilities(linker):
    from ebert.linking.refine import ChunkState

    (chunk,) = linker.chunks([tiny.gold()])
    (verdicts,) = linker.judge([ChunkState(chunk)])
    return torch.tensor([share for verdict in verdicts for share in verdict.probabilities])


@pytest.mark.parametrize("options", [{"adapter": True}, {"adapter": False}, {"variant": "wikipedia2vec-bert-random"}])
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_another_precision_gives_nearly_the_same_and_can_be_taken_back(precision, options):
    linker = trained() if options.get("adapter") else tiny.linker(**options)
    before = {name: tensor.clone() for name, tensor in linker.module.state_dict().items()}
    exact = probabilities(linker)
    linker.compute_in(precision)
    assert linker.precision == precision
    near = probabilities(linker)
    assert not torch.equal(near, exact)
    assert (near - exact).abs().max() < 0.1  # weights of 16 numbers in a row are rounded coarsely
    after = linker.module.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    linker.compute_in("fp32")
    assert torch.equal(probabilities(linker), exact)


def test_a_linker_that_computes_in_int8_is_saved_as_it_was_trained(tmp_path):
    tiny.model(tmp_path / "store").save_pretrained(tmp_path / "model", include_encoder=True)
    linker = Linker.fresh(tiny.EBert.from_pretrained(tmp_path / "model"), generator=tiny.spans)
    exact = probabilities(linker)
    linker.compute_in("int8")
    linker.save_pretrained(tmp_path / "linker")
    opened = Linker.from_pretrained(tmp_path / "linker", generator=tiny.spans, precision="fp32")
    assert torch.allclose(probabilities(opened), exact, atol=1e-6)


@pytest.mark.parametrize(
    ("flags", "adapter", "chosen"),
    [
        ({"avx512_bf16", "avx_vnni"}, True, "bf16"), ({"avx_vnni"}, True, "int8"), ({"avx512_vnni"}, True, "int8"),
        ({"avx2"}, True, "fp32"), ({"avx512_bf16", "avx_vnni"}, False, "fp32"),
    ],
)  # fmt: skip
def test_auto_asks_the_processor(monkeypatch, flags, adapter, chosen):
    monkeypatch.setattr("ebert.model.encoder.flags", lambda: frozenset(flags))
    monkeypatch.setattr("ebert.model.int8.flags", lambda: frozenset(flags))
    assert suited("auto", CPU, adapter=adapter) == chosen
    assert suited("int8", CPU, adapter=adapter) == "int8"


def test_a_precision_that_there_is_not():
    with pytest.raises(EbertError, match="unknown precision 'fp8'; choose one of auto, fp32, bf16, int8"):
        tiny.linker().compute_in("fp8")
    with pytest.raises(EbertError, match="int8 is for CPUs"):
        suited("int8", torch.device("cuda"), adapter=True)
    assert suited("fp32", CPU, adapter=True) == "fp32"
