"""What a run trains on: the corpus, with words and entities that are too rare taken out, cut into jobs.

Also what is drawn at random in training: which words are left out, which are negatives.
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

_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_ALL = (1 << 64) - 1


@dataclass(frozen=True)
class TrainingData:
    """Arrays for the kernels, and what their rows mean."""

    corpus: Corpus
    words: int  # the first words of the corpus's dictionary, which is sorted by count
    entities: NDArray[np.int64]  # (entities,) ids in the corpus
    tokens: NDArray[np.int32]
    paragraphs: NDArray[np.int64]
    keep: NDArray[np.uint32]  # (ids,)
    word_table: tuple[NDArray[np.float32], NDArray[np.int32]]
    entity_table: tuple[NDArray[np.float32], NDArray[np.int32]]
    anchor_rows: NDArray[np.int32]  # (anchors,) row of the entity, or -1
    page_rows: NDArray[np.int32]  # (pages,)
    opening_begins: NDArray[np.int64]
    opening_ends: NDArray[np.int64]
    jobs: NDArray[np.int64]  # (jobs + 1,) pages
    missing: list[str]  # titles to keep that are not in the corpus
    unseen: int  # entities that have no vector because their titles have invisible characters


def prepare(corpus: Corpus, options: VectorTrainingOptions, *, keep: Collection[str] = ()) -> TrainingData:
    """Choose words and entities and prepare the arrays. Entities in `keep` have a vector whatever their count."""
    counts = np.asarray(corpus.word_counts)
    words = int(np.searchsorted(-counts, -options.min_word_count, side="right"))
    if words == 0:
        raise EbertError(
            f"no word of {corpus.path} occurs {options.min_word_count} times; lower the minimum (--min-word-count)"
        )
    starts = np.asarray(corpus.paragraphs)[np.asarray(corpus.page_paragraphs)]  # (pages + 1,) tokens
    openings = np.minimum(np.asarray(corpus.page_opening, np.int64), options.opening_words)
    chosen, missing = _choose(corpus, options, openings, keep)
    names = corpus.entities
    entities = np.array([number for number in chosen.tolist() if not letters.unseen(names[number])], np.int64)
    rows = np.full(len(corpus.entity_counts), -1, np.int32)
    rows[entities] = np.arange(len(entities), dtype=np.int32)
    thresholds = np.zeros(len(counts), np.uint32)
    thresholds[:words] = keep_thresholds(counts[:words], sample=options.sample)
    weights = np.maximum(np.asarray(corpus.entity_counts)[entities], 1).astype(np.float64) ** options.entity_power
    return TrainingData(
        corpus=corpus,
        words=words,
        entities=entities,
        tokens=np.asarray(corpus.tokens),
        paragraphs=np.asarray(corpus.paragraphs),
        keep=thresholds,
        word_table=alias_table(counts[:words].astype(np.float64) ** options.word_power),
        entity_table=alias_table(weights if len(weights) else np.ones(1)),
        anchor_rows=rows[np.asarray(corpus.anchor_entity)],
        page_rows=rows[np.asarray(corpus.page_entity)],
        opening_begins=starts[:-1],
        opening_ends=starts[:-1] + openings,
        jobs=_cut(starts),
        missing=missing,
        unseen=len(chosen) - len(entities),
    )


def _choose(
    corpus: Corpus, options: VectorTrainingOptions, openings: NDArray[np.int64], keep: Collection[str]
) -> tuple[NDArray[np.int64], list[str]]:
    """Return the ids of the entities that have vectors, rising, and the titles in `keep` that nobody knows."""
    chosen = np.asarray(corpus.entity_counts) >= max(options.min_entity_count, 1)
    if options.openings and options.min_opening:
        chosen[np.asarray(corpus.page_entity)[openings >= options.min_opening]] = True
    missing = []
    if keep:
        ids = {title: number for number, title in enumerate(corpus.entities)}
        redirects = dict(corpus.redirects)
        for name in keep:
            forms = titles.spellings(name)
            found = next((ids[form] for form in (*forms, *(redirects.get(f, "") for f in forms)) if form in ids), None)
            if found is None:
                missing.append(name)
            else:
                chosen[found] = True
    return np.flatnonzero(chosen), missing


def _cut(starts: NDArray[Any]) -> NDArray[np.int64]:
    """Cut the pages into jobs of about the same number of words; `starts` has the first word of each page."""
    total = int(starts[-1])
    edges = np.searchsorted(starts, np.arange(0, total + JOB, JOB), side="left")
    return np.unique(np.append(np.minimum(edges, len(starts) - 1), len(starts) - 1))


def keep_thresholds(counts: NDArray[np.int64], *, sample: float) -> NDArray[np.uint32]:
    """Return, of 2^32 - 1, how often each word survives subsampling: ``sqrt(t/f) + t/f`` for the share f of the text.

    Zero means never, so a word that is trained at all has at least one.
    """
    if sample <= 0:
        return np.full(len(counts), 0xFFFFFFFF, np.uint32)
    share = counts / max(int(counts.sum()), 1)
    kept = np.minimum(np.sqrt(sample / share) + sample / share, 1.0)
    return np.maximum(kept * 0xFFFFFFFF, 1).astype(np.uint32)


def alias_table(weights: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
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
    share[poor + rich] = 1  # what rounding left over
    return share.astype(np.float32), alias


def stream(*numbers: int) -> NDArray[np.uint64]:
    """Return the state of a random generator of its own for each combination of numbers (splitmix64)."""
    value = 0
    for number in numbers:
        value = (value + number + 1) * 0x9E3779B97F4A7C15 & _ALL
        value = (value ^ value >> 30) * _MIX[0] & _ALL
        value = (value ^ value >> 27) * _MIX[1] & _ALL
        value ^= value >> 31
    return np.array([value or 1], np.uint64)
