"""What the results of a run depend on. Two runs with the same identity have the same results."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from ebert import __version__
from ebert.model.batching import budget_on, windows
from ebert.model.ebert import EBert
from ebert.probing.candidates import Candidates
from ebert.probing.options import ProbeOptions
from ebert.probing.questions import Question, Questions


def identity(
    model: EBert,
    data: Questions,
    options: ProbeOptions,
    questions: Sequence[Question],
    candidates: Candidates,
    labels: Mapping[str, int] | None,
    name_model: EBert | None,
) -> dict[str, Any]:
    """Hash the models, the data and the options; names are those of the command line, for messages."""
    weights = hash_weights(model.encoder)
    asked = None if name_model is None else weights if name_model is model else hash_weights(name_model.encoder)
    return {
        "ebert": __version__,
        "benchmark": data.name,
        "encoder": {"name": model.name, "weights": weights},
        "name-bert": None if name_model is None else {"name": name_model.name, "weights": asked},
        "model": None if model.alignment is None else _hash_entities(model, questions),
        "mode": list(options.modes),
        "filter": list(options.filters),
        "limit": options.limit,
        "oracle": options.oracle,
        "labels": _hash(f"{label}\t{number}" for label, number in sorted(labels.items())) if labels else None,
        "precision": options.precision,
        "budget": options.budget or budget_on(model.encoder.device.type),
        "questions": _hash(f"{q.id}\t{q.text}\t{q.answers}\t{q.entity}" for q in questions),
        "candidates": _hash(candidates.words),
        "data": dict(data.hashes),
    }


def _hash(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def hash_weights(module: torch.nn.Module) -> str:
    """Hash all weights: an encoder's fingerprint is of its wordpieces only."""
    digest = hashlib.blake2b(digest_size=32)
    for name, weight in sorted(module.state_dict().items()):
        digest.update(name.encode())
        if isinstance(weight, torch.Tensor):
            digest.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _hash_entities(model: EBert, questions: Sequence[Question]) -> str:
    """Hash the carried vectors that are used, whatever store and alignment they come from."""
    titles = sorted({question.entity for question in questions if question.entity is not None})
    digest = hashlib.sha256()
    for window in windows(titles):
        digest.update(model.carried(window).contiguous().numpy().data)
    return digest.hexdigest()
