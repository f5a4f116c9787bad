"""What the results of a job depend on beside its rows: weights, alignment and store, hashed as they are in memory."""

import hashlib
import json
from dataclasses import asdict
from typing import Any

from torch import nn

from ebert.alignment import Alignment
from ebert.probing.identity import hash_weights
from ebert.vectors.store import Vectors


def of_parts(module: nn.Module, vectors: Vectors | None, alignment: Alignment | None) -> dict[str, Any]:
    """Hash a model. Vectors of entities are many, so of the store its own description and what was added count."""
    return {
        "weights": hash_weights(module),
        "vectors": None if vectors is None else _store(vectors),
        "alignment": None if alignment is None else _alignment(alignment),
    }


def _store(vectors: Vectors) -> str:
    digest = hashlib.sha256(json.dumps(asdict(vectors.info), sort_keys=True).encode())
    for title, vector in vectors.added():
        digest.update(title.encode() + b"\0" + vector.tobytes())
    for name in vectors.added_names():
        digest.update(json.dumps(name).encode() + b"\n")
    return digest.hexdigest()


def _alignment(alignment: Alignment) -> str:
    digest = hashlib.sha256(json.dumps(asdict(alignment.options), sort_keys=True).encode())
    for array in (alignment.weight, alignment.bias):
        if array is not None:
            digest.update(array.tobytes())
    return digest.hexdigest()
