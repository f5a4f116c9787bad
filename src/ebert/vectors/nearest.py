"""Nearest neighbours by cosine: one pass over a matrix in chunks, keeping only the best so far."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK_BYTES = 32 << 20  # of float32: large enough for fast products, small beside any store


def nearest(
    matrix: NDArray[Any], queries: NDArray[np.float32], top: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Give rows and cosine similarities of the `top` nearest rows, best first, each of shape (queries, top)."""
    queries = queries / np.maximum(np.linalg.norm(queries, axis=1, keepdims=True), 1e-30)
    top = min(top, len(matrix))
    rows = np.zeros((len(queries), 0), np.int64)
    best = np.zeros((len(queries), 0), np.float32)
    step = max(1, CHUNK_BYTES // (4 * max(1, matrix.shape[1])))
    for start in range(0, len(matrix), step):
        chunk = np.asarray(matrix[start : start + step], dtype=np.float32)  # (chunk, dimension)
        norms = np.sqrt(np.einsum("ij,ij->i", chunk, chunk))
        scores = (queries @ chunk.T) / np.maximum(norms, 1e-30)  # (queries, chunk)
        best = np.concatenate([best, scores], axis=1)
        here = np.broadcast_to(np.arange(start, start + len(chunk)), scores.shape)
        rows = np.concatenate([rows, here], axis=1)
        if best.shape[1] > top:
            keep = np.argpartition(-best, top - 1, axis=1)[:, :top]
            best, rows = np.take_along_axis(best, keep, axis=1), np.take_along_axis(rows, keep, axis=1)
    order = np.argsort(-best, axis=1, kind="stable")
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(best, order, axis=1)
