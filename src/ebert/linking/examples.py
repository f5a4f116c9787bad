"""Training data: potential spans with their gold entities, and the over-generated ones with the null entity.

A span whose gold entity is not among its candidates is left out, as in the paper. So is a span that a document says
nothing about (`Document.ignore`), and one that differs from gold only by the marks at its edges, such as `hard` in
`"hard"`. An epoch may use only a part of the over-generated spans, a different part each time; these weigh more in the
loss, so that the loss stays the same on average.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch.utils.data import Dataset

from ebert.linking.candidates.words import bare
from ebert.linking.document import Document
from ebert.linking.linker import Linker
from ebert.linking.refine import ChunkState
from ebert.linking.scorer import NULL
from ebert.linking.sequences import Chunk, LinkSequence, Placed
from ebert.model.batching import windows

GOLD, OVER, NOT_AMONG, IGNORED = (
    "gold spans",
    "over-generated spans",
    "gold spans left out, their entity not among the candidates",
    "spans left out, nothing known about them",
)


@dataclass(frozen=True, slots=True)
class LabelledChunk:
    """A chunk with the labels of its spans."""

    chunk: Chunk
    gold: tuple[tuple[Placed, int], ...]  # spans and the labels of their entities
    nulls: tuple[Placed, ...]


Item = tuple[LinkSequence, tuple[int, ...], tuple[float, ...]]  # a sequence, and the labels and weights of its spans


def examples(linker: Linker, documents: Sequence[Document]) -> tuple[list[LabelledChunk], Counter[str]]:
    """Return chunks with labelled spans, and count what happened to the spans."""
    found: list[LabelledChunk] = []
    counts: Counter[str] = Counter()
    for part in windows(documents, 64):
        for chunk in linker.chunks(part):
            document = part[chunk.document]
            text, ignored = document.text, document.ignoring()
            entities = {(mention.start, mention.end): mention.entity for mention in document.gold}
            almost = {bare(text, *place) for place in entities}
            gold, nulls = [], []
            for placed in chunk.spans:
                place = placed.span.start, placed.span.end
                titles = [choice.title for choice in placed.span.choices]
                if place in entities:
                    among = entities[place] in titles
                    counts[GOLD if among else NOT_AMONG] += 1
                    gold += [(placed, 1 + titles.index(entities[place]))] if among else []
                elif ignored(*place) or bare(text, *place) in almost:
                    counts[IGNORED] += 1
                else:
                    counts[OVER] += 1
                    nulls.append(placed)
            if gold or nulls:
                found.append(LabelledChunk(chunk, tuple(gold), tuple(nulls)))
    return found, counts


class TrainingSet(Dataset[list[Item]]):
    """The training data of an epoch, in order: one span at a time (paper), or one chunk (packed).

    Both depend only on the seed and the epoch, so a run that is continued later sees the same data.
    """

    def __init__(self, linker: Linker, given: Sequence[LabelledChunk], *, nulls: float, seed: int) -> None:
        self._linker, self._given, self._share, self._seed = linker, given, nulls, seed
        self._gold = [(one.chunk, placed, label) for one in given for placed, label in one.gold]
        self._nulls = [(one.chunk, placed) for one in given for placed in one.nulls]
        self._paper = linker.options.strategy == "paper"
        self.spans = len(self._gold)  # that an epoch sees
        self.spans += sum(map(self._kept, [len(self._nulls)] if self._paper else [len(one.nulls) for one in given]))
        self.begin(0)

    def begin(self, epoch: int) -> None:
        """Choose the data of an epoch before it begins."""
        self._epoch = epoch
        self._order = np.random.default_rng([self._seed, epoch, 1]).permutation(len(self)).tolist()
        if self._paper:
            self._chosen, self._weight = self._draw(self._nulls)

    def __len__(self) -> int:
        return self.spans if self._paper else len(self._given)

    def __getitem__(self, place: int) -> list[Item]:
        number = self._order[place]
        if not self._paper:
            one = self._given[number]
            chosen, weight = self._draw(one.nulls, number)
            known = {placed: (label, 1.0) for placed, label in one.gold}
            return self._items(one.chunk, known | dict.fromkeys(chosen, (NULL, weight)))
        if number < len(self._gold):
            chunk, placed, label = self._gold[number]
            return self._items(chunk, {placed: (label, 1.0)})
        chunk, placed = self._chosen[number - len(self._gold)]
        return self._items(chunk, {placed: (NULL, self._weight)})

    def _kept(self, count: int) -> int:
        return math.ceil(count * self._share)

    def _draw(self, nulls: Sequence[Any], *more: int) -> tuple[list[Any], float]:
        """Return the over-generated spans that the epoch uses, and the weight of each."""
        order = np.random.default_rng([self._seed, self._epoch, *more]).permutation(len(nulls))
        kept = order[: self._kept(len(nulls))]
        return [nulls[index] for index in kept], len(nulls) / max(1, len(kept))

    def _items(self, chunk: Chunk, known: dict[Placed, tuple[int, float]]) -> list[Item]:
        asked = tuple(sorted(known, key=lambda placed: (placed.first, placed.stop)))
        items: list[Item] = []
        for one in self._linker.sequences(ChunkState(Chunk(chunk.document, chunk.ids, asked))):
            labels, weights = zip(*(known[placed] for placed in one.spans), strict=True)
            items.append((one, labels, weights))
        return items
