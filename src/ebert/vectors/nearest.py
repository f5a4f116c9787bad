"""Nearest neighbours by cosine: one pass over a matrix in chunks, keeping only the best so far."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK_BYTES = 1 << 20  # of float32: stays in a core's own cache from the first to the last of the steps below
_TINY = 1e-30  # a vector of zeros is near nothing


def nearest(
    matrix: NDArray[Any], queries: NDArray[np.float32], top: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Give rows and cosine similarities of the `top` nearest rows, best first, each of shape (queries, top)."""
    queries = queries / np.maximum(np.linalg.norm(queries, axis=1, keepdims=True), _TINY)
    top = min(top, len(matrix))
    rows = np.zeros((len(queries), 0), np.int64)
    best = np.zeros((len(queries), 0), np.float32)
    step = max(1, CHUNK_BYTES // (4 * max(1, matrix.shape[1])))
    for start in range(0, len(matrix) if top > 0 else 0, step):
        chunk = _single(matrix[start : start + step])  # (chunk, dimension)
        norms = np.sqrt(np.einsum("ij,ij->i", chunk, chunk))
        scores = (queries @ chunk.T) / np.maximum(norms, _TINY)  # (queries, chunk)
        if best.shape[1] == top and (scores <= best.min(axis=1, keepdims=True)).all():
            continue  # as with nearly all chunks of a large matrix
        best = np.concatenate([best, scores], axis=1)
        here = np.broadcast_to(np.arange(start, start + len(chunk)), scores.shape)
        rows = np.concatenate([rows, here], axis=1)
        if best.shape[1] > top:
            order = np.lexsort((rows, -best), axis=1)[:, :top]
            best, rows = np.take_along_axis(best, order, axis=1), np.take_along_axis(rows, order, axis=1)
    order = np.lexsort((rows, -best), axis=1)  # of equals the first row goes first, whatever the chunks
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(best, order, axis=1)


def _single(chunk: NDArray[Any]) -> NDArray[np.float32]:
    """Give a chunk in single precision.

    numpy converts half precision number by number. Moving the bits of all numbers at once to where single precision has
    them, and making up for the exponent's other zero point, takes a third of the time. It is exact for all but
    infinities, which no store has.
    """
    if chunk.dtype != np.dtype("<f2") or not chunk.flags.c_contiguous:
        return np.asarray(chunk, np.float32)
    bits = chunk.view(np.int16).astype(np.int32)  # the sign is in the upper half as well
    bits <<= 13
    bits &= _SIGN_AND_NUMBER
    numbers: NDArray[np.float32] = bits.view(np.float32)
    numbers *= np.float32(2.0**112)
    return numbers


_SIGN_AND_NUMBER = np.uint32(0x8FFFE000).view(np.int32)
