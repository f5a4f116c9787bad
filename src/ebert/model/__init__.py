"""Any masked language model of the transformers library, with entity vectors among its wordpieces.

The names are imported on first use: what only looks at a model's folder need not load torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebert.model.collator import EntityCollator
    from ebert.model.ebert import EBert
    from ebert.model.encoding import Encoding, Word
    from ebert.model.filling import Answer, Filled
    from ebert.model.sequence import MODES, Mode

__all__ = ["MODES", "Answer", "EBert", "Encoding", "EntityCollator", "Filled", "Mode", "Word"]

_HOME = {
    "Answer": "filling", "EBert": "ebert", "Encoding": "encoding", "EntityCollator": "collator", "Filled": "filling",
    "MODES": "sequence", "Mode": "sequence", "Word": "encoding",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = globals()[name] = getattr(import_module(f"ebert.model.{_HOME[name]}"), name)
        return value
    raise AttributeError(f"module 'ebert.model' has no attribute {name!r}")
