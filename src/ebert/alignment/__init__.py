"""The linear map W that carries the vector space of a store into the input space of an encoder (Section 3.1)."""

from ebert.alignment.alignment import Alignment
from ebert.alignment.options import AlignmentOptions, AlignmentReport

__all__ = ["Alignment", "AlignmentOptions", "AlignmentReport"]
