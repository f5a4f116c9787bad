"""Reading the model files of Wikipedia2Vec (joblib pickles), without running anything in them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.progress import Advance, silent
from ebert.vectors import pickles
from ebert.vectors.sources import BATCH, ENTITY, Batch


class Wikipedia2VecModel:
    """A model file, opened: vectors mapped, names in their tries."""

    def __init__(self, path: Path) -> None:
        """Open the file and check that its parts fit together."""
        try:
            import marisa_trie
        except ImportError:
            raise EbertError(
                "Wikipedia2Vec keeps names in marisa tries: pip install 'ebert[wikipedia2vec]' to read its model files"
            ) from None
        value = pickles.load(path)
        try:
            dictionary = value["dictionary"]
            self.vectors: NDArray[Any] = value["syn0"]
            self._words, self._entities = marisa_trie.Trie(), marisa_trie.Trie()
            self._redirects = marisa_trie.RecordTrie("<I")
            self._words.frombytes(dictionary["word_dict"])
            self._entities.frombytes(dictionary["entity_dict"])
            self._redirects.frombytes(dictionary["redirect_dict"])
            self._counts = [np.asarray(dictionary[f"{kind}_stats"]).reshape(-1, 2)[:, 0] for kind in ("word", "entity")]
            self.meta: Mapping[str, Any] = dictionary.get("meta") or {}
        except (KeyError, TypeError, AttributeError, ValueError, RuntimeError) as error:
            raise EbertError(
                f"{path} is not a model of Wikipedia2Vec 1.0 or later ({type(error).__name__}: {error}); "
                "load it with the Wikipedia2Vec that made it and save it as text (save_text)"
            ) from None
        sizes = len(self._words), len(self._entities)
        if self.vectors.ndim != 2 or len(self.vectors) < sum(sizes):
            raise EbertError(f"{path} has vectors of shape {self.vectors.shape} for {sum(sizes):,} names")

    def batches(self, advance: Advance = silent) -> Iterator[Batch]:
        """Go through words, then entities."""
        for trie, prefix, offset, counts in (
            (self._words, "", 0, self._counts[0]),
            (self._entities, ENTITY, len(self._words), self._counts[1]),
        ):
            for start in range(0, len(trie), BATCH):
                stop = min(len(trie), start + BATCH)
                names = [prefix + trie.restore_key(index) for index in range(start, stop)]
                block = self.vectors[offset + start : offset + stop]
                yield Batch(names, np.asarray(block, np.float32), counts[start:stop].tolist())
                advance(block.nbytes)

    def redirects(self) -> Iterator[tuple[str, str]]:
        """Go through the redirects."""
        for title, (index,) in self._redirects.iteritems():
            yield title, self._entities.restore_key(index)
