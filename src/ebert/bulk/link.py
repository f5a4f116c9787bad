"""Linking the rows of a corpus."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ebert._options import option
from ebert.bulk.job import BulkJob, RowResults, each, identify, together
from ebert.bulk.rows import BadRow, Row
from ebert.linking.options import PRECISION_HELP, LinkPrecision

if TYPE_CHECKING:
    import pyarrow as pa

    from ebert.linking.document import Document
    from ebert.linking.linker import Linker


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkJob(BulkJob):
    """Finds and links the entities of every row."""

    kind: ClassVar[str] = "link"
    decisive: ClassVar[tuple[str, ...]] = ("threshold", "rounds", "candidates", "precision")

    linker: str
    """A linker's folder, or a model's for linking without training."""
    vectors: str | None = option(None, "The new path of the linker's store, if it has moved.")
    threshold: float | None = option(None, "Leave out mentions that are less probable than this.", low=0, high=1)
    rounds: int | None = option(None, "Rounds of refinement; 1 means no refinement.", low=1)
    candidates: int | None = option(None, "How many candidates to write for each mention.  [default: all]", low=0)
    precision: LinkPrecision = option("auto", PRECISION_HELP)
    device: str | None = option(None, "Where the encoder runs: cpu, cuda, mps, ...")

    def load(self, *, device: str | None = None) -> "LinkWorker":
        """Load the linker."""
        from ebert.linking.linker import Linker

        how: dict[str, Any] = {"vectors": self.vectors, "rounds": self.rounds, "precision": self.precision}
        how["device"] = device or self.device
        return LinkWorker(self, Linker.from_pretrained(self.linker, **how))


class LinkWorker:
    """A linker at work."""

    def __init__(self, job: LinkJob, linker: "Linker") -> None:
        self._job, self._linker = job, linker
        self.identity = {
            **identify(linker, linker.module),
            "linker": asdict(linker.options),
            "generator": linker.generator.settings,
            "threshold": linker.threshold,
            "null shift": linker.null_shift,
        }

    def __call__(self, rows: Sequence[Row]) -> RowResults:
        """Link rows."""
        import pyarrow as pa

        from ebert.linking.document import Document

        bad: list[BadRow] = []
        before = Counter(self._linker.dropped)
        values = together(each(rows, lambda row: Document(row.id, row.text), bad), self._link, bad)
        return RowResults(pa.Table.from_pylist(values, _schema()), bad, Counter(self._linker.dropped) - before)

    def _link(self, some: "Sequence[tuple[Row, Document]]") -> list[dict[str, Any]]:
        from ebert.linking.output import as_json

        linked = self._linker.link([document for _, document in some], threshold=self._job.threshold)
        values = [{"row": row.number, **as_json(one)} for (row, _), one in zip(some, linked, strict=True)]
        for mention in (mention for value in values for mention in value["mentions"]):
            mention["candidates"] = mention["candidates"][: self._job.candidates]
        return values


def _schema() -> "pa.Schema":
    """Return the columns of linked rows."""
    import pyarrow as pa

    whole, text, real = pa.int64(), pa.string(), pa.float64()
    candidate = {"entity": text, "prior": real, "score": real, "probability": real}
    mention = {
        "start": whole, "end": whole, "text": text, "entity": text, "wikidata": text, "id": text,
        "url": text, "probability": real, "null_probability": real, "candidates": pa.list_(pa.struct(candidate)),
    }  # fmt: skip
    return pa.schema({"row": whole, "id": text, "text": text, "mentions": pa.list_(pa.struct(mention))})
