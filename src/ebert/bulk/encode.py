"""Encoding the rows of a corpus: a vector for each text, or one for each entity in it."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from ebert.bulk.inputs import Source
from ebert.bulk.job import Done, each, need_text, together
from ebert.bulk.options import ReadOptions
from ebert.bulk.rows import Bad, Row
from ebert.errors import EbertError
from ebert.text.passage import Mention, Passage

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from ebert.model.ebert import EBert
    from ebert.model.encode import Encoding, Pooling

Pool = Literal["mean", "first", "entities"]
POOLS: tuple[Pool, ...] = get_args(Pool)
POOLINGS: "dict[Pool, Pooling]" = {"mean": "mean", "first": "cls", "entities": "entity"}  # of `Encoding.pooled`


@dataclass(frozen=True, kw_only=True)
class EncodeJob:
    """Gives a vector for every row, or one for each of its entities."""

    model: str | None = None
    """A model's folder; or `bert`."""
    bert: str | None = None
    """An encoder without entities."""
    vectors: str | None = None
    """Where the model's store is, if not where it was."""
    mode: str = "concat"
    """How entities are fed: bert, concat or replace."""
    pool: Pool = "mean"
    """`mean` of the states of all pieces of the text; `first`, the state of [CLS]; `entities`, one for each mention."""
    layer: int = -1
    """Of the hidden states; -1 is the last, 0 the embeddings."""
    device: str | None = None
    dtype: str | None = None

    kind: ClassVar[str] = "encode"
    columns: ClassVar[tuple[str, ...]] = ("mentions",)

    def __post_init__(self) -> None:
        if self.pool not in POOLS:
            raise EbertError(f"unknown pool {self.pool!r}; choose one of {', '.join(POOLS)}")

    def check(self, source: Source, columns: Sequence[str] | None, read: ReadOptions) -> None:
        """Complain about a table without texts."""
        need_text(source, columns, read)

    def prepared(self, rows: Callable[[], Iterable[Row]]) -> Self:  # noqa: ARG002
        """Give the job as it is."""
        return self

    def options(self) -> dict[str, Any]:
        """Give what was asked for."""
        return {"mode": self.mode, "pool": self.pool, "layer": self.layer, "dtype": self.dtype}

    def load(self, *, device: str | None = None) -> "EncodeWorker":
        """Load the model."""
        from ebert.model.ebert import load_model

        loaded = load_model(self.model, self.bert, self.vectors, device or self.device, self.dtype)
        return EncodeWorker(self, loaded)

    def finish(self, folder: Path, files: Sequence[Path]) -> dict[str, Any]:  # noqa: ARG002
        """Show nothing but the counts."""
        return {}


class EncodeWorker:
    """An encoder at work."""

    def __init__(self, job: EncodeJob, model: "EBert") -> None:
        from ebert.bulk.job import of_parts
        from ebert.model.modes import check

        check(job.mode)
        self._job, self._model = job, model
        self.identity = {"encoder": model.name, **of_parts(model.encoder, model.vectors, model.alignment)}
        config = model.encoder.config
        self._width = int(config.hidden_size)  # of rows that are none; the others have what the encoder gives
        layers = int(config.num_hidden_layers)
        if not -layers - 1 <= job.layer <= layers:
            raise EbertError(f"{model.name} has no layer {job.layer}: 0 (the embeddings) to {layers}")

    def __call__(self, rows: Sequence[Row]) -> Done:
        """Encode rows."""
        bad: list[Bad] = []
        good, passages = each(rows, passage_of, bad)
        by_row = {row.number: passage for row, passage in zip(good, passages, strict=True)}
        mode: Any = self._job.mode

        def encode(some: Sequence[Row]) -> "list[tuple[Row, Encoding, Any]]":
            found = self._model.encode([by_row[row.number] for row in some], mode=mode, layer=self._job.layer)
            return [(row, one, self._pooled(one)) for row, one in zip(some, found, strict=True)]

        results = together(good, encode, bad)
        missing = Counter({"mention without a vector": n} if (n := self._missing(results)) else {})
        return Done(self._table(results), bad, missing)

    def _missing(self, results: "Sequence[tuple[Row, Encoding, Any]]") -> int:
        if self._job.mode == "bert":
            return 0
        return sum(len(one.passage.mentions) - len(one.pieces.entities) for _, one, _ in results)

    def _pooled(self, one: "Encoding") -> "NDArray[np.float32]":
        """Return the vectors of a text, shape (1 or mentions, width)."""
        array = one.pooled(POOLINGS[self._job.pool])
        return array[None] if array.ndim == 1 else array

    def _table(self, results: "Sequence[tuple[Row, Encoding, NDArray[np.float32]]]") -> "pa.Table":
        import numpy as np
        import pyarrow as pa

        numbers = pa.array([row.number for row, _, _ in results], pa.int64())
        ids = pa.array([row.id for row, _, _ in results], pa.string())
        flat = np.concatenate([found for _, _, found in results]) if results else np.zeros((0, self._width), np.float32)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1), pa.float32()), flat.shape[1])
        if self._job.pool != "entities":
            return pa.table({"row": numbers, "id": ids, "vector": vectors})
        mentions = [(one, mention) for _, one, _ in results for mention in one.passage.mentions]
        parts = {
            "start": pa.array([mention.start for _, mention in mentions], pa.int64()),
            "end": pa.array([mention.end for _, mention in mentions], pa.int64()),
            "entity": pa.array([mention.entity for _, mention in mentions], pa.string()),
            "fed": pa.array([mention in one.pieces.entities.values() for one, mention in mentions], pa.bool_()),
            "vector": vectors,
        }
        ends = np.cumsum([0, *(len(found) for _, _, found in results)])
        structs = pa.StructArray.from_arrays(list(parts.values()), names=list(parts))
        lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs)
        return pa.table({"row": numbers, "id": ids, "entities": lists})


def passage_of(row: Row) -> Passage:
    """Give the passage of a row: its text with its `mentions` (as linking writes them), or with ``[[Title|words]]``."""
    mentions = row.fields.get("mentions")
    if mentions is None:
        return Passage.parse(row.text)
    try:
        found = tuple(Mention(int(m["start"]), int(m["end"]), str(m["entity"])) for m in mentions)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise EbertError(f"its mentions cannot be read ({error!r}): each has 'start', 'end' and 'entity'") from None
    return Passage(row.text, found)
