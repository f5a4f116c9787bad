"""Making a store: names and vectors come in batches, in bounded memory, into a folder that appears when it is whole."""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ebert import __version__, files
from ebert.errors import EbertError
from ebert.vectors import catalogue, layout, titles
from ebert.vectors.matrix import MatrixWriter

Kind = Literal["words", "entities"]
EXAMPLES = 10  # of dropped names that store.json keeps


@dataclass
class Dropped:
    """Names that were left out, by reason."""

    duplicates: int = 0
    empty: int = 0
    redirects: int = 0  # redirects from an existing title, or to one that is not in the store
    examples: list[str] = field(default_factory=list)

    def note(self, name: str) -> None:
        """Keep a few of the names to show."""
        if len(self.examples) < EXAMPLES:
            self.examples.append(name)


class StoreWriter:
    """Takes words and entities in any order. Of two with the same name the first is kept and the other counted."""

    def __init__(self, folder: Path, *, dimension: int, dtype: str) -> None:
        """Begin a store in an empty folder."""
        if dimension < 1:
            raise EbertError(f"a vector cannot have dimension {dimension}")
        self.dropped = Dropped()
        self._folder, self._dimension, self._dtype = folder, dimension, dtype
        self._names = hashlib.sha256()
        self._catalogue = catalogue.create(folder / layout.CATALOGUE)
        self._matrices = {
            "words": MatrixWriter(folder / layout.WORDS, dimension=dimension, dtype=dtype),
            "entities": MatrixWriter(folder / layout.ENTITIES, dimension=dimension, dtype=dtype),
        }

    def add(
        self, kind: Kind, names: Sequence[str], vectors: NDArray[Any], counts: Sequence[int | None] | None = None
    ) -> int:
        """Add names with their vectors, shape (names, dimension); give how many were new."""
        if len(names) != len(vectors):
            raise EbertError(f"{len(names)} names but {len(vectors)} vectors: every vector needs one name")
        names = [titles.clean(name) if kind == "entities" else name for name in names]
        known = catalogue.known(self._catalogue, kind, names)
        keep: list[int] = []
        for index, name in enumerate(names):
            if not name or name in known:
                self.dropped.duplicates += bool(name)
                self.dropped.empty += not name
                self.dropped.note(name)
            else:
                known.add(name)
                keep.append(index)
        matrix = self._matrices[kind]
        first = matrix.rows
        matrix.append(vectors if len(keep) == len(names) else np.asarray(vectors)[keep])
        column = "word" if kind == "words" else "title"
        self._catalogue.executemany(
            f"INSERT INTO {kind} (row, {column}, count) VALUES (?, ?, ?)",
            ((first + i, names[index], counts[index] if counts else None) for i, index in enumerate(keep)),
        )
        if kind == "words":
            self._names.update("".join(f"{names[index]}\0" for index in keep).encode("utf-8", "surrogatepass"))
        return len(keep)

    def redirects(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add redirects, from one title to another. Call it after the entities."""
        query = self._catalogue.execute
        for source, target in pairs:
            source, target = titles.clean(source), titles.clean(target)
            row = query("SELECT row FROM entities WHERE title = ?", (target,)).fetchone()
            if not row or query("SELECT 1 FROM entities WHERE title = ?", (source,)).fetchone():
                self.dropped.redirects += 1
                continue
            query("INSERT OR IGNORE INTO redirects VALUES (?, ?)", (source, row[0]))

    def wikidata(self, pairs: Iterable[tuple[str, int]]) -> None:
        """Set the Wikidata ids of entities by title. Call it after the entities."""
        self._catalogue.executemany(
            "UPDATE entities SET wikidata = ? WHERE title = ?", ((number, titles.clean(t)) for t, number in pairs)
        )

    def finish(self, *, licence: str, made: dict[str, Any]) -> layout.StoreInfo:
        """Write what is left and give the description of the store."""
        self._catalogue.executescript(catalogue.SEARCH)
        self._catalogue.commit()
        self._catalogue.close()
        self._names.update(self._matrices["words"].close().encode())
        self._matrices["entities"].close()
        dropped = {key: value for key, value in vars(self.dropped).items() if value}
        info = layout.StoreInfo(
            dimension=self._dimension,
            dtype=self._dtype,
            words=self._matrices["words"].rows,
            entities=self._matrices["entities"].rows,
            words_sha256=self._names.hexdigest(),
            licence=licence,
            made={"ebert": __version__, **made, **({"dropped": dropped} if dropped else {})},
        )
        info.write(self._folder)
        return info

    def abandon(self) -> None:
        """Let go of the files of a store that will not be finished."""
        self._catalogue.close()
        for matrix in self._matrices.values():
            matrix.__exit__(None, None, None)


@contextmanager
def writing(path: Path, *, dimension: int, dtype: str = "float32", overwrite: bool = False) -> Iterator[StoreWriter]:
    """Make a store at `path`: the block fills the writer and calls its `finish`.

    Until then everything is in a temporary folder beside it, and whatever was at `path` stays.
    """
    with files.replacing_folder(path, overwrite=overwrite) as folder:
        writer = StoreWriter(folder, dimension=dimension, dtype=dtype)
        try:
            yield writer
        except sqlite3.OperationalError as error:  # a full disk, as SQLite puts it
            raise OSError(f"cannot write {path}: {error}") from error
        finally:
            writer.abandon()
