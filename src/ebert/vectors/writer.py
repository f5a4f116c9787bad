"""Making a store: names and vectors come in batches, in bounded memory, into a folder that appears when it is whole."""

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ebert import __version__
from ebert._io import files
from ebert.errors import EbertError
from ebert.text import letters, titles
from ebert.vectors import layout
from ebert.vectors.catalogue import NAME, PAGE, SCHEMA, SEARCH, Kind, Surface
from ebert.vectors.matrix import MatrixWriter

Numbers = list[int | None]

EXAMPLES = 10  # of dropped names that store.json keeps


@dataclass
class Dropped:
    """What was left out, by reason."""

    duplicates: int = 0
    empty: int = 0  # names
    unseen: int = 0  # titles with characters that nobody sees
    redirects: int = 0  # from an existing title or redirect, or to a title that is not in the store
    wikidata: int = 0  # ids of titles that are not in the store
    examples: list[str] = field(default_factory=list)

    def note(self, name: str) -> None:
        """Keep a few of the names to show."""
        if len(self.examples) < EXAMPLES:
            self.examples.append(name)


class StoreWriter:
    """Takes words and entities in any order. Of two with the same name the first is kept and the other counted."""

    def __init__(self, folder: Path, *, dimension: int, dtype: str) -> None:
        if dimension < 1:
            raise EbertError(f"a vector cannot have dimension {dimension}")
        self.dropped, self.dimension = Dropped(), dimension
        self._folder, self._dtype = folder, dtype
        self._digest = hashlib.sha256()
        self._outputs: MatrixWriter | None = None
        self._surfaces = 0
        with ExitStack() as opened:
            self._words = MatrixWriter(folder / layout.WORDS, dimension=dimension, dtype=dtype, digest=True)
            opened.callback(self._words.close)
            self._entities = MatrixWriter(folder / layout.ENTITIES, dimension=dimension, dtype=dtype)
            opened.callback(self._entities.close)
            self._catalogue = _create(folder / layout.CATALOGUE)
            opened.callback(self._catalogue.close)
            self._opened = opened.pop_all()

    def add(
        self,
        kind: Kind,
        names: Sequence[str],
        vectors: NDArray[Any],
        *,
        counts: Iterable[int | None] | None = None,
        wikidata: Iterable[int | None] | None = None,
        outputs: NDArray[Any] | None = None,
    ) -> int:
        """Add names with their vectors, shape (names, dimension), and output vectors; return how many were new."""
        if len(names) != len(vectors):
            raise EbertError(f"{len(names)} names but {len(vectors)} vectors: every vector needs one name")
        if kind == "entities":
            names = [titles.clean(name) for name in names]
        matrix = self._words if kind == "words" else self._entities
        numbers = {
            "counts": _integers(counts, len(names), "counts"),
            "wikidata": _integers(wikidata, len(names), "ids"),
        }
        try:
            kept = self._register(kind, matrix.rows, names, **numbers)
        except UnicodeEncodeError as error:
            raise EbertError(f"{error.object[:60]!r} cannot be a name: it has half a surrogate pair") from None
        fresh = names if len(kept) == len(names) else [names[index] for index in kept]
        matrix.append(vectors if len(kept) == len(names) else np.asarray(vectors)[kept], fresh)
        if outputs is not None:
            self.outputs(outputs if len(kept) == len(names) else np.asarray(outputs)[kept], fresh)
        if kind == "words":
            self._digest.update("".join(f"{name}\0" for name in fresh).encode())
        return len(fresh)

    def redirects(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add redirects, from one title to another. Call it after the entities."""
        query = (
            "INSERT OR IGNORE INTO redirects SELECT :source, row FROM entities WHERE title = :target"
            " AND :source != '' AND NOT EXISTS (SELECT 1 FROM entities WHERE title = :source)"
        )
        cleaned = ({"source": titles.usable(source), "target": titles.clean(target)} for source, target in pairs)
        self.dropped.redirects += self._missed(query, cleaned)

    def wikidata(self, pairs: Iterable[tuple[str, int]]) -> None:
        """Set the Wikidata ids of entities by title. Call it after the entities."""
        cleaned = ({"title": titles.clean(title), "number": int(number)} for title, number in pairs)
        query = "UPDATE entities SET wikidata = :number WHERE title = :title"
        self.dropped.wikidata += self._missed(query, cleaned)

    def ids(self, pairs: Iterable[tuple[int, str]]) -> None:
        """Set the own ids of entities by row. Call it after the entities."""
        self._catalogue.executemany("INSERT INTO ids VALUES (?, ?)", pairs)

    def surfaces(self, surfaces: Iterable[Surface]) -> None:
        """Add surfaces: how often each stands in the text, and its entities by row with how often they are meant."""
        given = iter(surfaces)
        while batch := list(islice(given, PAGE)):
            first, self._surfaces = self._surfaces, self._surfaces + len(batch)
            insert_surfaces(self._catalogue, batch, first)

    def outputs(self, vectors: NDArray[Any], words: Sequence[str] | None = None) -> None:
        """Add output vectors of words, in the order of the words."""
        if self._outputs is None:
            self._outputs = MatrixWriter(self._folder / layout.OUTPUTS, dimension=self.dimension, dtype=self._dtype)
            self._opened.callback(self._outputs.close)
        self._outputs.append(vectors, words or range(self._outputs.rows, self._outputs.rows + len(vectors)))

    def finish(self, *, licence: str, made: dict[str, Any]) -> layout.StoreInfo:
        """Write what is left and return the description of the store."""
        for statement in SEARCH:
            self._catalogue.execute(statement)
        self._catalogue.commit()
        self._catalogue.close()
        with (self._folder / layout.CATALOGUE).open("rb") as file:
            os.fsync(file.fileno())
        self._digest.update(self._words.finish().encode())
        self._entities.finish()
        if self._outputs is not None:
            if self._outputs.rows != self._words.rows:
                raise EbertError(f"{self._outputs.rows} output vectors for {self._words.rows} words: each needs one")
            self._outputs.finish()
        dropped = {key: value for key, value in vars(self.dropped).items() if value}
        info = layout.StoreInfo(
            dimension=self.dimension,
            dtype=self._dtype,
            words=self._words.rows,
            entities=self._entities.rows,
            words_sha256=self._digest.hexdigest(),
            licence=licence,
            made={"ebert": __version__, **made, **({"dropped": dropped} if dropped else {})},
            sha256=layout.hashes(self._folder),
        )
        info.write(self._folder)
        return info

    def close(self) -> None:
        """Let go of the files, finished or not."""
        self._opened.close()

    def _register(
        self, kind: Kind, first: int, names: Sequence[str], *, counts: Numbers, wikidata: Numbers
    ) -> Sequence[int]:
        """Put names into the catalogue, the rows beginning with `first`; return the indexes of those that were new."""
        extra = ", wikidata" if kind == "entities" else ""
        insert = f"INSERT OR IGNORE INTO {kind} (row, {NAME[kind]}, count{extra}) VALUES (?, ?, ?{', ?' * bool(extra)})"

        def rows(indexes: Sequence[int]) -> Iterator[tuple[int | str | None, ...]]:
            for row, index in enumerate(indexes, first):
                given = (row, names[index], counts[index])
                yield (*given, wikidata[index]) if extra else given

        everything = range(len(names))
        if all(names) and self._catalogue.executemany(insert, rows(everything)).rowcount == len(names):
            return everything
        # Some are empty or were there already, so the rows of those after them are wrong: once more, one by one.
        self._catalogue.execute(f"DELETE FROM {kind} WHERE row >= ?", (first,))
        query = f"SELECT 1 FROM {kind} WHERE {NAME[kind]} = ?"
        known = {name for name in names if self._catalogue.execute(query, (name,)).fetchone()}
        new: list[int] = []
        for index, name in enumerate(names):
            if name and name not in known:
                known.add(name)
                new.append(index)
            else:
                self.dropped.duplicates += bool(name)
                self.dropped.empty += not name
                self.dropped.note(name)
        self._catalogue.executemany(insert, rows(new))
        return new

    def _missed(self, query: str, values: Iterable[dict[str, Any]]) -> int:
        """Run a query for each of the values; count those for which it changed nothing."""
        given = 0

        def counted() -> Iterator[dict[str, Any]]:
            nonlocal given
            for given, value in enumerate(values, 1):  # noqa: B007
                yield value

        changed = self._catalogue.executemany(query, counted()).rowcount
        return given - max(0, changed)  # -1: the query never ran


def _create(path: Path) -> sqlite3.Connection:
    """Begin a catalogue for a store that is being made. Nobody reads it yet, so speed goes before safety."""
    connection = sqlite3.connect(path)
    try:
        connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000;")
        connection.executescript(SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection


def insert_surfaces(connection: sqlite3.Connection, surfaces: Sequence[Surface], first: int) -> None:
    """Put surfaces into a catalogue under construction, numbered from `first` on."""
    connection.executemany(
        "INSERT INTO surfaces VALUES (?, ?, ?)",
        ((number, surface, occurrences) for number, (surface, occurrences, _) in enumerate(surfaces, first)),
    )
    connection.executemany(
        "INSERT INTO mentions VALUES (?, ?, ?)",
        ((number, row, count) for number, (_, _, meant) in enumerate(surfaces, first) for row, count in meant),
    )


def _integers(numbers: Iterable[int | None] | None, length: int, what: str) -> Numbers:
    """Return plain integers, of which SQLite takes no other kind, one for each name."""
    given: Numbers = (
        [None] * length if numbers is None else [None if number is None else int(number) for number in numbers]
    )
    if len(given) != length:
        raise EbertError(f"{len(given)} {what} for {length} names: every name needs one, which may be None")
    return given


def refuse(path: Path, *, overwrite: bool) -> None:
    """Raise `EbertError` if a store cannot be made at `path`; only a store is ever overwritten."""
    files.refuse_existing(path, overwrite=overwrite, marker=layout.INFO)


@contextmanager
def writing(path: Path, *, dimension: int, dtype: str = "float32", overwrite: bool = False) -> Iterator[StoreWriter]:
    """Make a store at `path`: the block fills the writer and calls its `finish`.

    Until then everything is in a temporary folder beside it, and whatever was at `path` stays.
    """
    refuse(path, overwrite=overwrite)
    try:
        with files.replacing_folder(path, overwrite=overwrite) as folder:
            writer = StoreWriter(folder, dimension=dimension, dtype=dtype)
            try:
                yield writer
            finally:
                writer.close()
    except sqlite3.OperationalError as error:  # a full disk, as SQLite puts it
        raise OSError(f"cannot write {path}: {error}") from error
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error  # a full disk, which does not say where


Part = tuple[Kind, Sequence[str], ArrayLike | None, Iterable[int | None] | None]  # names, vectors, counts


def fill_from_arrays(
    folder: Path,
    parts: Sequence[Part],
    *,
    outputs: ArrayLike | None,
    redirects: Iterable[tuple[str, str]],
    wikidata: Iterable[tuple[str, int]],
    dtype: str,
    licence: str,
) -> None:
    """Make a store of arrays, shape (names, dimension) each."""
    given: list[tuple[Kind, list[str], NDArray[Any], Iterable[int | None] | None]] = []
    for kind, names, vectors, counts in parts:
        if vectors is not None:
            given.append((kind, list(names), np.asarray(vectors), counts))
        elif len(names):
            raise EbertError(f"{len(names)} {kind} without vectors: every name needs one")
    if not given:
        raise EbertError("a store needs word_vectors or entity_vectors")
    if outputs is not None:
        outputs = np.asarray(outputs)
        words = next((array.shape for kind, _, array, _ in given if kind == "words"), (0,))
        if outputs.shape != words:
            raise EbertError(f"word_outputs have shape {outputs.shape}, word_vectors {words}: every word needs both")
    for kind, _, array, _ in given:
        if array.ndim != 2:
            raise EbertError(f"the vectors of the {kind} have shape {array.shape}; (names, dimension) is needed")
    for title in (name for kind, names, _, _ in given if kind == "entities" for name in names):
        if hidden := letters.unseen(titles.clean(title)):
            raise EbertError(f"an entity cannot be called {title!r}: nobody sees {hidden} in it; leave it out")
    with writing(folder, dimension=given[0][2].shape[1], dtype=dtype) as writer:
        for kind, names, array, counts in given:
            writer.add(kind, names, array, counts=counts, outputs=outputs if kind == "words" else None)
        writer.redirects(redirects)
        writer.wikidata(wikidata)
        writer.finish(licence=licence, made={"from": "arrays"})
