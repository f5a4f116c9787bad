"""Any masked language model of the transformers library, with entity vectors among its wordpieces."""

from ebert.model.collator import EntityCollator
from ebert.model.ebert import EBert
from ebert.model.encoding import Encoding, Word
from ebert.model.filling import Answer, Filled
from ebert.model.sequence import MODES, Mode

__all__ = ["MODES", "Answer", "EBert", "Encoding", "EntityCollator", "Filled", "Mode", "Word"]
