"""JSON as the service writes it."""

import json
from typing import Any


def encode(value: Any) -> bytes:
    """Write JSON. Halves of surrogate pairs, which clients can send and UTF-8 cannot hold, become question marks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
