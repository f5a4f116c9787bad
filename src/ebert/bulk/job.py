"""What is done to the rows of a shard: a job, which can be sent anywhere, and its worker, which has a model.

`link.py`, `encode.py` and `probe.py` have one each.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

from torch import nn

from ebert._runs import hash_weights
from ebert.bulk.inputs import Source
from ebert.bulk.options import ReadOptions
from ebert.bulk.rows import Bad, Row
from ebert.errors import EbertError
from ebert.model.alignment import Alignment
from ebert.vectors.store import Vectors

if TYPE_CHECKING:
    import pyarrow as pa


Result = TypeVar("Result")


@dataclass
class Done:
    """What came of rows: a table with a row for each good one, in their order, and the bad ones."""

    table: "pa.Table"
    bad: list[Bad] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)  # what was left out of good rows, by reason


class Worker(Protocol):
    """Has a model and works on rows."""

    identity: dict[str, Any]
    """What the results depend on, beside the rows and the options: hashes of weights and vectors."""

    def __call__(self, rows: Sequence[Row]) -> Done:
        """Work on the rows of a shard, which are batched among themselves."""


class Job(Protocol):
    """Says what is to be done. Jobs are frozen dataclasses of plain values."""

    kind: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    """The columns of a table that are read beside text and name."""

    def check(self, source: Source, columns: Sequence[str] | None, read: ReadOptions) -> None:
        """Complain about a file that is of no use: `columns` are those of a table."""

    def prepared(self, rows: Callable[[], Iterable[Row]]) -> Self:
        """Give the job with all that it has to know of the rows as a whole; most have to know nothing."""

    def options(self) -> dict[str, Any]:
        """Give what was asked for, as far as results depend on it."""

    def load(self, *, device: str | None = None) -> Worker:
        """Load the model; `device` goes before the job's own."""

    def finish(self, folder: Path, files: Sequence[Path]) -> dict[str, Any]:
        """Make of all results what is to be made of them; give what is to be shown."""


def need_text(source: Source, columns: Sequence[str] | None, read: ReadOptions) -> None:
    """Complain about a table without the column of texts, or of names if one was asked for."""
    for name in (read.text, read.id):
        if columns is not None and name is not None and name not in columns:
            raise EbertError(
                f"{source.path} has no column {name!r}; it has {', '.join(columns)} (--text-column, --id-column)"
            )


def each(
    rows: Sequence[Row], make: Callable[[Row], Result], bad: list[Bad]
) -> tuple[list[Row], list[Result]]:  # fmt: skip
    """Make something of every row; give the good rows with it, and put the others among the bad ones.

    If each of several rows fails for a reason that is not its own fault, something else is wrong, and that is raised.
    """
    good: list[Row] = []
    made: list[Result] = []
    before, surprises = len(bad), list[Exception]()
    for row in rows:
        try:
            made.append(make(row))
        except (OSError, MemoryError):  # of the machine, not of the row
            raise
        except Exception as error:
            _blame(row, error, bad, surprises)
        else:
            good.append(row)
    _doubt(rows, bad, before, surprises)
    return good, made


def together(rows: Sequence[Row], run: Callable[[Sequence[Row]], list[Result]], bad: list[Bad]) -> list[Result]:
    """Work on rows together; if that fails, on halves of them, down to the row that is to blame.

    If each of several rows fails for a reason that is not its own fault, something else is wrong, and that is raised.
    """
    if not rows:
        return []
    before, surprises = len(bad), list[Exception]()
    results = _halved(rows, run, bad, surprises)
    _doubt(rows, bad, before, surprises)
    return results


def _halved(
    rows: Sequence[Row], run: Callable[[Sequence[Row]], list[Result]], bad: list[Bad], surprises: list[Exception]
) -> list[Result]:
    try:
        return run(rows)
    except OSError:  # a disk or a network
        raise
    except Exception as error:  # of whatever kind the model's libraries raise: the other rows are to go on
        if len(rows) > 1:
            middle = len(rows) // 2
            return _halved(rows[:middle], run, bad, surprises) + _halved(rows[middle:], run, bad, surprises)
        _blame(rows[0], error, bad, surprises)
        return []


def _blame(row: Row, error: Exception, bad: list[Bad], surprises: list[Exception]) -> None:
    """List a row with what it made fail."""
    if isinstance(error, EbertError):
        bad.append(Bad.of(row, error))
    else:
        surprises.append(error)
        bad.append(Bad.of(row, f"{type(error).__name__}: {error}"))


def _doubt(rows: Sequence[Row], bad: list[Bad], before: int, surprises: list[Exception]) -> None:
    """Take the rows off the list again, and raise what it was, if all failed in ways that nobody thought of."""
    if len(rows) > 1 and len(surprises) == len(rows):
        del bad[before:]
        raise surprises[-1]


def of_parts(module: nn.Module, vectors: Vectors | None, alignment: Alignment | None) -> dict[str, Any]:
    """Hash a model. Vectors of entities are many, so of the store its own description and what was added count."""
    return {
        "weights": hash_weights(module),
        "vectors": None if vectors is None else _store(vectors),
        "alignment": None if alignment is None else _alignment(alignment),
    }


def _store(vectors: Vectors) -> str:
    digest = hashlib.sha256(json.dumps(asdict(vectors.info), sort_keys=True).encode())
    for title, vector in vectors.added():
        digest.update(title.encode() + b"\0" + vector.tobytes())
    for name in vectors.added_names():
        digest.update(json.dumps(name).encode() + b"\n")
    return digest.hexdigest()


def _alignment(alignment: Alignment) -> str:
    digest = hashlib.sha256(json.dumps(asdict(alignment.options), sort_keys=True).encode())
    for array in (alignment.weight, alignment.bias):
        if array is not None:
            digest.update(array.tobytes())
    return digest.hexdigest()
