"""Adding entities to a store, one or a whole knowledge base, and removing them: what may be added under which names."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io.progress import Advance
from ebert._io.records import read_table
from ebert.errors import EbertError
from ebert.text import letters, titles
from ebert.vectors.entity import Entity, checked
from ebert.vectors.from_description import Describer
from ebert.vectors.log import Addition
from ebert.vectors.lookup import Lookup, surface_of

BATCH = 1024  # rows of a knowledge base in a transaction
FIELDS = ("title", "description", "vector", "aliases", "id", "wikidata")

Vector = NDArray[np.float32]


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
class RejectedRow:
    """A row that was left out."""

    number: int  # of its line in a file, or among the rows; from 1
    title: str | None
    reason: str


@dataclass
class AddReport:
    """What became of the rows."""

    added: int = 0
    replaced: int = 0  # of those added
    bad: list[RejectedRow] = field(default_factory=list)
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


class Adder:
    """Adds entities to a store of vectors of some dimension; `describer` makes vectors of descriptions."""

    def __init__(self, names: Lookup, dimension: int, describer: Callable[[], Describer]) -> None:
        self._names, self._dimension, self._describer = names, dimension, describer

    def add(self, wanted: Wanted, vector: Vector, *, replace: bool) -> Entity:
        """Add an entity. One that is replaced keeps what else is known of it."""
        with self._names.overlay.locked():
            for alias in wanted.aliases:
                owner = self._owner(alias, wanted.title)
                if owner == alias:
                    raise EbertError(
                        f"{alias!r} cannot be another name of {wanted.title!r}: it has a vector of its own"
                    )
                if owner and not replace:
                    raise EbertError(f"{alias!r} is a name of {owner!r}; use replace=True (--replace) to take it over")
            return self._add(self._addition(wanted, vector, wanted.aliases, replace=replace), vector)

    def add_many(self, rows: Iterable[Mapping[str, Any]] | str | Path, *, replace: bool, advance: Advance) -> AddReport:
        """Add the rows of a table or an iterable, a batch at a time. Each batch is a transaction."""
        if isinstance(rows, str | Path):
            with closing(read_table(Path(rows), advance=advance)) as table:
                return self._add_numbered(table, replace=replace)
        return self._add_numbered(_numbered(rows, advance), replace=replace)

    def _add_numbered(self, rows: Iterator[tuple[int, Mapping[str, Any] | EbertError]], *, replace: bool) -> AddReport:
        report = AddReport()
        while batch := list(islice(rows, BATCH)):
            good: list[_Parsed] = []
            for number, fields in batch:
                try:
                    good.append(_parse(number, fields, report.unused))
                except EbertError as error:
                    report.bad.append(RejectedRow(number, _title(fields), str(error)))
            described = [row.description for row in good if row.description is not None]
            made = iter(self._describer().vectors(described) if described else ())
            with self._names.overlay.locked():
                for row in good:  # nothing of a row is written before all of it is checked
                    try:
                        found = next(made) if row.description is not None else row.vector
                        if isinstance(found, EbertError):
                            raise found
                        self._add_row(
                            row.wanted, checked(found, self._dimension, "the vector"), report, replace=replace
                        )
                    except EbertError as error:
                        report.bad.append(RejectedRow(row.number, row.wanted.title, str(error)))
        report.bad.sort(key=lambda bad: bad.number)
        return report

    def remove(self, title: str) -> Entity:
        """Remove an entity: one that was added, or one of the store, which is hidden from then on."""
        with self._names.overlay.locked():
            entity = self._names.find(title)
            if entity is None:
                raise self._names.unknown(title)
            row, hides = (entity.row, self._names.overlay.hides(entity.row)) if entity.added else (None, entity.row)
            gone = Addition(entity.title, row, hides, removed=True)
            self._names.overlay.add(gone, np.zeros(self._dimension, np.float32))
        return entity

    def _add_row(self, wanted: Wanted, vector: Vector, report: AddReport, *, replace: bool) -> None:
        """Add a row. A name that means something else already names the entity in text, but does not find it."""
        free = [alias for alias in wanted.aliases if not self._owner(alias, wanted.title)]
        addition = self._addition(wanted, vector, free, replace=replace)
        entity = self._add(addition, vector)
        report.added += 1
        report.replaced += addition.row is not None or addition.hides is not None
        report.shared_names += len(wanted.aliases) - len(free)
        report.odd += entity.oddity is not None

    def _add(self, addition: Addition, vector: Vector) -> Entity:
        added = self._names.overlay.add(addition, vector)
        assert added is not None
        return added

    def _addition(self, wanted: Wanted, vector: Vector, aliases: Sequence[str], *, replace: bool) -> Addition:
        """Raise `EbertError` if anything of an entity is another's, or its own without leave to replace it."""
        title, number, names = wanted.title, wanted.wikidata, self._names
        if not np.isfinite(vector).all():
            raise EbertError(f"the vector of {title!r} has a value that is infinite or not a number")
        known, before = names.catalogue.titled([title]), names.overlay.titled([title])
        if known and not replace and names.current(known[1]) is not None:
            raise EbertError(f"{title!r} has a vector already; use replace=True (--replace) for another one")
        if before and not replace:
            raise EbertError(f"{title!r} was added before; use replace=True (--replace) for another vector")
        if number is not None and (other := names.find_wikidata(number)) and other.title != title:
            raise EbertError(f"Q{number} is {other.title!r} already; {title!r} needs its own Wikidata id or none")
        if wanted.id is not None and (other := names.find_id(wanted.id)) and other.title != title:
            raise EbertError(f"the id {wanted.id!r} is of {other.title!r} already; {title!r} needs its own")
        made = known[1] if known else None
        surfaces = dict.fromkeys(surface_of(name, names.words_of) for name in (title, *wanted.aliases))
        return Addition(
            title,
            row=before[1].row if before else None,
            hides=made.row if made else None,
            count=max(0, made.count) if made and made.count is not None else None,
            wikidata=made.wikidata if made and number is None else number,
            id=wanted.id,
            aliases=tuple(aliases),
            surfaces=tuple(filter(None, surfaces)),
        )

    def _owner(self, alias: str, title: str) -> str | None:
        """Return the title of what a name means already, if that is not the entity of this title."""
        known = self._names.catalogue.titled([alias])
        if (known and self._names.current(known[1])) or self._names.overlay.titled([alias]):
            return alias
        found = self._names.find(alias)
        return found.title if found and found.title != title else None


def _numbered(rows: Iterable[Mapping[str, Any]], advance: Advance) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for numbered in enumerate(rows, 1):
        yield numbered
        advance(1)


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
    """Return other names: a list, or a text with bars between them."""
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
