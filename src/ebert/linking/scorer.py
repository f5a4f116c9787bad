"""E-BERT-MLM (Section 5.2): a masked LM whose answers are the candidates of a span, or none of them (Eq. 2).

The score of a candidate is ``e_a · MLM(h) + log p(a)``, with its projected vector, what the MLM head makes of the
hidden state of [E-MASK], and its prior. That of the null entity is ``e_ε · MLM(h) + b_ε``, both learned from zero.
Where it is known how often a span's words are a link, the null entity has a prior too: the logarithm of the odds that
they are none is added to its score, as if every p(a) were multiplied by the link probability and p(ε) were the rest.
"""

import copy
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from ebert.errors import EbertError
from ebert.linking.adapter import EvidenceWeights, with_updates
from ebert.linking.document import Span
from ebert.linking.evidence import null_odds
from ebert.linking.options import LinkerOptions
from ebert.linking.sequences import LinkSequence, Placed
from ebert.model.alignment import Alignment
from ebert.model.batching import additive
from ebert.model.encoder import Encoder, only
from ebert.model.options import AlignmentOptions, AlignmentReport
from ebert.vectors.store import Vectors

SPREAD = 0.02  # of a new head's weights, where the encoder does not say how its own were drawn
NULL = 0  # the label of the null entity; that of a candidate is its number from 1
REMEMBERED = 500_000  # titles; looking one up takes a query, and the same ones come again and again
UNKNOWN = 0.5  # how much a span tells about others if its link probability is unknown
LEAST_PRIOR = 1e-9  # for a candidate whose prior is zero, so that it can be chosen at all


class LinkingModel(nn.Module):
    """A masked LM without the wordpieces at its end, and the null entity."""

    def __init__(
        self, masked_lm: PreTrainedModel, *, new_head: bool = False, adapter: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        """Take a masked LM, whose weights are used and not copied; wordpiece vectors stay as they are in training.

        With a new head, one linear layer with random weights takes the place of the MLM's (Wikipedia2Vec-BERT-random).
        With an adapter of some rank, nothing of the masked LM is trained; in another dtype, it is a copy.
        """
        super().__init__()
        self.weights: EvidenceWeights | None = None
        if adapter is not None:
            if dtype not in (None, masked_lm.dtype):
                masked_lm = copy.deepcopy(masked_lm)
                nn.Module.to(masked_lm, dtype)
            masked_lm.requires_grad_(requires_grad=False)
            masked_lm = with_updates(masked_lm, adapter)
            self.weights = EvidenceWeights()
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
        places, dtype = (rows, columns), self.embedding.weight.dtype
        if dtype != inputs["inputs_embeds"].dtype:
            least = torch.finfo(dtype).min  # a mask must not become infinite
            inputs = {
                name: one.to(dtype).clamp(min=least) if one.is_floating_point() else one for name, one in inputs.items()
            }
        if self.head is not None:
            return self.head(self.encoder(**inputs).last_hidden_state[places].to(self.head.weight.dtype))
        with only(self.encoder.base_model, places):
            return self.encoder(**inputs).logits[0]  # what the head would compare to the wordpieces

    def answered(
        self, rows: Tensor, columns: Tensor, entities: Tensor, choices: Tensor, **inputs: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return e · MLM(h) of the null entity (spans,) and of the candidates (spans, choices); see `forward`."""
        answers = self.answers(inputs, rows, columns).float()  # (spans, width)
        return answers @ self.null, torch.einsum("sw,scw->sc", answers, entities[choices].float())

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
        evidence: Tensor | None = None,  # (spans, SPAN), with the next two for an adapter: see `ebert.linking.evidence`
        likeness: Tensor | None = None,  # (spans, choices)
        traits: Tensor | None = None,  # (spans, choices, TRAITS)
        **inputs: Tensor,  # inputs_embeds, attention_mask, position_ids
    ) -> dict[str, Tensor]:
        """Return the scores (spans, 1 + choices), the null entity's first, and the weighted sum of the losses."""
        null, candidates = self.answered(rows, columns, entities, choices, **inputs)
        if self.weights is None:
            candidates = candidates + log_priors
            null = null if null_priors is None else null + null_priors
        else:
            assert evidence is not None, "the evidence is gathered where documents are cut"
            assert traits is not None, "so are the traits of the candidates"
            known = [log_priors, likeness, *traits.unbind(-1)]
            null, candidates = self.weights(null, candidates, evidence, known)
        null = null + self.null_bias
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
    top: Any = _shallow(masked_lm)
    above, part = top, top
    *way, final = name.split(".")
    for step in way:
        above, part._modules[step] = part, _shallow(part._modules[step])
        part = part._modules[step]
    if last.weight.shape[0] < masked_lm.config.vocab_size:  # DeBERTa's newer head has no such layer of its own
        above._modules[way[-1]] = _Transform(part)
    else:
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
        self.find = lru_cache(REMEMBERED)(vectors.find)
        self.id_of = lru_cache(REMEMBERED)(self._id_of)
        self._stamp = vectors.stamp

    def refresh(self) -> None:
        """Look everything up again if the store has changed."""
        if self._stamp != self.vectors.stamp:
            self._stamp = self.vectors.stamp
            self.find.cache_clear()
            self.id_of.cache_clear()

    def _id_of(self, title: str) -> str | None:
        """Return the own id that an entity was added with, or None."""
        entity = self.find(title)
        return None if entity is None else self.vectors.id_of(entity)

    def project(self, titles: Iterable[str]) -> Tensor:
        """Return the projected vectors of entities that there are, (titles, width)."""
        found = [self.find(title) or self.vectors.known(title) for title in titles]
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

    def __init__(self, encoder: Encoder, entities: EntityVectors, options: LinkerOptions) -> None:
        self._encoder, self._entities, self._options = encoder, entities, options

    @torch.no_grad()
    def __call__(
        self, batch: Sequence[LinkSequence], labels: Sequence[int] | None = None, weights: Sequence[float] | None = None
    ) -> dict[str, Tensor]:
        """Return the inputs for sequences, padded to the longest; labels and weights are for their spans, in order."""
        spans = [placed.span for one in batch for placed in one.spans]
        titles = dict.fromkeys(choice.title for span in spans for choice in span.choices)
        titles |= dict.fromkeys(title for one in batch for title in one.entities.values())
        numbers = {title: number for number, title in enumerate(titles)}
        vectors = self._entities.project(titles).to(self._encoder.embedding.weight)  # (entities, width)
        device = vectors.device
        inputs = self._encoded(batch, numbers, vectors)
        tensors = {
            "rows": torch.tensor([row for row, one in enumerate(batch) for _ in one.spans]),
            "columns": torch.tensor([place for one in batch for place in one.masks]),
            "choices": _padded([[numbers[choice.title] for choice in span.choices] for span in spans], 0),
            "log_priors": _padded([[_log(choice.prior) for choice in span.choices] for span in spans], -math.inf),
        }
        if self._options.adapter:
            tensors |= _evidence(batch)
            company: Tensor = torch.block_diag(*(_company(one.spans) for one in batch))  # type: ignore[no-untyped-call]
            priors = tensors["log_priors"].exp()
            tensors["likeness"] = _likeness(vectors.cpu(), tensors["choices"], priors, company, _sure(spans))
        else:
            odds = [null_odds(span) if self._options.link_prior else 0.0 for span in spans]
            tensors["null_priors"] = torch.tensor(odds)
        if labels is not None:
            tensors["labels"] = torch.tensor(labels)
            tensors["weights"] = torch.tensor(weights if weights is not None else [1.0] * len(labels))
        tensors = {name: tensor.to(device) for name, tensor in tensors.items()}
        if self._options.mask == "candidates":
            counts = tensors["log_priors"].isfinite()[..., None]  # (spans, choices, 1)
            means = (vectors[tensors["choices"]] * counts).sum(1) / counts.sum(1)  # (spans, width)
            inputs["inputs_embeds"][tensors["rows"], tensors["columns"]] = means
        return {**inputs, "entities": vectors, **tensors}

    def _encoded(self, batch: Sequence[LinkSequence], numbers: dict[str, int], vectors: Tensor) -> dict[str, Tensor]:
        """Return what the encoder itself takes."""
        ids = _padded([one.ids for one in batch], self._encoder.tokenizer.pad_token_id or 0)  # (batch, pieces)
        positions = _padded([one.positions for one in batch], -1)
        embeds = self._encoder.embedding(ids.clamp(min=0).to(vectors.device))  # (batch, pieces, width)
        for row, one in enumerate(batch):
            for place, title in one.entities.items():
                embeds[row, place] = vectors[numbers[title]]
        mask = (positions >= 0).long()
        if any(one.blocks for one in batch):
            mask = additive(torch.stack([one.visible(ids.shape[1]) for one in batch]), embeds.dtype)
        inputs = {"inputs_embeds": embeds, "attention_mask": mask.to(vectors.device)}
        if self._encoder.takes_positions:
            inputs["position_ids"] = (positions + self._encoder.first_position).clamp(min=0).to(vectors.device)
        return inputs


def _evidence(batch: Sequence[LinkSequence]) -> dict[str, Tensor]:
    """Return the evidence about the spans of a batch: `evidence` (spans, SPAN), `traits` (spans, choices, TRAITS)."""
    known = [placed.evidence for one in batch for placed in one.spans if placed.evidence]
    return {
        "evidence": torch.tensor([one.span for one in known]),
        "traits": _padded([one.choices for one in known], 0.0),
    }


def _sure(spans: Iterable[Span]) -> Tensor:
    """Return how much spans tell about the others: how often they are links."""
    return torch.tensor([UNKNOWN if span.link_probability is None else span.link_probability for span in spans])


def _company(spans: Sequence[Placed]) -> Tensor:
    """Return which spans of a sequence (columns) tell something about which (rows), (spans, spans).

    Those that overlap do not, and neither do others with the same likeliest candidate.
    """
    firsts, stops = (torch.tensor(places) for places in zip(*((p.first, p.stop) for p in spans), strict=True))
    apart = (firsts[:, None] >= stops) | (firsts >= stops[:, None])
    numbers: dict[str, int] = {}
    best = torch.tensor([numbers.setdefault(p.span.choices[0].title, len(numbers)) for p in spans])
    return (apart & (best[:, None] != best)).float()


def _likeness(vectors: Tensor, choices: Tensor, priors: Tensor, company: Tensor, sure: Tensor) -> Tensor:
    """Return how like each candidate is to the candidates of the other spans, (spans, choices): a cosine."""
    directions = F.normalize(vectors.float(), dim=-1)[choices]  # (spans, choices, width)
    means = torch.einsum("sc,scw->sw", priors, directions) * sure[:, None]
    context = F.normalize(company @ means, dim=-1)  # (spans, width)
    return torch.einsum("scw,sw->sc", directions, context)


def _padded(rows: Iterable[Sequence[float] | Sequence[Sequence[float]]], padding: float) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=padding)


def _log(prior: float) -> float:
    return math.log(max(prior, LEAST_PRIOR))
