"""Reading the rows of a shard. A row that cannot be read is listed with the reason, and the others are processed."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ebert._io import compressed, files, records
from ebert.bulk.inputs import Shard, Slice, Source, naming_damage
from ebert.bulk.options import TEXT, ReadOptions
from ebert.errors import EbertError
from ebert.text import titles

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

AT_ONCE = 256  # rows of a table
NOTE = b"ebert"  # the key of what a file of ours says about itself

Value = dict[str, Any] | str | EbertError | None  # fields, a text alone, why there is neither, or a blank line


@dataclass(frozen=True, slots=True)
class Row:
    """A row to work on."""

    number: int  # among the rows of all inputs
    id: str
    where: str  # file and line
    fields: dict[str, Any]  # the text is always called `text`
    named: str = TEXT  # what the input calls it

    @property
    def text(self) -> str:
        """Its text, or why it has none."""
        text = self.fields.get(TEXT)
        if text is None:
            raise EbertError(f"it has no text (a string called {self.named!r})")
        if not isinstance(text, str):
            raise EbertError(f"its text ({self.named!r}) is {type(text).__name__}, not a string")
        return text


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be processed, and why."""

    row: int
    id: str
    where: str
    reason: str

    @classmethod
    def of(cls, row: Row, reason: object) -> "BadRow":
        """Take a row that was read, but is of no use."""
        return cls(row.number, row.id, row.where, str(reason))


@dataclass
class Read:
    """What a shard holds."""

    rows: list[Row] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    blank: int = 0  # lines without anything


class RowReader:
    """Reads shards. It keeps its file open, as the next shard begins where this one ends."""

    def __init__(self, read: ReadOptions, columns: Sequence[str]) -> None:
        self._read, self._columns = read, columns
        self._source: Source | None = None
        self._opened: Any = None  # a Parquet file or a stream of bytes
        self._group: tuple[int, pa.Table] | None = None

    def __call__(self, shard: Shard) -> Read:
        """Read the rows of a shard, in their order."""
        done = Read()
        for part in shard.slices:
            self._open(part.source)
            values = self._table_values(part) if part.source.kind == "parquet" else self._text_values(part)
            for place, value in enumerate(values):
                name = part.source.name
                where = name if part.source.kind == "text" else f"{name}:{part.first + place + 1}"
                if value is None:
                    done.blank += 1
                    continue
                try:
                    row = self._row(part.row + place, where, value)
                except EbertError as error:
                    done.bad.append(BadRow(part.row + place, where, where, str(error)))
                    continue
                broken = next((key for key in (TEXT, *self._columns) if not _is_text(row.fields.get(key))), None)
                if broken is None:
                    done.rows.append(row)
                else:
                    label = row.named if broken == TEXT else broken
                    done.bad.append(BadRow.of(row, f"its {label!r} has half a surrogate pair and is not text"))
        return done

    def close(self) -> None:
        """Close the file."""
        if self._opened is not None:
            self._opened.close()
        self._source = self._opened = self._group = None

    def _open(self, source: Source) -> None:
        if source == self._source:
            return
        self.close()
        try:
            size = source.path.stat().st_size
        except FileNotFoundError:
            raise EbertError(f"there is no file {source.path} any more, or not on this machine") from None
        if size != source.size:
            raise _changed(source)
        self._opened = open_parquet(source.path) if source.kind == "parquet" else compressed.opened(source.path)
        self._source = source

    def _row(self, number: int, where: str, value: dict[str, Any] | str | EbertError) -> Row:
        """Return a row: a text, or one with its name and other fields. Raise an error if it is none."""
        if isinstance(value, EbertError):
            raise value
        read = self._read
        given = {read.text_column: value} if isinstance(value, str) else value
        name = None if isinstance(value, str) else given.get(read.name)
        if name is None and read.id_column is not None:
            raise EbertError(f"it has no {read.id_column!r}")
        if name is not None and (isinstance(name, bool) or not isinstance(name, str | int)):
            raise EbertError(f"its {read.name!r} is {name!r}; a name or a number is needed")
        if isinstance(name, str) and not titles.is_text(name):
            raise EbertError(f"its {read.name!r} is not text")
        # A `text` is none if another name was asked for.
        own = {key: one for key, one in given.items() if key not in (read.name, read.text_column, TEXT)}
        if read.text_column in given:
            own[TEXT] = given[read.text_column]
        return Row(number, where if name is None else str(name), where, own, read.text_column)

    def _text_values(self, part: Slice) -> Iterator[Value]:
        """Yield the whole text of a file, or its lines."""
        stream: IO[bytes] = self._opened
        with naming_damage(part.source.path):
            stream.seek(part.start)
            data = stream.read(part.stop - part.start)
        if len(data) != part.stop - part.start:
            raise _changed(part.source)
        if part.first == 0:
            data = data.removeprefix(b"\xef\xbb\xbf")  # the mark that some programs put before UTF-8
        kind = part.source.kind
        for line in [data] if kind == "text" else data.split(b"\n")[: part.rows]:
            if kind != "text" and not line.strip():
                yield None
                continue
            try:
                text = line.decode()
                yield _parse(text) if kind == "jsonl" else text.removesuffix("\r") if kind == "lines" else text
            except UnicodeDecodeError as error:
                yield EbertError(f"it is not UTF-8 ({error})")
            except EbertError as error:
                yield error

    def _table_values(self, part: Slice) -> Iterable[Value]:
        """Return the rows of a table; if its pages are damaged, all of them are bad."""
        try:
            with finding_damage():
                tables = list(self._tables(part))
        except DamageError as error:
            reason = f"rows {part.first + 1} to {part.first + part.rows} of the file cannot be read ({error})"
            return [EbertError(reason)] * part.rows
        return (row for table in tables for row in _plain(table))

    def _tables(self, part: Slice) -> "Iterator[pa.Table]":
        """Yield the slices of row groups that hold the rows. The last group is kept: a group may have many shards."""
        begin = 0
        for number in range(self._opened.metadata.num_row_groups):
            end = begin + self._opened.metadata.row_group(number).num_rows
            if begin < part.stop and part.start < end:
                if self._group is None or self._group[0] != number:
                    self._group = number, self._read_group(number, part.source)
                first = max(part.start, begin)
                yield self._group[1].slice(first - begin, min(part.stop, end) - first)
            begin = end

    def _read_group(self, number: int, source: Source) -> "pa.Table":
        """Read a row group, a few rows at a time: one long text that all rows share takes no room in the file."""
        import pyarrow as pa

        schema = self._opened.schema_arrow
        names = dict.fromkeys([*self._columns, self._read.text_column, self._read.name])
        columns = [name for name in names if name in schema.names]
        room = compressed.Room(source.path, compressed.limit(source.size))
        kept = []
        for batch in self._opened.iter_batches(AT_ONCE, row_groups=[number], columns=columns):
            # A dictionary is shared by its rows here too.
            room.take(sum(one.nbytes for one in batch.columns if not pa.types.is_dictionary(one.type)))
            kept.append(batch)
        return pa.Table.from_batches(kept, pa.schema([schema.field(name) for name in columns]))


def _changed(source: Source) -> EbertError:
    return EbertError(f"{source.path} has changed since the job began; start again (--overwrite)")


def _is_text(value: Any) -> bool:
    """Return whether all strings in a value can be written down: JSON can spell what is no text."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left += [*one, *one.values()]
        elif isinstance(one, list):
            left += one
        elif isinstance(one, str) and not titles.is_text(one):
            return False
    return True


def _plain(table: "pa.Table") -> "list[dict[str, Any] | EbertError]":
    """Return the rows of a table as plain values, or why one has none: it may hold bytes that are no text."""
    try:
        with finding_damage():
            return list(table.to_pylist())
    except DamageError as error:
        if table.num_rows == 1:
            return [EbertError(f"it cannot be read ({error})")]
    return [row for place in range(table.num_rows) for row in _plain(table.slice(place, 1))]


def _parse(line: str) -> dict[str, Any] | str:
    if line.lstrip().startswith('"'):  # a text by itself
        with suppress(ValueError):
            return str(json.loads(line))
    return records.parse_object(line)


# Parquet


def need_pyarrow() -> None:
    """Raise an error if pyarrow is missing."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise EbertError("bulk work reads and writes Parquet: pip install 'ebert[bulk]'") from None


class DamageError(EbertError):
    """A file cannot be read, and that is its own fault."""


@contextmanager
def finding_damage() -> Iterator[None]:
    """Raise one error for the many that Arrow has for damage; those of the disk, which have a number, stay."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, ValueError, OverflowError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DamageError(str(error).strip()) from None


def open_parquet(path: Path) -> "pq.ParquetFile":
    """Open a Parquet file; the error says what is wrong with it."""
    import pyarrow.parquet as pq

    try:
        with finding_damage():
            return pq.ParquetFile(path)
    except DamageError as error:
        raise EbertError(
            f"{path} is not a Parquet file, or is truncated or damaged ({error}); get or write it again"
        ) from None


def write_parquet(path: Path, table: "pa.Table", note: Mapping[str, Any]) -> None:
    """Write a table with a note about it. The same table gives the same bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    value = json.dumps(note, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    sink = pa.BufferOutputStream()  # a full disk is then an error of ours to write, not of Arrow's
    pq.write_table(table.replace_schema_metadata({NOTE: value}), sink, compression="zstd")
    with files.replacing(path, sweep=False) as file:  # the job does, once for all shards
        file.write(sink.getvalue())


def read_note(path: Path) -> dict[str, Any] | None:
    """Return what a file of ours says about itself; None if there is none or it is damaged."""
    import pyarrow.parquet as pq

    try:
        with finding_damage():
            note: Any = json.loads((pq.read_metadata(path).metadata or {})[NOTE])
    except (FileNotFoundError, DamageError, KeyError):
        return None
    return note if isinstance(note, dict) else None
