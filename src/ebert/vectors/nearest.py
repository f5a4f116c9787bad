"""Find nearest neighbours by cosine in one pass over a matrix, in chunks, keeping only the best so far."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.vectors.matrix import Matrix

CHUNK_BYTES = 1 << 20  # of float32: stays in a core's own cache from the first to the last of the steps below
# Sums of squares for which single precision is enough. Below, numbers underflow; above, a sum may be infinite, or a
# number may be half precision's infinity, which `_single` reads as 65,536.
_LOW, _HIGH = 1e-20, 2.0**31
_TINY = 1e-300  # a vector of zeros is near nothing
_SIGN_AND_NUMBER = np.uint32(0x8FFFE000).view(np.int32)


def nearest(matrix: Matrix, queries: NDArray[np.float32], top: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return rows and cosine similarities of the `top` nearest rows, best first, each of shape (queries, top).

    A row with a value that is infinite or not a number is never an answer, so there may be fewer than `top`.
    """
    if not np.isfinite(queries).all():
        raise EbertError("a vector with a value that is infinite or not a number has no neighbours")
    exact = queries.astype(np.float64)
    exact /= np.maximum(np.linalg.norm(exact, axis=1, keepdims=True), _TINY)
    with np.errstate(all="ignore"):  # results of odd rows are replaced
        rows, best = _search(matrix, exact, min(top, len(matrix)))
    order = np.lexsort((rows, -best), axis=1)  # of equals the first row comes first, however rows are chunked
    order = order[:, : np.isfinite(best).all(axis=0).sum()]
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(best, order, axis=1).clip(-1, 1)


def _search(matrix: Matrix, exact: NDArray[np.float64], top: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the best rows for queries of length 1, unsorted, and their cosines."""
    queries = exact.astype(np.float32)
    rows = np.zeros((len(queries), 0), np.int64)
    best = np.zeros((len(queries), 0), np.float32)
    least: Any = -np.inf  # that a score must be above to be among the best
    step = max(1, CHUNK_BYTES // (4 * max(1, matrix.shape[1])))
    for start in range(0, len(matrix) if top > 0 else 0, step):
        chunk = _single(matrix[start : start + step])  # (chunk, dimension)
        squares = np.einsum("ij,ij->i", chunk, chunk)
        scores = (queries @ chunk.T) / np.sqrt(squares)  # (queries, chunk)
        if not (squares.min() > _LOW and squares.max() < _HIGH):  # nor if there is one that is not a number
            odd = np.flatnonzero(~((squares > _LOW) & (squares < _HIGH)))
            scores[:, odd] = _careful(exact, matrix[start : start + step][odd])
        better = np.flatnonzero((scores > least).any(axis=0))
        if not len(better):
            continue  # as with nearly all chunks of a large matrix
        best = np.concatenate([best, scores[:, better]], axis=1)
        rows = np.concatenate([rows, np.broadcast_to(start + better, (len(queries), len(better)))], axis=1)
        if best.shape[1] >= 2 * top:  # sorting takes most of the time
            rows, best = _cut(rows, best, top)
            least = best.min(axis=1, keepdims=True)
    return _cut(rows, best, top)


def _cut(rows: NDArray[np.int64], best: NDArray[np.float32], top: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    order = np.lexsort((rows, -best), axis=1)[:, :top]
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(best, order, axis=1)


def _careful(queries: NDArray[np.float64], rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the cosines of rows for which single precision is not enough; -inf for rows that are not finite."""
    numbers = rows.astype(np.float64)
    whole = np.isfinite(numbers).all(axis=1)
    numbers[~whole] = 0
    scores = (queries @ numbers.T) / np.maximum(np.linalg.norm(numbers, axis=1), _TINY)  # (queries, rows)
    scores[:, ~whole] = -np.inf
    return np.asarray(scores, np.float64)


def _single(chunk: NDArray[Any]) -> NDArray[np.float32]:
    """Return a chunk in single precision.

    numpy converts half precision number by number. Moving the bits of all numbers at once to their places in single
    precision, and correcting for the different zero point of the exponent, takes a third of the time. It is exact for
    all but infinities and what is not a number, which become 65,536 or more.
    """
    if chunk.dtype != np.dtype("<f2") or not chunk.flags.c_contiguous:
        return np.asarray(chunk, np.float32)
    bits = chunk.view(np.int16).astype(np.int32)  # the sign is in the upper half as well
    bits <<= 13
    bits &= _SIGN_AND_NUMBER
    numbers: NDArray[np.float32] = bits.view(np.float32)
    numbers *= np.float32(2.0**112)
    return numbers


def nearest_rows(matrix: Matrix, vector: NDArray[np.float32], top: int) -> list[tuple[int, float]]:
    """Return rows and similarities of the `top` rows nearest to one vector, the nearest first."""
    rows, scores = nearest(matrix, vector[None], top)
    return list(zip(rows[0].tolist(), scores[0].tolist(), strict=True))
