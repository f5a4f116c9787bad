"""Faster on a CPU: the encoder's matrix products in 8-bit integers.

Weights are rounded channel by channel once, inputs batch by batch as they come (dynamic quantisation, which needs no
data to calibrate with). Embeddings, layer norms and the MLM head, which runs on masks only, stay in float32. torch has
layers for this, but they give inputs 7 bits on any processor; where it can multiply 8-bit integers without overflow
(VNNI), ours use all of them, and lose next to nothing.
"""

import warnings

import torch
from torch import Tensor, nn

from ebert.errors import EbertError
from ebert.model.ebert import EBert
from ebert.model.encoder import flags

LARGEST = 127  # of a signed 8-bit integer


class EightBitLinear(nn.Module):
    """A linear layer with 8-bit weights and inputs."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        weight = layer.weight.detach().float()  # (out, in)
        scales = weight.abs().amax(dim=1).clamp(min=1e-12).double() / LARGEST  # (out,)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch means to move quantised tensors to another package some day
            rounded = torch.quantize_per_channel(weight, scales, torch.zeros(len(scales)).long(), 0, torch.qint8)
            bias = None if layer.bias is None else layer.bias.detach().float()
            self._packed = torch.ops.quantized.linear_prepack(rounded, bias)
        self.register_buffer("weight", rounded.int_repr())  # what is packed cannot be looked at
        self.register_buffer("scales", scales)
        self.register_buffer("bias", bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """Multiply."""
        product: Tensor = torch.ops.quantized.linear_dynamic(inputs, self._packed, not has_vnni())
        return product


def quantize(model: EBert) -> EBert:
    """Turn the encoder's linear layers into 8-bit ones, in place. To undo this, load the encoder again."""
    if model.encoder.device.type != "cpu":
        raise EbertError("8-bit inference is for CPUs; on a GPU use --precision float16 or bfloat16")
    try:
        quantize_layers(model.encoder.base_model)
    except (AttributeError, RuntimeError) as error:
        raise EbertError(f"this torch cannot compute in 8 bits here ({error}); use --precision float32") from None
    return model


def quantize_layers(body: nn.Module) -> None:
    """Turn the linear layers of a module into 8-bit ones, in place."""
    for parent in list(body.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is nn.Linear:
                setattr(parent, name, EightBitLinear(layer))


def has_vnni() -> bool:
    """Whether the processor adds products of 8-bit integers without overflow; False if it is unknown."""
    return bool(flags() & {"avx_vnni", "avx512_vnni"})
