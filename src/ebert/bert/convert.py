"""Turns the variables of Google's BERT into the tensors of transformers' `BertForMaskedLM` plus its pooler.

The names are rewritten by rule, so a rule that is wrong must not go unnoticed: every variable has to give exactly one
tensor, and the tensors have to be, name by name and shape by shape, those that transformers itself makes for the same
configuration. Numbers that are not finite are refused.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ebert._io.progress import Advance, silent
from ebert.bert.bundle import Bundle
from ebert.errors import EbertError

if TYPE_CHECKING:
    from transformers import BertConfig

# Applied in this order to a variable's name, of which transformers' name is then the parts joined by dots.
RULES = (
    (r"^module/", ""),
    (r"/layer_(\d+)/", r"/layer/\1/"),
    (r"/(word|position|token_type)_embeddings$", r"/\1_embeddings/weight"),
    (r"/kernel$", "/weight"),
    (r"/gamma$", "/weight"),
    (r"/beta$", "/bias"),
    (r"^cls/predictions/output_bias$", "cls/predictions/bias"),
    (r"/", "."),
)


@dataclass(frozen=True)
class Sizes:
    """The sizes of a BERT, as its variables show them."""

    vocabulary: int
    hidden: int
    positions: int
    types: int
    layers: int
    intermediate: int

    @classmethod
    def of(cls, bundle: Bundle) -> "Sizes":
        """Take the sizes from the shapes of the variables."""
        layers = {int(match[1]) for match in map(re.compile(r"/layer_(\d+)/").search, bundle.entries) if match}
        vocabulary, hidden = _shape(bundle, "module/bert/embeddings/word_embeddings", rank=2)
        positions, _ = _shape(bundle, "module/bert/embeddings/position_embeddings", rank=2)
        types, _ = _shape(bundle, "module/bert/embeddings/token_type_embeddings", rank=2)
        (intermediate,) = _shape(bundle, "module/bert/encoder/layer_0/intermediate/dense/bias", rank=1)
        return cls(vocabulary, hidden, positions, types, len(layers), intermediate)


def config_for(sizes: Sizes, *, heads: int, pad: int = 0) -> "BertConfig":
    """Make the configuration. No tensor shows the number of heads; the rest is the same for all of Google's BERTs."""
    from transformers import BertConfig

    if sizes.hidden % heads:
        raise EbertError(f"a hidden size of {sizes.hidden} cannot be split into {heads} heads")
    return BertConfig(
        architectures=["BertForMaskedLM"],
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.hidden,
        num_hidden_layers=sizes.layers,
        num_attention_heads=heads,
        intermediate_size=sizes.intermediate,
        max_position_embeddings=sizes.positions,
        type_vocab_size=sizes.types,
        hidden_act="gelu",
        layer_norm_eps=1e-12,
        pad_token_id=pad,
        dtype="float32",
    )


def tensor_name(variable: str) -> str:
    """Give transformers' name of a variable."""
    for pattern, replacement in RULES:
        variable = re.sub(pattern, replacement, variable)
    return variable


def convert(
    bundle: Bundle, expected: Mapping[str, tuple[int, ...]], *, advance: Advance = silent
) -> dict[str, NDArray[np.float32]]:
    """Convert every variable of `bundle`; complain unless that gives exactly the `expected` tensors, all finite."""
    names = _pair(bundle.entries, expected)
    tensors = {}
    for variable, name in names.items():
        value = bundle.read(variable)
        if variable.endswith("/kernel"):
            value = value.T  # TensorFlow multiplies x @ kernel, torch x @ weight.T
        if value.shape != expected[name]:
            raise EbertError(f"{variable} has shape {value.shape}, but {name} needs {expected[name]}")
        if not np.isfinite(value).all():
            raise EbertError(f"{variable} has {np.count_nonzero(~np.isfinite(value))} numbers that are not finite")
        tensors[name] = np.ascontiguousarray(value)
        advance(1)
    return tensors


def expected_tensors(config: "BertConfig") -> dict[str, tuple[int, ...]]:
    """Ask transformers for the names and shapes that a masked language model with a pooler has."""
    import torch
    import transformers

    library: Any = transformers  # which has no types for these
    with torch.device("meta"):  # shapes without numbers
        masked = library.BertForMaskedLM(config).state_dict()
        encoder = library.BertModel(config, add_pooling_layer=True).state_dict()
    # The decoder is tied to the word embeddings and the bias: it has no variables of its own.
    tied = set(library.BertForMaskedLM._tied_weights_keys)
    shapes = {name: tuple(value.shape) for name, value in masked.items() if name not in tied}
    return shapes | {f"bert.{name}": tuple(value.shape) for name, value in encoder.items()}


def _pair(variables: Iterable[str], expected: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """Pair variables with tensors one to one, or say which are left over."""
    names = {variable: tensor_name(variable) for variable in variables}
    unused = sorted(variable for variable, name in names.items() if name not in expected)
    missing = sorted(set(expected) - set(names.values()))
    if unused or missing:
        parts = [f"no use for the variables {', '.join(unused)}"] if unused else []
        parts += [f"no variables for the tensors {', '.join(missing)}"] if missing else []
        raise EbertError(f"the checkpoint is not a BERT as expected: {'; '.join(parts)}")
    if len(set(names.values())) < len(names):
        twice = sorted(variable for variable, name in names.items() if list(names.values()).count(name) > 1)
        raise EbertError(f"several variables of the checkpoint are the same tensor: {', '.join(twice)}")
    return names


def _shape(bundle: Bundle, variable: str, *, rank: int) -> tuple[int, ...]:
    entry = bundle.entries.get(variable)
    if entry is None:
        raise EbertError(f"the checkpoint is not a BERT as expected: it has no variable {variable}")
    if len(entry.shape) != rank:
        raise EbertError(f"{variable} has shape {entry.shape}, but should have {rank} dimensions")
    return entry.shape
