"""Training data: potential spans with their gold entities, and the over-generated ones with the null entity.

A span whose gold entity is not among its candidates is left out, as in the paper, and so is one that a document says
nothing about (`Document.ignore`), and one that is gold but for the marks at its edges, as `hard` of `"hard"` is. An
epoch may see a part of the over-generated spans only, another part each time; these weigh more in the loss, so that the
loss stays what it is on average.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch.utils.data import Dataset

from ebert.linking.candidates.words import bare
from ebert.linking.document import Document, Span
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
    """A chunk with what is known about its spans."""

    chunk: Chunk
    gold: tuple[tuple[Placed, int], ...]  # spans and the labels of their entities
    nulls: tuple[Placed, ...]


Item = tuple[LinkSequence, tuple[int, ...], tuple[float, ...]]  # a sequence, and the labels and weights of its spans


def examples(linker: Linker, documents: Sequence[Document]) -> tuple[list[LabelledChunk], Counter[str]]:
    """Return chunks with labelled spans, and count what became of the spans."""
    found: list[LabelledChunk] = []
    counts: Counter[str] = Counter()
    for part in windows(documents, 64):
        for chunk in linker.chunks(part):
            gold: list[tuple[Placed, int]] = []
            nulls: list[Placed] = []
            document = part[chunk.document]
            entities = {(mention.start, mention.end): mention.entity for mention in document.gold}
            ignored = document.ignoring()
            almost = {bare(document.text, mention.start, mention.end) for mention in document.gold}
            for placed in chunk.spans:
                span = placed.span
                unsure = ignored(span.start, span.end) or bare(document.text, span.start, span.end) in almost
                label = _label(span, entities, unsure, counts)
                if label == NULL:
                    nulls.append(placed)
                elif label is not None:
                    gold.append((placed, label))
            if gold or nulls:
                found.append(LabelledChunk(chunk, tuple(gold), tuple(nulls)))
    return found, counts


def _label(span: Span, gold: dict[tuple[int, int], str], unsure: bool, counts: Counter[str]) -> int | None:
    entity = gold.get((span.start, span.end))
    if entity is not None:
        titles = [choice.title for choice in span.choices]
        counts[GOLD if entity in titles else NOT_AMONG] += 1
        return 1 + titles.index(entity) if entity in titles else None
    if unsure:
        counts[IGNORED] += 1
        return None
    counts[OVER] += 1
    return NULL


class TrainingSet(Dataset[list[Item]]):
    """What an epoch sees; set `epoch` before going through it. What it gives depends on the seed and the epoch only."""

    def __init__(self, linker: Linker, given: Sequence[LabelledChunk], *, nulls: float, seed: int) -> None:
        self._linker, self._given, self._share, self._seed = linker, given, nulls, seed
        self._paper = linker.options.strategy == "paper"
        self._gold = [(n, placed, label) for n, one in enumerate(given) for placed, label in one.gold]
        self._nulls = [(n, placed) for n, one in enumerate(given) for placed in one.nulls]
        self._kept = math.ceil(len(self._nulls) * nulls)
        self.epoch = 0

    @property
    def epoch(self) -> int:
        """Which epoch it is."""
        return self._epoch

    @epoch.setter
    def epoch(self, number: int) -> None:
        self._epoch = number
        if self._paper:
            self._chosen = np.random.default_rng([self._seed, number]).permutation(len(self._nulls))[: self._kept]

    def __len__(self) -> int:
        return len(self._gold) + self._kept if self._paper else len(self._given)

    @property
    def spans(self) -> int:
        """The number of spans that an epoch sees."""
        if self._paper:
            return len(self)
        return len(self._gold) + sum(math.ceil(len(one.nulls) * self._share) for one in self._given)

    def __getitem__(self, number: int) -> list[Item]:
        if not self._paper:
            return self._packed(number)
        if number < len(self._gold):
            which, placed, label = self._gold[number]
            weight = 1.0
        else:
            which, placed = self._nulls[self._chosen[number - len(self._gold)]]
            label, weight = NULL, len(self._nulls) / self._kept
        chunk = self._given[which].chunk
        return self._items(chunk, {placed: (label, weight)})

    def _packed(self, number: int) -> list[Item]:
        one = self._given[number]
        kept = math.ceil(len(one.nulls) * self._share)
        chosen = np.random.default_rng([self._seed, self._epoch, number]).permutation(len(one.nulls))[:kept]
        known = {placed: (label, 1.0) for placed, label in one.gold}
        known |= {one.nulls[index]: (NULL, len(one.nulls) / kept) for index in chosen}
        return self._items(one.chunk, known)

    def _items(self, chunk: Chunk, known: dict[Placed, tuple[int, float]]) -> list[Item]:
        asked = tuple(sorted(known, key=lambda placed: (placed.first, placed.stop)))
        made = self._linker.sequences(ChunkState(Chunk(chunk.document, chunk.ids, asked)))
        items: list[Item] = []
        for one in made:
            labels, weights = zip(*(known[placed] for placed in one.spans), strict=True)
            items.append((one, labels, weights))
        return items
