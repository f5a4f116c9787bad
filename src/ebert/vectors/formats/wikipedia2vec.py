"""Reading the model files of Wikipedia2Vec (joblib pickles), without running anything in them."""

from collections.abc import Generator, Iterator, Sized
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.vectors.formats import pickles
from ebert.vectors.formats.binary import BATCH, ENTITY, Batch

SOME = 1000  # rows to check whether a matrix contains anything


class Wikipedia2VecModel:
    """An open model file: mapped vectors, and names in their tries."""

    def __init__(self, path: Path) -> None:
        try:
            import marisa_trie
        except ImportError:
            raise EbertError(
                "Wikipedia2Vec keeps names in marisa tries: pip install 'ebert[wikipedia2vec]' to read its model files"
            ) from None
        value = pickles.load(path)
        self._words, self._entities = marisa_trie.Trie(), marisa_trie.Trie()
        self._redirects = marisa_trie.RecordTrie("<I")
        try:
            dictionary = value["dictionary"]
            self._vectors: NDArray[Any] = np.asarray(value["syn0"])
            self._words.frombytes(dictionary["word_dict"])
            self._entities.frombytes(dictionary["entity_dict"])
            self._redirects.frombytes(dictionary["redirect_dict"])
            self._word_counts = _counts(dictionary["word_stats"], self._words)
            self._entity_counts = _counts(dictionary["entity_stats"], self._entities)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError, RuntimeError, MemoryError) as error:
            raise EbertError(
                f"{path} is not a model of Wikipedia2Vec 1.0 or later ({type(error).__name__}: {error}); "
                "load it with the Wikipedia2Vec that made it and save it as text (save_text)"
            ) from None
        meta = dictionary.get("meta")
        self.lowercase = isinstance(meta, dict) and bool(meta.get("lowercase"))
        self._outputs = _outputs(value.get("syn1"), self._vectors)
        names = len(self._words) + len(self._entities)
        if self._vectors.ndim != 2 or self._vectors.dtype.kind != "f" or len(self._vectors) < names:
            shape = f"vectors of shape {self._vectors.shape}, {self._vectors.dtype}"
            raise EbertError(f"{path} has {shape}, for {names:,} names; it is damaged, or was never trained")

    def batches(self, advance: Advance = silent) -> Generator[Batch, None, None]:
        """Yield the words, then the entities."""
        words = len(self._words)
        yield from self._part(self._words, "", self._vectors[:words], self._word_counts, advance, self._outputs)
        yield from self._part(self._entities, ENTITY, self._vectors[words:], self._entity_counts, advance)

    def redirects(self) -> Iterator[tuple[str, str]]:
        """Yield the redirects."""
        count = len(self._entities)
        for title, (index,) in self._redirects.iteritems():
            # A redirect that leads nowhere gets no target, and is counted as dropped with the others.
            yield title, self._entities.restore_key(index) if index < count else ""

    @staticmethod
    def _part(
        trie: Any,
        prefix: str,
        vectors: NDArray[Any],
        counts: NDArray[Any] | None,
        advance: Advance,
        outputs: NDArray[Any] | None = None,
    ) -> Iterator[Batch]:
        for start in range(0, len(trie), BATCH):
            stop = min(len(trie), start + BATCH)
            names = [prefix + trie.restore_key(index) for index in range(start, stop)]
            block = np.asarray(vectors[start:stop])
            learned = None if outputs is None else np.asarray(outputs[start:stop])
            yield Batch(names, block, None if counts is None else counts[start:stop].tolist(), outputs=learned)
            advance(block.nbytes)


def _counts(statistics: Any, names: Sized) -> NDArray[Any] | None:
    """Return how often each name occurred. A model that came from text has no counts and says zero for all."""
    counts: NDArray[Any] = np.asarray(statistics).reshape(-1, 2)[:, 0]
    if len(counts) < len(names):
        raise ValueError(f"{len(counts)} counts for {len(names)} names")
    return counts if counts.any() else None


def _outputs(matrix: Any, vectors: NDArray[Any]) -> NDArray[Any] | None:
    """Return the output vectors, in the order of the vectors. A model that came from text has none, or only zeros."""
    if not isinstance(matrix, np.ndarray) or matrix.shape != vectors.shape or matrix.dtype.kind != "f":
        return None
    return matrix if matrix[:SOME].any() else None
