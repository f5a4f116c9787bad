"""Adding a whole knowledge base to a store: rows of titles, descriptions, other names and ids."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ebert.errors import EbertError
from ebert.text import titles
from ebert.vectors.adding import Adder, Wanted
from ebert.vectors.describing import Describer

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
