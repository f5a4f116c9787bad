"""E-BERT-MLM (Section 5.2): a masked LM whose answers are the candidates of a span, or none of them (Eq. 2).

The score of a candidate is ``e_a · MLM(h) + log p(a)``, with its carried vector, what the MLM head makes of the hidden
state of [E-MASK], and its prior. That of the null entity is ``e_ε · MLM(h) + b_ε``, both learned from zero. Where it is
known how often a span's words are a link, the null entity has a prior too: the logarithm of the odds that they are none
is added to its score, as if every p(a) were multiplied by the link probability and p(ε) were the rest.
"""

import copy
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from ebert.errors import EbertError
from ebert.model.encoder import only

SPREAD = 0.02  # of a new head's weights, where the encoder does not say how its own were drawn
NULL = 0  # the label of the null entity; that of a candidate is its number from 1


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
        """Give MLM(h) at places of a batch, shape (places, width)."""
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
        """Give the scores (spans, 1 + choices), the null entity's first, and the weighted sum of the losses."""
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
    """Give a masked LM whose logits are MLM(h), what its last layer compares to wordpieces; the given one stays.

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
