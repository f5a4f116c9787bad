"""The mention table: which words link to which entities, how often, and how often the same words stand unlinked."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io.progress import Advance, silent
from ebert.wikipedia.corpus import SURFACES, WORDS
from ebert.wikipedia.names import Names
from ebert.wikipedia.surfaces import Trie
from ebert.wikipedia.writing import write_array

LONGEST = 10  # words of a surface
PIECE = 1 << 22  # links at a time

Array = NDArray[Any]


def write(folder: Path, *, threads: int, advance: Advance = silent) -> int:
    """Make the table from the text and the links in a folder; give the number of surfaces."""
    arrays = ("tokens", "paragraphs", "anchor_start", "anchor_length", "anchor_entity")
    tokens, paragraphs, starts, lengths, entities = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in arrays)
    words = Names.of((folder / WORDS).read_bytes())
    trie, tally = Trie(len(words)), _Tally()
    for begin in range(0, len(starts), PIECE):
        piece = slice(begin, begin + PIECE)
        surface = trie.insert(tokens, starts[piece], lengths[piece], LONGEST)  # (links) -1 where there is none
        tally.add((surface.astype(np.int64) << 32 | entities[piece])[surface >= 0])
    keys, counts = tally.total()  # (mentions) surface and entity in one number
    linked = np.zeros(len(trie), np.int64)
    np.add.at(linked, keys >> 32, counts)
    names = trie.names(tokens, words)
    order = names.by_count(linked)
    names.take(order).write(folder / SURFACES)
    # Two links may share a word; even so nothing is linked more often than it occurs.
    occurrences = np.maximum(trie.count(tokens, paragraphs, threads, advance), linked)
    write_array(folder, "surface_occurrences", occurrences[order])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    surface, entity = place[keys >> 32], keys & 0xFFFFFFFF
    within = np.lexsort((entity, -counts, surface))
    mentions = np.zeros(len(order) + 1, np.int64)
    np.cumsum(np.bincount(surface, minlength=len(order)), out=mentions[1:])
    write_array(folder, "surface_mentions", mentions)
    write_array(folder, "mention_entity", entity[within])
    write_array(folder, "mention_count", counts[within])
    return len(order)


class _Tally:
    """Counts keys that come in pieces, in memory for the different ones only."""

    def __init__(self) -> None:
        self._counted: list[tuple[Array, Array]] = []

    def add(self, keys: Array) -> None:
        """Count some keys."""
        self._counted.append(np.unique(keys, return_counts=True))
        # Like is merged with like, so that every key is handled a few times only however many pieces there are.
        while len(self._counted) > 1 and 2 * len(self._counted[-1][0]) >= len(self._counted[-2][0]):
            self._merge()

    def total(self) -> tuple[Array, Array]:
        """Give the different keys in their order, and how often each came."""
        while len(self._counted) > 1:
            self._merge()
        return self._counted[0] if self._counted else (np.zeros(0, np.int64), np.zeros(0, np.int64))

    def _merge(self) -> None:
        keys, counts = (np.concatenate(pair) for pair in zip(self._counted.pop(), self._counted.pop(), strict=True))
        different, number = np.unique(keys, return_inverse=True)
        total = np.zeros(len(different), np.int64)
        np.add.at(total, number, counts)
        self._counted.append((different, total))
