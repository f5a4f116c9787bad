"""Reading the rows of a shard. A row that is none is listed with the reason, and the others go on."""

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
    """A row that nothing can be done with, and why."""

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
        self._stream: IO[bytes] | None = None
        self._group: tuple[int, pa.Table] | None = None
        self._table: Any = None

    def __call__(self, shard: Shard) -> Read:
        """Read the rows of a shard, in their order."""
        done = Read()
        for part in shard.slices:
            self._open(part.source)
            {"parquet": self._parquet, "text": self._whole}.get(part.source.kind, self._lines)(part, done)
        return done

    def close(self) -> None:
        """Close the file."""
        for opened in (self._stream, self._table):
            if opened is not None:
                opened.close()
        self._source = self._stream = self._group = self._table = None

    def _open(self, source: Source) -> None:
        if source == self._source:
            return
        self.close()
        try:
            size = source.path.stat().st_size
        except FileNotFoundError:
            raise EbertError(f"there is no file {source.path} any more, or not on this machine") from None
        if size != source.size:
            raise EbertError(f"{source.path} has changed since the job began; begin anew (--overwrite)")
        if source.kind == "parquet":
            self._table = open_parquet(source.path)
        else:
            self._stream = compressed.opened(source.path)
        self._source = source

    # One for each kind of file

    def _whole(self, part: Slice, done: Read) -> None:
        name = part.source.name
        try:
            text = self._bytes(part).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            done.bad.append(BadRow(part.row, name, name, f"it is not UTF-8 ({error})"))
        else:
            done.rows.append(Row(part.row, name, name, {TEXT: text}))

    def _lines(self, part: Slice, done: Read) -> None:
        lines = self._bytes(part).split(b"\n")
        json_lines = part.source.kind == "jsonl"
        for place, line in enumerate(lines[: part.rows]):
            number = part.first + place
            if number == 0:
                line = line.removeprefix(b"\xef\xbb\xbf")  # the mark that some programs put before UTF-8
            if not line.strip():
                done.blank += 1
                continue
            where = f"{part.source.name}:{number + 1}"
            try:
                value = _parse(line) if json_lines else _decode(line.removesuffix(b"\r"))
                self._add(part.row + place, where, value, done)
            except EbertError as error:
                done.bad.append(BadRow(part.row + place, where, where, str(error)))

    def _parquet(self, part: Slice, done: Read) -> None:
        try:
            with finding_damage():
                tables = list(self._tables(part))
        except DamageError as error:
            reason = f"rows {part.first + 1} to {part.first + part.rows} of the file cannot be read ({error})"
            for place in range(part.rows):
                where = f"{part.source.name}:{part.first + place + 1}"
                done.bad.append(BadRow(part.row + place, where, where, reason))
            return
        for place, fields in enumerate(row for table in tables for row in _plain(table)):
            where = f"{part.source.name}:{part.first + place + 1}"
            try:
                if isinstance(fields, EbertError):
                    raise fields
                self._add(part.row + place, where, fields, done)
            except EbertError as error:
                done.bad.append(BadRow(part.row + place, where, where, str(error)))

    def _tables(self, part: Slice) -> "Iterable[pa.Table]":
        """Yield the slices of row groups that hold the rows. The last group is kept: a group may have many shards."""
        begin = 0
        for number in range(self._table.metadata.num_row_groups):
            end = begin + self._table.metadata.row_group(number).num_rows
            if begin < part.stop and part.start < end:
                if self._group is None or self._group[0] != number:
                    names = [*self._columns, self._read.text_column, self._read.name]
                    known = [name for name in dict.fromkeys(names) if name in self._table.schema_arrow.names]
                    self._group = number, self._read_group(number, known, part.source)
                first = max(part.start, begin)
                yield self._group[1].slice(first - begin, min(part.stop, end) - first)
            begin = end

    def _read_group(self, number: int, columns: list[str], source: Source) -> "pa.Table":
        """Read a row group, a few rows at a time: one long text that all rows share takes no room in the file."""
        import pyarrow as pa

        room = compressed.Room(source.path, compressed.limit(source.size))
        kept = []
        for batch in self._table.iter_batches(AT_ONCE, row_groups=[number], columns=columns):
            # A dictionary is shared by its rows here too.
            room.take(sum(one.nbytes for one in batch.columns if not pa.types.is_dictionary(one.type)))
            kept.append(batch)
        schema = self._table.schema_arrow
        return pa.Table.from_batches(kept, pa.schema([schema.field(name) for name in columns]))

    def _bytes(self, part: Slice) -> bytes:
        assert self._stream is not None
        with naming_damage(part.source.path):
            self._stream.seek(part.start)
            data = self._stream.read(part.stop - part.start)
        if len(data) != part.stop - part.start:
            raise EbertError(f"{part.source.path} has changed since the job began; begin anew (--overwrite)")
        return data

    def _add(self, number: int, where: str, value: dict[str, Any] | str, done: Read) -> None:
        """Add a row: a text, or one with its name and other fields."""
        fields = {} if isinstance(value, str) else value
        name = fields.get(self._read.name)
        if name is None and self._read.id_column is not None:
            raise EbertError(f"it has no {self._read.id_column!r}")
        if name is not None and (isinstance(name, bool) or not isinstance(name, str | int)):
            raise EbertError(f"its {self._read.name!r} is {name!r}; a name or a number is needed")
        if isinstance(name, str) and not titles.is_text(name):
            raise EbertError(f"its {self._read.name!r} is not text")
        # A `text` is none if another name was asked for.
        own = {
            key: field for key, field in fields.items() if key not in (self._read.name, self._read.text_column, TEXT)
        }
        if isinstance(value, str) or self._read.text_column in fields:
            own[TEXT] = value if isinstance(value, str) else fields[self._read.text_column]
        row = Row(number, where if name is None else str(name), where, own, self._read.text_column)
        for key in (TEXT, *self._columns):
            if not _is_text(own.get(key)):
                label = self._read.text_column if key == TEXT else key
                done.bad.append(BadRow.of(row, f"its {label!r} has half a surrogate pair and is not text"))
                return
        done.rows.append(row)


def _is_text(value: Any) -> bool:
    """Return whether all strings in a value can be written down: JSON can spell what is no text."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str) and not titles.is_text(one):
            return False
        if isinstance(one, dict):
            left += [*one, *one.values()]
        elif isinstance(one, list):
            left += one
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


def _parse(line: bytes) -> dict[str, Any] | str:
    text = _decode(line)
    if text.lstrip().startswith('"'):  # a text by itself
        with suppress(ValueError):
            return str(json.loads(text))
    return records.parse_object(text)


def _decode(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise EbertError(f"it is not UTF-8 ({error})") from None


NOTE = b"ebert"  # the key of what a file of ours says about itself


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
            f"{path} is no Parquet file, or is truncated or damaged ({error}); get or write it again"
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
