"""The number type that a linker computes in: one that is fast on the processor, or the one that was asked for.

The trained weights stay in float32. A copy is used for computing. In it the low-rank updates of an adapter are added to
their weights, so that they cost nothing.
"""

import copy
from typing import Any, cast, get_args

import torch
from torch import nn
from transformers import PreTrainedModel

from ebert.errors import EbertError
from ebert.linking.adapter import LowRank, twin_of
from ebert.linking.options import LinkPrecision
from ebert.linking.scorer import LinkingModel
from ebert.model.encoder import fast_bf16, flags
from ebert.model.int8 import has_vnni, quantize_layers


def suited(asked: LinkPrecision, device: torch.device, *, adapter: bool) -> LinkPrecision:
    """Return the number type to compute in, never `auto`. For an adapter, `auto` is a type that was measured to lose
    almost nothing.

    A linker whose encoder was trained too, or that was not trained at all, computes in fp32 unless another type is
    asked for.
    """
    if asked not in get_args(LinkPrecision):
        raise EbertError(f"unknown precision {asked!r}; choose one of {', '.join(get_args(LinkPrecision))}")
    if asked == "int8" and device.type != "cpu":
        raise EbertError("the precision int8 is for CPUs; on a GPU use bf16 or fp32")
    if asked != "auto":
        return asked
    if adapter and fast_bf16(device):
        return "bf16"
    return "int8" if adapter and device.type == "cpu" and has_vnni() else "fp32"


def computing(module: LinkingModel, precision: LinkPrecision) -> LinkingModel:
    """Return a module that computes in a precision; for fp32, this is the module itself. The given one is unchanged."""
    if precision == "fp32":
        return module
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    twin.encoder = _merged(module.encoder, torch.bfloat16 if precision == "bf16" else torch.float32)
    if precision == "int8":
        try:
            quantize_layers(twin.encoder.base_model)
        except (AttributeError, RuntimeError) as error:
            raise EbertError(f"this torch cannot compute in 8 bits here ({error}); use the precision fp32") from None
    else:
        _convert(twin.encoder, torch.bfloat16)
        if module.device.type == "cpu" and "amx_bf16" not in flags():
            _attend_plainly(twin.encoder)
    return twin


def _merged(encoder: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """Return a copy that shares its weights with an encoder, except those that low-rank updates are added to.

    These are converted to the number type one layer at a time: all of them in float32 would be a hundred megabytes.
    """
    twin = twin_of(encoder)
    for parent in list(twin.modules()):
        for name, child in parent.named_children():
            if isinstance(child, LowRank):
                linear = twin_of(child.linear)
                weight = child.linear.weight.detach() + (child.up @ child.down).detach()
                linear.weight = nn.Parameter(weight.to(dtype), requires_grad=False)
                parent._modules[name] = linear
    return twin


def _convert(encoder: nn.Module, dtype: torch.dtype) -> None:
    """Replace a twin's weights by copies in another number type."""
    made: dict[int, Any] = {}
    for part in encoder.modules():
        for own in (part._parameters, part._buffers):
            for name, tensor in cast("dict[str, Any]", own).items():
                if tensor is not None and tensor.is_floating_point():
                    if id(tensor) not in made:
                        new = tensor.detach().to(dtype)
                        made[id(tensor)] = nn.Parameter(new, requires_grad=False) if own is part._parameters else new
                    own[name] = made[id(tensor)]


def _attend_plainly(encoder: PreTrainedModel) -> None:
    """Replace a twin's attention by two products and a softmax.

    The fused attention of torch computes bf16 as slowly as float32 on processors that have bf16 but no AMX: there the
    products alone take half the time.
    """
    configs: dict[int, Any] = {}
    parts: list[Any] = list(encoder.modules())
    for part in parts:
        config = getattr(part, "config", None)
        if hasattr(config, "_attn_implementation"):
            if id(config) not in configs:
                configs[id(config)] = copy.deepcopy(config)
                configs[id(config)]._attn_implementation = "eager"
            part.config = configs[id(config)]
