"""Encoding the rows of a corpus: a vector for each text, or one for each entity in it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ebert._options import option
from ebert.bulk.job import ModelJob, RowResults, each, identify, together
from ebert.bulk.rows import BadRow, Row
from ebert.errors import EbertError
from ebert.model.options import Mode
from ebert.text.passage import Mention, Passage

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from ebert.model.ebert import EBert
    from ebert.model.encode import Encoding, Pooling

    Encoded = tuple[Row, Encoding, NDArray[np.float32]]  # the vectors of a text, shape (1 or mentions, width)

Pool = Literal["mean", "first", "entities"]
POOLINGS: "dict[Pool, Pooling]" = {"mean": "mean", "first": "cls", "entities": "entity"}  # of `Encoding.pooled`


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeJob(ModelJob):
    """Makes a vector for every row, or one for each of its entities."""

    kind: ClassVar[str] = "encode"
    columns: ClassVar[tuple[str, ...]] = ("mentions",)
    decisive: ClassVar[tuple[str, ...]] = ("mode", "pool", "layer", "dtype")

    mode: Mode | None = option(None, "How entities are fed.  [default: concat with a model, else bert]")
    pool: Pool = option("mean", "One vector per row (the mean of its pieces, or [CLS]), or one vector per entity.")
    layer: int = option(-1, "The layer of the hidden states; 0 is the embeddings, -1 is the last layer.")

    def __post_init__(self) -> None:
        if self.mode is None:
            object.__setattr__(self, "mode", "concat" if self.model else "bert")
        self.check()

    def load(self, *, device: str | None = None) -> "EncodeWorker":
        """Load the model."""
        return EncodeWorker(self, self.load_model(device))


class EncodeWorker:
    """An encoder at work."""

    def __init__(self, job: EncodeJob, model: "EBert") -> None:
        self._job, self._model = job, model
        self.identity = identify(model, model.encoder)
        layers = int(model.encoder.config.num_hidden_layers)
        if not -layers - 1 <= job.layer <= layers:
            raise EbertError(f"{model.name} has no layer {job.layer}: 0 (the embeddings) to {layers}")

    def __call__(self, rows: Sequence[Row]) -> RowResults:
        """Encode rows."""
        bad: list[BadRow] = []
        results = together(each(rows, passage_of, bad), self._encode, bad)
        fed = [] if self._job.mode == "bert" else [one for _, one, _ in results]
        missing = sum(len(one.passage.mentions) - len(one.pieces.entities) for one in fed)
        return RowResults(self._table(results), bad, +Counter({"mention without a vector": missing}))

    def _encode(self, some: Sequence[tuple[Row, Passage]]) -> "list[Encoded]":
        job, mode = self._job, self._job.mode
        assert mode is not None
        found = self._model.encode([passage for _, passage in some], mode=mode, layer=job.layer)
        pooled = [one.pooled(POOLINGS[job.pool]) for one in found]
        vectors = [array[None] if array.ndim == 1 else array for array in pooled]
        return [(row, one, array) for (row, _), one, array in zip(some, found, vectors, strict=True)]

    def _table(self, results: "Sequence[Encoded]") -> "pa.Table":
        import numpy as np
        import pyarrow as pa

        rows = {
            "row": pa.array([row.number for row, _, _ in results], pa.int64()),
            "id": pa.array([row.id for row, _, _ in results], pa.string()),
        }
        nothing = np.zeros((0, int(self._model.encoder.config.hidden_size)), np.float32)
        flat = np.concatenate([found for _, _, found in results] or [nothing])
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1), pa.float32()), flat.shape[1])
        if self._job.pool != "entities":
            return pa.table({**rows, "vector": vectors})
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
        return pa.table({**rows, "entities": pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs)})


def passage_of(row: Row) -> Passage:
    """Return the passage of a row: its text with its `mentions`, as linking writes them, or ``[[Title|words]]``."""
    mentions: Any = row.fields.get("mentions")
    if mentions is None:
        return Passage.parse(row.text)
    try:
        found = tuple(Mention(int(m["start"]), int(m["end"]), str(m["entity"])) for m in mentions)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise EbertError(f"its mentions cannot be read ({error!r}): each has 'start', 'end' and 'entity'") from None
    return Passage(row.text, found)
