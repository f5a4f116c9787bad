"""Saving and uploading a model with a card, by the mixin of huggingface_hub: imported only when a model is saved."""

from collections.abc import Callable
from pathlib import Path

from huggingface_hub import ModelHubMixin

CARD = """---
library_name: ebert
tags: [ebert, entity-embeddings]
---

An E-BERT model: entity vectors, projected into the input space of a pretrained masked language model.
Load it with `ebert.EBert.from_pretrained`.
"""


class ModelOnHub(
    ModelHubMixin, library_name="ebert", tags=["entity-embeddings"], pipeline_tag="fill-mask", model_card_template=CARD
):
    """A model that `save` writes into a folder."""

    def __init__(self, save: Callable[[Path], None]) -> None:
        self._save = save
        self._hub_mixin_config = None  # everything is in ebert.json

    def _save_pretrained(self, save_directory: Path) -> None:
        self._save(save_directory)
