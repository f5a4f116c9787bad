"""Make a store from batches of names and vectors, in bounded memory. The folder appears when it is complete."""

import hashlib
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
from ebert._io import files, staging
from ebert.errors import EbertError
from ebert.text import letters, titles
from ebert.vectors import layout
from ebert.vectors.catalogue import PAGE, SCHEMA, SEARCH, Kind, Merge, Surface, insert_keys
from ebert.vectors.matrix import Matrix, MatrixWriter, QuantisedWriter
from ebert.wikipedia.tokens import surface_key

EXAMPLES = 10  # dropped names of each kind that store.json keeps
# Nobody reads a catalogue while it is being made, so speed matters more than safety.
FAST = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000;"
INSERT = {
    "words": "INSERT OR IGNORE INTO words VALUES (:row, :name, :count)",
    "entities": "INSERT OR IGNORE INTO entities VALUES (:row, :name, :count, :wikidata)",
}


@dataclass
class Dropped:
    """What was left out, by reason."""

    duplicates: int = 0
    empty: int = 0  # names
    unseen: int = 0  # titles with invisible characters
    redirects: int = 0  # from an existing title or redirect, or to a title that is not in the store
    wikidata: int = 0  # ids of titles that are not in the store
    surfaces: int = 0  # without letters
    examples: list[str] = field(default_factory=list)

    def note(self, name: str) -> None:
        """Keep a few of the names to show."""
        if len(self.examples) < EXAMPLES:
            self.examples.append(name)


class StoreWriter:
    """Takes words and entities in any order. Of two with the same name the first is kept and the other counted."""

    def __init__(
        self, folder: Path, opened: ExitStack, *, dimension: int, dtype: str, codebook: NDArray[np.float16] | None
    ) -> None:
        if dimension < 1:
            raise EbertError(f"a vector cannot have dimension {dimension}")
        self.dropped, self.dimension = Dropped(), dimension
        self._folder, self._dtype, self._opened = folder, dtype, opened
        self._words_digest, self._vectors_digest = hashlib.sha256(), hashlib.sha256()
        self._codebook, self._surfaces = codebook, 0
        self._outputs: MatrixWriter | None = None
        self._matrices = {"words": self._matrix(layout.WORDS), "entities": self._matrix(layout.ENTITIES)}
        self._catalogue = sqlite3.connect(folder / layout.CATALOGUE)
        opened.callback(self._catalogue.close)
        self._catalogue.executescript(FAST)
        for statement in SCHEMA:
            self._catalogue.execute(statement)

    def add(
        self,
        kind: Kind,
        names: Sequence[str],
        vectors: Matrix,
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
        numbers = zip(_integers(counts, len(names), "counts"), _integers(wikidata, len(names), "ids"), strict=True)
        matrix, kept = self._matrices[kind], list[int]()
        for index, (name, (count, number)) in enumerate(zip(names, numbers, strict=True)):
            values = {"row": matrix.rows + len(kept), "name": name, "count": count, "wikidata": number}
            try:
                if name and self._catalogue.execute(INSERT[kind], values).rowcount:
                    kept.append(index)
                    continue
            except UnicodeEncodeError:
                raise EbertError(f"{name[:60]!r} cannot be a name: it has half a surrogate pair") from None
            self.dropped.duplicates += bool(name)
            self.dropped.empty += not name
            self.dropped.note(name)
        if len(kept) < len(names):
            names, vectors = [names[index] for index in kept], np.asarray(vectors)[kept]
            outputs = None if outputs is None else np.asarray(outputs)[kept]
        stored = matrix.append(vectors, names)
        if outputs is not None:
            self.outputs(outputs, names)
        if kind == "words":
            self._words_digest.update("".join(f"{name}\0" for name in names).encode())
            self._vectors_digest.update(stored.data)
        return len(names)

    def redirects(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add redirects, from one title to another. Call it after the entities."""
        query = (
            "INSERT OR IGNORE INTO redirects SELECT :source, row FROM entities WHERE title = :target"
            " AND :source != '' AND NOT EXISTS (SELECT 1 FROM entities WHERE title = :source)"
        )
        for source, target in pairs:
            values = {"source": titles.usable(source), "target": titles.clean(target)}
            self.dropped.redirects += not self._catalogue.execute(query, values).rowcount

    def wikidata(self, pairs: Iterable[tuple[str, int]]) -> None:
        """Set the Wikidata ids of entities by title. Call it after the entities."""
        query = "UPDATE entities SET wikidata = ? WHERE title = ?"
        for title, number in pairs:
            self.dropped.wikidata += not self._catalogue.execute(query, (int(number), titles.clean(title))).rowcount

    def ids(self, pairs: Iterable[tuple[int, str]]) -> None:
        """Set the own ids of entities by row. Call it after the entities."""
        self._catalogue.executemany("INSERT INTO ids VALUES (?, ?)", pairs)

    def merged(self, merges: Iterable[Merge]) -> None:
        """Note which entities are one with another. Call it after the entities."""
        self._catalogue.executemany("INSERT INTO merged VALUES (?, ?, ?, ?)", merges)

    def surfaces(self, surfaces: Iterable[Surface]) -> None:
        """Add surfaces: how often each stands in the text, and its entities by row with how often they are meant."""
        self._surfaces, nameless = insert_surfaces(self._catalogue, surfaces, self._surfaces)
        self.dropped.surfaces += nameless

    def outputs(self, vectors: Matrix, words: Sequence[str] | None = None) -> None:
        """Add output vectors of words, in the order of the words."""
        self._outputs = self._outputs or self._matrix(layout.OUTPUTS)
        self._outputs.append(vectors, words or range(self._outputs.rows, self._outputs.rows + len(vectors)))

    def finish(self, *, licence: str, made: dict[str, Any]) -> layout.StoreInfo:
        """Write what is left and return the description of the store."""
        for statement in SEARCH:
            self._catalogue.execute(statement)
        self._catalogue.commit()
        self._catalogue.close()
        staging.sync(self._folder / layout.CATALOGUE)
        words, entities = self._matrices["words"], self._matrices["entities"]
        if self._outputs is not None and self._outputs.rows != words.rows:
            raise EbertError(f"{self._outputs.rows} output vectors for {words.rows} words: each needs one")
        for matrix in filter(None, (words, entities, self._outputs)):
            matrix.finish()
        self._words_digest.update(self._vectors_digest.hexdigest().encode())
        dropped = {key: value for key, value in vars(self.dropped).items() if value}
        info = layout.StoreInfo(
            dimension=self.dimension,
            dtype=self._dtype,
            words=words.rows,
            entities=entities.rows,
            words_sha256=self._words_digest.hexdigest(),
            licence=licence,
            made={"ebert": __version__, **made, **({"dropped": dropped} if dropped else {})},
            sha256=layout.hashes(self._folder),
        )
        info.write(self._folder)
        return info

    def _matrix(self, name: str) -> MatrixWriter:
        path, dtype = self._folder / name, self._dtype
        matrix = (
            QuantisedWriter(path, dimension=self.dimension, codebook=self._codebook)
            if dtype == "pq" and name == layout.ENTITIES
            else MatrixWriter(path, dimension=self.dimension, dtype="float16" if dtype == "pq" else dtype)
        )
        self._opened.callback(matrix.close)
        return matrix


def insert_surfaces(connection: sqlite3.Connection, surfaces: Iterable[Surface], first: int = 0) -> tuple[int, int]:
    """Put surfaces into a catalogue under construction, numbered from `first` on.

    Return the number after the last, and how many were left out because they have no letters and so occur in no text.
    """
    given, nameless = iter(surfaces), 0
    while batch := list(islice(given, PAGE)):
        kept = [one for one in batch if one[0] and (one[0].isascii() or surface_key(one[0]))]
        nameless += len(batch) - len(kept)
        numbered = list(enumerate(kept, first))
        connection.executemany(
            "INSERT INTO surfaces VALUES (?, ?, ?)",
            ((number, surface, occurrences) for number, (surface, occurrences, _) in numbered),
        )
        connection.executemany(
            "INSERT INTO mentions VALUES (?, ?, ?)",
            ((number, row, count) for number, (_, _, meant) in numbered for row, count in meant),
        )
        insert_keys(connection, [surface for surface, _, _ in kept])
        first += len(kept)
    return first, nameless


def _integers(numbers: Iterable[int | None] | None, length: int, what: str) -> list[int | None]:
    """Return plain integers, the only kind that SQLite takes, one for each name."""
    given = [None if number is None else int(number) for number in ([None] * length if numbers is None else numbers)]
    if len(given) != length:
        raise EbertError(f"{len(given)} {what} for {length} names: every name needs one, which may be None")
    return given


def refuse(path: Path, *, overwrite: bool) -> None:
    """Raise `EbertError` if a store cannot be made at `path`; only a store is ever overwritten."""
    files.refuse_existing(path, overwrite=overwrite, marker=layout.INFO)


@contextmanager
def writing(
    path: Path, *, dimension: int, dtype: str = "float32", codebook: NDArray[np.float16] | None = None,
    overwrite: bool = False,
) -> Iterator[StoreWriter]:  # fmt: skip
    """Make a store at `path`: the block fills the writer and calls its `finish`.

    Until then everything is in a temporary folder beside it, and whatever was at `path` stays. `codebook` is used for
    the dtype pq instead of a new one.
    """
    refuse(path, overwrite=overwrite)
    try:
        with files.replacing_folder(path, overwrite=overwrite) as folder, ExitStack() as opened:
            yield StoreWriter(folder, opened, dimension=dimension, dtype=dtype, codebook=codebook)
    except sqlite3.OperationalError as error:  # a full disk, as SQLite puts it
        raise OSError(f"cannot write {path}: {error}") from error
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error  # a full disk, which does not say where


def fill_from_arrays(
    folder: Path,
    parts: dict[Kind, tuple[Sequence[str], ArrayLike | None, Iterable[int | None] | None]],
    *,
    outputs: ArrayLike | None,
    redirects: Iterable[tuple[str, str]],
    wikidata: Iterable[tuple[str, int]],
    dtype: str,
    licence: str,
) -> None:
    """Make a store from names, arrays of shape (names, dimension), and counts."""
    arrays: dict[Kind, NDArray[Any]] = {}
    for kind, (names, vectors, _) in parts.items():
        if vectors is not None:
            arrays[kind] = np.asarray(vectors)
            if arrays[kind].ndim != 2:
                shape = arrays[kind].shape
                raise EbertError(f"the vectors of the {kind} have shape {shape}; (names, dimension) is needed")
        elif len(names):
            raise EbertError(f"{len(names)} {kind} without vectors: every name needs one")
    if not arrays:
        raise EbertError("a store needs word_vectors or entity_vectors")
    if outputs is not None:
        outputs, words = np.asarray(outputs), arrays["words"].shape if "words" in arrays else (0,)
        if outputs.shape != words:
            raise EbertError(f"word_outputs have shape {outputs.shape}, word_vectors {words}: every word needs both")
    for title in parts["entities"][0]:
        if hidden := letters.unseen(titles.clean(title)):
            raise EbertError(f"an entity cannot be called {title!r}: {hidden} in it is invisible; leave it out")
    with writing(folder, dimension=next(iter(arrays.values())).shape[1], dtype=dtype) as writer:
        for kind, array in arrays.items():
            names, _, counts = parts[kind]
            writer.add(kind, list(names), array, counts=counts, outputs=outputs if kind == "words" else None)
        writer.redirects(redirects)
        writer.wikidata(wikidata)
        writer.finish(licence=licence, made={"from": "arrays"})
