"""Which words of passages are masked while an alignment is learned (`ebert.model.learning`)."""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ebert.model.batching import plan
from ebert.model.injection import Injector, Pieces
from ebert.model.options import LearningOptions, Mode
from ebert.model.passages import KnownPassage
from ebert.vectors.store import Vectors

SHORT = 3  # letters of a word that is masked, at least
CAPITALISED = 1.5  # how much likelier a capitalised word is masked: names say more about an entity
FUNCTION_WORDS = 150  # the most frequent words of the store are not masked
LETTERS = 4  # of a wordpiece: passages with many more are too long, and need not be cut to know it
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class MaskablePassage:
    """A passage in one mode, and the places of its wordpieces that may be masked."""

    pieces: Pieces
    places: tuple[int, ...]
    capitalised: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.pieces)


Batch = list[tuple[MaskablePassage, tuple[int, ...]]]
"""Samples, each with the places that are masked in it."""


class Masker:
    """Cuts passages into wordpieces and draws the words to mask."""

    def __init__(self, injector: Injector, vectors: Vectors, options: LearningOptions) -> None:
        self._injector, self._options = injector, options
        query = "SELECT word FROM words WHERE count IS NOT NULL ORDER BY count DESC LIMIT ?"
        self._function_words = {word.lower() for (word,) in vectors.catalogue.rows(query, (FUNCTION_WORDS,))}

    def samples(self, passages: Sequence[KnownPassage], mode: Mode) -> list[MaskablePassage]:
        """Cut passages into wordpieces; skip those that are too long or have no word to mask."""
        longest = min(self._options.longest, self._injector.longest)
        short = [one for one in passages if len(one.passage.text) <= 2 * LETTERS * longest]
        cut = self._injector.sequencer([(one.passage, one.found) for one in short], mode)
        found = ((pieces, list(self._maskable(pieces))) for pieces in cut if len(pieces) <= longest)
        return [MaskablePassage(pieces, *zip(*places, strict=True)) for pieces, places in found if places]

    def group(self, samples: Sequence[MaskablePassage]) -> list[list[MaskablePassage]]:
        """Return batches of samples of like length."""
        return [[samples[i] for i in group] for group in plan(list(map(len, samples)), self._options.tokens)]

    def mask(self, batch: Sequence[MaskablePassage], rng: random.Random) -> Batch:
        """Draw the places to mask in each sample: one at least."""
        return [(sample, self._draw(sample, rng)) for sample in batch]

    def _draw(self, sample: MaskablePassage, rng: random.Random) -> tuple[int, ...]:
        share = self._options.mask
        likely = (
            (place, share * (CAPITALISED if up else 1))
            for place, up in zip(sample.places, sample.capitalised, strict=True)
        )
        chosen = tuple(place for place, probability in likely if rng.random() < probability)
        return chosen or (rng.choice(sample.places),)

    def _maskable(self, pieces: Pieces) -> Iterator[tuple[int, bool]]:
        """Yield the places of wordpieces that are a whole content word outside mentions, and whether it is capitalised.

        A word of a mentioned title is left alone: the name gives it away.
        """
        text, mentions = pieces.passage.text, pieces.passage.mentions
        names = {word.lower() for mention in mentions for word in _WORD.findall(mention.entity.replace("_", " "))}
        for place, (start, end) in enumerate(pieces.spans):
            word = text[start:end]
            if place in pieces.entities or len(word) < SHORT or not _WORD.fullmatch(word):
                continue
            if text[start - 1 : start].isalnum() or text[end : end + 1].isalnum():  # a part of a word
                continue
            if any(mention.start < end and start < mention.end for mention in mentions):
                continue
            if word.lower() not in names and word.lower() not in self._function_words:
                yield place, word[0].isupper()
