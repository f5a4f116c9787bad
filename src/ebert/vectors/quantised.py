"""Product quantisation (Jégou et al., 2011): a byte for every four numbers of a vector.

The numbers of a row are cut into groups of WIDTH. A codebook has 256 typical groups, found by k-means, and the byte of
a group says which of them is nearest. Rows are decoded when they are read.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH, CENTROIDS = 4, 256
SAMPLE, ROUNDS = 1 << 15, 12  # of k-means: more of either changes the cosine to the original by less than 0.001
BLOCK = 1 << 9  # points compared with all centroids at a time: half a megabyte, which stays in a core's own cache
SEED = 11


class Quantised:
    """Codes of vectors that are read like an array of shape (rows, dimension): by a row, a slice or a list of rows."""

    dtype = np.dtype(np.float32)

    def __init__(self, codes: NDArray[np.uint8], codebook: NDArray[np.float16]) -> None:
        self.codes, self.codebook = codes, codebook  # (rows, groups), (CENTROIDS, dimension)
        self.shape = (len(codes), codebook.shape[1])
        self._table = _groups(codebook).reshape(-1, WIDTH)  # (groups * CENTROIDS, WIDTH)
        self._first = np.arange(groups_of(codebook.shape[1]), dtype=np.int32) * CENTROIDS

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.codes)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        """Return the vectors of rows."""
        codes = self.codes[rows]  # (..., groups)
        numbers: NDArray[np.float32] = self._table.take(codes + self._first, axis=0)  # (..., groups, WIDTH)
        return numbers.reshape(*codes.shape[:-1], len(self._first) * WIDTH)[..., : self.shape[1]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all vectors."""
        return np.asarray(self[:], dtype)


def groups_of(dimension: int) -> int:
    """Return how many bytes a vector of some dimension takes."""
    return -(-dimension // WIDTH)


def make_codebook(sample: NDArray[Any]) -> NDArray[np.float16]:
    """Return the typical numbers of a sample of vectors, shape (sample, dimension), by k-means (Lloyd)."""
    random = np.random.default_rng(SEED)
    dimension = sample.shape[1]
    book = np.zeros((groups_of(dimension), CENTROIDS, WIDTH), np.float32)
    if len(sample):
        for centroids, points in zip(book, _groups(sample), strict=True):  # (CENTROIDS, WIDTH), (sample, WIDTH)
            count = min(CENTROIDS, len(points))
            centroids[:count] = points[random.permutation(len(points))[:count]]
            for _ in range(ROUNDS):
                nearest = _nearest(points, centroids)
                sizes = np.bincount(nearest, minlength=CENTROIDS)
                sums = np.stack([np.bincount(nearest, column, CENTROIDS) for column in points.T], axis=1)
                unused = points[random.integers(len(points), size=CENTROIDS)]  # an unused centroid moves
                centroids[:] = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], unused)
    return book.transpose(1, 0, 2).reshape(CENTROIDS, -1)[:, :dimension].astype(np.float16)


def encode(vectors: NDArray[Any], codebook: NDArray[np.float16]) -> NDArray[np.uint8]:
    """Return the codes of vectors, shape (rows, groups)."""
    book = _groups(codebook)
    codes = np.empty((len(vectors), len(book)), np.uint8)
    for start in range(0, len(vectors), SAMPLE):
        for group, points in enumerate(_groups(vectors[start : start + SAMPLE])):
            codes[start : start + SAMPLE, group] = _nearest(points, book[group])
    return codes


def _nearest(points: NDArray[np.float32], centroids: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return which centroid is nearest to each point, shape (points,)."""
    found = np.empty(len(points), np.uint8)
    turned, squares = -2 * centroids.T, np.einsum("ij,ij->i", centroids, centroids)
    for start in range(0, len(points), BLOCK):
        distances = points[start : start + BLOCK] @ turned  # (block, CENTROIDS), without the points' own squares
        distances += squares
        found[start : start + BLOCK] = distances.argmin(axis=1)
    return found


def _groups(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Return the groups of numbers of vectors, shape (groups, vectors, WIDTH); pad the last one with zeros."""
    rows, dimension = vectors.shape
    padded = np.zeros((rows, groups_of(dimension) * WIDTH), np.float32)
    padded[:, :dimension] = vectors
    return np.ascontiguousarray(padded.reshape(rows, -1, WIDTH).transpose(1, 0, 2))
