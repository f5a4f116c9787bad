"""Hubs among nearest neighbours: how often they appear in the ten nearest, by cosine and by ways to correct for them.

    python experiments/hubs.py starter ENWIKI_VECTORS > results/hubs.txt

A hub is one of the 50 entities that are most often among the ten nearest of the query entities, which are drawn at
random. The corrections re-order the nearest by cosine and are computed from a sample of the store, as in
`ebert.vectors.neighbours`:

  csls   2 cos(x, y) - r(y), r: the mean cosine of y to its ten nearest in the sample (Conneau et al., 2018)
  isf    cos(x, y) - log(mean of exp(beta cos(y, z)) over z in the sample) / beta: inverted softmax (Smith et al., 2017)
  mean   cos(x, y) - mean of cos(y, z) over z in the sample

`chance` is the figure for lists of random entities. `same kind` checks that the neighbours in place of the hubs are no
worse: of the pairs in which an entity and its neighbour both have brackets in their titles, such as "(film)", it is the
share with the same brackets.
"""

import argparse
import re
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert import Vectors
from ebert.vectors.nearest import nearest
from ebert.vectors.neighbours import LARGE_POOL, NEAR, POOL, SAMPLE, Sample

TOP, HUBS, BETA = 10, 50, 20.0
CHUNK = 16  # queries at a time


def kind_of(title: str) -> str:
    """Return the last word of what is in brackets at the end of a title: "film" of "Paris, Texas (1984 film)"."""
    found = re.search(r"(\w+)\)$", title)
    return found[1] if found else ""


def pool_of(vectors: Vectors, queries: NDArray[np.int64], pool: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return rows and cosines of the `pool` nearest of each query by cosine, without itself."""
    rows, cosines = [], []
    for start in range(0, len(queries), CHUNK):
        chunk = queries[start : start + CHUNK]
        found, scores = nearest(vectors.entity_matrix, np.asarray(vectors.entity_matrix[chunk], np.float32), pool + 1)
        for query, row, score in zip(chunk, found, scores, strict=True):
            others = np.flatnonzero(row != query)[:pool]
            rows.append(row[others])
            cosines.append(score[others])
    return np.stack(rows), np.stack(cosines)


def penalties(vectors: Vectors, rows: NDArray[np.int64], size: int) -> dict[str, NDArray[Any]]:
    """Return what each way subtracts from the cosine of some rows."""
    sample = Sample(vectors.entity_matrix, size)
    off: dict[str, list[NDArray[Any]]] = {"csls": [], "isf": [], "mean": []}
    for start in range(0, len(rows), 2000):
        part = rows[start : start + 2000]
        block = np.asarray(vectors.entity_matrix[part], np.float32)
        off["csls"].append(sample.crowding(block, part, NEAR) / 2)
        cosines = block / np.linalg.norm(block, axis=1, keepdims=True) @ sample.units.T
        cosines[part[:, None] == sample.rows] = np.nan
        off["isf"].append(np.log(np.nanmean(np.exp(BETA * cosines), axis=1)) / BETA)
        off["mean"].append(np.nanmean(cosines, axis=1))
    return {way: np.concatenate(parts) for way, parts in off.items()}


def figures(top: NDArray[np.int64], queries: NDArray[np.int64], kinds: list[str], hubs: set[int]) -> str:
    """Return a line about lists of ten neighbours; `hubs` are those by cosine."""
    counts = Counter(top.ravel().tolist())
    own = {row for row, _ in counts.most_common(HUBS)}
    with_own, with_old = (np.mean([bool(some & set(line)) for line in top.tolist()]) for some in (own, hubs))
    occurrences = np.zeros(len(kinds))
    occurrences[list(counts)] = list(counts.values())
    spread = occurrences - occurrences.mean()
    skewness = (spread**3).mean() / occurrences.std() ** 3
    pairs = [(kinds[q], kinds[row]) for q, line in zip(queries, top, strict=True) for row in line if kinds[row]]
    same = [first == second for first, second in pairs if first]
    share = f"{np.mean(same):.1%} of {len(same)}" if same else ""
    return f"{with_own:>12.1%}{with_old:>16.1%}{skewness:>10.2f}{max(counts.values()):>10}{len(counts):>10}  {share}"


def measure(name: str, count: int) -> None:
    """Print a table for a store."""
    with Vectors.open(name) as vectors:
        kinds = [kind_of(title) for title in vectors.catalogue.names("entities", 0, vectors.info.entities)]
        rng = np.random.default_rng(0)
        queries = np.sort(rng.choice(len(kinds), min(count, len(kinds)), replace=False))
        print(f"\n{len(kinds):,} entities, dimension {vectors.dimension}; {len(queries):,} of them asked about")
        print(f"{'':28}{'with a hub':>12}{'hub of cosine':>16}{'skewness':>10}{'most':>10}{'distinct':>10}  same kind")
        rows, cosines = pool_of(vectors, queries, LARGE_POOL)
        hubs = {row for row, _ in Counter(rows[:, :TOP].ravel().tolist()).most_common(HUBS)}
        print(f"{'cosine':28}{figures(rows[:, :TOP], queries, kinds, hubs)}", flush=True)
        unique, places = np.unique(rows, return_inverse=True)
        places = places.reshape(rows.shape)
        for size in (SAMPLE, 4 * SAMPLE):
            off = penalties(vectors, unique, size)
            for pool in (POOL, LARGE_POOL):
                for way in ("csls", "isf", "mean"):
                    corrected = cosines[:, :pool] - off[way][places[:, :pool]]
                    order = np.argsort(-corrected, axis=1, kind="stable")[:, :TOP]
                    label = f"{way}, sample {size}, pool {pool}"
                    line = figures(np.take_along_axis(rows, order, axis=1), queries, kinds, hubs)
                    print(f"{label:28}{line}", flush=True)
        random = rng.integers(0, len(kinds), (len(queries), TOP))
        print(f"{'chance':28}{figures(random, queries, kinds, hubs)}", flush=True)


def main() -> None:
    """Measure stores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="+")
    parser.add_argument("--queries", type=int, default=2000)
    options = parser.parse_args()
    print(f"Ten nearest entities; a hub is one of the {HUBS} most frequent. The product takes csls, sample {SAMPLE},")
    print(f"and a pool of {POOL} to {LARGE_POOL} by the size of the store.")
    for store in options.stores:
        measure(store, options.queries)


if __name__ == "__main__":
    main()
