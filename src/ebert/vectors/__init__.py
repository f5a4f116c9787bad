"""Word and entity vectors of one space, in a folder that opens at once however large it is."""

from ebert.vectors.entity import Candidate, Entity, Neighbour
from ebert.vectors.store import Vectors

__all__ = ["Candidate", "Entity", "Neighbour", "Vectors"]
