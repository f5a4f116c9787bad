"""Finding entities by whatever people call them, in a store and among the entities added to it."""

import difflib
import re
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ebert.errors import UnknownNameError
from ebert.text import letters, titles
from ebert.vectors.added import Overlay
from ebert.vectors.catalogue import Catalogue, Names
from ebert.vectors.entity import Candidate, Entity
from ebert.wikipedia.tokens import WordsOf, words_of

COMPARED = 400  # titles looked at for each way of missing a title
WORDS, LETTERS = 8, 100  # of a title that are searched for
CLOSE = 0.4  # the least likeness of a title worth showing

_WORD = re.compile(r"[^\W_]+")
_APART = re.compile(r"\s*\([^()]*\)$")  # what tells a title from others: nobody writes it in running text


class Lookup:
    """The names of a store: those it was made with (`catalogue`) and those added later (`overlay`)."""

    def __init__(self, catalogue: Catalogue, overlay: Overlay, *, lowercase: bool, tokeniser: str) -> None:
        self.catalogue, self.overlay = catalogue, overlay
        self.lowercase = lowercase  # whether all words are in lower case
        self.tokeniser = tokeniser  # the name of the one that made the words

    def words_of(self, text: str) -> list[str]:
        """Return the words of a text, written as those of the store are."""
        return words_of(text, lowercase=self.lowercase, by=self.tokeniser)

    def find(self, name: str) -> Entity | None:
        """Return the entity with this name, or None.

        The name may be a title with blanks or underscores, with its first letter in lower case, a redirect, the URL of
        a Wikipedia page, or a Wikidata id where the store knows ids. Titles go before redirects, and both before ids;
        last come the ids that somebody's own knowledge base gave to entities.
        """
        overlay = self._overlay()
        if overlay is None and (exact := self.catalogue.titled([name])):  # most names are titles as they are
            return exact[1]
        forms = titles.spellings(name)
        for step in (Names.titled, Names.redirected):
            made = step(self.catalogue, forms)
            later = step(overlay, forms) if overlay is not None else None
            if later and (not made or later[0] <= made[0]):
                return later[1]
            if made and (found := made[1] if overlay is None else overlay.current(made[1])):
                return found
        number = titles.wikidata_id(name)
        return (self.find_wikidata(number) if number is not None else None) or self.find_id(name)

    def __contains__(self, name: str) -> bool:
        """Return whether there is a vector for the entity with this name."""
        return self.find(name) is not None

    def known(self, name: str) -> Entity:
        """Return the entity with this name. Raise `UnknownNameError`, with the closest titles, if there is none."""
        found = self.find(name)
        if found is None:
            raise self.unknown(name)
        return found

    def find_many(self, names: Iterable[str]) -> dict[str, Entity]:
        """Return the entities that there are for some names, each looked up once."""
        found = {name: self.find(name) for name in dict.fromkeys(names)}
        return {name: entity for name, entity in found.items() if entity is not None}

    def find_id(self, id: str) -> Entity | None:  # noqa: A002
        """Return the entity that was added with this own id, or None. Unlike `find`, it never takes it for a title."""
        overlay, id = self._overlay(), id.strip()  # noqa: A001
        later = overlay.identified(id) if overlay is not None else None
        return later or self.current(self.catalogue.identified(id))

    def find_wikidata(self, number: int) -> Entity | None:
        """Return the entity with this Wikidata id (60 for Q60), or None. Unlike `find`, it tries nothing else."""
        overlay = self._overlay()
        later = overlay.numbered(number) if overlay is not None else None
        return later or self.current(self.catalogue.numbered(number))

    def current(self, entity: Entity | None) -> Entity | None:
        """Return what an entity of the catalogue is now: itself, what replaced it, or None if it was removed."""
        overlay = self._overlay()
        return entity if entity is None or overlay is None else overlay.current(entity)

    def id_of(self, entity: Entity) -> str | None:
        """Return the own id that an entity was added with, or None."""
        if not entity.added:
            return self.catalogue.id_of(entity.row)
        hidden = self.overlay.hides(entity.row)
        return self.overlay.id_of(entity.row) or (self.catalogue.id_of(hidden) if hidden is not None else None)

    def aliases(self, entity: Entity, count: int = 50) -> list[str]:
        """Return other names that find an entity, in the order of their letters."""
        row = self.overlay.hides(entity.row) if entity.added else entity.row
        found = set(self.catalogue.redirects_to(row, count)) if row is not None else set()
        if entity.added:
            found.update(self.overlay.redirects_to(entity.row, count))
        return sorted(found)[:count]

    # Words, and all names

    def find_word(self, word: str) -> int | None:
        """Return the row of a word in `word_matrix` of its store, or None."""
        found = self.catalogue.word(word)
        return found[0] if found else None

    def word_count(self, word: str) -> int | None:
        """Return how often a word occurred in the text the vectors come from, where known."""
        found = self.catalogue.word(word)
        return found[1] if found else None

    def titles(self) -> Iterator[tuple[str, int]]:
        """Yield all titles and redirects (without those of added entities), with their rows."""
        yield from self.catalogue.titles()

    def added(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Yield the entities that were added to the store: titles and vectors."""
        yield from ((added.entity.title, added.vector) for added in self.overlay.all())

    def added_names(self) -> Iterator[tuple[int | str | None, ...]]:
        """Yield titles, counts, Wikidata and own ids, aliases and surfaces of what was added, to compare them."""
        return self.overlay.names()

    def unread_additions(self) -> int:
        """Return the bytes at the end of the log of additions that are no whole addition."""
        return self.overlay.unread()

    @property
    def stamp(self) -> tuple[int, int]:
        """Another value after every addition, whoever made it: for those who keep what they looked up."""
        return self.overlay.stamp()

    # Titles that are like a name

    def suggest(self, name: str, count: int = 5) -> list[str]:
        """Return the titles closest to a name, the closest first."""
        forms = titles.spellings(name)
        return [entity.title for entity in self.similar(name, forms[0], count)] if forms else []

    def similar(self, name: str, wanted: str, count: int, most: int = COMPARED) -> list[Entity]:
        """Return the entities whose titles are most like `wanted`, of those that share words or beginnings with a name.

        Last come those that look like others (`letters.oddity`), unless the wanted one does so too.
        """
        places: list[Names] = [self.catalogue, self.overlay] if self.overlay else [self.catalogue]
        forms = titles.spellings(name)[:2]
        found = {one.title: one for names in places for form in forms for one in _candidates(names, form, most)}
        odd = letters.oddity(wanted) is not None
        compare = difflib.SequenceMatcher(b=wanted.casefold(), autojunk=False)

        def likeness(title: str) -> float:
            compare.set_seq1(title.casefold())
            return compare.ratio() if compare.quick_ratio() > CLOSE else 0.0

        scores = {title: score for title in found if (score := likeness(title)) > CLOSE}
        order = sorted(scores, key=lambda title: (not odd and letters.oddity(title) is not None, -scores[title], title))
        now = (found[title] if found[title].added else self.current(found[title]) for title in order)
        return [entity for entity in now if entity is not None][:count]

    def unknown(self, name: str) -> UnknownNameError:
        """Return the error for an entity that has no vector."""
        close = ", ".join(f"{title!r}{letters.remark(title)}" for title in self.suggest(name))
        hint = f"nearest titles: {close}" if close else "no title looks like it"
        return UnknownNameError(f"no vector for {name!r}; {hint} (ebert vectors find)")

    # Surfaces

    def candidates(self, surface: str) -> list[Candidate]:
        """Return the entities that some words of a text may mean, the likeliest first (Section 4.3 of the paper).

        The counts are those of the links in the text that the store was trained on. Titles and other names of added
        entities count as if they had been linked once.
        """
        _, meant, own = self._meaning(surface)
        total = sum(meant.values())
        order = sorted(meant, key=lambda entity: (-meant[entity], entity.title))
        return [Candidate(entity, meant[entity], meant[entity] / total, entity in own) for entity in order]

    def link_probability(self, surface: str) -> float:
        """Return how often, when some words stand in a text, they name an entity: from 0 to 1."""
        occurrences, meant, _ = self._meaning(surface)
        return sum(meant.values()) / occurrences if meant else 0.0

    def occurrences(self, surface: str) -> int:
        """Return how often some words stand in the text that the vectors come from, linked or not."""
        return self._meaning(surface)[0]

    def continues(self, surface: str) -> bool:
        """Return whether a longer surface begins with these words: a search for surfaces stops if not."""
        words, overlay = self._words(surface), self._overlay()
        return self.catalogue.continues(words) or (overlay is not None and overlay.continues(words))

    def _meaning(self, surface: str) -> tuple[int, dict[Entity, int], set[Entity]]:
        """Return how often a surface occurs, how often it means what, and what it means because it was added so."""
        words, overlay = self._words(surface), self._overlay()
        occurrences, rows = self.catalogue.mentions(words)
        now = ((one if overlay is None else overlay.current(one), count) for one, count in rows if count > 0)
        meant = {entity: count for entity, count in now if entity is not None}
        own = {one for one in overlay.named(words) if one not in meant} if overlay is not None else set()
        meant |= dict.fromkeys(own, 1)
        return max(occurrences + len(own), sum(meant.values())), meant, own

    def _words(self, surface: str) -> str:
        return " ".join(self.words_of(surface))

    def _overlay(self) -> Overlay | None:
        """Return what was added, if anything; ask once for a look-up, as this looks at the disk."""
        return self.overlay if self.overlay else None


def surface_of(name: str, words_of: WordsOf = words_of) -> str:
    """Return the words that a name has in running text.

    >>> surface_of("Paris, Texas (film)")
    'Paris Texas'
    """
    return " ".join(words_of(_APART.sub("", name) or name))


def words_in(title: str) -> list[str]:
    """Return the words of a title, those that are searched for."""
    return _WORD.findall(title)[:WORDS]


def _candidates(names: Names, title: str, most: int) -> Iterator[Entity]:
    """Yield entities whose titles share words or a beginning with `title`, in no order; `most` of each kind."""
    for match in _searches(words_in(title)):
        yield from names.matching(match, most)
    for length in range(min(len(title), LETTERS), 1, -1):  # a slip of the pen later on in the title
        found = names.beginning(title[:length], most)
        yield from found
        if len(found) == most:
            break


def _searches(words: list[str]) -> Iterator[str]:
    """Yield FTS5 queries for the ways in which a few words are written wrongly. Quoted, a word is never an operator."""
    quoted = [f'"{word}"' for word in words]
    if words:
        yield " ".join(quoted)  # all are right: their order, case, accents or punctuation are not
    if len(words) > 1:
        for index in range(len(words)):  # all but one
            yield " ".join(quoted[:index] + quoted[index + 1 :])
    # All go wrong after their beginnings. Beginnings of one or two letters would match half of Wikipedia.
    if starts := [f'"{word[:3]}"*' for word in words if len(word) > 3]:
        yield " ".join(starts)
