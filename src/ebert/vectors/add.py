"""Adding entities to a store: what may be added under which names."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ebert.errors import EbertError
from ebert.text import letters, titles
from ebert.vectors import lookup
from ebert.vectors.added import Overlay
from ebert.vectors.catalogue import Catalogue
from ebert.vectors.entity import Entity
from ebert.vectors.from_description import Describer
from ebert.vectors.log import Addition
from ebert.vectors.lookup import surface_of


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


BATCH = 1024  # rows of a transaction
FIELDS = ("title", "description", "vector", "aliases", "id", "wikidata")

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that was left out."""

    number: int  # of its line in a file, or among the rows; from 1
    title: str | None
    reason: str


@dataclass
class Report:
    """What became of the rows."""

    added: int = 0
    replaced: int = 0  # of those added
    bad: list[BadRow] = field(default_factory=list)
    shared_names: int = 0  # other names that mean something else too: they name the entity in text but do not find it
    odd: int = 0  # titles that look like others: letters of two scripts in a word
    unused: set[str] = field(default_factory=set)  # fields that mean nothing here

    @property
    def rows(self) -> int:
        """How many rows there were."""
        return self.added + len(self.bad)


@dataclass(frozen=True, slots=True)
class _Parsed:
    number: int
    wanted: Wanted
    description: str | None
    vector: Any


def add_many(
    rows: Iterable[tuple[int, Mapping[str, Any] | EbertError]],
    adder: Adder,
    describer: Callable[[], Describer],
    checked: Callable[[ArrayLike, str], Vector],
    *,
    replace: bool,
) -> Report:
    """Add numbered rows, a batch at a time. Each batch is a transaction."""
    report, source = Report(), iter(rows)
    while batch := list(islice(source, BATCH)):
        good: list[_Parsed] = []
        for number, fields in batch:
            try:
                good.append(_parse(number, fields, report.unused))
            except EbertError as error:
                report.bad.append(BadRow(number, _title(fields), str(error)))
        described = [row.description for row in good if row.description is not None]
        made = iter(describer().vectors(described) if described else ())
        pairs: list[tuple[_Parsed, Vector]] = []
        for row in good:
            try:
                vector = checked(row.vector, "the vector") if row.description is None else next(made)
            except EbertError as error:
                vector = error
            if isinstance(vector, EbertError):
                report.bad.append(BadRow(row.number, row.wanted.title, str(vector)))
            else:
                pairs.append((row, vector))
        done = adder.add_all(((row.wanted, vector) for row, vector in pairs), replace=replace)
        for (row, _), result in zip(pairs, done, strict=True):
            if isinstance(result, EbertError):
                report.bad.append(BadRow(row.number, row.wanted.title, str(result)))
            else:
                report.added += 1
                report.replaced += result.replaced
                report.shared_names += len(result.shared)
                report.odd += result.entity.oddity is not None
    report.bad.sort(key=lambda bad: bad.number)
    return report


def _parse(number: int, fields: Mapping[str, Any] | EbertError, unused: set[str]) -> _Parsed:
    """Check a row."""
    if isinstance(fields, EbertError):
        raise fields
    given = {name: value for name, value in fields.items() if not _is_empty(value)}
    unused.update(str(name) for name in fields if name not in FIELDS)
    title, description = _text(given, "title"), _text(given, "description")
    if title is None:
        raise EbertError("it has no title")
    if (description is None) == ("vector" not in given):
        raise EbertError(f"{title!r} needs a description or a vector: one of the two")
    wanted = Wanted.make(title, aliases=_aliases(given), wikidata=_wikidata(given), id=_own_id(given))
    return _Parsed(number, wanted, description, given.get("vector"))


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, tuple)) and not len(value))


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise EbertError(f"its {name} is not text but {value!r:.60}")
    return value


def _aliases(fields: Mapping[str, Any]) -> list[str]:
    """Give other names: a list, or a text with bars between them."""
    value = fields.get("aliases", [])
    names = value.split("|") if isinstance(value, str) else value
    if not isinstance(names, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in names):
        raise EbertError(f"its aliases are not a list of names but {value!r:.60}")
    return [name for name in names if titles.clean(name)]


def _own_id(fields: Mapping[str, Any]) -> str | None:
    value = fields.get("id")
    if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int))):
        raise EbertError(f"its id is not text or a whole number but {value!r:.60}")
    return None if value is None else str(value)


def _wikidata(fields: Mapping[str, Any]) -> int | None:
    value = fields.get("wikidata")
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    number = titles.wikidata_id(value) if isinstance(value, str) else None
    if number is None:
        raise EbertError(f"{value!r:.60} is not a Wikidata id such as Q42")
    return number


def _title(fields: Mapping[str, Any] | EbertError) -> str | None:
    title = None if isinstance(fields, EbertError) else fields.get("title")
    return title if isinstance(title, str) else None
