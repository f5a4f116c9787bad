"""The data of a training run: the corpus without words and entities that are too rare, cut into jobs.

It also prepares the random draws of training: which words are left out, and which are negatives.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.text import letters, titles
from ebert.vectors.train.options import VectorTrainingOptions
from ebert.wikipedia.corpus import Corpus

JOB = 200_000  # words of a job: a fraction of a second

Table = tuple[NDArray[np.float32], NDArray[np.int32]]


@dataclass(frozen=True)
class TrainingData:
    """Arrays for the kernels, and the meaning of their rows."""

    corpus: Corpus
    words: int  # the first words of the corpus's dictionary, which is sorted by count
    entities: NDArray[np.int64]  # (entities,) ids in the corpus
    rows: NDArray[np.int32]  # (entities of the corpus,) row of each, or -1
    keep: NDArray[np.uint32]  # (words of the corpus,)
    word_table: Table
    entity_table: Table
    anchor_rows: NDArray[np.int32]  # (anchors,) row of the entity, or -1
    page_rows: NDArray[np.int32]  # (pages,)
    starts: NDArray[np.int64]  # (pages + 1,) the first token of each page
    opening_ends: NDArray[np.int64]  # (pages,)
    jobs: NDArray[np.int64]  # (jobs + 1,) pages
    missing: list[str]  # titles to keep that are not in the corpus
    unseen: int  # entities that have no vector because their titles have invisible characters


def prepare(corpus: Corpus, options: VectorTrainingOptions, *, keep: Collection[str] = ()) -> TrainingData:
    """Choose words and entities and prepare the arrays. Entities in `keep` get a vector whatever their count."""
    counts = np.asarray(corpus.word_counts)
    words = int(np.searchsorted(-counts, -options.min_word_count, side="right"))
    if words == 0:
        raise EbertError(
            f"no word of {corpus.path} occurs {options.min_word_count} times; lower the minimum (--min-word-count)"
        )
    starts = np.asarray(corpus.paragraphs[corpus.page_paragraphs])
    openings = np.minimum(corpus.page_opening, options.opening_words)
    wanted = np.asarray(corpus.entity_counts) >= max(options.min_entity_count, 1)
    if options.openings and options.min_opening:
        wanted[corpus.page_entity[openings >= options.min_opening]] = True
    missing = _want(corpus, keep, wanted) if keep else []
    chosen = np.flatnonzero(wanted)
    entities = np.array([number for number in chosen.tolist() if not letters.unseen(corpus.entities[number])], np.int64)
    rows = np.full(len(wanted), -1, np.int32)
    rows[entities] = np.arange(len(entities))
    thresholds = np.zeros(len(counts), np.uint32)
    thresholds[:words] = keep_thresholds(counts[:words], sample=options.sample)
    weights = np.maximum(corpus.entity_counts[entities], 1).astype(np.float64) ** options.entity_power
    return TrainingData(
        corpus=corpus,
        words=words,
        entities=entities,
        rows=rows,
        keep=thresholds,
        word_table=alias_table(counts[:words].astype(np.float64) ** options.word_power),
        entity_table=alias_table(weights if len(weights) else np.ones(1)),
        anchor_rows=rows[corpus.anchor_entity],
        page_rows=rows[corpus.page_entity],
        starts=starts,
        opening_ends=starts[:-1] + openings,
        jobs=_cut(starts),
        missing=missing,
        unseen=len(chosen) - len(entities),
    )


def _want(corpus: Corpus, keep: Collection[str], wanted: NDArray[np.bool_]) -> list[str]:
    """Mark the entities to keep as wanted; return the unknown titles."""
    ids = {title: number for number, title in enumerate(corpus.entities)}
    redirects, missing = dict(corpus.redirects), []
    for name in keep:
        forms = titles.spellings(name)
        found = next((form for form in (*forms, *(redirects.get(form) for form in forms)) if form in ids), None)
        if found is None:
            missing.append(name)
        else:
            wanted[ids[found]] = True
    return missing


def _cut(starts: NDArray[Any]) -> NDArray[np.int64]:
    """Cut the pages into jobs of about the same number of words; `starts` has the first word of each page."""
    edges = np.searchsorted(starts, np.arange(0, int(starts[-1]) + JOB, JOB))
    return np.unique(np.append(edges.clip(max=len(starts) - 1), len(starts) - 1))


def keep_thresholds(counts: NDArray[np.int64], *, sample: float) -> NDArray[np.uint32]:
    """Return the chance of each word to survive subsampling, times 2^32 - 1: ``sqrt(t/f) + t/f`` for its share f.

    Zero means never, so a word that is trained at all has at least one.
    """
    if sample <= 0:
        return np.full(len(counts), 0xFFFFFFFF, np.uint32)
    share = counts / max(int(counts.sum()), 1)
    kept = np.minimum(np.sqrt(sample / share) + sample / share, 1.0)
    return np.maximum(kept * 0xFFFFFFFF, 1).astype(np.uint32)


def alias_table(weights: NDArray[Any]) -> Table:
    """Prepare drawing in constant time (Walker 1977): a share for each column, and which one has the rest."""
    count = len(weights)
    share = np.asarray(weights, np.float64) * (count / np.sum(weights))
    alias = np.arange(count, dtype=np.int32)
    poor, rich = list(np.flatnonzero(share < 1)), list(np.flatnonzero(share >= 1))
    while poor and rich:
        low, high = poor.pop(), rich[-1]
        alias[low] = high
        share[high] -= 1 - share[low]
        if share[high] < 1:
            poor.append(rich.pop())
    share[poor + rich] = 1  # what is left over from rounding
    return share.astype(np.float32), alias


def stream(*numbers: int) -> NDArray[np.uint64]:
    """Return the state of a separate random generator for each combination of numbers (splitmix64)."""
    value, all_bits = 0, (1 << 64) - 1
    for number in numbers:
        value = (value + number + 1) * 0x9E3779B97F4A7C15 & all_bits
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & all_bits
        value = (value ^ value >> 27) * 0x94D049BB133111EB & all_bits
        value ^= value >> 31
    return np.array([value or 1], np.uint64)
