"""Reading a knowledge base from a file, row by row: CSV and TSV whose first line names the columns, or JSON lines."""

import csv
import json
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from ebert.errors import EbertError
from ebert.packed import Room, limit
from ebert.progress import Advance, silent
from ebert.vectors.sources import PACKED, Opened, open_file

Row = tuple[int, dict[str, Any] | EbertError]  # the number of its line, and its fields or why it has none

LINE_BYTES = 4 << 20  # a longer one is not a line of text
ROW = 128  # bytes that a line counts as at least: to list it as one that cannot be used takes as many
FIELD = 1 << 20  # letters of a field in CSV; beyond them a quotation mark was never closed


def read_table(path: Path, *, needed: str = "title", advance: Advance = silent) -> Generator[Row, None, None]:
    """Read a file; columns are known by their names, of which `needed` must be one. The progress is in bytes."""
    kind = Path(path.stem).suffix if path.suffix in PACKED else path.suffix
    if kind not in (".csv", ".tsv", ".jsonl", ".ndjson"):
        raise EbertError(f"{path} is not a table that can be read: .csv, .tsv or .jsonl (and .gz or .bz2) is needed")
    with open_file(path) as opened:
        lines = _Lines(opened, path, advance)
        rows = _objects(lines) if kind in (".jsonl", ".ndjson") else _records(lines, path, kind, needed)
        for number, fields in rows:
            if isinstance(fields, dict) and not _is_text(fields):
                fields = EbertError("it is not UTF-8")
            yield number, fields
        opened.report(advance)


class _Lines:
    """The lines of a file. Bytes that are not UTF-8 are marked, so that only their row is lost."""

    def __init__(self, opened: Opened, path: Path, advance: Advance) -> None:
        self._opened, self._path, self._advance = opened, path, advance
        self.number = 0  # of the last line
        self.record = 0  # bytes of the record so far, which may have several lines
        # Only rows that cannot be used are held, but all of them may be such; no limit for tables of any length.
        size = path.stat().st_size
        self._room = Room(path, limit(size, sys.maxsize)) if path.suffix in PACKED else None

    def __iter__(self) -> Iterator[str]:
        while line := self._opened.stream.readline(LINE_BYTES):
            self.number += 1
            self.record += len(line)
            if self._room is not None:
                self._room.take(max(ROW, len(line)))
            if self.record >= LINE_BYTES:
                raise EbertError(f"{self._path}, line {self.number}: too long for a line; is this a file of text?")
            if self.number == 1:
                if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                    raise EbertError(f"{self._path} is UTF-16; save it as UTF-8")
                line = line.removeprefix(b"\xef\xbb\xbf")  # the mark that some programs put before UTF-8
            if self.number % 1000 == 0:
                self._opened.report(self._advance)
            yield line.decode("utf-8", "surrogateescape")


def _objects(lines: _Lines) -> Iterator[Row]:
    """Go through JSON objects, one a line."""
    for line in lines:
        lines.record = 0
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            yield lines.number, EbertError(f"it is not JSON ({error})")
            continue
        if isinstance(value, dict):
            yield lines.number, value
        else:
            yield lines.number, EbertError(f"it is not a JSON object but {type(value).__name__}")


def _records(lines: _Lines, path: Path, kind: str, needed: str) -> Iterator[Row]:
    """Go through records of CSV or TSV, whose first line names the columns."""
    source = iter(lines)
    header = next((line for line in source if line.strip()), "")
    reader, columns = _columns(header, source, path, kind, needed)
    limit = csv.field_size_limit()
    while True:
        first, lines.record = lines.number + 1, 0
        csv.field_size_limit(FIELD)  # the module has one limit for all readers
        try:
            fields = next(reader, None)
        except csv.Error as error:
            yield first, EbertError(f"it cannot be read ({error}); is a quotation mark not closed?")
            continue
        finally:
            csv.field_size_limit(limit)
        if fields is None:
            return
        if not any(field.strip() for field in fields):
            continue
        if len(fields) > len(columns):
            reason = (
                f"it has {len(fields)} fields for {len(columns)} columns; text with the separator in it needs quotes"
            )
            yield first, EbertError(reason)
        else:
            yield first, {name: field for name, field in zip(columns, fields, strict=False) if field.strip()}


def _columns(
    header: str, source: Iterable[str], path: Path, kind: str, needed: str
) -> tuple[Iterator[list[str]], Sequence[str]]:
    """Find the separator by the names of the columns: some programs write CSV with semicolons."""
    # A tab is in no text, so TSV needs no quotation marks, and those in it are meant.
    quoting: Literal[0, 3] = csv.QUOTE_NONE if kind == ".tsv" else csv.QUOTE_MINIMAL
    for separator in ("\t",) if kind == ".tsv" else (",", ";", "\t"):
        named = next(csv.reader([header], delimiter=separator, quoting=quoting), [])
        columns = [name.strip().lower() for name in named]
        if needed in columns:
            if double := {name for name in columns if columns.count(name) > 1}:
                raise EbertError(f"{path}: two columns are called {', '.join(sorted(double))}")
            return csv.reader(source, delimiter=separator, quoting=quoting), columns
    raise EbertError(f"{path} has no column {needed!r} in its first line: {header.strip()[:100]!r}")


def _is_text(fields: dict[str, Any]) -> bool:
    """Tell whether all is Unicode: bytes that were not are marked by halves of surrogate pairs."""
    for name, value in fields.items():
        for text in (name, *(value if isinstance(value, list) else [value])):
            try:
                if isinstance(text, str):
                    text.encode()
            except UnicodeEncodeError:
                return False
    return True
