"""Add entities to a store, one or a whole knowledge base, and remove them: what may be added under which names."""

import dataclasses
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ebert._io.progress import Advance
from ebert._io.records import read_table
from ebert.errors import EbertError
from ebert.text import letters, titles
from ebert.vectors.entity import Entity, checked
from ebert.vectors.log import Addition
from ebert.vectors.lookup import ADDED_AT, TITLED, Lookup, surface_of

if TYPE_CHECKING:
    from ebert.vectors.store import Vectors

BATCH = 1024  # rows of a knowledge base per transaction
DESCRIBED = 1e-4  # the largest difference of vectors made of one description, as a share of their length
FIELDS = ("title", "description", "vector", "aliases", "id", "wikidata")

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that was left out."""

    number: int  # of its line in a file, or among the rows; from 1
    title: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class NameClash:
    """Another name of an entity that already means something else: it names the entity in text but does not find it."""

    name: str
    title: str  # of the entity that was added
    means: str  # the title of what the name finds


@dataclass
class AddReport:
    """The result of adding rows."""

    added: int = 0
    replaced: int = 0  # of those added
    unchanged: int = 0  # rows that had been added before in the same form
    bad: list[RejectedRow] = field(default_factory=list)
    clashes: list[NameClash] = field(default_factory=list)
    odd: int = 0  # titles that look like others: letters of two scripts in a word
    unused: set[str] = field(default_factory=set)  # fields that are not known here

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.added + self.unchanged + len(self.bad)


def wanted(title: str, aliases: Iterable[str] = (), wikidata: int | None = None, own: str | None = None) -> Addition:
    """Return the entity to add, with cleaned names. Raise `EbertError` if one of them cannot be a name."""
    title = titles.clean(title)
    given = (aliases,) if isinstance(aliases, str) else aliases  # not its letters
    others = dict.fromkeys(alias for alias in map(titles.clean, given) if alias != title)
    own = None if own is None else own.strip()
    for name in (title, *others, *([] if own is None else [own])):
        if not name or not titles.is_text(name):
            raise EbertError(f"an entity cannot be called {name!r}")
        if hidden := letters.unseen(name):
            raise EbertError(f"an entity cannot be called {name!r}: {hidden} in it is invisible; leave it out")
    if wikidata is not None and titles.wikidata_id(f"Q{wikidata}") != wikidata:
        raise EbertError(f"{wikidata!r} is not the number of a Wikidata id")
    return Addition(title, wikidata=wikidata, id=own, aliases=tuple(others))


def add_entity(store: "Vectors", new: Addition, vector: Vector, *, replace: bool, within: float) -> Entity:
    """Add an entity. A replaced entity keeps what else is known of it.

    If it was added in the same form before, with a vector that differs by no more than `within`, nothing changes.
    """
    with store.overlay.locked():
        if same := _same(store, new, vector, within):
            return same
        for alias in new.aliases:
            owner = _owner(store, alias, new.title)
            if owner == alias:
                raise EbertError(f"{alias!r} cannot be another name of {new.title!r}: it has a vector of its own")
            if owner and not replace:
                raise EbertError(f"{alias!r} is a name of {owner!r}; use replace=True (--replace) to take it over")
        return _add(store, _completed(store, new, replace=replace), vector)


def add_rows(
    store: "Vectors", rows: Iterable[Mapping[str, Any]] | str | Path, *, replace: bool, advance: Advance
) -> AddReport:
    """Add the rows of a table or an iterable, a batch at a time. Each batch is a transaction."""
    report = AddReport()
    table = read_table(Path(rows), advance=advance) if isinstance(rows, str | Path) else _numbered(rows, advance)
    with closing(table):
        while batch := list(islice(table, BATCH)):
            _add_batch(store, batch, report, replace=replace)
    report.bad.sort(key=lambda bad: bad.number)
    return report


def remove_entity(store: "Vectors", name: str) -> Entity:
    """Remove an entity: an added one, or one of the store, which is hidden from then on."""
    with store.overlay.locked():
        entity = store.known(name)
        made = store.made(entity.title)
        gone = Addition(entity.title, entity.row if entity.added else None, made.row if made else None, removed=True)
        store.overlay.add(gone, np.zeros(store.dimension, np.float32))
    return entity


def _add_batch(
    store: "Vectors", batch: Sequence[tuple[int, Mapping[str, Any] | EbertError]], report: AddReport, *, replace: bool
) -> None:
    good = []
    for number, fields in batch:
        try:
            good.append((number, *_parse(fields, report.unused)))
        except EbertError as error:
            title = fields.get("title") if isinstance(fields, Mapping) else None
            report.bad.append(RejectedRow(number, title if isinstance(title, str) else None, str(error)))
    described = [description for _, _, description, _ in good if description is not None]
    made = iter(store._describer.vectors(described) if described else ())
    with store.overlay.locked():
        for number, new, description, given in good:  # a row is checked completely before any of it is written
            try:
                found = given if description is None else next(made)
                if isinstance(found, EbertError):
                    raise found
                vector = checked(found, store.dimension, "the vector")
                # A name that means something else already names the entity in text, but does not find it.
                owners = {alias: _owner(store, alias, new.title) for alias in new.aliases}
                free = tuple(alias for alias, owner in owners.items() if not owner)
                clashes = [NameClash(alias, new.title, owner) for alias, owner in owners.items() if owner]
                if _same(store, new, vector, 0.0 if description is None else DESCRIBED, finds=free):
                    report.unchanged += 1
                    report.clashes += clashes
                    continue
                addition = dataclasses.replace(_completed(store, new, replace=replace), aliases=free)
                report.odd += _add(store, addition, vector).oddity is not None
            except EbertError as error:
                report.bad.append(RejectedRow(number, new.title, str(error)))
            else:
                report.added += 1
                report.replaced += addition.row is not None or addition.hides is not None
                report.clashes += clashes


def _add(store: Lookup, addition: Addition, vector: Vector) -> Entity:
    added = store.first(ADDED_AT, store.overlay.add(addition, vector))
    assert added is not None
    return added


def _same(
    store: "Vectors", new: Addition, vector: Vector, within: float, finds: Sequence[str] | None = None
) -> Entity | None:
    """Return the entity if it was already added in the same form; `finds` are the aliases that should find it."""
    now = store.first(TITLED, new.title)
    if now is None or not now.added:
        return None
    names = new.aliases if finds is None else finds
    known = "SELECT 1 FROM added.surfaces WHERE surface = ? AND row = ?"
    same = (
        (new.wikidata is None or new.wikidata == now.wikidata)
        and (new.id is None or new.id == store.id_of(now))
        and np.linalg.norm(store.take([now])[0] - vector) <= within * np.linalg.norm(vector)
        and all((found := store.find(alias)) and found.title == new.title for alias in names)
        and all(store.overlay.rows(known, (surface, now.row)) for surface in _surfaces(store, new))
    )
    return now if same else None


def _surfaces(store: Lookup, new: Addition) -> tuple[str, ...]:
    """Return the words that name an entity in text."""
    named = dict.fromkeys(surface_of(name, store.words_of) for name in (new.title, *new.aliases))
    return tuple(filter(None, named))


def _completed(store: Lookup, new: Addition, *, replace: bool) -> Addition:
    """Raise `EbertError` if a name or id belongs to another entity, or to this one and may not be replaced."""
    title, number = new.title, new.wikidata
    made, now = store.made(title), store.first(TITLED, title)
    if now and not replace:
        why = ("has a vector already", "one") if made else ("was added before", "vector")
        raise EbertError(f"{title!r} {why[0]}; use replace=True (--replace) for another {why[1]}")
    if number is not None and (other := store.find_wikidata(number)) and other.title != title:
        raise EbertError(f"Q{number} is {other.title!r} already; {title!r} needs its own Wikidata id or none")
    if new.id is not None and (other := store.find_id(new.id)) and other.title != title:
        raise EbertError(f"the id {new.id!r} is of {other.title!r} already; {title!r} needs its own")
    return dataclasses.replace(
        new,
        row=now.row if now and now.added else None,
        hides=made.row if made else None,
        count=max(0, made.count) if made and made.count is not None else None,
        wikidata=made.wikidata if made and number is None else number,
        surfaces=_surfaces(store, new),
    )


def _owner(store: Lookup, alias: str, title: str) -> str | None:
    """Return the title of what a name already means, unless that is the entity of this title."""
    if store.first(TITLED, alias):
        return alias
    found = store.find(alias)
    return found.title if found and found.title != title else None


def _numbered(
    rows: Iterable[Mapping[str, Any]], advance: Advance
) -> Generator[tuple[int, Mapping[str, Any]], None, None]:
    for numbered in enumerate(rows, 1):
        yield numbered
        advance(1)


def _parse(fields: Mapping[str, Any] | EbertError, unused: set[str]) -> tuple[Addition, str | None, Any]:
    """Check a row. Return what to add, its description and its vector; one of the last two is None."""
    if isinstance(fields, EbertError):
        raise fields
    given = {name: value for name, value in fields.items() if not _is_empty(value)}
    unused.update(str(name) for name in fields if name not in FIELDS)
    for name, kinds, what in (
        ("title", str, "text"), ("description", str, "text"), ("id", (str, int), "text or a whole number")
    ):  # fmt: skip
        value = given.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
            raise EbertError(f"its {name} is not {what} but {value!r:.60}")
    if "title" not in given:
        raise EbertError("it has no title")
    title, own, aliases, number = given["title"], given.get("id"), given.get("aliases"), given.get("wikidata")
    if ("description" in given) == ("vector" in given):
        raise EbertError(f"{title!r} needs a description or a vector: one of the two")
    names = aliases.split("|") if isinstance(aliases, str) else aliases or ()  # a list, or a text with bars
    if not isinstance(names, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in names):
        raise EbertError(f"its aliases are not a list of names but {aliases!r:.60}")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        text, number = number, titles.wikidata_id(number) if isinstance(number, str) else None
        if number is None:
            raise EbertError(f"{text!r:.60} is not a Wikidata id such as Q42")
    new = wanted(title, filter(titles.clean, names), number, None if own is None else str(own))
    return new, given.get("description"), given.get("vector")


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, tuple)) and not len(value))
