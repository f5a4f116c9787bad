"""Adding entities to a store: what may be added under which names."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.text import letters, titles
from ebert.vectors import lookup
from ebert.vectors.catalogue import Catalogue
from ebert.vectors.entity import Entity
from ebert.vectors.log import Addition
from ebert.vectors.overlay import Overlay
from ebert.vectors.surfaces import surface_of


@dataclass(frozen=True, slots=True)
class Wanted:
    """An entity that somebody wants to add: its names, cleaned and seen to be names."""

    title: str
    aliases: tuple[str, ...] = ()
    wikidata: int | None = None
    id: str | None = None

    @classmethod
    def make(
        cls,
        title: str,
        *,
        aliases: Iterable[str] = (),
        wikidata: int | None = None,
        id: str | None = None,  # noqa: A002
    ) -> "Wanted":
        """Check the names of an entity."""
        title = titles.clean(title)
        given = (aliases,) if isinstance(aliases, str) else aliases  # not the letters of it
        others = dict.fromkeys(alias for alias in map(titles.clean, given) if alias != title)
        own = None if id is None else id.strip()
        for name in (title, *others, *([] if own is None else [own])):
            if not name or not titles.is_text(name):
                raise EbertError(f"an entity cannot be called {name!r}")
            if hidden := letters.unseen(name):
                raise EbertError(f"an entity cannot be called {name!r}: nobody sees {hidden} in it; leave it out")
        if wikidata is not None and titles.wikidata_id(f"Q{wikidata}") != wikidata:
            raise EbertError(f"{wikidata!r} is not the number of a Wikidata id")
        return cls(title, tuple(others), wikidata, own)


@dataclass(frozen=True, slots=True)
class Done:
    """An entity that was added among many."""

    entity: Entity
    replaced: bool
    shared: Sequence[str]  # other names of it that mean something else already


class Adder:
    """Adds entities to a store, one by one or many in a transaction."""

    def __init__(self, catalogue: Catalogue, added: Overlay, *, lowercase: bool) -> None:
        self._catalogue, self._added, self._lowercase = catalogue, added, lowercase

    def add(self, wanted: Wanted, vector: NDArray[np.float32], *, replace: bool) -> Entity:
        """Add an entity. One that is replaced keeps what else is known of it."""
        with self._added.locked():
            addition = self._check(wanted, vector, replace=replace, aliases=self._strict(wanted, replace=replace))
            return lookup.entity(self._added.add(addition, vector), added=True)

    def add_all(self, pairs: Iterable[tuple[Wanted, NDArray[np.float32]]], *, replace: bool) -> list[Done | EbertError]:
        """Add entities in one transaction; give for each what became of it, or why it cannot be added.

        An other name that means something else already names the entity in text, where names are ambiguous, but does
        not find it.
        """
        done: list[Done | EbertError] = []
        with self._added.locked():
            for wanted, vector in pairs:
                free = [alias for alias in wanted.aliases if not self._owner(alias, wanted.title)]
                try:  # nothing is written before all is checked
                    addition = self._check(wanted, vector, replace=replace, aliases=free)
                except EbertError as error:
                    done.append(error)
                    continue
                entity = lookup.entity(self._added.add(addition, vector), added=True)
                replaced = addition.row is not None or addition.hides is not None
                done.append(Done(entity, replaced, [alias for alias in wanted.aliases if alias not in free]))
        return done

    def _check(self, wanted: Wanted, vector: NDArray[np.float32], *, replace: bool, aliases: Iterable[str]) -> Addition:
        """See that nothing of the entity is another's, or its own without leave to replace it."""
        title, number = wanted.title, wanted.wikidata
        if not np.isfinite(vector).all():
            raise EbertError(f"the vector of {title!r} has a value that is infinite or not a number")
        known, before = self._catalogue.titled([title]), self._added.titled([title])
        if known and not replace:
            raise EbertError(f"{title!r} has a vector already; use replace=True (--replace) for another one")
        if before and not replace:
            raise EbertError(f"{title!r} was added before; use replace=True (--replace) for another vector")
        if number is not None:
            for names in (self._catalogue, self._added):
                if (other := names.numbered(number)) and other[1] != title:
                    raise EbertError(f"Q{number} is {other[1]!r} already; {title!r} needs its own Wikidata id or none")
        if wanted.id is not None:
            for names in (self._catalogue, self._added):
                if (other := names.identified(wanted.id)) and other[1] != title:
                    raise EbertError(f"the id {wanted.id!r} is of {other[1]!r} already; {title!r} needs its own")
        hides, _, count, had = known[1] if known else (None, title, None, None)
        surfaces = dict.fromkeys(surface_of(name, lowercase=self._lowercase) for name in (title, *wanted.aliases))
        return Addition(
            title,
            row=before[1][0] if before else None,
            hides=hides,
            count=None if count is None else max(0, count),
            wikidata=had if number is None else number,
            id=wanted.id,
            aliases=tuple(aliases),
            surfaces=tuple(filter(None, surfaces)),
        )

    def _strict(self, wanted: Wanted, *, replace: bool) -> Sequence[str]:
        """Refuse other names that mean something else."""
        for alias in wanted.aliases:
            owner = self._owner(alias, wanted.title)
            if owner == alias:
                raise EbertError(f"{alias!r} cannot be another name of {wanted.title!r}: it has a vector of its own")
            if owner and not replace:
                raise EbertError(f"{alias!r} is a name of {owner!r}; use replace=True (--replace) to take it over")
        return wanted.aliases

    def _owner(self, alias: str, title: str) -> str | None:
        """Give the title of what a name means already, if that is not the entity of this title."""
        if self._catalogue.titled([alias]) or self._added.titled([alias]):
            return alias
        found = lookup.find(self._catalogue, self._added, alias)
        return found.title if found and found.title != title else None
