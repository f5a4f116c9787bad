"""Hidden states of a passage: by piece, by word, by entity, or pooled into one array."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ebert.errors import EbertError
from ebert.model.injection import Pieces
from ebert.text.passage import Mention, Passage

Pooling = Literal["none", "cls", "mean", "entity"]

_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Word:
    """A word or a punctuation mark of a passage, by character offsets."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Encoding:
    """The hidden states of one passage."""

    pieces: Pieces
    tokens: tuple[str, ...]
    """What the encoder saw: wordpieces, and entities as titles with underscores."""
    states: Tensor
    """One hidden state a token, shape (tokens, hidden)."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Titles without a vector, which the encoder saw as wordpieces only."""
        return self.pieces.missing

    @property
    def passage(self) -> Passage:
        """The passage that was encoded."""
        return self.pieces.passage

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words and punctuation marks of the text; a mask is one word."""
        return tuple(self._split())

    @cached_property
    def word_states(self) -> Tensor:
        """The hidden states of the words, shape (words, hidden): the mean over each word's pieces.

        A word inside a replaced mention has the state of its entity.
        """
        if not self.words:
            return self.states[:0]
        return torch.stack([self.span(word.start, word.end) for word in self.words])

    def pooled(self, pooling: Pooling) -> NDArray[np.float32]:
        """Return the hidden states as an array.

        `none` has a row for each token and `entity` one for each mention (its entity, or the mean over its words if it
        was not fed); `cls` is the state of the first token and `mean` that of all pieces of the text, shape (hidden,).
        """
        if pooling not in get_args(Pooling):
            raise EbertError(f"unknown pooling {pooling!r}; choose one of {', '.join(get_args(Pooling))}")
        states = self.states
        if pooling == "cls":
            states = states[0]
        elif pooling == "mean":
            states = self._mean([place for place, (start, end) in enumerate(self.pieces.spans) if start < end])
        elif pooling == "entity":
            found = [(self.entity(mention), mention) for mention in self.passage.mentions]
            rows = [self.span(m.start, m.end) if own is None else own for own, m in found]
            states = torch.stack(rows) if rows else states[:0]
        array: NDArray[np.float32] = states.float().cpu().numpy()
        return array

    def entity(self, mention: Mention) -> Tensor | None:
        """The hidden state of a mention's entity, or None if it was not fed."""
        for place, other in self.pieces.entities.items():
            if other == mention:
                return self.states[place]
        return None

    def span(self, start: int, end: int) -> Tensor:
        """The mean hidden state of the pieces of a span of characters."""
        places = self._places(start, end, entities=False) or self._places(start, end, entities=True)
        return self._mean(places, f"characters {start}:{end} of the text")

    def _mean(self, places: list[int], what: str = "any of its text") -> Tensor:
        if not places:
            raise EbertError(f"no piece of the encoder covers {what}")
        return self.states[places].mean(dim=0)

    def _places(self, start: int, end: int, *, entities: bool) -> list[int]:
        return [
            place
            for place, (first, last) in enumerate(self.pieces.spans)
            if first < end and last > start and first < last and (place in self.pieces.entities) == entities
        ]

    def _split(self) -> Iterator[Word]:
        text = self.passage.text
        masks = sorted(self.pieces.spans[place] for place in self.pieces.masks)
        covered = [span for span in self.pieces.spans if span[0] < span[1]]
        for match in sorted([*masks, *_words(text)]):
            inside = any(start <= match[0] < end and match != (start, end) for start, end in masks)
            if not inside and any(start < match[1] and end > match[0] for start, end in covered):
                yield Word(*match, text[match[0] : match[1]])


def _words(text: str) -> list[tuple[int, int]]:
    """Cut text into words and punctuation marks.

    Accents and vowel signs that are characters of their own are no letters to Python; here they belong to their word.
    """
    spans: list[tuple[int, int]] = []
    for match in _WORD.finditer(text):
        start, end = match.span()
        if spans and spans[-1][1] == start:
            first, before = text[spans[-1][0]], text[start - 1]
            if _is_mark(text[start]) or (_is_mark(before) and first.isalnum() and text[start].isalnum()):
                spans[-1] = (spans[-1][0], end)
                continue
        spans.append((start, end))
    return spans


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")
