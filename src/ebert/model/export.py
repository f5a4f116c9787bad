"""For plain transformers: batches for your own fine-tuning, and a checkpoint in which chosen entities are tokens.

An entity's token is its title in double brackets, as in the markup, so that no ordinary text contains it: ``The native
language of [[Jean Marais]] / Jean Marais is [MASK].`` is E-BERT-concat, and without the slash and the name it is
E-BERT-replace. The result can be used without `ebert`.

Input and output vectors of most encoders are one matrix, so every entity also becomes a possible answer. Its output
bias decides how likely: by default it is so low that no entity is ever answered and the probabilities of the wordpieces
are exactly those of `ebert`; with `predict_entities` it is the mean bias of the wordpieces. Some encoders have rows
that no token owns; as in `ebert`, these are never answered either.
"""

import copy
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import AddedToken
from torch import Tensor, nn

from ebert._io import files
from ebert.errors import EbertError
from ebert.model.encoder import save_encoder
from ebert.model.injection import Injector
from ebert.model.options import Mode, feeds_entities
from ebert.text.passage import Passage
from ebert.vectors.entity import Entity

if TYPE_CHECKING:
    from ebert.model.ebert import EBert


Example = str | Passage | Mapping[str, Any]


class EntityCollator:
    """Turns passages into the inputs of any transformers model of the same encoder.

    Wordpiece and entity vectors are fixed, as in the paper; everything else can be trained. An example is a passage, a
    string with markup, or a mapping with a ``passage`` and anything else (a ``label``, say), which becomes a tensor of
    the batch under the same name (``labels`` for ``label``, as transformers expects it).

    `missing` counts the titles without a vector that it has met; workers of a data loader count for themselves.

    Give it to a `torch.utils.data.DataLoader` or a `transformers.Trainer` (with ``remove_unused_columns=False``).
    """

    def __init__(self, injector: Injector, mode: Mode) -> None:
        # Data loaders work on the CPU, often in processes of their own: the model's device stays out of it.
        self._injector = injector.on_cpu()
        self.mode: Mode = mode
        self.missing: Counter[str] = Counter()

    def __call__(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        """Collate a batch."""
        rows = [example if isinstance(example, Mapping) else {"passage": example} for example in examples]
        if not rows:
            raise EbertError("a batch without examples cannot be collated")
        for row in rows:
            if "passage" not in row or row.keys() != rows[0].keys():
                raise EbertError(
                    f"every example needs a 'passage' and what the others have: {', '.join(map(repr, row))}"
                )
        passages = [Passage.of(row["passage"]) for row in rows]
        sequences = self._injector.sequences(passages, self.mode)
        if feeds_entities(self.mode):
            self.missing.update({title: None for pieces in sequences for title in pieces.missing}.keys())
        batch = self._injector.tensors(sequences)
        for name in rows[0]:
            if name != "passage":
                batch["labels" if name == "label" else name] = _stack([row[name] for row in rows])
        return batch


def _stack(values: list[Any]) -> Tensor:
    return torch.stack(values) if isinstance(values[0], Tensor) else torch.tensor(values)


NEVER = -1e4  # as a bias: e^-10000 is zero, and float16 can hold it
LIST = "entities.json"


def export(
    model: "EBert", entities: Iterable[str], out: str | Path, *, predict_entities: bool = False, overwrite: bool = False
) -> dict[str, str]:
    """Write the checkpoint and return the token of every entity by title."""
    chosen = _find(model, entities)
    tokens = {entity.title: f"[[{entity.title}]]" for entity in chosen}
    tokenizer = copy.deepcopy(model.tokenizer)
    known = model.vocabulary.size
    added = tokenizer.add_tokens([AddedToken(token, normalized=False, lstrip=True) for token in tokens.values()])
    if added != len(tokens):
        raise EbertError(f"{len(tokens) - added} of the entities' tokens are in the tokenizer already")
    vocabulary = tokenizer.get_vocab()
    ids = [vocabulary[token] for token in tokens.values()]
    encoder: Any = copy.deepcopy(model.encoder)
    encoder.to("cpu")
    with torch.no_grad():
        _grow(encoder, max(ids) + 1)
        _set_rows(encoder, ids, model.project(chosen))
        _set_biases(encoder, ids, known, predict_entities=predict_entities)
    encoder.tie_weights()
    with files.replacing_folder(Path(out), overwrite=overwrite, marker=LIST) as folder:
        save_encoder(encoder, tokenizer, folder)
        (folder / LIST).write_text(json.dumps(tokens, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return tokens


def _find(model: "EBert", names: Iterable[str]) -> list[Entity]:
    if model.vectors is None:
        raise EbertError("a plain encoder has no entities to export: fit it to a store of vectors first")
    found = {entity.title: entity for entity in map(model.vectors.known, names)}
    if not found:
        raise EbertError("no entities were given to export")
    return list(found.values())


def _grow(encoder: Any, size: int) -> None:
    """Make room for the tokens, unless the encoder's padded vocabulary has enough room."""
    old = encoder.get_input_embeddings().weight.shape[0]
    if size <= old:
        return
    outputs = encoder.get_output_embeddings()
    if outputs is not None and outputs.weight.shape[0] == old:
        encoder.resize_token_embeddings(size, mean_resizing=False)
        return
    # The head of DeBERTa-v3 multiplies with the input vectors and calls another layer of it the output.
    biases = _biases(encoder)
    encoder.base_model.resize_token_embeddings(size, mean_resizing=False)
    for bias in biases:
        bias.data = nn.functional.pad(bias.data, (0, size - old))
    encoder.config.vocab_size = size


def _set_rows(encoder: Any, ids: list[int], rows: torch.Tensor) -> None:
    """Write projected vectors, shape (entities, width), to the input, and to an output of its own."""
    inputs, outputs = encoder.get_input_embeddings().weight, encoder.get_output_embeddings()
    inputs[ids] = rows.to(inputs)
    if outputs is not None and outputs.weight is not inputs and outputs.weight.shape == inputs.shape:
        outputs.weight[ids] = rows.to(inputs)


def _set_biases(encoder: Any, ids: list[int], known: int, *, predict_entities: bool) -> None:
    """Set how likely entities are as answers; the tokenizer knew `known` tokens before them."""
    biases = _biases(encoder)
    if not biases and not predict_entities:
        raise EbertError(
            f"{type(encoder).__name__} has no output bias here, so entities cannot be kept from being answers; "
            "allow them (predict_entities, --predict-entities)"
        )
    for bias in biases:
        mean = bias[:known].mean()
        bias[known:] = NEVER
        bias[ids] = mean if predict_entities else NEVER


def _biases(encoder: Any) -> list[torch.Tensor]:
    """The output bias, which some encoders keep twice: as long as the vocabulary, and in the head."""
    body = {id(parameter) for parameter in encoder.base_model.parameters()}
    size = encoder.get_input_embeddings().weight.shape[0]
    return [p for p in encoder.parameters() if p.shape == (size,) and id(p) not in body]
