"""Candidates from the mention table of a store.

Every run of up to ten words that the table knows is a span. A run grows only while some key of the table begins with
it, so the time is linear in the text. Spans may overlap, and many name nothing where they stand: the model has to
reject them. Words are split as in the table, at every punctuation mark. So possessives ("England's") and compounds
("UK-based") need no rule of their own; only a mark at the end of a name ("U.S.", "Yahoo!") does.

The table is looked up by a key (`surface_key`) that all spellings of a name share: a run may mean whatever any of them
means. The more often the spelling at hand was counted, the more its own counts weigh: with l links among n occurrences
of the spelling, and the shares P of the key, the link probability is (l + DOUBT P) / (n + DOUBT), and the prior of an
entity with c links (c + PRIOR_DOUBT P(entity)) / (l + PRIOR_DOUBT). So "US" is a country and "us" is not. Where
capitals tell nothing, in headlines and in text without any, only the key counts.

A text that has named Brian Kemp may call him Kemp: `ebert.linking.candidates.parts` adds such candidates.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from ebert.linking.candidates import words as spelt
from ebert.linking.candidates.generator import CandidateGenerator
from ebert.linking.candidates.parts import with_parts
from ebert.linking.candidates.words import Place
from ebert.linking.document import Choice, Document, Span
from ebert.linking.options import CandidateOptions
from ebert.vectors.entity import Spelling
from ebert.vectors.store import Vectors
from ebert.wikipedia.tokens import surface_key

Chosen = tuple[tuple[Choice, ...], float | None, int | None, bool]
"""What a span may mean, its link probability, its links in any spelling, and whether its own was never linked."""
# Chosen on 150 articles of the corpus, with each occurrence left out of its own counts.
DOUBT = 10  # occurrences of a spelling that tell as much of its link probability as all spellings of the name together
PRIOR_DOUBT = 1  # links of a spelling that tell as much of what it means
# Assumed occurrences of a spelling of several words that nobody linked, for which no count is kept: with as many
# capitals as a linked one, and with fewer.
UNSEEN, LOWERED = 10, 150
REMEMBERED = 1 << 16  # surfaces that are looked up once only
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(rf"(?:\d+(?:st|nd|rd|th|s)?|BC|BCE|AD|CE|{_MONTHS})")


class MentionTable(CandidateGenerator):
    """Finds potential spans by the mention table of a store.

    >>> generator = MentionTable(Vectors.open("enwiki-vectors"))              # doctest: +SKIP
    >>> generator(Document("1", "Adams and Platt are both injured."))         # doctest: +SKIP

    Entities that are added to the store are found at once, by all of their given names, even ordinary words or numbers:
    every addition clears the cache.
    """

    def __init__(self, vectors: Vectors, options: CandidateOptions | None = None) -> None:
        self.vectors, self.options = vectors, options or CandidateOptions()
        self.settings = asdict(self.options)
        self._stamp = vectors.stamp
        self._look_up = lru_cache(REMEMBERED)(vectors.written)
        self._continues = lru_cache(REMEMBERED)(vectors.continues)
        self._choose = lru_cache(REMEMBERED)(self._chosen)
        self._common = lru_cache(REMEMBERED)(self._is_common)

    def __call__(self, document: Document) -> list[Span]:
        """Return the potential spans of a document."""
        self._refresh()
        return with_parts(document.text, list(self._spans(document.text)), self._common)

    def at(self, text: str, start: int, end: int) -> Span | None:
        """Return what a given span may mean, or None, to disambiguate mentions that were found elsewhere.

        Unlike in a search, the span may be of any length and link probability.
        """
        self._refresh()
        given = text[start:end]
        _, words, _ = self._words(given)
        blind = self._is_blind(text) or (given.isupper() and spelt.in_headline(text, start, end))
        names = [" ".join(words)]
        if len(words) > 1 and words[-1] in ("s", "S") and given[-2:-1] in ("'", "’"):
            names.append(" ".join(words[:-1]))
        names += spelt.without_genitive(names[0])
        found = (self._chosen(surface_key(name), name, blind, threshold=False) for name in names)
        return next((Span(start, end, *chosen) for chosen in found if chosen), None)

    def gold(self, document: Document) -> list[Span]:
        """Return the gold mentions of a document as spans; the table need not find them itself."""
        text, places = document.text, [(mention.start, mention.end) for mention in document.gold]
        parts = {(span.start, span.end): span for span in self(document) if any(choice.part for choice in span.choices)}
        return [parts.get(place) or self.at(text, *place) or Span(*place, (), 0.0) for place in places]

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

    def _is_common(self, word: str) -> bool:
        """Return whether a word is more often written in lower case, in the text that the vectors come from."""
        lower, count = (self.vectors.word_count(one) or 0 for one in (word.lower(), word))
        return not self.vectors.lowercase and lower > count

    def _is_blind(self, text: str) -> bool:
        return self.options.ignore_case or not spelt.has_capitals(text)

    def _words(self, text: str) -> tuple[list[Place], list[str], list[str]]:
        """Return the places of the words of a text, their forms in the table, and their keys."""

        def is_known(word: str) -> bool:
            key = surface_key(word)
            return any(one.counts for one in self._look_up(key)) or self._continues(f"{key} ")

        places = spelt.places_of(text, is_known, by=self.vectors.tokeniser)
        found = [(place, spelt.word_of(text, *place, lowercase=self.vectors.lowercase)) for place in places]
        keyed = [(place, word, key) for place, word in found if (key := surface_key(word))]
        return [one[0] for one in keyed], [one[1] for one in keyed], [one[2] for one in keyed]

    def _spans(self, text: str) -> Iterator[Span]:
        options, blind = self.options, self._is_blind(text)
        places, words, keys = self._words(text)
        headlines = [word.isupper() and spelt.in_headline(text, *at) for word, at in zip(words, places, strict=True)]
        for first, end in enumerate(spelt.runs(text, places)):
            start = places[first][0]
            key, name = keys[first], words[first]
            for last in range(first, min(end, first + options.longest)):
                if last > first:
                    begun = key if spelt.joined(text, places[last - 1], places[last]) else f"{key} "
                    if not self._continues(begun):
                        break
                    key, name = begun + keys[last], f"{name} {words[last]}"
                unsure = blind or any(headlines[first : last + 1])
                chosen = self._choose(key, name, unsure)
                if not chosen and last == first and not self.vectors.lowercase:
                    others = (self._choose(surface_key(other), other, unsure) for other in spelt.without_genitive(name))
                    chosen = next(filter(None, others), None)
                if chosen and (options.dates or chosen[1] is None or not is_date(words[first : last + 1], unsure)):
                    yield Span(start, spelt.closed(text, start, places[last][1], chosen[0][0].title), *chosen)

    def _chosen(self, key: str, name: str, blind: bool, *, threshold: bool = True) -> Chosen | None:
        """Return the choices of words by their key and their spelling, or by the key alone if `blind`."""
        options, known = self.options, self._look_up(key)
        counts: Counter[str] = Counter()
        for one in known:
            counts.update(one.counts)
        if not counts:
            return None
        total = counts.total()
        # The occurrences of all count: "OF" is a link now and then, but "of" never is.
        probability = min(1.0, total / (sum(one.occurrences for one in known) or 1))
        written = next((one for one in known if one.surface == name), Spelling(name, 0, {}))
        unseen = 0
        if " " in name and not written.occurrences:
            fewer = capitals(name) < min(capitals(one.surface) for one in known if one.counts)
            unseen = LOWERED if fewer else UNSEEN
        own = {title for one in known if _names(one, written, known if blind else [written]) for title in one.own}
        weights = {title: count / total for title, count in counts.items()}

        def lower(title: str) -> float:
            """Return the share of links to a title that are in lower case, where the table knows of capitals."""
            written_so = (one.counts.get(title, 0) for one in known if one.surface.islower())
            return 0.0 if self.vectors.lowercase else sum(written_so) / max(1, counts[title])

        if not blind:
            links = sum(written.counts.values())
            probability = (links + DOUBT * probability) / (written.occurrences + unseen + DOUBT)
            weights = {
                title: (written.counts.get(title, 0) + PRIOR_DOUBT * weight) / (links + PRIOR_DOUBT)
                for title, weight in weights.items()
            }
        # Nobody knows how often an added one is a link: it was not a name in the text that was counted.
        if threshold and not own and probability < options.min_link_probability:
            return None
        # Added ones have no links and would be the first to be dropped.
        best = sorted(weights.items(), key=lambda item: (item[0] not in own, -item[1], item[0]))
        best = sorted(best[: options.candidates], key=lambda item: (-item[1], item[0]))
        best = [item for item in best if item[1] >= options.min_prior or item[0] in own] or best[:1]
        kept = sum(weight for _, weight in best)
        choices = tuple(Choice(title, weight / kept, 0.0 if title in own else lower(title)) for title, weight in best)
        return choices, None if own else probability, None if own else total, not written.counts


def _names(added: Spelling, written: Spelling, counted: Iterable[Spelling]) -> bool:
    """Return whether an added name counts as written: not with fewer capitals, if such a word is counted."""
    if capitals(written.surface) >= capitals(added.surface):
        return True
    return not any(one.occurrences > len(one.own) for one in counted)


def capitals(text: str) -> int:
    """Return how many capitals a text has."""
    return sum(map(str.isupper, text))


def is_date(words: Iterable[str], blind: bool = False) -> bool:
    """Return whether words are nothing but numbers and months."""
    return all(_DATE.fullmatch(word.capitalize() if blind else word) for word in words)
