"""Map gold entities, by any of their names, to the titles of a store.

A name may be a title, a redirect, a URL or a Wikidata id. An id that the store (or a given list) knows decides, since
it cannot be mistaken: Q312 is called "Apple", as the fruit is, and if the store has no Apple Inc., nothing there is
meant. Else the names are tried one by one, as titles and then as redirects; an id is taken for a title (there is a page
called Q60) only where there is no other name. What cannot be resolved stays in the gold, where it counts as missed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

from ebert.linking.document import Document
from ebert.linking.readers.layouts import Labelled
from ebert.text import titles
from ebert.text.passage import Mention
from ebert.vectors.store import Vectors


@dataclass
class Resolved:
    """Documents whose gold has the titles of a store, and the names without one."""

    documents: list[Document] = field(default_factory=list)
    gold: int = 0
    unresolved: Counter[str] = field(default_factory=Counter)  # by name: how often

    @property
    def missing(self) -> int:
        """How many gold mentions have an entity that the store does not have."""
        return self.unresolved.total()


class TitleResolver:
    """Finds the title in a store that a name stands for."""

    def __init__(self, vectors: Vectors, ids: Mapping[int, str] | None = None) -> None:
        self._vectors, self._ids = vectors, ids or {}
        self.title = cache(self._title)
        self._find = cache(vectors.find)

    def _title(self, names: tuple[str, ...]) -> str | None:
        """Return the title that one of the names of a label stands for, or None."""
        listed = self._listed(names)
        by_id = map(self._vectors.find_wikidata, _numbers(names))
        others = [name for name in names if titles.wikidata_id(name) is None] or names
        found = next(
            filter(None, chain(map(self._find, listed), by_id, map(self._find, () if listed else others))), None
        )
        return found.title if found else None

    def same(self, name: str) -> str:
        """Return one spelling for all names of an entity: its title, or the name as Wikipedia would write it.

        Unlike a label's name, one that looks like an id is a title: a page called Q60 is that page.
        """
        if (found := self._find(name)) is not None:
            return found.title
        forms = titles.spellings(name)
        return next((form for form in forms if not form[0].islower()), forms[0]) if forms else name

    def known(self, name: str) -> bool:
        """Return whether the store has the entity of this name."""
        return self._find(name) is not None

    def documents(self, labelled: Iterable[Labelled]) -> Resolved:
        """Resolve the labels of documents."""
        resolved = Resolved()
        for given in labelled:
            gold = []
            for label in given.labels:
                title = self.title(label.names)
                shown = next(iter(self._listed(label.names)), label.names[-1])
                resolved.unresolved.update([shown] if title is None else [])
                gold.append(Mention(label.start, label.end, title or shown))
            resolved.gold += len(gold)
            resolved.documents.append(Document(given.id, given.text, tuple(gold), given.ignore, given.sentences))
        return resolved

    def _listed(self, names: tuple[str, ...]) -> list[str]:
        """Return the titles that the list has for the ids among the names."""
        known = [self._ids[number] for number in _numbers(names) if number in self._ids]
        return [next(iter(titles.spellings(title)), "") for title in known]


def _numbers(names: tuple[str, ...]) -> list[int]:
    """Return the Wikidata ids among names."""
    return [number for name in names if (number := titles.wikidata_id(name)) is not None]
