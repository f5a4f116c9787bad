"""Models for commands: names are checked before torch is loaded, and a terminal is told that a model loads."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from ebert import _names
from ebert._io.progress import waiting
from ebert.errors import EbertError

if TYPE_CHECKING:
    from ebert.vectors.store import Vectors


def check(model: str | None, bert: str | None, vectors: str | None = None) -> Path:
    """Raise `EbertError` if a model, or an encoder without entities, is not there; fetch the encoder if need be.

    Return the encoder's folder.
    """
    from ebert.bert.get import get_bert
    from ebert.model.folder import check_model

    if bool(model) == bool(bert):
        raise EbertError("give --model or --bert: a model (with entities) or an encoder (without)")
    if model:
        encoder = check_model(model, vectors)
        return get_bert(encoder, local=Path(encoder).is_absolute())  # as loading gets it
    if vectors:
        raise EbertError("--vectors goes with --model")
    return get_bert(str(bert))


def open_store(model: str, vectors: str | None) -> "Vectors":
    """Open the store of a model, before torch is loaded; `vectors` is where it is now."""
    from ebert.model import folder

    return folder.open_store(_names.resolve(model, "model"), vectors)


def loading(name: str | None) -> AbstractContextManager[None]:
    """Show on a terminal that a model loads. Import torch inside the block: that takes longest."""
    return waiting(f"loading {name}")
