"""How inputs are read, and who does the work. Nothing heavy is imported."""

from dataclasses import dataclass
from typing import Any, Literal

from ebert._options import Options, option
from ebert.errors import EbertError

TEXT, ID = "text", "id"
WORKER_FIELDS = ("workers", "least_workers", "cpus_per_worker", "gpus_per_worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(Options):
    """How rows are read. It decides which rows there are and what they are called, so a job goes on with the same."""

    text_column: str = option(TEXT, "Where the text is: a column (of Parquet) or key (of JSON).")
    id_column: str | None = option(None, "Where a row's name is.  [default: id if there is one, else file and line]")
    lines: bool = option(False, "Every line of a text file is a row of its own.")
    shard_rows: int = option(256, "Rows that a worker does at a time, and that a kill costs.", low=1)

    @property
    def name(self) -> str:
        """The column or key of the row's name."""
        return self.id_column or ID

    def identity(self) -> dict[str, Any]:
        """Return what a job must not change when it goes on."""
        return {"text": self.text_column, "id": self.id_column, "lines": self.lines, "shard-rows": self.shard_rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions(Options):
    """Who does the work: the cores of this machine or a Ray cluster, how many workers, and what each of them has."""

    engine: Literal["local", "ray"] = option("local", "All cores of this machine, or a Ray cluster.")
    address: str | None = option(None, "Of the Ray cluster.  [default: RAY_ADDRESS, else this machine alone]")
    workers: int | None = option(None, "At most so many.  [default: as there is room for]", low=1)
    least_workers: int = option(1, "Of the pool that grows and shrinks (ray).", low=1)
    cpus_per_worker: int | None = option(
        None, "Cores of a worker.  [default: this machine's, divided among them; 1 with ray]", low=1
    )
    gpus_per_worker: float = option(0.0, "GPUs of a worker; 0.5 shares one between two.", low=0)

    def __post_init__(self) -> None:
        self.check()
        if self.workers is not None and self.workers < self.least_workers:
            raise EbertError(f"there are to be at least {self.least_workers} workers but at most {self.workers}")
        if self.address is not None and self.engine == "local":
            raise EbertError("--address is that of a Ray cluster; give --engine ray with it")
