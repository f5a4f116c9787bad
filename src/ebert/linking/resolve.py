"""Gold entities, whatever they are called, to the titles of a store.

A name may be a title, a redirect, a URL or a Wikidata id. An id that the store (or a given list) knows decides, since
it cannot be mistaken: Q312 is called "Apple", as the fruit is, and if the store has no Apple Inc., nothing there is
meant. Else the names are tried one by one, as titles and then as redirects; an id is taken for a title (there is a page
called Q60) only where there is no other name. What cannot be resolved stays in the gold, where it counts as missed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from ebert.linking.document import Document
from ebert.linking.readers.layouts import Labelled
from ebert.text import titles
from ebert.text.passage import Mention
from ebert.vectors.store import Vectors


@dataclass
class Resolved:
    """Documents whose gold has the titles of a store, and what has none there."""

    documents: list[Document]
    gold: int = 0
    unresolved: dict[str, int] = field(default_factory=dict)  # by name: how often

    @property
    def missing(self) -> int:
        """How many gold mentions have an entity that the store does not have."""
        return sum(self.unresolved.values())


class TitleResolver:
    """Finds the title in a store that a name stands for."""

    def __init__(self, vectors: Vectors, ids: Mapping[int, str] | None = None) -> None:
        self._vectors, self._ids = vectors, ids or {}
        self._known: dict[tuple[str, ...], str | None] = {}
        self._titled: dict[str, str | None] = {}

    def title(self, names: tuple[str, ...]) -> str | None:
        """Return the title that one of the names stands for, or None."""
        if names not in self._known:
            self._known[names] = self._find(names)
        return self._known[names]

    def same(self, name: str) -> str:
        """Return one spelling for all names of an entity: its title, or the name as Wikipedia would write it."""
        if (found := self._by_name(name)) is not None:
            return found
        forms = titles.spellings(name)
        return next((form for form in forms if not form[0].islower()), forms[0]) if forms else name

    def known(self, name: str) -> bool:
        """Return whether the store has the entity of this name."""
        return self._by_name(name) is not None

    def documents(self, labelled: Iterable[Labelled]) -> Resolved:
        """Resolve the labels of documents."""
        resolved = Resolved([])
        for given in labelled:
            gold = []
            for label in given.labels:
                title = self.title(label.names)
                shown = next(iter(self._listed(label.names)), label.names[-1])
                if title is None:
                    resolved.unresolved[shown] = resolved.unresolved.get(shown, 0) + 1
                gold.append(Mention(label.start, label.end, title or shown))
            resolved.gold += len(gold)
            resolved.documents.append(Document(given.id, given.text, tuple(gold), given.ignore, given.sentences))
        return resolved

    def _find(self, names: tuple[str, ...]) -> str | None:
        listed = self._listed(names)
        by_id = map(self._vectors.find_wikidata, _numbers(names))
        others = [name for name in names if titles.wikidata_id(name) is None] or names
        by_name = map(self._vectors.find, () if listed else others)
        found = next(filter(None, chain(map(self._vectors.find, listed), by_id, by_name)), None)
        return found.title if found else None

    def _by_name(self, name: str) -> str | None:
        """Return the title that a name stands for, which is not a label's: a page called Q60 is that page."""
        if name not in self._titled:
            found = self._vectors.find(name)
            self._titled[name] = found.title if found else None
        return self._titled[name]

    def _listed(self, names: tuple[str, ...]) -> list[str]:
        """Return the titles that the list has for the ids among the names."""
        known = [self._ids[number] for number in _numbers(names) if number in self._ids]
        return [next(iter(titles.spellings(title)), "") for title in known]


def _numbers(names: tuple[str, ...]) -> list[int]:
    """Return the Wikidata ids among names."""
    return [number for name in names if (number := titles.wikidata_id(name)) is not None]
