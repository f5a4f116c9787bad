"""Reading rows of files, each with the number of its line: text, JSON lines, and tables (CSV, TSV, JSON lines).

A row that cannot be read is given as the error that says why, so that the caller can list it and go on. Errors do not
name the place; whoever raises one adds the file and the line.
"""

import csv
import json
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ebert._io import compressed, files
from ebert._io.compressed import Opened, Room, limit, open_measured
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError

Row = tuple[int, dict[str, Any] | EbertError]  # the number of its line, and its fields or why it has none

JSON_LINES = (".jsonl", ".ndjson")  # endings of files
PLAIN_TEXT = (".txt", ".md", ".text", "")

LINE_BYTES = 4 << 20  # a longer one is not a line of text
ROW = 128  # bytes that a line counts as at least: to list it as one that cannot be used takes as many
FIELD = 1 << 20  # letters of a field in CSV; beyond them a quotation mark was never closed


def read_text(path: Path) -> str:
    """Return the text of a file, decompressed if its name says that it is compressed.

    Raise `EbertError` if there is no such file, or if it is damaged or not UTF-8.
    """
    if path.is_dir():
        raise EbertError(f"{path} is a folder; give a file in it")
    try:
        with compressed.bounded(path) as file:
            data = file.read()
    except FileNotFoundError:
        raise EbertError(f"there is no file {path}") from None
    except compressed.DAMAGED as error:
        if path.suffix not in compressed.UNPACK:
            raise
        raise EbertError(f"{path} cannot be unpacked ({error}); get it again") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EbertError(f"{path} is not UTF-8 ({error}); convert it") from None


def read_list(path: str | Path) -> list[str]:
    """Return the lines of a text file that are not blank, without the space around them."""
    return [line.strip() for line in read_text(Path(path)).split("\n") if line.strip()]


def parse_object(line: str | bytes) -> dict[str, Any]:
    """Return the JSON object in a line, or raise `EbertError`."""
    try:
        value = json.loads(line)
    except RecursionError:
        raise EbertError("it is not JSON (nested too deeply)") from None
    except ValueError as error:  # broken JSON, broken UTF-8, a number of 5,000 digits
        raise EbertError(f"it is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise EbertError(f"it is not a JSON object but {type(value).__name__}")
    return value


def objects(lines: Iterable[str | bytes], first: int = 1) -> Iterator[Row]:
    """Yield the JSON objects of lines with their numbers; blank lines are skipped."""
    for number, line in enumerate(lines, first):
        if line.strip():
            try:
                yield number, parse_object(line)
            except EbertError as error:
                yield number, error


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines atomically."""
    with files.replacing(path, "w") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n")


def read_table(path: Path, *, needed: str = "title", advance: Advance = silent) -> Generator[Row, None, None]:
    """Read a file; columns are known by their names, of which `needed` must be one. Progress is reported in bytes."""
    kind = Path(path.stem).suffix if path.suffix in compressed.UNPACK else path.suffix
    if kind not in (".csv", ".tsv", ".jsonl", ".ndjson"):
        raise EbertError(
            f"{path} is not a table that can be read: .csv, .tsv or .jsonl (and .gz, .bz2 or .xz) is needed"
        )
    with open_measured(path) as opened:
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
        self._room = Room(path, limit(size, sys.maxsize)) if path.suffix in compressed.UNPACK else None

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
    """Yield JSON objects, one on each line."""
    for line in lines:
        lines.record = 0
        for _, value in objects([line]):
            yield lines.number, value


def _records(lines: _Lines, path: Path, kind: str, needed: str) -> Iterator[Row]:
    """Yield the records of CSV or TSV, whose first line names the columns."""
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
    """Return whether all text is Unicode: other bytes are marked by halves of surrogate pairs."""
    for name, value in fields.items():
        for text in (name, *(value if isinstance(value, list) else [value])):
            try:
                if isinstance(text, str):
                    text.encode()
            except UnicodeEncodeError:
                return False
    return True
