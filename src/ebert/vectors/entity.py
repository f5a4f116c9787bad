"""What look-ups give back."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity that has a vector."""

    title: str
    row: int  # in the matrix, or in the overlay if it was added later
    count: int | None = None  # how often it was linked in the text the vectors come from, where known
    wikidata: int | None = None
    added: bool = False

    @property
    def qid(self) -> str | None:
        """The Wikidata id as it is usually written."""
        return None if self.wikidata is None else f"Q{self.wikidata}"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A word or an entity near another one, by cosine similarity."""

    kind: Literal["word", "entity"]
    name: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity that a surface may mean."""

    entity: Entity
    count: int  # how often the surface means it in the text the vectors come from; an added entity counts once
    prior: float  # its share among all that the surface may mean
    own: bool = False  # whether the surface names it because somebody added it so, and not by any link
