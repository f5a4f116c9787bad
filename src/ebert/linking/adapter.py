"""A small trained linker: low-rank updates of the attention, the null entity, and the weights of the evidence.

LoRA (Hu et al., 2022): the output of a linear layer with the weights M becomes ``M x + B A x`` with B = 0 at first. The
encoder stays unchanged, and can be shared with other users. The library peft does the same, but needs another folder
and another dependency; only one module of it would be needed.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ebert.errors import EbertError
from ebert.linking.evidence import CANDIDATE, SPAN, WEIGHTED

ADAPTER = "adapter.safetensors"
ATTENTION = ("attention", "attn")  # what the modules of a layer's attention are called in transformers

Module = TypeVar("Module", bound=nn.Module)


class LowRank(nn.Module):
    """A linear layer that is not trained, and a low-rank update of it that is."""

    def __init__(self, linear: nn.Linear, rank: int) -> None:
        super().__init__()
        self.linear = linear
        self.down = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)  # A
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))  # B

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the sum of both."""
        update = nn.functional.linear(
            nn.functional.linear(inputs, self.down.to(inputs.dtype)), self.up.to(inputs.dtype)
        )
        return self.linear(inputs) + update


class EvidenceWeights(nn.Module):
    """The weight of each piece of evidence, and of the encoder's answer."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = nn.Parameter(torch.ones(()))
        self.span = nn.Parameter(torch.tensor([WEIGHTED.get(name, 0.0) for name in SPAN]))
        self.candidate = nn.Parameter(torch.tensor([WEIGHTED.get(name, 0.0) for name in CANDIDATE]))

    def forward(
        self, null: Tensor, candidates: Tensor, spans: Tensor, traits: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return the scores of the null entity (spans,) and of the candidates (spans, choices).

        `spans` is (spans, SPAN), and each of the `traits`, in the order of CANDIDATE, (spans, choices). The first has
        minus infinity where there is no candidate.
        """
        there = traits[0].isfinite()
        scores = self.answer * candidates
        for weight, values in zip(self.candidate, traits, strict=True):
            scores = scores + weight * torch.where(there, values, 0.0)  # infinity times a weight has no gradient
        return self.answer * null + spans @ self.span, scores.masked_fill(~there, -torch.inf)


def with_updates(module: Module, rank: int) -> Module:
    """Return a module that shares its weights with the given one and has low-rank updates in its attention."""
    twin = twin_of(module)
    found = [
        (parent, name)
        for path, parent in twin.named_modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.Linear) and any(word in f"{path}.{name}".lower() for word in ATTENTION)
    ]
    if not found:
        raise EbertError(f"{type(module).__name__} has no linear layers in its attention that an adapter could update")
    for parent, name in found:
        linear = getattr(parent, name)
        parent._modules[name] = LowRank(linear, rank).to(linear.weight.device)
    return twin


def twin_of(module: Module) -> Module:
    """Return a copy of a module and all its submodules that shares the parameters of the original."""
    twin: Any = module.__class__.__new__(module.__class__)
    twin.__dict__ = dict(module.__dict__)
    twin._parameters, twin._buffers = dict(module._parameters), dict(module._buffers)
    twin._modules = {name: child if child is None else twin_of(child) for name, child in module._modules.items()}
    return twin


def save_adapter(module: nn.Module, path: Path) -> None:
    """Write the trained parameters."""
    save_file({name: parameter.detach().contiguous().cpu() for name, parameter in trained(module)}, path)


def load_adapter(module: nn.Module, path: Path) -> None:
    """Load the output of `save_adapter` into a module with a fresh adapter. Raise `EbertError` if it does not fit."""
    try:
        tensors = load_file(path)
        wanted = dict(trained(module))
        if tensors.keys() != wanted.keys():
            raise ValueError(f"{len(tensors.keys() ^ wanted.keys())} names differ")
        with torch.no_grad():
            for name, parameter in wanted.items():
                if tensors[name].shape != parameter.shape or not tensors[name].isfinite().all():
                    raise ValueError(f"{name} has shape {list(tensors[name].shape)}, or a value that is not a number")
                parameter.copy_(tensors[name])
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise EbertError(f"{path} does not fit its encoder or is damaged ({error}); train the linker again") from None


def trained(module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Yield the trained parameters of a module, with their names in a file."""
    return ((name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad)
