"""From laid-out sequences to the tensors of `LinkingModel`."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ebert.linking.chunks import Cutter, Placed
from ebert.linking.entities import Entities, index
from ebert.linking.inputs import Laid
from ebert.linking.model import LinkingModel
from ebert.linking.options import Mask
from ebert.linking.packed import sight
from ebert.model.encoder import Encoder
from ebert.model.packing import additive

LEAST_PRIOR = 1e-9  # of a candidate whose prior is zero, so that it can be chosen at all
LEAST_DOUBT = 0.01  # that a span is a link, however often its words were one: counts are small


class Batcher:
    """Makes the tensors of a batch."""

    def __init__(
        self, encoder: Encoder, cutter: Cutter, entities: Entities, model: LinkingModel, *, mask: Mask, link_prior: bool
    ) -> None:
        self._cutter, self._entities, self._model, self._mask = cutter, entities, model, mask
        self._link_prior = link_prior
        self._first = encoder.first_position if encoder.takes_positions else None
        self._filler = encoder.tokenizer.pad_token_id or 0

    @torch.no_grad()
    def __call__(
        self, batch: Sequence[Laid], labels: Sequence[int] | None = None, weights: Sequence[float] | None = None
    ) -> dict[str, Tensor]:
        """Make the inputs for sequences, padded to the longest; labels and weights are for their spans, in order."""
        spans = [span for laid in batch for span in laid.spans]
        titles = [choice.title for span in spans for choice in span.span.choices]
        numbers = index([*titles, *(title for laid in batch for title in laid.entities.values())])
        vectors = self._entities.carried(list(numbers)).to(self._model.embedding.weight)  # (entities, width)
        choices, log_priors = _choices(spans, numbers)
        inputs = self._encoded(batch, numbers, vectors)
        rows = torch.tensor([row for row, laid in enumerate(batch) for _ in laid.spans])
        columns = torch.tensor([place for laid in batch for place in laid.masks])
        device = vectors.device
        tensors = {"rows": rows, "columns": columns, "choices": choices, "log_priors": log_priors}
        tensors["null_priors"] = torch.tensor([_null_prior(span) if self._link_prior else 0.0 for span in spans])
        if self._mask == "candidates":
            counts = log_priors.isfinite().to(vectors.device)[..., None]  # (spans, choices, 1)
            options = vectors[choices.to(device)] * counts  # (spans, choices, width)
            inputs["inputs_embeds"][rows.to(device), columns.to(device)] = options.sum(1) / counts.sum(1)
        if labels is not None:
            tensors["labels"] = torch.tensor(labels)
            tensors["weights"] = torch.tensor(weights if weights is not None else [1.0] * len(labels))
        return {**inputs, "entities": vectors, **{name: tensor.to(device) for name, tensor in tensors.items()}}

    def _encoded(self, batch: Sequence[Laid], numbers: dict[str, int], vectors: Tensor) -> dict[str, Tensor]:
        """Make what the encoder itself takes."""
        size = max(map(len, batch))
        filler = max((self._first or 0) - 1, 0)  # the position of padding
        ids = torch.full((len(batch), size), self._filler)  # (batch, pieces)
        positions = torch.full((len(batch), size), filler)
        for row, laid in enumerate(batch):
            ids[row, : len(laid)] = torch.tensor(laid.ids).clamp(min=0)
            positions[row, : len(laid)] = torch.tensor(laid.positions) + (self._first or 0)
        embeds = self._model.embedding(ids.to(vectors.device))  # (batch, pieces, width)
        for row, laid in enumerate(batch):
            for place, title in laid.entities.items():
                embeds[row, place] = vectors[numbers[title]]
        if any(laid.blocks for laid in batch):
            mask = additive(torch.stack([sight(laid, size) for laid in batch]), embeds.dtype)
        else:
            mask = torch.zeros((len(batch), size), dtype=torch.long)
            for row, laid in enumerate(batch):
                mask[row, : len(laid)] = 1
        inputs = {"inputs_embeds": embeds, "attention_mask": mask.to(vectors.device)}
        if self._first is not None:
            inputs["position_ids"] = positions.to(vectors.device)
        return inputs


def _choices(spans: Sequence[Placed], numbers: dict[str, int]) -> tuple[Tensor, Tensor]:
    """Give the candidates of spans by number, and the logarithms of their priors: both (spans, choices)."""
    most = max(len(span.span.choices) for span in spans)
    choices = torch.zeros((len(spans), most), dtype=torch.long)
    log_priors = torch.full((len(spans), most), -math.inf)
    for row, placed in enumerate(spans):
        for column, choice in enumerate(placed.span.choices):
            choices[row, column] = numbers[choice.title]
            log_priors[row, column] = math.log(max(choice.prior, LEAST_PRIOR))
    return choices, log_priors


def _null_prior(placed: Placed) -> float:
    """Give the logarithm of the odds that a span is no link."""
    known = placed.span.link_probability
    if known is None:
        return 0.0
    probability = min(max(known, LEAST_PRIOR), 1 - LEAST_DOUBT)
    return math.log(1 - probability) - math.log(probability)
