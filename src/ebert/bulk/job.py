"""What is done to the rows of a shard: a job, which can be sent anywhere, and its worker, which has a model.

`link.py`, `encode.py` and `probe.py` have one each.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, TypeVar

from ebert import _names
from ebert._options import Options, option
from ebert.bulk.inputs import Source
from ebert.bulk.options import ReadOptions
from ebert.bulk.rows import BadRow, Row
from ebert.errors import EbertError

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import nn

    from ebert.linking.linker import Linker
    from ebert.model.ebert import EBert

Item = TypeVar("Item")
Result = TypeVar("Result")
NAMES: dict[str, _names.Kind] = {"linker": "linker", "model": "model", "vectors": "store"}  # fields that name a folder


@dataclass
class RowResults:
    """What came of rows: a table with a row for each good one, in their order, and the bad ones."""

    table: "pa.Table"
    bad: list[BadRow] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)  # what was left out of good rows, by reason


class BulkWorker(Protocol):
    """Has a model and works on rows."""

    identity: dict[str, Any]
    """What the results depend on, beside the rows and the options: hashes of weights and vectors."""

    def __call__(self, rows: Sequence[Row]) -> RowResults:
        """Work on the rows of a shard, which are batched among themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkJob(Options):
    """What is to be done, in plain values that can be sent to other machines."""

    kind: ClassVar[str]
    columns: ClassVar[tuple[str, ...]] = ()  # of a table, which are read beside text and name
    decisive: ClassVar[tuple[str, ...]] = ()  # the fields that results depend on, beside the model

    def check_source(self, source: Source, columns: Sequence[str] | None, read: ReadOptions) -> None:
        """Raise an error about a file that is of no use; `columns` are those of a table."""
        for name in (read.text_column, read.id_column):
            if columns is not None and name is not None and name not in columns:
                raise EbertError(
                    f"{source.path} has no column {name!r}; it has {', '.join(columns)} (--text-column, --id-column)"
                )

    def located(self) -> Self:
        """Return the job with absolute folders, so that any process finds them; a name on the hub stays as it is."""
        given = {name: getattr(self, name, None) for name in NAMES}
        found = {name: _names.find_local(value, NAMES[name]) for name, value in given.items() if value is not None}
        return replace(self, **{name: str(place) for name, place in found.items() if place is not None})

    def prepared(self, rows: Callable[[], Iterable[Row]]) -> Self:  # noqa: ARG002
        """Return the job with all that it has to know of the rows as a whole; most have to know nothing."""
        return self

    def settings(self) -> dict[str, Any]:
        """Return what was asked for, as far as results depend on it."""
        return {name: getattr(self, name) for name in self.decisive}

    def load(self, *, device: str | None = None) -> BulkWorker:
        """Load the model; `device` goes before the job's own."""
        raise NotImplementedError

    def finish(self, folder: Path, shards: Sequence[Path]) -> dict[str, Any]:  # noqa: ARG002
        """Make of all results what is to be made of them, and return what is to be shown beside the counts."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelJob(BulkJob):
    """A job with a model, or with an encoder that has no entities."""

    model: str | None = option(None, "A model folder made by 'ebert align', or 'starter'.")
    bert: str | None = option(None, "Instead of a model: an encoder without entities.")
    vectors: str | None = option(None, "The new path of the model's store, if it has moved.")
    device: str | None = option(None, "Where the encoder runs: cpu, cuda, mps, ...")
    dtype: Literal["float32", "float16", "bfloat16"] | None = option(None, "The encoder's number type.")

    def load_model(self, device: str | None) -> "EBert":
        """Load the model or the encoder."""
        from ebert.model.ebert import load_model
        from ebert.model.folder import find

        found = find(self.model, self.bert, self.vectors)
        return load_model(found, device=device or self.device, precision=self.dtype)


def identify(model: "EBert | Linker", module: "nn.Module") -> dict[str, Any]:
    """Return the name of an encoder and hashes of weights, store and alignment, as they are in memory.

    Vectors of entities are many, so of the store its own description and what was added count.
    """
    from ebert._runs import hash_weights

    found: dict[str, Any] = {
        "encoder": model.name, "weights": hash_weights(module), "vectors": None, "alignment": None,
    }  # fmt: skip
    if (vectors := model.vectors) is not None:
        digest = hashlib.sha256(json.dumps(asdict(vectors.info), sort_keys=True).encode())
        for title, vector in vectors.added():
            digest.update(title.encode() + b"\0" + vector.tobytes())
        for name in vectors.added_names():
            digest.update(json.dumps(name).encode() + b"\n")
        found["vectors"] = digest.hexdigest()
    if (alignment := model.alignment) is not None:
        digest = hashlib.sha256(json.dumps(asdict(alignment.options), sort_keys=True).encode())
        for array in alignment.arrays().values():
            digest.update(array.tobytes())
        found["alignment"] = digest.hexdigest()
    return found


def each(rows: Sequence[Row], make: Callable[[Row], Result], bad: list[BadRow]) -> list[tuple[Row, Result]]:
    """Return the good rows with what is made of each; the others go among the bad ones."""

    def run(some: Sequence[tuple[Row, None]]) -> list[tuple[Row, Result]]:
        return [(row, make(row)) for row, _ in some]

    return together([(row, None) for row in rows], run, bad, machine=(OSError, MemoryError))


def together(
    items: Sequence[tuple[Row, Item]],
    run: Callable[[Sequence[tuple[Row, Item]]], list[Result]],
    bad: list[BadRow],
    *,
    machine: tuple[type[Exception], ...] = (OSError,),
) -> list[Result]:
    """Work on rows, and what was made of each, together; if that fails, on halves, down to the row that is to blame.

    Errors of the `machine`, a disk or a network, are no row's fault and are raised. If each of several rows fails for a
    reason that is not its own fault, something else is wrong, and that is raised.
    """
    found: list[BadRow] = []
    surprises: list[Exception] = []

    def halved(some: Sequence[tuple[Row, Item]]) -> list[Result]:
        try:
            return run(some)
        except machine:
            raise
        except Exception as error:  # of whatever kind the model's libraries raise: the other rows are to go on
            if len(some) > 1:
                middle = len(some) // 2
                return [*halved(some[:middle]), *halved(some[middle:])]
            if isinstance(error, EbertError):
                found.append(BadRow.of(some[0][0], error))
            else:
                surprises.append(error)
                found.append(BadRow.of(some[0][0], f"{type(error).__name__}: {error}"))
            return []

    results = halved(items) if items else []
    if len(items) > 1 and len(surprises) == len(items):
        raise surprises[-1]
    bad += found
    return results
