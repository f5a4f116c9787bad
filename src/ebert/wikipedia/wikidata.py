"""Wikidata ids of the entities of a corpus, from the wiki's own SQL dumps or from a table of titles and ids."""

import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.text import titles
from ebert.wikipedia.corpus import WIKIDATA, Corpus
from ebert.wikipedia.dump import DamagedError, lines

EXAMPLES = 5  # of what cannot be read
PROPERTY = b"'wikibase_item'"
PAGE_COLUMNS = ["page_id", "page_namespace", "page_title"]
PROPERTY_COLUMNS = ["pp_page", "pp_propname", "pp_value"]
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


@dataclass
class Ids:
    """Ids that were found, and what was not used."""

    found: dict[str, int] = field(default_factory=dict)  # by title
    elsewhere: int = 0  # ids of titles that are not entities of the corpus
    twice: int = 0  # other ids of a title that has one
    bad: int = 0  # rows and lines that cannot be read
    examples: list[str] = field(default_factory=list)  # of the bad

    def add(self, title: str | None, number: int) -> None:
        """Add an id for a title, which may not be an entity; of two ids the first counts."""
        if title is None:
            self.elsewhere += 1
        elif self.found.setdefault(title, number) != number:
            self.twice += 1

    def note(self, source: bytes) -> None:
        """Count something that cannot be read."""
        self.bad += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(source.decode("utf-8", "replace"))


def from_sql(corpus: Corpus, page: Path, props: Path, *, advance: Advance = silent) -> Ids:
    """Read ids from the dumps of the tables `page` and `page_props` of the wiki."""
    ids, entities = Ids(), {title: title for title in corpus.entities}  # one string for both
    pages: dict[int, str] = {}  # entities by page number
    for number, namespace, value in rows(page, "page", PAGE_COLUMNS, bad=ids.note, advance=advance):
        if namespace == b"0" and number.isdigit():  # other pages are written without the name of their namespace
            title = text_of(value).replace("_", " ")
            if title in entities:
                pages[int(number)] = entities[title]
    for number, name, value in rows(props, "page_props", PROPERTY_COLUMNS, bad=ids.note, advance=advance):
        if name == PROPERTY:
            item = titles.wikidata_id(text_of(value))
            if item is None or not number.isdigit():
                ids.note(b",".join((number, name, value)))
            else:
                ids.add(pages.get(int(number)), item)
    return ids


def from_tsv(corpus: Corpus, path: Path, *, advance: Advance = silent) -> Ids:
    """Read ids from lines of title TAB id or id TAB title; a first line that has no id is a header."""
    ids, entities = Ids(), set(corpus.entities)
    id_first = False
    for number, raw in enumerate(_lines(path, advance)):
        line = raw.decode("utf-8", "replace").strip("\r\ufeff")
        columns = [*line.split("\t", 2), ""][:2]
        found = [titles.wikidata_id(column) for column in columns]
        if None in found:  # else the title looks like an id too, and its place is that in the lines before
            id_first = found[0] is not None
        title, item = titles.clean(columns[id_first]), found[not id_first]
        if item is not None and title:
            ids.add(title if title in entities else None, item)
        elif number and line.strip():
            ids.note(line.encode())
    return ids


def write(corpus: Corpus, ids: Ids) -> None:
    """Put the ids into the corpus, in place of the old ones."""
    with files.replacing(corpus.path / WIKIDATA, "w") as file:
        file.writelines(f"{title}\tQ{ids.found[title]}\n" for title in corpus.entities if title in ids.found)


def _lines(path: Path, advance: Advance) -> Iterator[bytes]:
    if not path.is_file():
        raise EbertError(f"there is no file {path}")
    try:
        yield from lines(path, advance)
    except DamagedError as error:
        raise EbertError(f"{error}; get it again") from None


# Rows of a table in a dump of MySQL or MariaDB, one after another in little memory


def rows(
    path: Path, table: str, columns: list[str], *, bad: Callable[[bytes], object], advance: Advance = silent
) -> Iterator[tuple[bytes, ...]]:
    """Yield some columns of the rows of a table, as written; `bad` gets the beginning of what cannot be read as a row.

    Columns are found by name, in whatever order the table has them.
    """
    known: list[str] = []
    row: re.Pattern[bytes] | None = None  # set while the lines are values of the table
    creating = False
    for line in _lines(path, advance):
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
    """Yield the rows in a line; return whether the statement ends there."""
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


def text_of(value: bytes) -> str:
    """Return the text of a value as written."""
    if not value.startswith(b"'"):
        return value.strip().decode("utf-8", "replace")
    inner = value[1:-1]
    if b"\\" in inner or b"''" in inner:
        inner = _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]) if found[1] else b"'", inner)
    return inner.decode("utf-8", "replace")
