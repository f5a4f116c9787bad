"""Hidden states of a passage: by piece, by word, by entity, or pooled into one array."""

import re
import unicodedata
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
        """The words and punctuation marks of the text that the encoder saw; a mask is one word."""
        masks = [self.pieces.spans[place] for place in self.pieces.masks]
        inside = {place for start, end in masks for place in range(start, end)}
        spans = sorted([*masks, *(span for span in _words(self.passage.text) if span[0] not in inside)])
        return tuple(Word(*span, self.passage.text[slice(*span)]) for span in spans if self._places(*span))

    @cached_property
    def word_states(self) -> Tensor:
        """The hidden states of the words, shape (words, hidden): the mean over each word's pieces.

        A word inside a replaced mention has the state of its entity.
        """
        return self._stack([self.span(word.start, word.end) for word in self.words])

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
            states = self._stack([self.span(m.start, m.end) if own is None else own for own, m in found])
        array: NDArray[np.float32] = states.float().cpu().numpy()
        return array

    def entity(self, mention: Mention) -> Tensor | None:
        """The hidden state of a mention's entity, or None if it was not fed."""
        return next((self.states[place] for place, other in self.pieces.entities.items() if other == mention), None)

    def span(self, start: int, end: int) -> Tensor:
        """The mean hidden state of the pieces of a span of characters."""
        places = self._places(start, end)
        wordpieces = [place for place in places if place not in self.pieces.entities]
        return self._mean(wordpieces or places, f"characters {start}:{end} of the text")

    def _mean(self, places: list[int], what: str = "any of its text") -> Tensor:
        if not places:
            raise EbertError(f"no piece of the encoder covers {what}")
        return self.states[places].mean(dim=0)

    def _stack(self, rows: list[Tensor]) -> Tensor:
        return torch.stack(rows) if rows else self.states[:0]

    def _places(self, start: int, end: int) -> list[int]:
        """Return which pieces cover some of a span."""
        spans = enumerate(self.pieces.spans)
        return [place for place, (first, last) in spans if first < end and last > start and first < last]


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
