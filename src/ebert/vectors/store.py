"""The store of vectors: open, look up, take, nearest, add, save (DESIGN: files on disk)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ebert import _names
from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError, UnknownNameError
from ebert.vectors import copies, layout
from ebert.vectors.add import DESCRIBED, AddReport, add_entity, add_rows, remove_entity, wanted
from ebert.vectors.added import Overlay
from ebert.vectors.autocomplete import Autocomplete
from ebert.vectors.catalogue import PAGE, Catalogue, Kind
from ebert.vectors.entity import Entity, Neighbour, checked, whole
from ebert.vectors.from_description import Describer
from ebert.vectors.lookup import Lookup
from ebert.vectors.matrix import Matrix, open_matrix
from ebert.vectors.neighbours import Order, RowSample, Which, find_neighbours
from ebert.vectors.quantised import Quantised
from ebert.vectors.writer import fill_from_arrays, writing
from ebert.wikipedia.tokens import DEFAULT

if TYPE_CHECKING:
    from ebert.wikipedia.corpus import Corpus

ATTEMPTS = 5  # at opening a store that another process is replacing


class Vectors(Lookup):
    """Words and entities in one vector space.

    >>> vectors = Vectors.open("enwiki-vectors")                              # doctest: +SKIP
    >>> vectors["Jean Marais"]                                                # doctest: +SKIP
    >>> vectors.nearest("Jean Marais", top=3)                                 # doctest: +SKIP

    Names of entities are looked up by `find` and the other methods of `Lookup`. A word and an entity of the same name
    are different things: `word_vector` and ``vectors[name]`` never mix them up. Reading is safe from any number of
    threads and processes, forked ones too; so is adding.
    """

    def __init__(self, path: Path, info: layout.StoreInfo) -> None:
        self.path, self.info = path, info
        self.word_matrix = self._matrix(layout.WORDS, info.words)
        self.entity_matrix = self._matrix(layout.ENTITIES, info.entities)
        self._entity_rows = self._matrix(layout.ENTITIES, info.entities, scattered=True)
        self._samples: dict[Kind, RowSample] = {}
        has_outputs = (path / layout.OUTPUTS).exists()
        self.word_outputs = self._matrix(layout.OUTPUTS, info.words, scattered=True) if has_outputs else None
        catalogue = Catalogue(path / layout.CATALOGUE)
        sizes = {"words": info.words, "entities": info.entities}
        if catalogue.sizes != sizes:
            raise _mixed(catalogue.path, catalogue.sizes, sizes)
        shared = _names.is_shared(path)
        overlay = Overlay(catalogue, path / info.added, dimension=info.dimension, shared=shared)
        corpus = info.made.get("corpus")
        made = corpus if isinstance(corpus, dict) else info.made
        tokeniser = str(made.get("tokeniser", DEFAULT))
        super().__init__(catalogue, overlay, lowercase=bool(made.get("lowercase")), tokeniser=tokeniser)

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> Self:
        """Open a store by name: "starter", a folder, a hub id. No vector is read yet, unless to `verify` all files."""
        folder = _names.resolve(path, "store")
        for _ in range(ATTEMPTS):
            before = layout.identity(folder)
            try:
                store = cls(folder, layout.StoreInfo.read(folder))
            except (EbertError, FileNotFoundError):
                files.recover(folder)  # if folders cannot be swapped in one step, there is no store for a moment
                if layout.identity(folder) == before:
                    raise
            else:
                if layout.identity(folder) == before:
                    return store.verified() if verify else store
                store.close()
        raise EbertError(f"{folder} is being replaced again and again; try again later")

    @classmethod
    def from_arrays(
        cls,
        *,
        words: Sequence[str] = (),
        word_vectors: ArrayLike | None = None,
        word_counts: Iterable[int | None] | None = None,
        word_outputs: ArrayLike | None = None,
        entities: Sequence[str] = (),
        entity_vectors: ArrayLike | None = None,
        entity_counts: Iterable[int | None] | None = None,
        redirects: Iterable[tuple[str, str]] = (),
        wikidata: Iterable[tuple[str, int]] = (),
        path: str | Path | None = None,
        dtype: str = "float32",
        licence: str = "unknown",
    ) -> Self:
        """Make a store of arrays, shape (names, dimension). Without a path it lives as long as the object does.

        `word_outputs` are the words' output vectors, which adding entities by a description needs.
        """
        with nullcontext(Path(path)) if path is not None else files.temporary_folder("ebert-store-") as folder:
            fill_from_arrays(
                folder,
                {"words": (words, word_vectors, word_counts), "entities": (entities, entity_vectors, entity_counts)},
                outputs=word_outputs, redirects=redirects, wikidata=wikidata, dtype=dtype, licence=licence,
            )  # fmt: skip
            store = cls.open(folder)
        if path is None:
            files.remove_with(store, folder)
            store.overlay.temporary = True
        return store

    @classmethod
    def train(cls, corpus: "Corpus | str | Path", out: str | Path, **options: Any) -> Self:
        """Train vectors of a corpus, save them as a store at `out`, and open it.

        The options are those of ``ebert vectors train``: see `ebert.vectors.train.run.train`.
        """
        from ebert.vectors.train.run import train

        train(corpus, out, **options)
        return cls.open(out)

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        return self.info.dimension

    @property
    def fingerprint(self) -> str:
        """A hash for models to check: of the words and their vectors, on which an alignment depends."""
        return self.info.words_sha256

    def __len__(self) -> int:
        """Count the entities, added ones included."""
        return self.info.entities + len(self.overlay) - len(self.hidden())

    def __bool__(self) -> bool:
        """Be true even without entities."""
        return True

    def __iter__(self) -> Iterator[str]:
        """Yield the titles of all entities, added ones last."""
        for titles, _ in self.entities():
            yield from titles

    def __getitem__(self, name: str | Entity) -> NDArray[np.float32]:
        """Return the vector of an entity. Raise `UnknownNameError`, with the closest titles, if there is none."""
        entity = name if isinstance(name, Entity) else self.known(name)
        row = self.overlay.vector(entity.row) if entity.added else self._entity_rows[entity.row]
        return whole(np.array(row, np.float32)[None], [entity.title])[0]

    def __repr__(self) -> str:
        """Show the place and size of the store."""
        sizes = f"{self.info.words:,} words, {len(self):,} entities, dimension {self.dimension}"
        return f"<Vectors {self.path.name}: {sizes}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Let other processes open the same store: its path is sent to them."""
        return _reopened, (type(self), str(self.path), str(self.overlay.path) if self.temporary else None)

    @property
    def shared(self) -> bool:
        """Whether it is the starter, which never changes: additions end with this object, or go into a `copy`."""
        return self.overlay.shared

    @property
    def temporary(self) -> bool:
        """Whether the store, or its additions, end with this object."""
        return self.overlay.temporary

    # Vectors

    def take(self, entities: Sequence[Entity]) -> NDArray[np.float32]:
        """Return the vectors of entities, shape (entities, dimension). Only their rows are read."""
        out = np.empty((len(entities), self.dimension), np.float32)
        base = [index for index, entity in enumerate(entities) if not entity.added]
        out[base] = self._entity_rows[[entities[index].row for index in base]]
        for index, entity in enumerate(entities):
            if entity.added:
                out[index] = self.overlay.vector(entity.row)
        return whole(out, [entity.title for entity in entities])

    def word_vector(self, word: str) -> NDArray[np.float32]:
        """Return the vector of a word. Raise `UnknownNameError` if there is none."""
        row = self.find_word(word)
        if row is None:
            raise UnknownNameError(f"no vector for the word {word!r}; words keep their case in a cased store")
        return whole(np.array(self.word_matrix[row], np.float32)[None], [word])[0]

    def nearest(
        self, query: str | ArrayLike, *, top: int = 10, kind: Which = "entities", word: bool = False, by: Order = "csls"
    ) -> list[Neighbour]:
        """Return the nearest entities, words or both to an entity (or, with `word`, a word, or a vector).

        The thing itself is left out. With `csls`, things that are near to everything rank lower than with `cosine`: see
        `ebert.vectors.neighbours`.
        """
        return find_neighbours(self, query, top=top, kind=kind, word=word, by=by)

    def sample(self, kind: Kind) -> RowSample:
        """Return some of the words or entities that the store was made with, to tell what is near to many of them."""
        if kind not in self._samples:
            self._samples[kind] = RowSample(self.word_matrix if kind == "words" else self.entity_matrix)
        return self._samples[kind]

    def complete(self, typed: str, count: int = 8) -> list[Entity]:
        """Return the entities that somebody who is typing a name may mean, the most likely first.

        Titles that begin with the text come first, whatever the case and the accents, the most linked ones first. Then
        come matches by redirects, by words within titles, and if no name begins with the text, by likeness. The first
        call sorts all names.
        """
        return self.autocomplete(typed, count)

    @cached_property
    def autocomplete(self) -> Autocomplete:
        """The object that completes names."""
        return Autocomplete(self)

    # Changing

    def add(
        self,
        title: str,
        vector: ArrayLike | None = None,
        *,
        description: str | None = None,
        aliases: Iterable[str] = (),
        wikidata: int | None = None,
        id: str | None = None,  # noqa: A002
        replace: bool = False,
    ) -> Entity:
        """Add an entity under a title. When this returns, it is on disk and visible to every other reader.

        Pass its vector, or a description: a paragraph. The vector is made from it as training would make it from the
        opening of a page. `id` is any name that your own knowledge base has for the entity. Adding the same thing again
        changes nothing. The starter never changes: what is added to it ends with this object (see `shared`).
        """
        new = wanted(title, aliases, wikidata, id)
        if (vector is None) == (description is None):
            raise EbertError(f"{title!r} needs a vector or a description: one of the two")
        given = self.imagine(description) if description is not None else vector
        array = checked(np.asarray(given), self.dimension, f"the vector of {title!r}")
        return add_entity(self, new, array, replace=replace, within=0.0 if description is None else DESCRIBED)

    def imagine(self, description: str) -> NDArray[np.float32]:
        """Return the vector of an entity from a description, without adding the entity."""
        return self._describer.vector(description)

    def add_many(
        self, rows: Iterable[Mapping[str, Any]] | str | Path, *, replace: bool = False, advance: Advance = silent
    ) -> AddReport:
        """Add a whole knowledge base, from a file (.csv, .tsv, .jsonl) or from rows; report what became of them.

        A row has a `title` and a `description` (or a `vector`), and may have `aliases`, an `id` of your own and a
        Wikidata id, `wikidata`. One that cannot be added is left out and reported with the reason. A thousand rows
        are committed at a time, and stay whatever happens later. Unlike with `add`, an alias may mean something else
        too: it then names the entity in text but does not find it. The progress is in bytes of the file, or in rows.
        """
        return add_rows(self, rows, replace=replace, advance=advance)

    def remove(self, name: str) -> Entity:
        """Remove an entity, for every reader, and return what it was. One of the store itself stays on disk, hidden."""
        return remove_entity(self, name)

    def copy(self, path: str | Path, *, overwrite: bool = False) -> "Vectors":
        """Make a store of your own, with the additions of this one, and open it. It is fast, as big files are linked.

        Later additions to one of the two are not in the other. An existing copy of the same store stays.
        """
        return copies.copy_store(self, path, overwrite=overwrite)

    def save(self, path: str | Path, *, dtype: str | None = None, overwrite: bool = False) -> "Vectors":
        """Write the store, including added entities, to another folder, and open it."""
        target = Path(path).absolute()
        here = target.resolve() == self.path.resolve()
        if here and not overwrite:
            raise EbertError(f"{target} is this store; added entities are saved already")
        if here and self.shared:
            raise _names.shared_store(self.path)
        matrix = self.entity_matrix
        codebook = matrix.codebook if isinstance(matrix, Quantised) else None  # so that saving changes nothing
        # When it is saved in its own place, nobody may add in the meantime, as that would be lost.
        with (
            self.overlay.alone() if here else nullcontext(),
            writing(
                target, dimension=self.dimension, dtype=dtype or self.info.dtype, codebook=codebook, overwrite=overwrite
            ) as writer,
        ):
            copies.fill_from_store(writer, self)
            writer.finish(licence=self.info.licence, made=dict(self.info.made))
        return Vectors.open(target)

    @cached_property
    def _describer(self) -> Describer:
        return Describer(self.catalogue, self.word_outputs, self.info.made, self.words_of)

    # The whole store

    def chunks(self, kind: Kind) -> Iterator[tuple[list[str], NDArray[Any]]]:
        """Yield all words or entities that the store was made with in the order of their rows: names and vectors."""
        matrix = self.word_matrix if kind == "words" else self.entity_matrix
        for start in range(0, len(matrix), PAGE):
            yield self.catalogue.names(kind, start, start + PAGE), matrix[start : start + PAGE]

    def entities(self) -> Iterator[tuple[list[str], NDArray[Any]]]:
        """Yield all entities that there are now, added ones last: titles and vectors."""
        hidden, first = self.hidden(), 0
        for names, block in self.chunks("entities"):
            kept = [index for index in range(len(names)) if first + index not in hidden]
            first += len(names)
            yield (names, block) if len(kept) == len(names) else ([names[index] for index in kept], block[kept])
        for title, vector in self.added():
            yield [title], vector[None]

    def describe(self) -> dict[str, Any]:
        """Count what the store holds, for people to read."""
        info = self.info
        return {
            "path": str(self.path),
            "dimension": info.dimension,
            "dtype": info.dtype,
            "words": info.words,
            "entities": info.entities,
            "added": len(self.overlay),
            "output vectors": 0 if self.word_outputs is None else len(self.word_outputs),
            **self.catalogue.counts(),
            "licence": info.licence,
            "made": info.made,
        }

    # Housekeeping

    def verified(self) -> Self:
        """Return the store itself. Raise `EbertError` if a file has changed since the store was made."""
        if not self.info.sha256:
            raise EbertError(f"{self.path} has no hashes to verify: save it again with this version of ebert")
        if damaged := self.info.damaged(self.path):
            raise EbertError(f"{', '.join(damaged)} of {self.path} changed since the store was made; restore it")
        return self

    def close(self) -> None:
        """Close the catalogue. The vectors stay mapped as long as anything refers to them."""
        self.catalogue.close()

    def __enter__(self) -> Self:
        """Use the store in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        self.close()

    def _matrix(self, name: str, rows: int, *, scattered: bool = False) -> Matrix:
        matrix = open_matrix(self.path / name, scattered=scattered)
        if matrix.shape != (rows, self.info.dimension):
            raise _mixed(self.path / name, matrix.shape, (rows, self.info.dimension))
        return matrix


def reopen(
    owner: Path, name: str, fingerprint: str, given: Vectors | str | Path | None, *, ours: bool, remedy: str = ""
) -> Vectors:
    """Open the store of `owner`, the folder that names it, unless another place or an open store is given."""
    if not isinstance(given, Vectors):
        given = Vectors.open(_names.store_of(owner, name, given, ours=ours))
    if given.fingerprint != fingerprint:
        raise EbertError(
            f"{given.path} has other words than the store that {owner} was made with; "
            f"give the right store (vectors=..., --vectors){remedy}"
        )
    return given


def _reopened(kind: type[Vectors], path: str, log: str | None) -> Vectors:
    store = kind.open(path)
    if log is not None and store.shared:
        store.overlay.join(Path(log))
    return store


def _mixed(path: Path, found: object, expected: object) -> EbertError:
    return EbertError(
        f"{path} has {found}, but {layout.INFO} says {expected}; the files are not of one store: "
        "restore them or make it again"
    )
