"""How inputs are read, and by how many workers."""

from dataclasses import asdict, dataclass
from typing import Any

from ebert.errors import EbertError

TEXT, ID = "text", "id"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How rows are read. It decides which rows there are and what they are called, so a job goes on with the same."""

    text: str = TEXT
    """The column (of Parquet) or key (of JSON) that has the text."""
    id: str | None = None
    """The one that has the row's name; if not given, `id` where there is one, else file and line."""
    lines: bool = False
    """Every line of a text file is a row, instead of the whole file."""
    shard_rows: int = 256
    """Rows in a shard: what is lost at most by a worker that dies."""

    def __post_init__(self) -> None:
        if self.shard_rows < 1:
            raise EbertError(f"shard-rows is {self.shard_rows}; a shard needs at least one row")

    @property
    def name(self) -> str:
        """The column or key of the row's name."""
        return self.id or ID

    def identity(self) -> dict[str, Any]:
        """Give what a job must not change when it goes on."""
        return {name.replace("_", "-"): value for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """How many workers there are and what each of them has."""

    most: int | None = None
    """If not given, as many as this machine has cores, memory or GPUs for; or the cluster, which may grow."""
    least: int = 1
    """Of an autoscaling pool."""
    cpus: int | None = None
    """Cores of each; if not given, those of this machine are divided among them, and on a cluster each has one."""
    gpus: float = 0.0
    """GPUs of each; less than one shares one among several workers. On this machine it is one at most."""

    def __post_init__(self) -> None:
        if self.most is not None and self.most < self.least:
            raise EbertError(f"there are to be at least {self.least} workers but at most {self.most}")
        if self.least < 1 or (self.cpus is not None and self.cpus < 1) or self.gpus < 0:
            raise EbertError("there must be a worker, and it needs a core; GPUs cannot be fewer than none")
