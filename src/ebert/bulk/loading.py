"""Loading the model of a job, in the process that works with it."""

from typing import TYPE_CHECKING

from ebert.errors import EbertError

if TYPE_CHECKING:
    from ebert.model import EBert


def load_model(
    model: str | None, bert: str | None, vectors: str | None, device: str | None, dtype: str | None
) -> "EBert":
    """Load a model, or an encoder without entities."""
    import torch

    from ebert.model import EBert

    if (model is None) == (bert is None):
        raise EbertError("give a model (with entities) or an encoder (without): --model or --bert")
    if vectors is not None and model is None:
        raise EbertError("--vectors goes with --model")
    kind = None if dtype is None else getattr(torch, dtype, None)
    if dtype is not None and not isinstance(kind, torch.dtype):
        raise EbertError(f"unknown dtype {dtype!r}")
    if model is not None:
        return EBert.from_pretrained(model, vectors=vectors, device=device, dtype=kind)
    return EBert.plain(str(bert), device=device, dtype=kind)
