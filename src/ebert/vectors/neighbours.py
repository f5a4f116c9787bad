"""Find the nearest words and entities, by cosine or corrected for hubs (vectors that are near to a great many others).

The correction is CSLS (Conneau et al., Word translation without parallel data, 2018): 2 cos(x, y) - r(x) - r(y), where
r is the mean cosine of a vector to its nearest neighbours. It is computed only for some hundred nearest by cosine, and
r is estimated from a sample of all vectors, so it costs little. `experiments/hubs.py` compares it with other ways.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ebert.errors import EbertError
from ebert.vectors.catalogue import Kind
from ebert.vectors.entity import Neighbour, checked
from ebert.vectors.lookup import ADDED_AT
from ebert.vectors.matrix import Matrix
from ebert.vectors.nearest import nearest_rows

if TYPE_CHECKING:
    from ebert.vectors.store import Vectors

# The number of nearest by cosine in which hubs are looked for. It grows with the number of vectors to search.
POOL, LARGE_POOL, ROWS_EACH = 100, 500, 2000
SAMPLE = 1000  # vectors that r is estimated from
NEAR = 10  # of them

Order = Literal["csls", "cosine"]
Which = Literal["entities", "words", "both"]
_TINY = 1e-300


class RowSample:
    """Some of the vectors of a matrix, and how near others are to them."""

    def __init__(self, matrix: Matrix, size: int = SAMPLE) -> None:
        rows = np.unique(np.linspace(0, max(0, len(matrix) - 1), min(size, len(matrix))).astype(np.int64))
        with np.errstate(invalid="ignore"):  # rows that are not numbers are left out
            vectors = np.asarray(matrix[rows], np.float64)
        whole = np.isfinite(vectors).all(axis=1)
        self.rows, self.units = rows[whole], _units(vectors[whole])  # (sample,), (sample, dimension)

    def crowding(self, vectors: NDArray[Any], rows: NDArray[np.int64], near: int = NEAR) -> NDArray[np.float32]:
        """Return r of vectors, shape (vectors,). `rows` are theirs in the matrix, or -1: no vector is near itself."""
        cosines = _units(np.asarray(vectors, np.float64)) @ self.units.T  # (vectors, sample)
        cosines[rows[:, None] == self.rows] = -np.inf
        near = min(near, cosines.shape[1] - 1)
        if near < 1:
            return np.zeros(len(vectors), np.float32)
        best: NDArray[np.float32] = np.partition(cosines, -near, axis=1)[:, -near:]
        return best.mean(axis=1)


def _units(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    return (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _TINY)).astype(np.float32)


class _Found(NamedTuple):
    kind: Literal["words", "entities", "added"]
    row: int
    cosine: float
    vector: NDArray[Any]


def find_neighbours(
    store: "Vectors", query: str | ArrayLike, *, top: int, kind: Which, word: bool, by: Order
) -> list[Neighbour]:
    """Return the nearest words, entities or both; see `Vectors.nearest`."""
    if top < 1 or kind not in ("entities", "words", "both"):
        raise EbertError(f"cannot give the {top} nearest {kind}: at least 1, of 'entities', 'words' or 'both'")
    if by not in ("csls", "cosine"):
        raise EbertError(f"cannot sort by {by!r}; choose 'csls' or 'cosine'")
    top = min(top, store.info.words + len(store))
    asked = _asked(store, query, word=word)
    large = min(LARGE_POOL, (store.info.words + store.info.entities) // ROWS_EACH)
    pool = top if by == "cosine" else max(2 * top, POOL, large)
    found = [one for one in _nearest(store, asked.vector, pool + 1, kind) if one[:2] != asked[:2]]
    scores = np.array([one.cosine for one in found])
    if by == "csls" and found:
        near: Kind = "words" if word or not store.info.entities else "entities"
        rows = np.array([one.row if one.kind == near else -1 for one in (asked, *found)])
        crowding = store.sample(near).crowding(np.stack([asked.vector, *(one.vector for one in found)]), rows)
        scores = 2 * scores - crowding[1:] - crowding[0]
    return [_named(store, found[index], float(scores[index])) for index in np.argsort(-scores, kind="stable")[:top]]


def _asked(store: "Vectors", query: str | ArrayLike, *, word: bool) -> _Found:
    """Return what the query is about; a plain vector has the row -1."""
    if not isinstance(query, str):
        return _Found("entities", -1, 1.0, checked(query, store.dimension, "the vector"))
    if word:
        vector, row = store.word_vector(query), store.find_word(query)
        assert row is not None
        return _Found("words", row, 1.0, vector)
    entity = store.known(query)
    return _Found("added" if entity.added else "entities", entity.row, 1.0, store[entity])


def _nearest(store: "Vectors", vector: NDArray[np.float32], count: int, kind: Which) -> Iterator[_Found]:
    """Yield the nearest by cosine: words, entities that the store was made with, and entities that were added."""
    if kind != "entities":
        for row, cosine in nearest_rows(store.word_matrix, vector, count):
            yield _Found("words", row, cosine, store.word_matrix[row])
    if kind != "words":
        hidden, pool = store.hidden(), count + len(store.overlay.hidden())
        found = list(nearest_rows(store.entity_matrix, vector, pool))
        while pool < len(store.entity_matrix) and sum(row not in hidden for row, _ in found) < count:
            pool *= 2  # some were merged into others
            found = list(nearest_rows(store.entity_matrix, vector, pool))
        for row, cosine in [one for one in found if one[0] not in hidden][:count]:
            yield _Found("entities", row, cosine, store.entity_matrix[row])
        if later := list(store.overlay.all()):
            for index, cosine in nearest_rows(np.stack([added for _, added in later]), vector, count):
                yield _Found("added", later[index][0].row, cosine, later[index][1])


def _named(store: "Vectors", found: _Found, score: float) -> Neighbour:
    if found.kind == "added":
        name = store.select(ADDED_AT, found.row)[0].title
    else:
        name = store.catalogue.names(found.kind, found.row, found.row + 1)[0]
    return Neighbour("word" if found.kind == "words" else "entity", name, found.cosine, score)
