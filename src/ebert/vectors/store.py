"""The store of vectors: open, look up, take, nearest, add, save (DESIGN: files on disk)."""

import difflib
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ebert import files
from ebert.errors import EbertError, UnknownNameError
from ebert.vectors import layout, titles
from ebert.vectors.catalogue import Catalogue
from ebert.vectors.entity import Entity, Neighbour
from ebert.vectors.matrix import open_matrix
from ebert.vectors.nearest import nearest
from ebert.vectors.overlay import Overlay
from ebert.vectors.writer import StoreWriter, writing

CHUNK_ROWS = 8192
MATCHES = 400  # titles looked at for each way of missing one


class Vectors:
    """Words and entities in one vector space.

    >>> vectors = Vectors.open("enwiki-vectors")                              # doctest: +SKIP
    >>> vectors.entity("Jean Marais")                                         # doctest: +SKIP
    >>> vectors.nearest("Jean Marais", top=3)                                 # doctest: +SKIP

    A word and an entity of the same name are different things: `word` and `entity` never mix them up. Reading is safe
    from any number of threads and processes; adding too.
    """

    def __init__(self, path: Path, info: layout.StoreInfo) -> None:
        """Use `Vectors.open` instead."""
        self.path, self.info = path, info
        self.word_matrix = self._matrix(layout.WORDS, info.words)
        self.entity_matrix = self._matrix(layout.ENTITIES, info.entities)
        self._catalogue = Catalogue(path / layout.CATALOGUE)
        self._added = Overlay(path / layout.ADDED, info.dimension)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a store. Nothing but its description is read."""
        folder = Path(path).absolute()
        files.recover(folder)
        return cls(folder, layout.StoreInfo.read(folder))

    @classmethod
    def from_arrays(
        cls,
        *,
        words: Sequence[str] = (),
        word_vectors: ArrayLike | None = None,
        word_counts: Sequence[int | None] | None = None,
        entities: Sequence[str] = (),
        entity_vectors: ArrayLike | None = None,
        redirects: Iterable[tuple[str, str]] = (),
        wikidata: Iterable[tuple[str, int]] = (),
        path: str | Path | None = None,
        licence: str = "unknown",
    ) -> Self:
        """Make a store of arrays, shape (names, dimension). Without a path it lives as long as the object does."""
        arrays = {"words": (words, word_vectors), "entities": (entities, entity_vectors)}
        given = {kind: (list(names), np.asarray(array)) for kind, (names, array) in arrays.items() if array is not None}
        if not given:
            raise EbertError("a store needs word_vectors or entity_vectors")
        shape = next(iter(given.values()))[1].shape
        if len(shape) != 2:
            raise EbertError(f"vectors have shape {shape}; (names, dimension) is needed")
        scratch = tempfile.mkdtemp(prefix="ebert-store-") if path is None else None
        with writing(Path(path or scratch or ""), dimension=shape[1]) as writer:
            for kind, (names, array) in given.items():
                counts = word_counts if kind == "words" else None
                writer.add("words" if kind == "words" else "entities", names, array, counts)
            writer.redirects(redirects)
            writer.wikidata(wikidata)
            writer.finish(licence=licence, made={"from": "arrays"})
        store = cls.open(path or scratch or "")
        if scratch:
            weakref.finalize(store, shutil.rmtree, scratch, ignore_errors=True)
        return store

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        return self.info.dimension

    @property
    def fingerprint(self) -> str:
        """What a model checks: a hash of the words and their vectors, the part that an alignment depends on."""
        return self.info.words_sha256

    def __len__(self) -> int:
        """Count the entities, added ones included."""
        count, hidden = self._added.counts()
        return self.info.entities + count - hidden

    def __repr__(self) -> str:
        """Show where it is and how large."""
        sizes = f"{self.info.words:,} words, {len(self):,} entities, dimension {self.dimension}"
        return f"<Vectors {self.path.name}: {sizes}>"

    # Entities

    def find(self, name: str) -> Entity | None:
        """Give the entity with this name, or None.

        The name may be a title with blanks or underscores, with its first letter in lower case, a redirect, the URL of
        a Wikipedia page, or a Wikidata id where the store knows ids. A title goes before a Wikidata id.
        """
        forms, number = titles.spellings(name), titles.wikidata_id(name)
        if self._added and (row := self._added.find(forms, number)):
            return Entity(row[1], row[0], row[2], row[3], added=True)
        found = self._catalogue.find(forms, number)
        return Entity(found[1], found[0], found[2], found[3]) if found else None

    def __contains__(self, name: str) -> bool:
        """Tell whether there is a vector for the entity with this name."""
        return self.find(name) is not None

    def entity(self, name: str) -> NDArray[np.float32]:
        """Give the vector of an entity, or an error that names the closest titles."""
        found = self.find(name)
        if found is None:
            raise self.unknown(name)
        return self.take([found])[0]

    def take(self, entities: Sequence[Entity]) -> NDArray[np.float32]:
        """Give the vectors of entities, shape (entities, dimension). Only their rows are read."""
        out = np.empty((len(entities), self.dimension), np.float32)
        base = [i for i, entity in enumerate(entities) if not entity.added]
        out[base] = self.entity_matrix[[entities[i].row for i in base]]
        for i, entity in enumerate(entities):
            if entity.added:
                out[i] = self._added.vector(entity.row)
        return out

    def suggest(self, name: str, count: int = 5) -> list[str]:
        """Give the titles closest to a name, the closest first."""
        forms = titles.spellings(name)
        if not forms:
            return []
        found = set(self._catalogue.like(forms[0], MATCHES))
        if self._added:
            found.update(row[1] for row, _ in self._added.all())
        wanted = forms[0].casefold()
        close = difflib.SequenceMatcher(b=wanted, autojunk=False)

        def likeness(title: str) -> float:
            close.set_seq1(title.casefold())
            return close.ratio() if close.quick_ratio() > 0.4 else 0.0

        ranked = sorted(((likeness(title), title) for title in found), key=lambda pair: (-pair[0], pair[1]))
        return [title for score, title in ranked[:count] if score > 0.4]

    def unknown(self, name: str) -> UnknownNameError:
        """Make the error for an entity that has no vector."""
        close = ", ".join(repr(title) for title in self.suggest(name))
        hint = f"nearest titles: {close}" if close else "no title looks like it"
        return UnknownNameError(f"no vector for {name!r}; {hint} (ebert vectors find)")

    # Words

    def find_word(self, word: str) -> int | None:
        """Give the row of a word in `word_matrix`, or None."""
        found = self._catalogue.word(word)
        return found[0] if found else None

    def word(self, word: str) -> NDArray[np.float32]:
        """Give the vector of a word."""
        row = self.find_word(word)
        if row is None:
            raise UnknownNameError(f"no vector for the word {word!r}; words keep their case in a cased store")
        return np.asarray(self.word_matrix[row], np.float32)

    def word_count(self, word: str) -> int | None:
        """Give how often a word occurred in the text the vectors come from, where known."""
        found = self._catalogue.word(word)
        return found[1] if found else None

    # Neighbours

    def nearest(
        self,
        query: str | ArrayLike,
        *,
        top: int = 10,
        kind: Literal["entities", "words", "both"] = "entities",
        word: bool = False,
    ) -> list[Neighbour]:
        """Give the nearest entities, words or both to an entity (or, with `word`, a word, or a vector) by cosine.

        The thing itself is left out.
        """
        itself: tuple[str, str] | None = None
        if isinstance(query, str):
            if word:
                itself, vector = ("word", query), self.word(query)
            else:
                found = self.find(query)
                if found is None:
                    raise self.unknown(query)
                itself, vector = ("entity", found.title), self.take([found])[0]
        else:
            vector = np.asarray(query, np.float32)
        if vector.shape != (self.dimension,):
            raise EbertError(f"a vector of shape {vector.shape} does not fit a store of dimension {self.dimension}")
        found_near = [*self._near("word", vector, top)] if kind != "entities" else []
        found_near += self._near("entity", vector, top) if kind != "words" else []
        found_near = [n for n in found_near if (n.kind, n.name) != itself]
        return sorted(found_near, key=lambda n: -n.similarity)[:top]

    def _near(self, kind: Literal["word", "entity"], vector: NDArray[np.float32], top: int) -> Iterator[Neighbour]:
        matrix, table = (self.word_matrix, "words") if kind == "word" else (self.entity_matrix, "entities")
        added = list(self._added.all()) if kind == "entity" and self._added else []
        rows, scores = nearest(matrix, vector[None], top + 1 + len(added))
        hidden = {row[1] for row, _ in added}
        for row, score in zip(rows[0].tolist(), scores[0].tolist(), strict=True):
            if (name := self._catalogue.name(table, row)) not in hidden:
                yield Neighbour(kind, name, score)
        if added:
            rows, scores = nearest(np.stack([v for _, v in added]), vector[None], len(added))
            for row, score in zip(rows[0].tolist(), scores[0].tolist(), strict=True):
                yield Neighbour(kind, added[row][0][1], score)

    # Changing

    def add(
        self,
        title: str,
        vector: ArrayLike,
        *,
        aliases: Iterable[str] = (),
        wikidata: int | None = None,
        replace: bool = False,
    ) -> Entity:
        """Add an entity under a title. It is on disk, and there for every other reader, when this returns."""
        title = titles.clean(title)
        array = np.asarray(vector, np.float32)
        if not title:
            raise EbertError("an entity needs a title")
        if array.shape != (self.dimension,):
            raise EbertError(
                f"the vector of {title!r} has shape {array.shape}; this store has dimension {self.dimension}"
            )
        if not np.isfinite(array).all():
            raise EbertError(f"the vector of {title!r} has a value that is not a number")
        hides = self._catalogue.find([title], None) is not None
        if hides and not replace:
            raise EbertError(f"{title!r} has a vector already; use replace=True (--replace) for another one")
        row = self._added.add(title, array, aliases=aliases, wikidata=wikidata, replace=replace, hides=hides)
        return Entity(row[1], row[0], row[2], row[3], added=True)

    def save(self, path: str | Path, *, dtype: str | None = None, overwrite: bool = False) -> "Vectors":
        """Write the store to another folder, added entities among the others, and open it."""
        target = Path(path).absolute()
        if target == self.path and not overwrite:
            raise EbertError(f"{target} is this store; added entities are saved already")
        with writing(target, dimension=self.dimension, dtype=dtype or self.info.dtype, overwrite=overwrite) as writer:
            self._copy(writer)
            writer.finish(licence=self.info.licence, made=dict(self.info.made))
        return Vectors.open(target)

    def _copy(self, writer: StoreWriter) -> None:
        added = {row[1]: (row, vector) for row, vector in self._added.all()} if self._added else {}
        numbers: dict[str, int] = {}
        words = self._catalogue.words()
        for names, vectors in self.chunks("words"):
            writer.add("words", names, vectors, [count for _, (_, _, count) in zip(names, words, strict=False)])
        rows = self._catalogue.entities()
        for names, vectors in self.chunks("entities"):
            described = [row for _, row in zip(names, rows, strict=False)]
            block = np.array(vectors)
            for i, name in enumerate(names):
                if name in added:
                    block[i] = added[name][1]
            writer.add("entities", names, block, [count for _, _, count, _ in described])
            numbers.update((title, number) for _, title, _, number in described if number is not None)
        new = [(name, vector) for name, (_, vector) in added.items() if self._catalogue.find([name], None) is None]
        if new:
            writer.add("entities", [name for name, _ in new], np.stack([vector for _, vector in new]))
        writer.redirects(self._catalogue.redirects())
        if added:
            writer.redirects(self._added.redirects())
            numbers.update((row[1], row[3]) for row, _ in added.values() if row[3] is not None)
        writer.wikidata(numbers.items())

    def chunks(self, kind: Literal["words", "entities"]) -> Iterator[tuple[list[str], NDArray[Any]]]:
        """Go through all words or entities (without added ones) in the order of their rows: names and vectors."""
        matrix = self.word_matrix if kind == "words" else self.entity_matrix
        for start in range(0, len(matrix), CHUNK_ROWS):
            yield self._catalogue.names(kind, start, start + CHUNK_ROWS), matrix[start : start + CHUNK_ROWS]

    def added(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Go through the entities that were added to the store."""
        if self._added:
            for row, vector in self._added.all():
                yield row[1], vector

    # Housekeeping

    def describe(self) -> dict[str, Any]:
        """Count what the store holds, for people to read."""
        info = self.info
        return {
            "path": str(self.path),
            "dimension": info.dimension,
            "dtype": info.dtype,
            "words": info.words,
            "entities": info.entities,
            "added": self._added.counts()[0],
            **self._catalogue.counts(),
            "licence": info.licence,
            "made": info.made,
        }

    def close(self) -> None:
        """Let go of the files."""
        self._catalogue.close()
        self._added.close()

    def __enter__(self) -> Self:
        """Use the store in a `with` block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the files."""
        self.close()

    def _matrix(self, name: str, rows: int) -> NDArray[Any]:
        matrix = open_matrix(self.path / name)
        if matrix.shape != (rows, self.info.dimension):
            raise EbertError(
                f"{self.path / name} has shape {matrix.shape}, but {layout.INFO} says {(rows, self.info.dimension)}; "
                "the files are not of one store: restore them or make it again"
            )
        return matrix
