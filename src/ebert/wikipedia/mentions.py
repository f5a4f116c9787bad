"""The mention table: which words link to which entities, how often, and how often the same words occur unlinked."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io.progress import Advance, silent
from ebert.wikipedia.corpus import SURFACES, WORDS, write_array
from ebert.wikipedia.names import LINE, NameList, jit

LONGEST = 10  # words of a surface
TALLIED = 1 << 24  # links to count at a time
LINKS = 1 << 16  # links to insert at a time
SCANNED = 1 << 20  # tokens for a thread to scan at a time
COUNTERS = 1 << 30  # bytes of memory for the counters of all threads, at most

Array = NDArray[Any]


def write(folder: Path, *, threads: int, advance: Advance = silent) -> int:
    """Make the table from the text and the links in a folder; return the number of surfaces."""
    arrays = ("tokens", "paragraphs", "anchor_start", "anchor_length", "anchor_entity")
    tokens, paragraphs, starts, lengths, entities = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in arrays)
    words = NameList.of((folder / WORDS).read_bytes())
    trie = Trie(len(words))
    keys = counts = np.zeros(0, np.int64)  # (mentions) surface and entity in one number, and how often
    for begin in range(0, len(starts), TALLIED):
        piece = slice(begin, begin + TALLIED)
        surface = trie.insert(tokens, starts[piece], lengths[piece], LONGEST)  # (links) -1 where there is none
        found, often = np.unique((surface.astype(np.int64) << 32 | entities[piece])[surface >= 0], return_counts=True)
        keys, number = np.unique(np.concatenate([keys, found]), return_inverse=True)
        counts = np.bincount(number, np.concatenate([counts, often]), len(keys)).astype(np.int64)
    linked = np.zeros(len(trie), np.int64)
    np.add.at(linked, keys >> 32, counts)
    names = trie.names(tokens, words)
    order = names.by_count(linked)
    names.take(order).write(folder / SURFACES)
    # Two links may share a word; still, nothing may be linked more often than it occurs.
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


class Trie:
    """Surfaces, numbered in the order in which they come, in arrays for compiled code.

    A node is a beginning of surfaces. The next node for a word is looked up in a hash table with exact keys (node and
    word in 64 bits), so a scan stops as soon as no surface begins like the text.
    """

    def __init__(self, words: int) -> None:
        self._root = np.full(words, -1, np.int32)  # node of each first word
        self._keys, self._child = np.full(1024, -1, np.int64), np.zeros(1024, np.int32)
        self._surface = np.full(1024, -1, np.int32)  # of each node
        self._first, self._length = np.zeros(1024, np.int64), np.zeros(1024, np.int32)  # of each surface, in the text
        self._nodes = self._surfaces = 0

    def __len__(self) -> int:
        return self._surfaces

    def insert(self, tokens: Array, starts: Array, lengths: Array, longest: int) -> Array:
        """Return the surface of each link, -1 where it has no words or too many."""
        out = np.full(len(starts), -1, np.int32)
        for begin in range(0, len(starts), LINKS):
            piece = slice(begin, begin + LINKS)
            self._make_room(int(np.minimum(lengths[piece], longest).sum()))
            self._nodes, self._surfaces = _insert(
                tokens, starts[piece], lengths[piece], longest, self._root, self._keys, self._child, self._surface,
                self._first, self._length, self._nodes, self._surfaces, out[piece],
            )  # fmt: skip
        return out

    def words(self, tokens: Array) -> tuple[Array, Array]:
        """Return the words of all surfaces, concatenated, and the number of words of each."""
        first, length = self._first[: len(self)], self._length[: len(self)]
        return tokens[np.repeat(first - (np.cumsum(length) - length), length) + np.arange(length.sum())], length

    def names(self, tokens: Array, words: NameList) -> NameList:
        """Write the surfaces out: their words, joined by blanks."""
        numbers, length = self.words(tokens)
        ends = np.cumsum(length)  # of each surface, in words of all
        joined = words.take(numbers)
        joined.data[joined.ends] = ord(" ")
        joined.data[joined.ends[ends - 1]] = LINE
        return NameList(joined.data, joined.ends[ends - 1])

    def count(self, tokens: Array, paragraphs: Array, threads: int, advance: Advance = silent) -> Array:
        """Count all occurrences of all surfaces inside paragraphs, nested and overlapping ones too."""
        threads = max(1, min(threads, COUNTERS // (8 * len(self) + 1)))
        marks = np.searchsorted(paragraphs, np.arange(SCANNED, len(tokens), SCANNED))
        cuts = np.unique(np.concatenate([[0], marks, [len(paragraphs) - 1]]))
        counters = np.zeros((threads, len(self)), np.int64)

        def work(thread: int) -> None:
            for begin, end in zip(cuts[thread:-1:threads], cuts[thread + 1 :: threads], strict=True):
                _count(
                    tokens, paragraphs, begin, end, self._root, self._keys, self._child, self._surface, counters[thread]
                )
                advance(int(paragraphs[end] - paragraphs[begin]))

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
        return counters.sum(axis=0)

    def _make_room(self, nodes: int) -> None:
        """Make room for some more nodes; the table is never more than half full."""
        needed = self._nodes + nodes
        if 2 * needed > len(self._keys):
            keys, child = self._keys, self._child
            self._keys = np.full(1 << (2 * needed).bit_length(), -1, np.int64)
            self._child = np.zeros(len(self._keys), np.int32)
            _rehash(keys, child, self._keys, self._child)
        if needed > len(self._surface):
            size = max(needed, 2 * len(self._surface))
            for name, empty in (("_surface", -1), ("_first", 0), ("_length", 0)):
                before = getattr(self, name)
                setattr(self, name, np.append(before, np.full(size - len(before), empty, before.dtype)))


@jit
def _place(keys: Array, node: int, word: int) -> tuple[Any, Any]:
    """Return the key of an edge and its place in the table, or the free place where it belongs."""
    key = np.int64(node) << 32 | np.int64(word)
    mask = np.int64(len(keys) - 1)
    place = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while keys[place] != -1 and keys[place] != key:
        place = (place + 1) & mask
    return key, place


@jit
def _rehash(old_keys: Array, old_child: Array, keys: Array, child: Array) -> None:
    for old in range(len(old_keys)):
        if old_keys[old] != -1:
            key, place = _place(keys, old_keys[old] >> 32, old_keys[old] & 0xFFFFFFFF)
            keys[place] = key
            child[place] = old_child[old]


@jit
def _insert(
    tokens: Array, starts: Array, lengths: Array, longest: int, root: Array, keys: Array, child: Array,
    surface: Array, first: Array, length: Array, nodes: int, surfaces: int, out: Array,
) -> tuple[int, int]:  # fmt: skip
    for link in range(len(starts)):
        start, size = starts[link], lengths[link]
        if size == 0 or size > longest:
            continue
        node = root[tokens[start]]
        if node < 0:
            root[tokens[start]] = node = nodes
            nodes += 1
        for position in range(start + 1, start + size):
            key, place = _place(keys, node, tokens[position])
            if keys[place] == -1:
                keys[place] = key
                child[place] = nodes
                nodes += 1
            node = child[place]
        if surface[node] < 0:
            surface[node] = surfaces
            first[surfaces] = start
            length[surfaces] = size
            surfaces += 1
        out[link] = surface[node]
    return nodes, surfaces


@jit
def _count(
    tokens: Array, paragraphs: Array, begin: int, end: int, root: Array, keys: Array, child: Array, surface: Array,
    counts: Array,
) -> None:  # fmt: skip
    for paragraph in range(begin, end):
        stop = paragraphs[paragraph + 1]
        for start in range(paragraphs[paragraph], stop):
            node = root[tokens[start]]
            position = start + 1
            while node >= 0:
                if surface[node] >= 0:
                    counts[surface[node]] += 1
                if position == stop:
                    break
                _, place = _place(keys, node, tokens[position])
                if keys[place] == -1:
                    break
                node = child[place]
                position += 1
