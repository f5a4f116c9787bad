"""Entity knowledge for pretrained language models, without retraining them.

The public names below are imported on first use, so that ``import ebert`` loads neither torch nor transformers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

_HOME = {
    "Alignment": "ebert.model.alignment",
    "AlignmentOptions": "ebert.model.options",
    "EBert": "ebert.model.ebert",
    "EbertError": "ebert.errors",
    "Linker": "ebert.linking.linker",
    "Mention": "ebert.text.passage",
    "Passage": "ebert.text.passage",
    "RelationClassifier": "ebert.relations.classifier",
    "Vectors": "ebert.vectors.store",
    "get_bert": "ebert.bert.get",
    "get_starter": "ebert.starter.get",
}

__all__ = [
    "Alignment", "AlignmentOptions", "EBert", "EbertError", "Linker", "Mention", "Passage", "RelationClassifier",
    "Vectors", "get_bert", "get_starter",
]  # fmt: skip

if TYPE_CHECKING:
    from ebert.bert.get import get_bert
    from ebert.errors import EbertError
    from ebert.linking.linker import Linker
    from ebert.model.alignment import Alignment
    from ebert.model.ebert import EBert
    from ebert.model.options import AlignmentOptions
    from ebert.relations.classifier import RelationClassifier
    from ebert.starter.get import get_starter
    from ebert.text.passage import Mention, Passage
    from ebert.vectors.store import Vectors


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = globals()[name] = getattr(import_module(_HOME[name]), name)
        return value
    raise AttributeError(f"module 'ebert' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
