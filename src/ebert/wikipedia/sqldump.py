"""Rows of a table in a dump of MySQL or MariaDB, such as Wikipedia publishes, one after another in little memory."""

import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.wikipedia.unpacking import lines

SHOWN = 80  # bytes of a bad row
COLUMNS = 4096  # that MySQL allows

_NAME = rb"[`\"]?(\w++)[`\"]?"
_CREATE = re.compile(rb"\s*CREATE TABLE (?:IF NOT EXISTS )?" + _NAME, re.IGNORECASE)
_COLUMN = re.compile(rb"\s*(?:[`\"](\w+)[`\"]|([a-z]\w*)) ")  # keys and the like begin with a bare word in capitals
_INSERT = re.compile(
    rb"\s*+(?:INSERT|REPLACE)\b[^(`\"]*? INTO " + _NAME + rb"\s*+(?:\(([^()]*+)\))?+\s*+VALUES", re.IGNORECASE
)
_VALUE = rb"(?:'(?:[^'\\]++|\\.|'')*+'|[^',()]*+)"  # never goes back, whatever is in the string
_ESCAPE = re.compile(rb"\\(.)|''", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"Z": b"\x1a", b"b": b"\b"}


def rows(
    path: Path, table: str, columns: list[str], *, bad: Callable[[bytes], object], advance: Advance = silent
) -> Iterator[tuple[bytes, ...]]:
    """Give some columns of the rows of a table, as written; `bad` gets the beginning of what cannot be read as a row.

    Columns are found by name, in whatever order the table has them.
    """
    known: list[str] = []
    row: re.Pattern[bytes] | None = None  # set while the lines are values of the table
    creating = False
    for line in lines(path, advance):
        if creating:
            if column := _COLUMN.match(line):
                known.append((column[1] or column[2]).decode())
                _refuse_many(path, len(known))
            creating = not line.lstrip().startswith(b")")
        elif create := _CREATE.match(line):
            creating = create[1] == table.encode()
        else:
            start = 0
            if insert := _INSERT.match(line):
                start, row = insert.end(), None
                if insert[1] == table.encode():
                    _refuse_many(path, insert[2].count(b",") if insert[2] else 0)
                    listed = re.findall(r"\w+", insert[2].decode()) if insert[2] else known
                    row = _row(path, table, columns, listed)
            if row is not None and (yield from _values(row, columns, line, start, bad)):
                row = None
    if not known:
        raise EbertError(f"{path} has no table {table!r}: give the {table}.sql.gz of the wiki")


def _refuse_many(path: Path, columns: int) -> None:
    """Raise an error for a table with more columns than one can have."""
    if columns > COLUMNS:
        raise EbertError(f"{path} has a table of more than {COLUMNS:,} columns: it is damaged; get it again")


def _row(path: Path, table: str, columns: list[str], known: list[str]) -> re.Pattern[bytes]:
    """Make a pattern for a row that picks out some columns, which costs one match a row."""
    missing = [column for column in columns if column not in known]
    if missing:
        raise EbertError(f"table {table!r} in {path} has no column {missing[0]!r}; it has {', '.join(known) or 'none'}")
    parts = [b"(?P<%b>%b)" % (name.encode(), _VALUE) if name in columns else _VALUE for name in known]
    return re.compile(rb"\(" + rb"\s*+,\s*+".join(parts) + rb"\)", re.DOTALL)


def _values(
    row: re.Pattern[bytes], columns: list[str], line: bytes, position: int, bad: Callable[[bytes], object]
) -> Generator[tuple[bytes, ...], None, bool]:
    """Give the rows in a line; return whether the statement ends there."""
    numbers = [row.groupindex[name] for name in columns]
    while True:
        while line[position : position + 1] in (b",", b" ", b"\t", b"\r"):
            position += 1
        if position == len(line):
            return False
        if line[position] == ord(";"):
            return True
        if match := row.match(line, position):
            values = match.groups()
            yield tuple([values[number - 1] for number in numbers])
            position = match.end()
        else:
            following = line.find(b"),(", position)
            end = len(line) if following < 0 else following + 2
            bad(line[position : min(position + SHOWN, end)])
            position = end


def text(value: bytes) -> str:
    """Give what a value as written stands for."""
    if not value.startswith(b"'"):
        return value.strip().decode("utf-8", "replace")
    inner = value[1:-1]
    if b"\\" in inner or b"''" in inner:
        inner = _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]) if found[1] else b"'", inner)
    return inner.decode("utf-8", "replace")
