"""A plain transformers checkpoint in which chosen entities are added tokens with their carried vectors.

An entity's token is its title in double brackets, as in the markup, so that no ordinary text contains it:
``The native language of [[Jean Marais]] / Jean Marais is [MASK].`` is E-BERT-concat, and without the slash and the name
it is E-BERT-replace. Nothing of `ebert` is needed to use the result.

Input and output vectors of most encoders are one matrix, so every entity also becomes a possible answer. Its output
bias decides how likely: by default it is so low that no entity is ever answered and the probabilities of the wordpieces
are exactly those of `ebert`; with `predict_entities` it is the mean bias of the wordpieces.
"""

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken
from torch import nn

from ebert import files
from ebert.errors import EbertError
from ebert.model.ebert import EBert
from ebert.vectors import Entity

NEVER = -1e4  # as a bias: e^-10000 is nothing, and float16 can hold it
LIST = "entities.json"


def export(
    model: EBert,
    entities: Iterable[str],
    out: str | Path,
    *,
    predict_entities: bool = False,
    overwrite: bool = False,
) -> dict[str, str]:
    """Write the checkpoint and give the token of every entity by title."""
    chosen = _find(model, entities)
    tokens = {entity.title: f"[[{entity.title}]]" for entity in chosen}
    tokenizer = copy.deepcopy(model.tokenizer)
    first = len(tokenizer)
    added = tokenizer.add_tokens([AddedToken(token, normalized=False, lstrip=True) for token in tokens.values()])
    if added != len(tokens):
        raise EbertError(f"{len(tokens) - added} of the entities' tokens are in the tokenizer already")
    encoder: Any = copy.deepcopy(model.encoder)
    encoder.to("cpu")
    with torch.no_grad():
        _grow(encoder, first + added)
        rows = model.carried(chosen)  # (entities, width)
        _set_rows(encoder, slice(first, first + added), rows, predict_entities=predict_entities)
    encoder.tie_weights()
    with files.replacing_folder(Path(out), overwrite=overwrite) as folder:
        encoder.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        (folder / LIST).write_text(json.dumps(tokens, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return tokens


def read_titles(path: str | Path) -> list[str]:
    """Read a file of titles, one a line."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise EbertError(f"there is no file {path}; it should have one title a line") from None
    except UnicodeDecodeError as error:
        raise EbertError(f"{path} is not UTF-8 text ({error})") from None
    titles = [line.strip() for line in lines if line.strip()]
    if not titles:
        raise EbertError(f"{path} has no titles in it; it should have one a line")
    return titles


def _find(model: EBert, names: Iterable[str]) -> list[Entity]:
    if model.vectors is None:
        raise EbertError("a plain encoder has no entities to export: fit it to a store of vectors first")
    found: dict[str, Entity] = {}
    for name in names:
        entity = model.vectors.find(name)
        if entity is None:
            raise model.vectors.unknown(name)
        found[entity.title] = entity
    if not found:
        raise EbertError("no entities were given to export")
    return list(found.values())


def _grow(encoder: Any, size: int) -> None:
    """Make room for the tokens, unless the encoder's vocabulary is padded far enough."""
    if size > encoder.get_input_embeddings().weight.shape[0]:
        encoder.resize_token_embeddings(size, mean_resizing=False)


def _set_rows(encoder: Any, place: slice, rows: torch.Tensor, *, predict_entities: bool) -> None:
    inputs, outputs = encoder.get_input_embeddings().weight, encoder.get_output_embeddings()
    inputs[place] = rows.to(inputs)
    if outputs is None:
        return
    if outputs.weight is not inputs and outputs.weight.shape[1] == rows.shape[1]:
        outputs.weight[place] = rows.to(outputs.weight)
    for bias in _biases(encoder, outputs):
        bias[place] = bias[: place.start].mean() if predict_entities else NEVER


def _biases(encoder: nn.Module, outputs: Any) -> list[torch.Tensor]:
    """The output bias, which some encoders keep beside the output layer under the same name."""
    size = outputs.weight.shape[0]
    own = [outputs.bias] if isinstance(getattr(outputs, "bias", None), torch.Tensor) else []
    return own + [p for name, p in encoder.named_parameters() if name.endswith("bias") and p.shape == (size,)]
