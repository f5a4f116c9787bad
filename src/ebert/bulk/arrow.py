"""Parquet, by way of pyarrow, which is an extra."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebert._io import files
from ebert.errors import EbertError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

NOTE = b"ebert"  # the key of what a file of ours says about itself


def need_pyarrow() -> None:
    """Complain if pyarrow is missing."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise EbertError("bulk work reads and writes Parquet: pip install 'ebert[bulk]'") from None


class DamageError(EbertError):
    """A file cannot be read, and that is its own fault."""


@contextmanager
def finding_damage() -> Iterator[None]:
    """Give one error for the many that Arrow has for damage, and leave those of the disk, which have a number."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, ValueError, OverflowError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DamageError(str(error).strip()) from None


def open_parquet(path: Path) -> "pq.ParquetFile":
    """Open a Parquet file, or say what is wrong with it."""
    import pyarrow.parquet as pq

    try:
        with finding_damage():
            return pq.ParquetFile(path)
    except DamageError as error:
        raise EbertError(
            f"{path} is no Parquet file, or is truncated or damaged ({error}); get or write it again"
        ) from None


def write(path: Path, table: "pa.Table", note: Mapping[str, Any]) -> None:
    """Write a table and what is to be said about it. The same table gives the same bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    value = json.dumps(note, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    sink = pa.BufferOutputStream()  # a full disk is then an error of ours to write, not of Arrow's
    pq.write_table(table.replace_schema_metadata({NOTE: value}), sink, compression="zstd")
    with files.replacing(path, sweep=False) as file:  # the job does, once for all shards
        file.write(sink.getvalue())


def read_note(path: Path) -> dict[str, Any] | None:
    """Give what a file of ours says about itself; None if there is none or it is damaged."""
    import pyarrow.parquet as pq

    try:
        with finding_damage():
            note: Any = json.loads((pq.read_metadata(path).metadata or {})[NOTE])
    except (FileNotFoundError, DamageError, KeyError):
        return None
    return note if isinstance(note, dict) else None
