"""E-BERT-MLM (Section 5.2): a masked LM whose answers are the candidates of a span, or none of them (Eq. 2).

The score of a candidate is ``e_a · MLM(h) + log p(a)``, with its projected vector, what the MLM head makes of the
hidden state of [E-MASK], and its prior. That of the null entity is ``e_ε · MLM(h) + b_ε``, both learned from zero.
Where it is known how often a span's words are a link, the null entity has a prior too: the logarithm of the odds that
they are none is added to its score, as if every p(a) were multiplied by the link probability and p(ε) were the rest.
"""

import copy
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from ebert.errors import EbertError
from ebert.linking.options import LinkerOptions
from ebert.linking.sequences import LinkSequence, Placed
from ebert.model.alignment import Alignment
from ebert.model.batching import additive
from ebert.model.encoder import Encoder, only
from ebert.model.options import AlignmentOptions, AlignmentReport
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors

SPREAD = 0.02  # of a new head's weights, where the encoder does not say how its own were drawn
NULL = 0  # the label of the null entity; that of a candidate is its number from 1
REMEMBERED = 500_000  # titles; looking one up takes a query, and the same ones come again and again
LEAST_PRIOR = 1e-9  # of a candidate whose prior is zero, so that it can be chosen at all
LEAST_DOUBT = 0.01  # that a span is a link, however often its words were one: counts are small


class LinkingModel(nn.Module):
    """A masked LM without the wordpieces at its end, and the null entity."""

    def __init__(self, masked_lm: PreTrainedModel, *, new_head: bool = False) -> None:
        """Take a masked LM, whose weights are used and not copied; wordpiece vectors stay as they are in training.

        With a new head, one linear layer with random weights takes the place of the MLM's (Wikipedia2Vec-BERT-random).
        """
        super().__init__()
        self.encoder: PreTrainedModel = masked_lm.base_model if new_head else headed(masked_lm)  # type: ignore[assignment]
        self.width = int(cast("nn.Embedding", masked_lm.get_input_embeddings()).weight.shape[1])
        self.head: nn.Linear | None = None
        if new_head:
            self.head = nn.Linear(masked_lm.config.hidden_size, self.width)
            nn.init.normal_(self.head.weight, std=getattr(masked_lm.config, "initializer_range", None) or SPREAD)
            nn.init.zeros_(self.head.bias)
        self.null = nn.Parameter(torch.zeros(self.width))
        self.null_bias = nn.Parameter(torch.zeros(()))
        self.embedding.requires_grad_(False)
        self.train(masked_lm.training)

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.null.device

    @property
    def embedding(self) -> nn.Embedding:
        """The wordpiece vectors."""
        return cast("nn.Embedding", self.encoder.get_input_embeddings())

    def answers(self, inputs: dict[str, Tensor], rows: Tensor, columns: Tensor) -> Tensor:
        """Return MLM(h) at places of a batch, shape (places, width)."""
        places = (rows, columns)
        if self.head is not None:
            return self.head(self.encoder(**inputs).last_hidden_state[places])
        with only(self.encoder.base_model, places):
            return self.encoder(**inputs).logits[0]  # what the head would compare to the wordpieces

    def forward(
        self,
        rows: Tensor,  # (spans,), with `columns` the places of the spans' [E-MASK]
        columns: Tensor,
        entities: Tensor,  # (entities, width): the vectors of all candidates in the batch
        choices: Tensor,  # (spans, choices): numbers of entities
        log_priors: Tensor,  # (spans, choices); minus infinity where there is no choice
        labels: Tensor | None = None,  # (spans,): NULL, or 1 + the number of a choice
        weights: Tensor | None = None,  # (spans,)
        null_priors: Tensor | None = None,  # (spans,): the logarithm of the odds that it is no link, zero if not known
        **inputs: Tensor,  # inputs_embeds, attention_mask, position_ids
    ) -> dict[str, Tensor]:
        """Return the scores (spans, 1 + choices), the null entity's first, and the weighted sum of the losses."""
        answers = self.answers(inputs, rows, columns).float()  # (spans, width)
        null = answers @ self.null + self.null_bias  # (spans,)
        if null_priors is not None:
            null = null + null_priors
        candidates = torch.einsum("sw,scw->sc", answers, entities[choices].float()) + log_priors
        scores = torch.cat([null[:, None], candidates], dim=1)
        if labels is None:
            return {"scores": scores}
        losses = F.cross_entropy(scores, labels, reduction="none")
        return {"scores": scores, "loss": (losses if weights is None else losses * weights).sum()}


def headed(masked_lm: PreTrainedModel) -> PreTrainedModel:
    """Return a masked LM whose logits are MLM(h), what its last layer compares to wordpieces; the given one stays.

    Only the modules on the way to the last layer are copied, and these share their weights with the given ones.
    """
    untyped: Any = masked_lm
    last = untyped.get_output_embeddings()
    name = next((name for name, part in masked_lm.named_modules() if part is last), None)
    if last is None or not name:
        raise EbertError(f"{type(masked_lm).__name__} has no output layer to take off: is it a masked language model?")
    top = part = _shallow(masked_lm)
    *way, final = name.split(".")
    for step in way[:-1]:
        part._modules[step] = part = _shallow(cast("nn.Module", part._modules[step]))
    if last.weight.shape[0] < masked_lm.config.vocab_size:  # DeBERTa's newer head has no such layer of its own
        part._modules[way[-1]] = _Transform(cast("nn.Module", part._modules[way[-1]]))
        return cast("PreTrainedModel", top)
    if way:
        part._modules[way[-1]] = part = _shallow(cast("nn.Module", part._modules[way[-1]]))
    part._modules[final] = nn.Identity()
    part._parameters.pop("bias", None)  # the output layer's own, kept beside it
    return cast("PreTrainedModel", top)


class _Transform(nn.Module):
    """What a head does before it compares to the wordpiece vectors that it is given."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        parts = [getattr(head, name, None) for name in ("dense", "transform_act_fn", "LayerNorm")]
        if None in parts:
            raise EbertError(f"the head {type(head).__name__} is not one that entity linking can use")
        self.layers = nn.Sequential(*cast("list[nn.Module]", parts))

    def forward(self, hidden: Tensor, *_: Any) -> Tensor:
        return cast("Tensor", self.layers(hidden))


def _shallow(module: nn.Module) -> nn.Module:
    twin: Any = copy.copy(module)
    twin._modules, twin._parameters = dict(module._modules), dict(module._parameters)
    return twin


class EntityVectors:
    """Looks entities up by title and projects their vectors: by W, or as they are for the baselines."""

    def __init__(self, vectors: Vectors, alignment: Alignment) -> None:
        self.vectors, self.alignment = vectors, alignment
        self._known: dict[str, Entity] = {}
        self._stamp = vectors.stamp

    def find(self, title: str) -> Entity | None:
        """Return the entity with a title. One that is not there is looked for again: it may be added meanwhile."""
        found = self._known.get(title)
        if found is None and (found := self.vectors.find(title)) is not None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[title] = found
        return found

    def refresh(self) -> None:
        """Look everything up anew if the store has changed."""
        if self._stamp != self.vectors.stamp:
            self._stamp = self.vectors.stamp
            self._known.clear()

    def project(self, titles: Sequence[str]) -> Tensor:
        """Return the projected vectors of entities that there are, (titles, width)."""
        found = []
        for title in titles:
            if (entity := self.find(title)) is None:
                raise self.vectors.unknown(title)
            found.append(entity)
        return torch.from_numpy(self.alignment.project(self.vectors.take(found)))


def unaligned(vectors: Vectors, width: int, *, length: float | None = None) -> Alignment:
    """Return what projects vectors for the baselines without alignment (Wikipedia2Vec-BERT).

    Vectors as wide as the wordpieces' stay as they are, as in the paper. Narrower ones are put into the wider space by
    a random rotation, which keeps all their angles and lengths and knows nothing of the wordpieces. Where W scales its
    vectors to a `length`, these have it too, so that both differ in W only.
    """
    options, report = AlignmentOptions(method="none", length=length), AlignmentReport(pairs=0, r2=None)
    if vectors.dimension > width:
        raise EbertError(
            f"vectors of dimension {vectors.dimension} do not fit unaligned into an encoder of width {width}; "
            f"use a store of at most that dimension for the baselines"
        )
    weight = None
    if vectors.dimension < width:
        random = np.random.default_rng(0).normal(size=(width, vectors.dimension))
        weight = np.ascontiguousarray(np.linalg.qr(random)[0], np.float32)  # orthonormal columns
    return Alignment(weight, None, source=vectors.dimension, target=width, options=options, report=report)


class Batcher:
    """Makes the tensors of a batch."""

    def __init__(self, encoder: Encoder, entities: EntityVectors, model: LinkingModel, options: LinkerOptions) -> None:
        self._entities, self._model, self._options = entities, model, options
        self._first = encoder.first_position if encoder.takes_positions else None
        self._padding = encoder.tokenizer.pad_token_id or 0

    @torch.no_grad()
    def __call__(
        self, batch: Sequence[LinkSequence], labels: Sequence[int] | None = None, weights: Sequence[float] | None = None
    ) -> dict[str, Tensor]:
        """Return the inputs for sequences, padded to the longest; labels and weights are for their spans, in order."""
        spans = [span for one in batch for span in one.spans]
        titles = [choice.title for span in spans for choice in span.span.choices]
        titles = list(dict.fromkeys([*titles, *(title for one in batch for title in one.entities.values())]))
        numbers = {title: number for number, title in enumerate(titles)}
        vectors = self._entities.project(titles).to(self._model.embedding.weight)  # (entities, width)
        choices, log_priors = _choices(spans, numbers)
        inputs = self._encoded(batch, numbers, vectors)
        rows = torch.tensor([row for row, one in enumerate(batch) for _ in one.spans])
        columns = torch.tensor([place for one in batch for place in one.masks])
        device = vectors.device
        tensors = {"rows": rows, "columns": columns, "choices": choices, "log_priors": log_priors}
        priors = [_null_prior(span) if self._options.link_prior else 0.0 for span in spans]
        tensors["null_priors"] = torch.tensor(priors)
        if self._options.mask == "candidates":
            counts = log_priors.isfinite().to(device)[..., None]  # (spans, choices, 1)
            options = vectors[choices.to(device)] * counts  # (spans, choices, width)
            inputs["inputs_embeds"][rows.to(device), columns.to(device)] = options.sum(1) / counts.sum(1)
        if labels is not None:
            tensors["labels"] = torch.tensor(labels)
            tensors["weights"] = torch.tensor(weights if weights is not None else [1.0] * len(labels))
        return {**inputs, "entities": vectors, **{name: tensor.to(device) for name, tensor in tensors.items()}}

    def _encoded(self, batch: Sequence[LinkSequence], numbers: dict[str, int], vectors: Tensor) -> dict[str, Tensor]:
        """Return what the encoder itself takes."""
        size, first = max(map(len, batch)), self._first or 0
        ids = torch.full((len(batch), size), self._padding)  # (batch, pieces)
        positions = torch.full((len(batch), size), max(first - 1, 0))
        for row, one in enumerate(batch):
            ids[row, : len(one)] = torch.tensor(one.ids).clamp(min=0)
            positions[row, : len(one)] = torch.tensor(one.positions) + first
        embeds = self._model.embedding(ids.to(vectors.device))  # (batch, pieces, width)
        for row, one in enumerate(batch):
            for place, title in one.entities.items():
                embeds[row, place] = vectors[numbers[title]]
        if any(one.blocks for one in batch):
            mask = additive(torch.stack([one.visible(size) for one in batch]), embeds.dtype)
        else:
            mask = torch.zeros((len(batch), size), dtype=torch.long)
            for row, one in enumerate(batch):
                mask[row, : len(one)] = 1
        inputs = {"inputs_embeds": embeds, "attention_mask": mask.to(vectors.device)}
        if self._first is not None:
            inputs["position_ids"] = positions.to(vectors.device)
        return inputs


def _choices(spans: Sequence[Placed], numbers: dict[str, int]) -> tuple[Tensor, Tensor]:
    """Return the candidates of spans by number, and the logarithms of their priors: both (spans, choices)."""
    most = max(len(span.span.choices) for span in spans)
    choices = torch.zeros((len(spans), most), dtype=torch.long)
    log_priors = torch.full((len(spans), most), -math.inf)
    for row, placed in enumerate(spans):
        for column, choice in enumerate(placed.span.choices):
            choices[row, column] = numbers[choice.title]
            log_priors[row, column] = math.log(max(choice.prior, LEAST_PRIOR))
    return choices, log_priors


def _null_prior(placed: Placed) -> float:
    """Return the logarithm of the odds that a span is no link."""
    known = placed.span.link_probability
    if known is None:
        return 0.0
    probability = min(max(known, LEAST_PRIOR), 1 - LEAST_DOUBT)
    return math.log(1 - probability) - math.log(probability)


def check_positions(encoder: Encoder) -> None:
    """Raise `EbertError` for encoders in which a block cannot have the position of its span."""
    if not encoder.only_absolute_positions:
        raise EbertError(
            f"{encoder.name} ({type(encoder.module).__name__}) does not go by absolute positions alone, so that spans "
            "cannot share the position of their text: the strategy packed does not work with it; use the strategy "
            "paper, or an encoder like BERT, RoBERTa, DistilBERT, ELECTRA or ALBERT"
        )
