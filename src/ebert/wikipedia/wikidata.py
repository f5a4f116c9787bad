"""Wikidata ids of the entities of a corpus, from the wiki's own SQL dumps or from a table of titles and ids."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.text import titles
from ebert.wikipedia import sqldump
from ebert.wikipedia.corpus import WIKIDATA, Corpus
from ebert.wikipedia.unpacking import DamagedError, lines

EXAMPLES = 5
PROPERTY = b"'wikibase_item'"


@dataclass
class Ids:
    """Ids that were found, and what was not used."""

    found: dict[str, int] = field(default_factory=dict)  # by title
    elsewhere: int = 0  # ids of titles that are no entities of the corpus
    twice: int = 0  # other ids of a title that has one
    bad: int = 0  # rows and lines that cannot be read
    examples: list[str] = field(default_factory=list)  # of the bad

    def add(self, title: str, number: int) -> None:
        """Take an id; of two the first counts."""
        if self.found.setdefault(title, number) != number:
            self.twice += 1

    def note(self, source: str) -> None:
        """Count something that cannot be read."""
        self.bad += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(source)


def from_sql(corpus: Corpus, page: Path, props: Path, *, advance: Advance = silent) -> Ids:
    """Read ids from the dumps of the tables `page` and `page_props` of the wiki."""
    ids = Ids()
    try:
        pages = _pages(corpus, page, ids, advance)
        for number, name, value in _rows(props, "page_props", ["pp_page", "pp_propname", "pp_value"], ids, advance):
            if name != PROPERTY:
                continue
            item = titles.wikidata_id(sqldump.text(value))
            if item is None or not number.isdigit():
                ids.note(b",".join((number, name, value)).decode("utf-8", "replace"))
            elif title := pages.get(int(number)):
                ids.add(title, item)
            else:
                ids.elsewhere += 1
    except DamagedError as error:
        raise EbertError(f"{error}; get it again") from None
    return ids


def from_tsv(corpus: Corpus, path: Path, *, advance: Advance = silent) -> Ids:
    """Read ids from lines of title TAB id or id TAB title; a first line that has no id is a header."""
    ids, entities = Ids(), set(corpus.entities)
    id_first = False
    try:
        for number, raw in enumerate(lines(_existing(path), advance)):
            line = raw.decode("utf-8", "replace").strip("\r\ufeff")
            columns = [*line.split("\t", 2), ""][:2]
            found = [titles.wikidata_id(column) for column in columns]
            if None in found:  # else the title looks like an id too, and its place is that in the lines before
                id_first = found[0] is not None
            title, item = titles.clean(columns[id_first]), found[not id_first]
            if item is None or not title:
                if number and line.strip():
                    ids.note(line)
            elif title in entities:
                ids.add(title, item)
            else:
                ids.elsewhere += 1
    except DamagedError as error:
        raise EbertError(f"{error}; get it again") from None
    return ids


def write(corpus: Corpus, ids: Ids) -> None:
    """Put the ids into the corpus, instead of those that it had."""
    with files.replacing(corpus.path / WIKIDATA, "w") as file:
        file.writelines(f"{title}\tQ{ids.found[title]}\n" for title in corpus.entities if title in ids.found)


def _pages(corpus: Corpus, path: Path, ids: Ids, advance: Advance) -> dict[int, str]:
    """Give the entities of the corpus by the numbers of their pages."""
    entities = {title: title for title in corpus.entities}  # one string for both
    found = {}
    for number, namespace, value in _rows(path, "page", ["page_id", "page_namespace", "page_title"], ids, advance):
        if namespace == b"0" and number.isdigit():  # other pages are written without the name of their namespace
            title = sqldump.text(value).replace("_", " ")
            if title in entities:
                found[int(number)] = entities[title]
    return found


def _rows(path: Path, table: str, columns: list[str], ids: Ids, advance: Advance) -> Iterator[tuple[bytes, ...]]:
    """Give the columns of a table in the order given, and count bad rows."""
    yield from sqldump.rows(
        _existing(path), table, columns, bad=lambda row: ids.note(row.decode("utf-8", "replace")), advance=advance
    )


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise EbertError(f"there is no file {path}")
    return path
