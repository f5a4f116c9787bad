"""Linking the rows of a corpus."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ebert.bulk.inputs import Source
from ebert.bulk.job import Done, each, need_text, together
from ebert.bulk.options import ReadOptions
from ebert.bulk.rows import Bad, Row

if TYPE_CHECKING:
    import pyarrow as pa

    from ebert.linking.linker import Linker


@dataclass(frozen=True, kw_only=True)
class LinkJob:
    """Finds and links the entities of every row."""

    linker: str
    """A linker's folder, or a model's for linking without training."""
    vectors: str | None = None
    """Where the linker's store is, if not where it was."""
    threshold: float | None = None
    """Mentions that are less probable are left out."""
    rounds: int | None = None
    """Iterations of refinement."""
    candidates: int | None = None
    """Candidates of a mention that are written, at most."""
    device: str | None = None
    """Where the encoder runs."""

    kind: ClassVar[str] = "link"
    columns: ClassVar[tuple[str, ...]] = ()

    def check(self, source: Source, columns: Sequence[str] | None, read: ReadOptions) -> None:
        """Complain about a table without texts."""
        need_text(source, columns, read)

    def prepared(self, rows: Callable[[], Iterable[Row]]) -> Self:  # noqa: ARG002
        """Give the job as it is."""
        return self

    def options(self) -> dict[str, Any]:
        """Give what was asked for."""
        return {"threshold": self.threshold, "rounds": self.rounds, "candidates": self.candidates}

    def load(self, *, device: str | None = None) -> "LinkWorker":
        """Load the linker."""
        from ebert.linking.linker import Linker

        loaded = Linker.from_pretrained(
            self.linker, vectors=self.vectors, rounds=self.rounds, device=device or self.device
        )
        return LinkWorker(self, loaded)

    def finish(self, folder: Path, files: Sequence[Path]) -> dict[str, Any]:  # noqa: ARG002
        """Show nothing but the counts."""
        return {}


class LinkWorker:
    """A linker at work."""

    def __init__(self, job: LinkJob, linker: "Linker") -> None:
        from ebert.bulk.job import of_parts

        self._job, self._linker = job, linker
        self.identity = {
            "encoder": linker.name,
            **of_parts(linker.module, linker.vectors, linker.alignment),
            "linker": asdict(linker.options),
            "generator": linker.generator.settings,
            "threshold": linker.threshold,
            "null shift": linker.null_shift,
        }

    def __call__(self, rows: Sequence[Row]) -> Done:
        """Link rows."""
        import pyarrow as pa

        from ebert.linking.document import Document

        bad: list[Bad] = []
        good, documents = each(rows, lambda row: Document(row.id, row.text), bad)
        by_row = {row.number: document for row, document in zip(good, documents, strict=True)}
        before = Counter(self._linker.dropped)

        def link(some: Sequence[Row]) -> list[dict[str, Any]]:
            linked = self._linker.link([by_row[row.number] for row in some], threshold=self._job.threshold)
            return [self._row(row, one) for row, one in zip(some, linked, strict=True)]

        values = together(good, link, bad)
        return Done(pa.Table.from_pylist(values, schema()), bad, Counter(self._linker.dropped) - before)

    def _row(self, row: Row, linked: Any) -> dict[str, Any]:
        from ebert.linking.output import as_json

        value = as_json(linked)
        for mention in value["mentions"]:
            mention["candidates"] = mention["candidates"][: self._job.candidates]
        return {"row": row.number, **value}


def schema() -> "pa.Schema":
    """Give the columns of linked rows."""
    import pyarrow as pa

    candidate = {"entity": pa.string(), "prior": pa.float64(), "score": pa.float64(), "probability": pa.float64()}
    mention = {
        "start": pa.int64(),
        "end": pa.int64(),
        "text": pa.string(),
        "entity": pa.string(),
        "url": pa.string(),
        "probability": pa.float64(),
        "null_probability": pa.float64(),
        "candidates": pa.list_(pa.struct(candidate)),
    }
    columns = {"row": pa.int64(), "id": pa.string(), "text": pa.string(), "mentions": pa.list_(pa.struct(mention))}
    return pa.schema(columns)
