"""Additions as version 0.1 wrote them: an SQLite file, `added.sqlite`, which is read and never written to."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.vectors import log
from ebert.vectors.catalogue import SEARCH, Database
from ebert.vectors.log import Addition

NAME = "added.sqlite"
SCHEMA = (
    "CREATE TABLE entities (row INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, count INTEGER,"
    " wikidata INTEGER, vector BLOB NOT NULL, hides INTEGER)",
    "CREATE INDEX entities_by_wikidata ON entities (wikidata) WHERE wikidata IS NOT NULL",
    "CREATE INDEX entities_hiding ON entities (hides) WHERE hides IS NOT NULL",
    "CREATE TABLE redirects (title TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE ids (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE)",
    "CREATE TABLE surfaces (surface TEXT, row INTEGER, PRIMARY KEY (surface, row)) WITHOUT ROWID",
    SEARCH[0],
)


def read(path: Path, dimension: int) -> Iterator[tuple[Addition, NDArray[np.float32]]]:
    """Read all additions with their vectors.

    A journal beside the file is of a writer that died. Playing it would be SQLite's business, but it may have come with
    the file from elsewhere, and then could do harm.
    """
    for journal in (path.with_name(f"{NAME}-journal"), path.with_name(f"{NAME}-wal")):
        if journal.is_file() and journal.stat().st_size:
            raise EbertError(
                f"{journal} is left of an addition that did not end, and is not played back, as it can do harm if it "
                f"came from elsewhere. If you know it is yours, open {path.name} once with the program sqlite3, which "
                f"removes it. Otherwise remove it together with {path.name}, and lose what was added to the store"
            )
    if not path.stat().st_size:
        return
    names = Database(path, SCHEMA)
    try:
        if not names.has("entities"):  # of a first addition that was rolled back
            return
        aliases: dict[int, list[str]] = defaultdict(list)
        surfaces: dict[int, list[str]] = defaultdict(list)
        for title, row in names.rows("SELECT title, row FROM redirects ORDER BY title"):
            aliases[row].append(title)
        for surface, row in names.rows("SELECT surface, row FROM surfaces") if names.has("surfaces") else ():
            surfaces[row].append(surface)
        ids = dict(names.ids())
        for row, title, count, wikidata, hides, blob in names.rows(
            "SELECT row, title, count, wikidata, hides, vector FROM entities ORDER BY row"
        ):
            vector = np.frombuffer(blob, "<f4")
            if len(vector) != dimension:
                raise EbertError(
                    f"{path} has a vector of dimension {len(vector)} in a store of dimension {dimension}; "
                    "the files are not of one store: remove or restore it"
                )
            known = tuple(aliases[row]), tuple(surfaces[row])
            addition = Addition(title, row, hides, count, wikidata, ids.get(row), *known)
            log.check(addition)
            yield addition, vector
    except (TypeError, ValueError) as error:  # values of other types than the columns have
        raise EbertError(f"{path} is damaged ({error}); remove or restore it") from None
    finally:
        names.close()
