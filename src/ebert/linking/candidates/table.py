"""Candidates by the mention table of a store.

Every run of up to ten words that the table knows is a span. A run grows only while a surface of the table goes on like
it, so the time is linear in the text. Spans may overlap, and many name nothing where they stand: rejecting them is the
model's part. Words are split as in the table, at every punctuation mark, so that possessives ("England's") and
compounds ("UK-based") need no rule of their own; only the mark that a name ends with ("U.S.", "Yahoo!") does.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from ebert.linking.candidates import words as spelt
from ebert.linking.candidates.generator import CandidateGenerator
from ebert.linking.candidates.words import AS_WRITTEN, RAISED, Place, Spelling, spell_on, without_genitive
from ebert.linking.document import Choice, Document, Span
from ebert.linking.options import CandidateOptions
from ebert.vectors.store import Vectors

Chosen = tuple[tuple[Choice, ...], float | None, int | None, bool]
"""What a span may mean, its link probability, how often it was linked, and whether only other spellings are known."""
Meaning = tuple[int, dict[str, int], set[str]]
"""How often a surface occurs, how often it means which title, and which it means because somebody added it so."""

REMEMBERED = 1 << 16  # surfaces that are looked up once only
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(rf"(?:\d+(?:st|nd|rd|th|s)?|BC|BCE|AD|CE|{_MONTHS})")


class MentionTable(CandidateGenerator):
    """Finds potential spans by the mention table of a store.

    >>> generator = MentionTable(Vectors.open("enwiki-vectors"))              # doctest: +SKIP
    >>> generator(Document("1", "Adams and Platt are both injured."))         # doctest: +SKIP

    Entities that were added to the store are found at once, by whatever they were said to be called, however ordinary a
    word or number it is: what is remembered is forgotten after every addition.
    """

    def __init__(self, vectors: Vectors, options: CandidateOptions | None = None) -> None:
        self.vectors, self.options = vectors, options or CandidateOptions()
        self.settings = asdict(self.options)
        self._stamp = vectors.stamp
        self._look_up = lru_cache(REMEMBERED)(self._looked_up)
        self._continues = lru_cache(REMEMBERED)(vectors.continues)
        self._choose = lru_cache(REMEMBERED)(self._chosen)

    def __call__(self, document: Document) -> list[Span]:
        """Return the potential spans of a document."""
        self._refresh()
        return list(self._spans(document.text))

    def at(self, text: str, start: int, end: int) -> Span | None:
        """Return what a given span may mean, or None: disambiguation of mentions that somebody else found.

        Unlike in a search, the span may be of any length and link probability.
        """
        self._refresh()
        given = text[start:end]
        _, words = self._words(given)
        headline = spelt.in_headline(text, start, end)
        found = self._any_spelling(words, headline)
        if not found and len(words) > 1 and words[-1] in ("s", "S") and given[-2:-1] in ("'", "’"):
            found = self._any_spelling(words[:-1], headline)
        return Span(start, end, *found) if found else None

    def gold(self, document: Document) -> list[Span]:
        """Return the gold mentions of a document as spans; they need not be among those that it finds."""
        places = [(mention.start, mention.end) for mention in document.gold]
        return [self.at(document.text, *place) or Span(*place, (), 0.0) for place in places]

    def describe(self) -> dict[str, Any]:
        """Return the options."""
        return asdict(self.options)

    def with_vectors(self, vectors: Vectors) -> "MentionTable":
        """Return the mention table of another store, with the same options."""
        return MentionTable(vectors, self.options)

    def _refresh(self) -> None:
        if self.vectors.stamp != self._stamp:
            self._stamp = self.vectors.stamp
            for remembered in (self._look_up, self._continues, self._choose):
                remembered.cache_clear()

    def _words(self, text: str) -> tuple[list[Place], list[str]]:
        """Return where the words of a text are, and what they are in the table."""

        def is_known(word: str) -> bool:
            return bool(self._look_up(word)[1]) or self._continues(word)

        places = spelt.places_of(text, is_known, by=self.vectors.tokeniser)
        return places, [spelt.word_of(text, *place, lowercase=self.vectors.lowercase) for place in places]

    def _spans(self, text: str) -> Iterator[Span]:
        options, lowercase = self.options, self.vectors.lowercase
        places, words = self._words(text)
        headlines = [word.isupper() and spelt.in_headline(text, *at) for word, at in zip(words, places, strict=True)]
        for first, end in enumerate(spelt.runs(text, places)):
            start = places[first][0]
            alive = [Spelling()]  # ways to spell the words so far that some surface begins with
            for last in range(first, min(end, first + options.longest)):
                alive = spell_on(
                    alive, words[last], lowercase=lowercase, ignore_case=options.ignore_case, headline=headlines[last]
                )
                chosen = self._choose(tuple(alive))
                if not chosen and last == first and not lowercase and (shorter := without_genitive(alive[0].text)):
                    chosen = self._choose((Spelling(shorter),))
                if chosen and (options.dates or chosen[1] is None or not is_date(words[first : last + 1])):
                    yield Span(start, spelt.closed(text, start, places[last][1], chosen[0][0].title), *chosen)
                alive = [spelling for spelling in alive if self._continues(spelling.text)]
                if not alive:
                    break

    def _any_spelling(self, words: list[str], headline: bool) -> Chosen | None:
        alive = [Spelling()]
        for number, word in enumerate(words):
            if number:
                alive = [spelling for spelling in alive if self._continues(spelling.text)]
            alive = spell_on(alive, word, lowercase=self.vectors.lowercase, ignore_case=True, headline=headline)
        if not alive or not words:
            return None
        lowest = tuple(spelling for spelling in alive if spelling.rank != RAISED)
        shorter = without_genitive(" ".join(words))
        for spellings in (lowest, tuple(alive), (Spelling(shorter),) if shorter else ()):
            if found := self._chosen(spellings, threshold=False):
                return found
        return None

    def _chosen(self, spellings: tuple[Spelling, ...], *, threshold: bool = True) -> Chosen | None:
        """Return the choices of words by the ways to spell them: what is known of the best rank of them, together."""
        options = self.options
        for rank in sorted({spelling.rank for spelling in spellings}):
            counts: Counter[str] = Counter()
            occurrences, own = 0, set[str]()
            for spelling in spellings:
                if spelling.rank == rank:
                    # The occurrences of all count: "OF" is a link now and then, but "of" never is.
                    more, counted, added = self._look_up(spelling.text)
                    occurrences += more
                    counts.update(counted)
                    own |= added
            if not counts:
                continue
            total = counts.total()
            # How often it is a link. Of one that was added nobody knows: it was no name in the text that was counted.
            probability = None if own else min(1.0, total / occurrences) if occurrences else 0.0
            if threshold and probability is not None and probability < options.min_link_probability:
                return None
            # Added ones, linked by nobody, would be the first to go.
            best = sorted(counts.items(), key=lambda item: (item[0] not in own, -item[1], item[0]))
            best = sorted(best[: options.candidates], key=lambda item: (-item[1], item[0]))
            best = [item for item in best if item[1] / total >= options.min_prior or item[0] in own] or best[:1]
            kept = sum(count for _, count in best)
            choices = tuple(Choice(title, count / kept) for title, count in best)
            return choices, probability, None if own else total, rank != AS_WRITTEN
        return None

    def _looked_up(self, surface: str) -> Meaning:
        found = self.vectors.candidates(surface)
        counts = {candidate.entity.title: candidate.count for candidate in found}
        return self.vectors.occurrences(surface), counts, {one.entity.title for one in found if one.own}


def is_date(words: Iterable[str]) -> bool:
    """Return whether words are nothing but numbers and months."""
    return all(_DATE.fullmatch(word) for word in words)
