"""The results of look-ups, and checks of vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ebert.errors import EbertError
from ebert.text import letters


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity that has a vector."""

    title: str
    row: int  # in the matrix, or in the overlay if it was added later
    count: int | None = None  # links to it in the text the vectors come from, if known
    wikidata: int | None = None
    added: bool = False

    @property
    def qid(self) -> str | None:
        """The Wikidata id as it is usually written."""
        return None if self.wikidata is None else f"Q{self.wikidata}"

    @property
    def oddity(self) -> str | None:
        """What makes the title look like another one: letters of two scripts in a word, or invisible characters."""
        return letters.oddity(self.title)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A word or an entity near another one."""

    kind: Literal["word", "entity"]
    name: str
    similarity: float  # the cosine
    score: float  # what neighbours are sorted by: the cosine, or one that is corrected for hubs


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity that a surface may mean."""

    entity: Entity
    count: int  # how often the surface means it in the text the vectors come from; an added entity counts once
    prior: float  # its share among all that the surface may mean
    own: bool = False  # whether it has this surface because somebody added it so, not from a link


@dataclass(frozen=True, slots=True)
class Spelling:
    """What is known of one way to write some words. An entity added under this spelling counts as one link."""

    surface: str
    occurrences: int  # in the text the vectors come from, linked or not
    counts: Mapping[str, int]  # how often it was linked to which title
    own: frozenset[str] = frozenset()  # titles that it names because somebody added them so, not from a link


def whole(vectors: NDArray[np.float32], names: Sequence[str]) -> NDArray[np.float32]:
    """Return vectors, shape (names, dimension), if all values are numbers; else raise an error that names one."""
    # The product is fast, and not a number if a value is not. It may also overflow, so the values themselves decide.
    if not np.isfinite(np.vdot(vectors, vectors)) and not np.isfinite(vectors).all():
        bad = names[int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])]
        raise EbertError(
            f"the vector of {bad!r} has a value that is infinite or not a number: the store is damaged; "
            "restore it or make it again"
        )
    return vectors


def checked(vector: ArrayLike, dimension: int, what: str) -> NDArray[np.float32]:
    """Return a vector that somebody gave, shape (dimension,). Raise `EbertError` if a store cannot take it."""
    given = np.asarray(vector)
    if given.dtype.kind not in "fiu":
        raise EbertError(f"{what} is not made of numbers but of {given.dtype}")
    with np.errstate(over="ignore"):
        array = given.astype(np.float32)
    if array.shape != (dimension,):
        raise EbertError(f"{what} has shape {array.shape}; this store has dimension {dimension}")
    if not np.isfinite(array).all():
        raise EbertError(f"{what} has a value that is not a number or too large for float32")
    return array
