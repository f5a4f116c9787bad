"""JSON as the service writes it."""

import json
from typing import Any

from pydantic import BaseModel


def encode(value: Any, shape: type[BaseModel] | None = None) -> bytes:
    """Write JSON, if it has the shape that was declared; a `ValidationError` says where it has not.

    Halves of surrogate pairs, which clients can send and UTF-8 cannot hold, become question marks.
    """
    if shape is not None:
        shape.model_validate(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
