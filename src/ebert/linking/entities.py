"""The vectors of candidates, as the encoder sees them: W times the store's, or the store's own for the baselines."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from ebert.alignment import Alignment, AlignmentOptions, AlignmentReport
from ebert.errors import EbertError
from ebert.vectors import Entity, Vectors

REMEMBERED = 500_000  # titles; looking one up takes a query, and the same ones come again and again


class Entities:
    """Looks entities up by title and carries their vectors."""

    def __init__(self, vectors: Vectors, alignment: Alignment) -> None:
        self.vectors, self.alignment = vectors, alignment
        self._known: dict[str, Entity] = {}
        self._stamp = vectors.stamp

    def find(self, title: str) -> Entity | None:
        """Give the entity with a title. One that is not there is looked for again: it may be added meanwhile."""
        found = self._known.get(title)
        if found is None and (found := self.vectors.find(title)) is not None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[title] = found
        return found

    def refresh(self) -> None:
        """Look everything up anew if the store has changed."""
        if self._stamp != self.vectors.stamp:
            self._stamp = self.vectors.stamp
            self._known.clear()

    def carried(self, titles: Sequence[str]) -> Tensor:
        """Give the carried vectors of entities that there are, shape (titles, width)."""
        found = [self.find(title) for title in titles]
        for title, entity in zip(titles, found, strict=True):
            if entity is None:
                raise self.vectors.unknown(title)
        return torch.from_numpy(self.alignment.carry(self.vectors.take([e for e in found if e is not None])))


def unaligned(vectors: Vectors, width: int, *, length: float | None = None) -> Alignment:
    """Give what carries vectors for the baselines without alignment (Wikipedia2Vec-BERT).

    Vectors as wide as the wordpieces' stay as they are, as in the paper. Narrower ones are put into the wider space by
    a random rotation, which keeps all their angles and lengths and knows nothing of the wordpieces. Where W scales its
    vectors to a `length`, these have it too, so that both differ in W only.
    """
    options, report = AlignmentOptions(method="none", length=length), AlignmentReport(pairs=0, r2=None)
    if vectors.dimension > width:
        raise EbertError(
            f"vectors of dimension {vectors.dimension} do not fit unaligned into an encoder of width {width}; "
            f"use a store of at most that dimension for the baselines"
        )
    weight = None
    if vectors.dimension < width:
        random = np.random.default_rng(0).normal(size=(width, vectors.dimension))
        weight = np.ascontiguousarray(np.linalg.qr(random)[0], np.float32)  # orthonormal columns
    return Alignment(weight, None, source=vectors.dimension, target=width, options=options, report=report)


def index(titles: Iterable[str]) -> dict[str, int]:
    """Number titles, each once, in their order."""
    return {title: number for number, title in enumerate(dict.fromkeys(titles))}
