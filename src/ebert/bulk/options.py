"""How inputs are read, and who does the work. Nothing heavy is imported."""

from dataclasses import dataclass
from typing import Any, Literal

from ebert._options import Options, option
from ebert.errors import EbertError

TEXT, ID = "text", "id"
WORKER_FIELDS = ("workers", "least_workers", "cpus_per_worker", "gpus_per_worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(Options):
    """How rows are read. A job can only be continued with the same options, as they decide which rows there are."""

    text_column: str = option(TEXT, "The column (Parquet) or key (JSON) with the text.")
    id_column: str | None = option(None, "The column or key with a row's name.  [default: id, else file and line]")
    lines: bool = option(False, "Treat every line of a text file as a row.")
    shard_rows: int = option(256, "Rows in a shard. If the job is killed, only the shards in progress are lost.", low=1)

    @property
    def name(self) -> str:
        """The column or key of the row's name."""
        return self.id_column or ID

    def identity(self) -> dict[str, Any]:
        """Return what must not change when a job is continued."""
        return {"text": self.text_column, "id": self.id_column, "lines": self.lines, "shard-rows": self.shard_rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions(Options):
    """Who does the work: the cores of this machine or a Ray cluster, how many workers, and what each of them has."""

    engine: Literal["local", "ray"] = option("local", "All cores of this machine, or a Ray cluster.")
    address: str | None = option(None, "The address of the Ray cluster.  [default: RAY_ADDRESS, else this machine]")
    workers: int | None = option(None, "Maximum number of workers.  [default: as many as there is room for]", low=1)
    least_workers: int = option(1, "Minimum number of workers (ray).", low=1)
    cpus_per_worker: int | None = option(
        None, "Cores for each worker.  [default: this machine's, divided among them; 1 with ray]", low=1
    )
    gpus_per_worker: float = option(0.0, "GPUs for each worker; with 0.5, two workers share one.", low=0)

    def __post_init__(self) -> None:
        self.check()
        if self.workers is not None and self.workers < self.least_workers:
            raise EbertError(f"at least {self.least_workers} workers are asked for, but at most {self.workers}")
        if self.address is not None and self.engine == "local":
            raise EbertError("--address is that of a Ray cluster; give --engine ray with it")
