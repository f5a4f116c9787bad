"""The classifier's network: an encoder, and a softmax layer on the last hidden state of its first piece, [CLS]."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

SPREAD = 0.02  # of the new layer's weights, where the encoder does not say how its own were drawn


class RelationModel(nn.Module):
    """An encoder (without its MLM head and without BERT's tanh pooler) and a new linear layer."""

    def __init__(self, encoder: PreTrainedModel, relations: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.encoder.get_input_embeddings().requires_grad_(False)
        self.classifier = nn.Linear(encoder.config.hidden_size, relations)
        nn.init.normal_(self.classifier.weight, std=getattr(encoder.config, "initializer_range", None) or SPREAD)
        nn.init.zeros_(self.classifier.bias)

    def forward(
        self,
        inputs_embeds: Tensor,  # (batch, pieces, width)
        attention_mask: Tensor,  # (batch, pieces)
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,  # (batch,)
    ) -> dict[str, Tensor]:
        """Give the logits of the relations, shape (batch, relations), and the loss if there are labels."""
        inputs = {"inputs_embeds": inputs_embeds, "attention_mask": attention_mask}
        if position_ids is not None:
            inputs["position_ids"] = position_ids
        first = self.encoder(**inputs).last_hidden_state[:, 0]  # (batch, hidden)
        logits = self.classifier(first)
        if labels is None:
            return {"logits": logits}
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.classifier.weight.device
