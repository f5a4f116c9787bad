"""Find entities by any of their names, in a store and among the entities added to it."""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert.errors import UnknownNameError
from ebert.text import letters, titles
from ebert.vectors.added import Overlay
from ebert.vectors.catalogue import PAGE, Catalogue
from ebert.vectors.entity import Candidate, Entity, Spelling
from ebert.wikipedia.tokens import WordsOf, words_of

COMPARED = 400  # titles to compare for each way of mistyping a title
WORDS, LETTERS = 8, 100  # of a title that are searched for
CLOSE = 0.4  # the least likeness of a title worth showing

_WORD = re.compile(r"[^\W_]+")
_APART = re.compile(r"\s*\([^()]*\)$")  # what distinguishes a title from others of the same name

# Entities `e` of some tables with a condition, among what was added.
LATER = "SELECT e.title, e.row, e.count, e.wikidata, 1{more} FROM {source} WHERE {condition}"
# The same among those that the store was made with, in their current state: without removed ones, and with `t` for each
# that was merged into it.
MADE = (
    "SELECT t.title, coalesce(a.row, t.row), iif(a.row IS NULL, t.count, a.count),"
    " iif(a.row IS NULL, t.wikidata, a.wikidata), a.row IS NOT NULL{more}"
    " FROM {source} LEFT JOIN merged g ON g.row = e.row JOIN entities t ON t.row = coalesce(g.into_row, e.row)"
    " LEFT JOIN added.entities a ON a.hides = t.row WHERE {condition}"
    " AND (a.row IS NOT NULL OR NOT EXISTS (SELECT 1 FROM added.removed gone WHERE gone.hides = t.row))"
)


def _made(source: str, condition: str, more: str = "") -> str:
    return MADE.format(source=source.format(""), condition=condition, more=more)


def _later(source: str, condition: str) -> str:
    return LATER.format(source=source.format("added."), condition=condition, more="")


def _both(source: str, condition: str) -> str:
    """Return a query for entities, added ones first. In the source, {0} stands before the name of each table."""
    return f"{_later(source, condition)} UNION ALL {_made(source, condition)}"


_ENTITIES = "{0}entities e"
TITLED = _both(_ENTITIES, "e.title = ?1")
REDIRECTED = _both("{0}redirects r JOIN {0}entities e ON e.row = r.row", "r.title = ?1")
NUMBERED = _both(_ENTITIES, "e.wikidata = ?1")
IDENTIFIED = _both("{0}ids i JOIN {0}entities e ON e.row = i.row", "i.id = ?1")
MADE_AT, ADDED_AT = _made(_ENTITIES, "e.row = ?1"), _later(_ENTITIES, "e.row = ?1")
MADE_PAGE = _made(_ENTITIES, "e.row >= ?1 AND e.row < ?2") + " ORDER BY e.row"
BEGINNING = [make(_ENTITIES, "e.title >= ?1 AND e.title < ?2") + " LIMIT ?3" for make in (_later, _made)]
MATCHING = [
    make("{0}search s JOIN {0}entities e ON e.row = s.rowid", "s.search MATCH ?1") + " LIMIT ?2"
    for make in (_later, _made)
]
# The links of those that were merged count as those of one.
_LINKED = _made("mentions m JOIN entities e ON e.row = m.row", "m.surface = ?1 AND m.count > 0", ", sum(m.count)")
MENTIONED = f"{_LINKED} GROUP BY t.row"
NAMED = _later("{0}surfaces s JOIN {0}entities e ON e.row = s.row", "s.surface = ?1")
# The surfaces that have a key: one that is its own key is not in the table of keys.
WRITTEN = (
    "SELECT id, surface, occurrences FROM surfaces WHERE surface = ?1 UNION ALL"
    " SELECT s.id, s.surface, s.occurrences FROM keys k JOIN surfaces s ON s.surface = k.surface WHERE k.key = ?1"
)
NAMED_SO = (
    "SELECT s.surface, e.title FROM added.surfaces s JOIN added.entities e ON e.row = s.row WHERE s.key = ?1"
    " ORDER BY s.surface"
)
LONGER = " UNION ALL ".join(  # the first keys that do not sort before some letters
    f"SELECT * FROM (SELECT {column} FROM {table} WHERE {column} >= ?1 ORDER BY {column} LIMIT 1)"
    for table, column in (("surfaces", "surface"), ("keys", "key"), ("added.surfaces", "key"))
)
SEARCHABLE = (  # brings the search index of what was added up to date
    "INSERT INTO added.search (rowid, title) SELECT row, title FROM added.entities"
    " WHERE row > (SELECT row FROM added.searched)",
    "UPDATE added.searched SET row = coalesce((SELECT max(row) FROM added.entities), -1)",
)


class Lookup:
    """The names of a store: those it was made with (`catalogue`) and those added later (`overlay`)."""

    def __init__(self, catalogue: Catalogue, overlay: Overlay, *, lowercase: bool, tokeniser: str) -> None:
        self.catalogue, self.overlay = catalogue, overlay
        self.lowercase = lowercase  # whether all words of the store are in lower case
        self.tokeniser = tokeniser  # the name of the tokeniser that made the words

    def words_of(self, text: str) -> list[str]:
        """Return the words of a text, written as in the store."""
        return words_of(text, lowercase=self.lowercase, by=self.tokeniser)

    def find(self, name: str) -> Entity | None:
        """Return the entity with this name, or None.

        The name may be a title with blanks or underscores, with its first letter in lower case, a redirect, the URL of
        a Wikipedia page, or a Wikidata id if the store knows ids. Titles go before redirects, and both before Wikidata
        ids. The ids from your own knowledge base come last.
        """
        if exact := self.first(TITLED, name):  # most names are titles as they are
            return exact
        forms = titles.spellings(name)
        for query in (TITLED, REDIRECTED):
            for form in forms:
                if found := self.first(query, form):
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
        """Return the entities that exist for some names; look up each name once."""
        found = {name: self.find(name) for name in dict.fromkeys(names)}
        return {name: entity for name, entity in found.items() if entity is not None}

    def find_id(self, id: str) -> Entity | None:  # noqa: A002
        """Return the entity that was added with this own id, or None. Unlike `find`, never take it for a title."""
        return self.first(IDENTIFIED, id.strip())

    def find_wikidata(self, number: int) -> Entity | None:
        """Return the entity with this Wikidata id (60 for Q60), or None. Unlike `find`, try nothing else."""
        return self.first(NUMBERED, number)

    def hidden(self) -> set[int]:
        """Return the rows of the store that are not entities of their own: replaced, removed or merged into others."""
        return self.overlay.hidden() | {merge.row for merge in self.catalogue.merged}

    def merged(self) -> list[tuple[str, str, str]]:
        """Return the titles that were merged into others, the titles of the others, and the rules."""
        query = (
            "SELECT e.title, t.title, g.why FROM merged g JOIN entities e ON e.row = g.row"
            " JOIN entities t ON t.row = g.into_row WHERE e.title > ? ORDER BY e.title"
        )
        return list(self.catalogue.pages(query, ""))

    def made(self, title: str) -> Entity | None:
        """Return the entity of this title that the store was made with, even if it was replaced or removed, or None."""
        found = self.catalogue.rows("SELECT title, row, count, wikidata FROM entities WHERE title = ?", (title,))
        return Entity(*found[0]) if found else None

    def first(self, query: str, value: int | str) -> Entity | None:
        """Return the first entity of a query, one of those above."""
        return next(iter(self.select(query, value)), None)

    def select(self, query: str, *values: int | str) -> list[Entity]:
        """Return the entities of a query, one of those above."""
        found = self.overlay.rows(query, values)
        return [Entity(title, row, count, number, bool(added)) for title, row, count, number, added in found]

    def id_of(self, entity: Entity) -> str | None:
        """Return the own id that an entity was added with, or None."""
        found = self._of(entity, "SELECT id FROM {}ids WHERE row = ?")
        return found[0] if found else None

    def aliases(self, entity: Entity, count: int = 50) -> list[str]:
        """Return the other names that find an entity, in alphabetical order.

        This scans all redirects of a store, which takes a second for ten million.
        """
        found = self._of(entity, f"SELECT title FROM {{}}redirects WHERE row = ? LIMIT {int(count)}")
        merged = "SELECT e.title FROM merged g JOIN entities e ON e.row = g.row WHERE g.into_row = ?"
        made = self.made(entity.title)
        found += [title for (title,) in self.overlay.rows(merged, (made.row,))] if made else []
        return sorted(set(found))[:count]

    def _of(self, entity: Entity, query: str) -> list[Any]:
        """Return the result of a query for the row of an entity, and for the row that it replaced."""
        made: int | None = entity.row
        found = []
        if entity.added:
            found = self.overlay.rows(query.format("added."), (entity.row,))
            ((made,),) = self.overlay.rows("SELECT hides FROM added.entities WHERE row = ?", (entity.row,)) or [(None,)]
        return [value for (value,) in (*found, *self.overlay.rows(query.format(""), (made,)))]

    # Words, and all names

    def find_word(self, word: str) -> int | None:
        """Return the row of a word in `word_matrix` of its store, or None."""
        found = self.catalogue.word(word)
        return found[0] if found else None

    def word_count(self, word: str) -> int | None:
        """Return how often a word occurred in the text the vectors come from, if known."""
        found = self.catalogue.word(word)
        return found[1] if found else None

    def titles(self) -> Iterator[tuple[str, int]]:
        """Yield all titles and redirects (without those of added entities), with their rows."""
        for start in range(0, self.catalogue.sizes["entities"], PAGE):
            yield from zip(
                self.catalogue.names("entities", start, start + PAGE), range(start, start + PAGE), strict=False
            )
        yield from self.catalogue.pages("SELECT title, row FROM redirects WHERE title > ? ORDER BY title", "")

    def added(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Yield the titles and vectors of the entities that were added to the store."""
        yield from ((entity.title, vector) for entity, vector in self.overlay.all())

    def added_names(self) -> Iterator[tuple[int | str | None, ...]]:
        """Yield titles, counts, Wikidata and own ids, aliases and surfaces of added entities, for comparison."""
        return self.overlay.names()

    def unread_additions(self) -> int:
        """Return the bytes at the end of the log of additions that are not a complete addition."""
        return self.overlay.unread()

    @property
    def stamp(self) -> tuple[int, int]:
        """A value that changes after every addition, whoever made it, so that callers can invalidate their caches."""
        return self.overlay.stamp()

    # Similar titles

    def suggest(self, name: str, count: int = 5) -> list[str]:
        """Return the titles closest to a name, the closest first."""
        forms = titles.spellings(name)
        return [entity.title for entity in self.similar(name, forms[0], count)] if forms else []

    def similar(self, name: str, wanted: str, count: int, most: int = COMPARED) -> list[Entity]:
        """Return the entities with titles most like `wanted`, among those that share words or beginnings with a name.

        Titles that look like others (`letters.oddity`) come last, unless the wanted one does so too.
        """
        forms = titles.spellings(name)[:2]
        found = {one.title: one for form in forms for one in self._sharing(form, most)}
        odd = letters.oddity(wanted) is not None
        compare = difflib.SequenceMatcher(b=wanted.casefold(), autojunk=False)

        def likeness(title: str) -> float:
            compare.set_seq1(title.casefold())
            return compare.ratio() if compare.quick_ratio() > CLOSE else 0.0

        scores = {title: score for title in found if (score := likeness(title)) > CLOSE}
        order = sorted(scores, key=lambda title: (not odd and letters.oddity(title) is not None, -scores[title], title))
        return [found[title] for title in order[:count]]

    def matching(self, match: str, most: int) -> list[Entity]:
        """Return some added and some other entities by an FTS5 query over the words of their titles."""
        with self.overlay.session().lock:
            for statement in SEARCHABLE:
                self.overlay.rows(statement)
        return [entity for query in MATCHING for entity in self.select(query, match, most)]

    def _sharing(self, title: str, most: int) -> Iterator[Entity]:
        """Yield entities whose titles share words or a beginning with `title`, unsorted, up to `most` of each kind."""
        for match in _searches(words_in(title)):
            yield from self.matching(match, most)
        for query in BEGINNING:
            for length in range(min(len(title), LETTERS), 1, -1):  # a typing error later in the title
                found = self.select(query, title[:length], title[:length] + "\U0010ffff", most)
                yield from found
                if len(found) == most:
                    break

    def unknown(self, name: str) -> UnknownNameError:
        """Return the error for an entity that has no vector."""
        close = ", ".join(f"{title!r}{letters.remark(title)}" for title in self.suggest(name))
        hint = f"nearest titles: {close}" if close else "no title looks like it"
        return UnknownNameError(f"no vector for {name!r}; {hint} (ebert vectors find)")

    # Surfaces

    def candidates(self, surface: str) -> list[Candidate]:
        """Return the entities that some words of a text may mean, the most likely first (Section 4.3 of the paper).

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

    def written(self, key: str) -> list[Spelling]:
        """Return all that is known of the surfaces with a key (`ebert.wikipedia.tokens.surface_key`).

        For a single word, include the spellings that nobody linked, with their occurrences.
        """
        if not key:
            return []
        self.catalogue.ensure_keys()
        made = {surface: (number, often) for number, surface, often in self.overlay.rows(WRITTEN, (key,))}
        added: dict[str, set[str]] = {}
        for surface, title in self.overlay.rows(NAMED_SO, (key,)):
            added.setdefault(surface, set()).add(title)
        if not made and not added:
            return []
        single = {name for name in (key, *made, *added) if " " not in name}
        forms = {form for name in single for form in (name, name.lower(), name.capitalize(), name.upper())}
        others = self._occurrences(forms - made.keys()) if forms else {}
        found = []
        for surface in dict.fromkeys((*made, *added, *sorted(others))):
            number, often = made.get(surface) or (None, others.get(surface, 0))
            linked = self.overlay.rows(MENTIONED, (number,)) if number is not None else ()
            counts: dict[str, int] = {title: count for title, *_, count in linked}
            own = frozenset(title for title in added.get(surface, ()) if title not in counts)
            counts |= dict.fromkeys(own, 1)
            found.append(Spelling(surface, max(often + len(own), sum(counts.values())), counts, own))
        return found

    def _occurrences(self, words: Collection[str]) -> dict[str, int]:
        """Return how often some words occur in the text the vectors come from, if known."""
        query = f"SELECT word, count FROM words WHERE word IN ({', '.join('?' * len(words))}) AND count IS NOT NULL"
        return dict(self.catalogue.rows(query, tuple(words)))

    def continues(self, start: str) -> bool:
        """Return whether the key of some surface begins with these letters. If not, a search for surfaces stops."""
        self.catalogue.ensure_keys()
        return any(key.startswith(start) for (key,) in self.overlay.rows(LONGER, (start,)))

    def _meaning(self, surface: str) -> tuple[int, dict[Entity, int], set[Entity]]:
        """Return how often a surface occurs, how often it means each entity, and which entities were added with it."""
        words = " ".join(self.words_of(surface))
        meant: dict[Entity, int] = {}
        if found := self.overlay.rows("SELECT id, occurrences FROM surfaces WHERE surface = ?", (words,)):
            ((number, occurrences),) = found
            for title, row, linked, wikidata, added, count in self.overlay.rows(MENTIONED, (number,)):
                meant[Entity(title, row, linked, wikidata, bool(added))] = count
        else:  # nobody linked it; of single words the count is known
            occurrences = self.word_count(words) or 0
        own = set(self.select(NAMED, words)) - meant.keys()
        meant |= dict.fromkeys(own, 1)
        return max(occurrences + len(own), sum(meant.values())), meant, own


def surface_of(name: str, words_of: WordsOf = words_of) -> str:
    """Return the words that a name has in running text.

    >>> surface_of("Paris, Texas (film)")
    'Paris Texas'
    """
    return " ".join(words_of(plain_name(name)))


def plain_name(title: str) -> str:
    """Return a title without the brackets at its end, which nobody writes in running text.

    >>> plain_name("Paris, Texas (film)")
    'Paris, Texas'
    """
    return _APART.sub("", title) or title


def words_in(title: str) -> list[str]:
    """Return the words of a title that are searched for."""
    return _WORD.findall(title)[:WORDS]


def _searches(words: list[str]) -> Iterator[str]:
    """Yield FTS5 queries for common ways of mistyping a few words. A quoted word is never an operator."""
    quoted = [f'"{word}"' for word in words]
    if words:
        yield " ".join(quoted)  # all words are right, but their order, case, accents or punctuation is not
    if len(words) > 1:
        for index in range(len(words)):  # all but one
            yield " ".join(quoted[:index] + quoted[index + 1 :])
    # All are wrong after their beginnings. Beginnings of one or two letters would match half of Wikipedia.
    if starts := [f'"{word[:3]}"*' for word in words if len(word) > 3]:
        yield " ".join(starts)
