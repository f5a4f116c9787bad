"""The store of vectors: open, look up, take, nearest, add, save (DESIGN: files on disk)."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ebert import _names
from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert._io.records import read_table
from ebert._io.trusted import locate
from ebert.errors import EbertError, UnknownNameError
from ebert.text import letters
from ebert.vectors import layout, lookup
from ebert.vectors.add import Adder, Report, Wanted, add_many
from ebert.vectors.added import Overlay
from ebert.vectors.autocomplete import Completer
from ebert.vectors.catalogue import PAGE, Catalogue, Kind
from ebert.vectors.entity import Candidate, Entity, Neighbour, whole
from ebert.vectors.from_description import Describer
from ebert.vectors.matrix import open_matrix
from ebert.vectors.nearest import near_entities, near_words
from ebert.vectors.writer import fill_from_arrays, fill_from_store, writing
from ebert.wikipedia.tokens import words_of

ATTEMPTS = 5  # at opening a store that another process is replacing at the moment


class Vectors:
    """Words and entities in one vector space.

    >>> vectors = Vectors.open("enwiki-vectors")                              # doctest: +SKIP
    >>> vectors.entity("Jean Marais")                                         # doctest: +SKIP
    >>> vectors.nearest("Jean Marais", top=3)                                 # doctest: +SKIP

    A word and an entity of the same name are different things: `word` and `entity` never mix them up. Reading is safe
    from any number of threads and processes, forked ones too; so is adding.
    """

    temporary = False  # whether the folder goes when the object does

    def __init__(self, path: Path, info: layout.StoreInfo) -> None:
        self.path, self.info = path, info
        self.word_matrix = self._matrix(layout.WORDS, info.words)
        self.entity_matrix = self._matrix(layout.ENTITIES, info.entities)
        self._entity_rows = self._matrix(layout.ENTITIES, info.entities, scattered=True)
        has_outputs = (path / layout.OUTPUTS).exists()
        self.word_outputs = self._matrix(layout.OUTPUTS, info.words, scattered=True) if has_outputs else None
        self._catalogue = Catalogue(path / layout.CATALOGUE)
        sizes = {"words": info.words, "entities": info.entities}
        if self._catalogue.sizes != sizes:
            raise _mixed(self._catalogue.path, self._catalogue.sizes, sizes)
        self._added = Overlay(path / info.added, dimension=info.dimension, check=self._catalogue.check)

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> Self:
        """Open a store by name: "starter", a folder, a hub id. No vector is read yet, unless to `verify` all files."""
        folder = _names.resolve(path, "store")
        for _ in range(ATTEMPTS):
            before = layout.identity(folder)
            try:
                store = cls(folder, layout.StoreInfo.read(folder))
            except (EbertError, FileNotFoundError):
                files.recover(folder)  # where folders are not swapped in one step, there is none for a moment
                if layout.identity(folder) == before:
                    raise
            else:
                if layout.identity(folder) == before:
                    return store.verified() if verify else store
                store.close()
        raise EbertError(f"{folder} is being replaced again and again; try later")

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
                [("words", words, word_vectors, word_counts), ("entities", entities, entity_vectors, entity_counts)],
                outputs=word_outputs, redirects=redirects, wikidata=wikidata, dtype=dtype, licence=licence,
            )  # fmt: skip
            store = cls.open(folder)
        if path is None:
            files.remove_with(store, folder)
            store.temporary = True
        return store

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        return self.info.dimension

    @property
    def fingerprint(self) -> str:
        """What a model checks: a hash of the words and their vectors, the part that an alignment depends on."""
        return self.info.words_sha256

    @property
    def lowercase(self) -> bool:
        """Whether all words are in lower case."""
        corpus = self.info.made.get("corpus")
        return bool((corpus if isinstance(corpus, dict) else self.info.made).get("lowercase"))

    def __len__(self) -> int:
        """Count the entities, added ones included."""
        return self.info.entities + len(self._added) - len(self._added.hidden())

    def __bool__(self) -> bool:
        """Be true even without entities: a store of words is a store."""
        return True

    def __repr__(self) -> str:
        """Show where it is and how large."""
        sizes = f"{self.info.words:,} words, {len(self):,} entities, dimension {self.dimension}"
        return f"<Vectors {self.path.name}: {sizes}>"

    def copy_added(self, folder: Path, info: layout.StoreInfo | None = None) -> None:
        """Write what was added here into another store with the same entities, described by `info` or as this one."""
        self._added.copy(folder / (info or self.info).added)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let other processes open the same store: what is sent to them is where it is."""
        return type(self).open, (str(self.path),)

    # Entities

    def find(self, name: str) -> Entity | None:
        """Give the entity with this name, or None.

        The name may be a title with blanks or underscores, with its first letter in lower case, a redirect, the URL of
        a Wikipedia page, or a Wikidata id where the store knows ids. Titles go before redirects, and both before ids;
        last come the ids that somebody's own knowledge base gave to entities.
        """
        return lookup.find(self._catalogue, self._added, name)

    def find_id(self, id: str) -> Entity | None:  # noqa: A002
        """Give the entity that was added with this own id, or None. Unlike `find`, it never takes it for a title."""
        return lookup.find_id(self._catalogue, self._added, id)

    def find_wikidata(self, number: int) -> Entity | None:
        """Give the entity with this Wikidata id (60 for Q60), or None. Unlike `find`, it never takes it for a title."""
        return lookup.find_wikidata(self._catalogue, self._added, number)

    def id_of(self, entity: Entity) -> str | None:
        """Give the own id that an entity was added with, or None."""
        return lookup.id_of(self._catalogue, self._added, entity)

    def __contains__(self, name: str) -> bool:
        """Tell whether there is a vector for the entity with this name."""
        return self.find(name) is not None

    def entity(self, name: str) -> NDArray[np.float32]:
        """Give the vector of an entity, or an error that names the closest titles."""
        return self._vector(self._found(name))

    def take(self, entities: Sequence[Entity]) -> NDArray[np.float32]:
        """Give the vectors of entities, shape (entities, dimension). Only their rows are read."""
        out = np.empty((len(entities), self.dimension), np.float32)
        base = [index for index, entity in enumerate(entities) if not entity.added]
        out[base] = self._entity_rows[[entities[index].row for index in base]]
        for index, entity in enumerate(entities):
            if entity.added:
                out[index] = self._vector(entity)
        return whole(out, [entity.title for entity in entities])

    def _vector(self, entity: Entity) -> NDArray[np.float32]:
        row = self._added.vector(entity.row) if entity.added else self._entity_rows[entity.row]
        return whole(np.array(row, np.float32)[None], [entity.title])[0]

    def suggest(self, name: str, count: int = 5) -> list[str]:
        """Give the titles closest to a name, the closest first."""
        return lookup.suggest(self._catalogue, self._added, name, count)

    def aliases(self, entity: Entity, count: int = 50) -> list[str]:
        """Give other names that find an entity, in the order of their letters."""
        return lookup.aliases(self._catalogue, self._added, entity, count)

    def complete(self, typed: str, count: int = 8) -> list[Entity]:
        """Give the entities that somebody who is typing a name may mean, the likeliest first.

        First those whose titles begin so, whatever the case and the accents, the most linked ones first; then by
        redirects, by words within titles, and if no name begins so, by likeness. The first call sorts all names.
        """
        return self.completer(typed, count)

    @cached_property
    def completer(self) -> Completer:
        """What completes names."""
        return Completer(self._catalogue, self._added)

    def unknown(self, name: str) -> UnknownNameError:
        """Make the error for an entity that has no vector."""
        close = ", ".join(f"{title!r}{letters.remark(title)}" for title in self.suggest(name))
        hint = f"nearest titles: {close}" if close else "no title looks like it"
        return UnknownNameError(f"no vector for {name!r}; {hint} (ebert vectors find)")

    def _found(self, name: str) -> Entity:
        found = self.find(name)
        if found is None:
            raise self.unknown(name)
        return found

    # Surfaces

    def candidates(self, surface: str) -> list[Candidate]:
        """Give the entities that some words of a text may mean, the likeliest first (Section 4.3 of the paper).

        The counts are those of the links in the text that the store was trained on. Titles and other names of added
        entities count as if they had been linked once.
        """
        return lookup.candidates(self._catalogue, self._added, self._words(surface))

    def link_probability(self, surface: str) -> float:
        """Give how often, when some words stand in a text, they name an entity: from 0 to 1."""
        return lookup.link_probability(self._catalogue, self._added, self._words(surface))

    def occurrences(self, surface: str) -> int:
        """Give how often some words stand in the text that the vectors come from, linked or not."""
        return lookup.occurrences(self._catalogue, self._added, self._words(surface))

    def continues(self, surface: str) -> bool:
        """Tell whether a longer surface begins with these words: whoever looks for surfaces in a text stops if not."""
        return lookup.continues(self._catalogue, self._added, self._words(surface))

    @property
    def stamp(self) -> tuple[int, int]:
        """Another value after every addition, whoever made it: for those who keep what they looked up."""
        return self._added.stamp()

    def _words(self, surface: str) -> str:
        return " ".join(words_of(surface, lowercase=self.lowercase))

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
        return whole(np.array(self.word_matrix[row], np.float32)[None], [word])[0]

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
        if top < 1 or kind not in ("entities", "words", "both"):
            raise EbertError(f"cannot give the {top} nearest {kind}: at least 1, of 'entities', 'words' or 'both'")
        top = min(top, self.info.words + len(self))
        itself: tuple[str, str] | None = None
        if not isinstance(query, str):
            vector = self._checked(query, "the vector")
        elif word:
            itself, vector = ("word", query), self.word(query)
        else:
            found = self._found(query)
            itself, vector = ("entity", found.title), self._vector(found)
        near: list[Neighbour] = []
        if kind != "entities":
            near += near_words(self._catalogue, self.word_matrix, vector, top + 1)
        if kind != "words":
            near += near_entities(self._catalogue, self._added, self.entity_matrix, vector, top + 1)
        near = [neighbour for neighbour in near if (neighbour.kind, neighbour.name) != itself]
        return sorted(near, key=lambda neighbour: -neighbour.similarity)[:top]

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
        """Add an entity under a title. It is on disk, and there for every other reader, when this returns.

        Give its vector, or a description: a paragraph of which the vector is made as training would have made it of
        the opening of a page. `id` is any name that your own knowledge base has for it.
        """
        wanted = Wanted.make(title, aliases=aliases, wikidata=wikidata, id=id)
        if (vector is None) == (description is None):
            raise EbertError(f"{title!r} needs a vector or a description: one of the two")
        if vector is not None:
            array = self._checked(vector, f"the vector of {title!r}")
        else:
            assert description is not None
            array = self.imagine(description)
        return self._adder.add(wanted, array, replace=replace)

    def imagine(self, description: str) -> NDArray[np.float32]:
        """Make the vector of an entity from a description, without adding it."""
        return self._describer.vector(description)

    def add_many(
        self, rows: Iterable[Mapping[str, Any]] | str | Path, *, replace: bool = False, advance: Advance = silent
    ) -> Report:
        """Add a whole knowledge base, from a file (.csv, .tsv, .jsonl) or from rows; report what became of them.

        A row has a `title` and a `description` (or a `vector`), and may have `aliases`, an `id` of your own and a
        Wikidata id, `wikidata`. One that cannot be added is left out and reported with the reason. A thousand rows
        are committed at a time, and stay whatever happens later. Unlike with `add`, an alias may mean something else
        too: it then names the entity in text but does not find it. The progress is in bytes of the file, or in rows.
        """
        if isinstance(rows, str | Path):
            with closing(read_table(Path(rows), advance=advance)) as table:
                return add_many(table, self._adder, lambda: self._describer, self._checked, replace=replace)
        return add_many(_numbered(rows, advance), self._adder, lambda: self._describer, self._checked, replace=replace)

    @cached_property
    def _adder(self) -> Adder:
        return Adder(self._catalogue, self._added, lowercase=self.lowercase)

    @cached_property
    def _describer(self) -> Describer:
        if self.word_outputs is None:
            raise EbertError(
                f"{self.path} has no output vectors, which a description needs: train the store with ebert (ebert "
                "vectors train), import a Wikipedia2Vec model file instead of its text, or give a vector (--vector)"
            )
        return Describer(self._catalogue, self.word_outputs, self.info.made, lowercase=self.lowercase)

    def save(self, path: str | Path, *, dtype: str | None = None, overwrite: bool = False) -> "Vectors":
        """Write the store to another folder, added entities among the others, and open it."""
        target = Path(path).absolute()
        here = target.resolve() == self.path.resolve()
        if here and not overwrite:
            raise EbertError(f"{target} is this store; added entities are saved already")
        # In its own place nobody may add meanwhile, as that would be lost.
        with (
            self._added.alone() if here else nullcontext(),
            writing(target, dimension=self.dimension, dtype=dtype or self.info.dtype, overwrite=overwrite) as writer,
        ):
            fill_from_store(
                writer, self._catalogue, self._added, self.word_matrix, self.word_outputs, self.entity_matrix
            )
            writer.finish(licence=self.info.licence, made=dict(self.info.made))
        return Vectors.open(target)

    def chunks(self, kind: Kind) -> Iterator[tuple[list[str], NDArray[Any]]]:
        """Go through all words or entities (without added ones) in the order of their rows: names and vectors."""
        matrix = self.word_matrix if kind == "words" else self.entity_matrix
        for start in range(0, len(matrix), PAGE):
            yield self._catalogue.names(kind, start, start + PAGE), matrix[start : start + PAGE]

    def titles(self) -> Iterator[tuple[str, int]]:
        """Go through all titles and redirects (without those of added entities), with their rows."""
        yield from self._catalogue.titles()

    def added(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Go through the entities that were added to the store."""
        for entity in self._added.all():
            yield entity.row[1], entity.vector

    def unread_additions(self) -> int:
        """Return the bytes at the end of the log of additions that are no whole addition."""
        return self._added.unread()

    def added_names(self) -> Iterator[tuple[int | str | None, ...]]:
        """Go through titles, counts, Wikidata and own ids, aliases and surfaces of what was added, to compare them."""
        return self._added.names()

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
            "added": len(self._added),
            "output vectors": 0 if self.word_outputs is None else len(self.word_outputs),
            **self._catalogue.counts(),
            "licence": info.licence,
            "made": info.made,
        }

    def verified(self) -> Self:
        """Return the store itself, or raise `EbertError` if a file is not what it was when the store was made."""
        if not self.info.sha256:
            raise EbertError(f"{self.path} has no hashes to verify: save it anew with this version of ebert")
        if damaged := self.info.damaged(self.path):
            raise EbertError(f"{', '.join(damaged)} of {self.path} changed since the store was made; restore it")
        return self

    def close(self) -> None:
        """Let go of the catalogue. The vectors stay mapped as long as anything refers to them."""
        self._catalogue.close()
        self._added.close()

    def __enter__(self) -> Self:
        """Use the store in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the files."""
        self.close()

    def _matrix(self, name: str, rows: int, *, scattered: bool = False) -> NDArray[Any]:
        matrix = open_matrix(self.path / name, scattered=scattered)
        if matrix.shape != (rows, self.info.dimension):
            raise _mixed(self.path / name, matrix.shape, (rows, self.info.dimension))
        return matrix

    def _checked(self, vector: ArrayLike, what: str) -> NDArray[np.float32]:
        given = np.asarray(vector)
        if given.dtype.kind not in "fiu":
            raise EbertError(f"{what} is not made of numbers but of {given.dtype}")
        with np.errstate(over="ignore"):
            array = given.astype(np.float32)
        if array.shape != (self.dimension,):
            raise EbertError(f"{what} has shape {array.shape}; this store has dimension {self.dimension}")
        if not np.isfinite(array).all():
            raise EbertError(f"{what} has a value that is not a number or too large for float32")
        return array


def _numbered(rows: Iterable[Mapping[str, Any]], advance: Advance) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for numbered in enumerate(rows, 1):
        yield numbered
        advance(1)


def _mixed(path: Path, found: object, expected: object) -> EbertError:
    return EbertError(
        f"{path} has {found}, but {layout.INFO} says {expected}; the files are not of one store: "
        "restore them or make it again"
    )


def reopen(
    owner: Path, name: str, fingerprint: str, given: Vectors | str | Path | None, *, ours: bool, remedy: str = ""
) -> Vectors:
    """Open the store of `owner`, the folder that names it, unless another place or an open store is given."""
    place: object = given
    if not isinstance(given, Vectors):
        place = locate(owner, name, ours=ours) if given is None else _names.resolve(given, "store")
    if not isinstance(place, Vectors):
        if not isinstance(place, str | Path) or not os.path.isdir(place):  # noqa: PTH112
            raise EbertError(f"the store of {owner} is not at {place}; say where it is now (vectors=..., --vectors)")
        place = Vectors.open(place)
    if place.fingerprint != fingerprint:
        raise EbertError(
            f"{place.path} has other words than the store that {owner} was made with; "
            f"give the right store (vectors=..., --vectors){remedy}"
        )
    return place
