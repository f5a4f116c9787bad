"""The nearest words and entities of a store, those added to it among them."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert.vectors.catalogue import Catalogue
from ebert.vectors.entity import Neighbour
from ebert.vectors.nearest import nearest
from ebert.vectors.overlay import Overlay


def near_words(
    catalogue: Catalogue, matrix: NDArray[Any], vector: NDArray[np.float32], top: int
) -> Iterator[Neighbour]:
    """Give the words nearest to a vector, the nearest first."""
    for row, score in _best(matrix, vector, top):
        yield Neighbour("word", catalogue.names("words", row, row + 1)[0], score)


def near_entities(
    catalogue: Catalogue, added: Overlay, matrix: NDArray[Any], vector: NDArray[np.float32], top: int
) -> Iterator[Neighbour]:
    """Give the entities nearest to a vector: of the store, the nearest first, then of those that were added."""
    hidden = added.hidden()
    seen = ((row, score) for row, score in _best(matrix, vector, top + len(hidden)) if row not in hidden)
    for row, score in islice(seen, top):
        yield Neighbour("entity", catalogue.names("entities", row, row + 1)[0], score)
    if later := list(added.all()):
        for index, score in _best(np.stack([entity.vector for entity in later]), vector, top):
            yield Neighbour("entity", later[index].row[1], score)


def _best(matrix: NDArray[Any], vector: NDArray[np.float32], top: int) -> Iterator[tuple[int, float]]:
    rows, scores = nearest(matrix, vector[None], top)
    yield from zip(rows[0].tolist(), scores[0].tolist(), strict=True)
