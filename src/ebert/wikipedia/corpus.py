"""A corpus: the text of a Wikipedia as numbers, with its links, in a folder of memory-mapped arrays."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, get_args

import numpy as np
from numpy.typing import NDArray

from ebert._io import files
from ebert.errors import EbertError
from ebert.wikipedia.tokens import DEFAULT

FORMAT = 1
INFO, WORDS, ENTITIES, SURFACES = "corpus.json", "words.txt", "entities.txt", "surfaces.txt"
REDIRECTS, WIKIDATA = "redirects.tsv", "wikidata.tsv"

Array = NDArray[Any]
Int32 = Annotated[Array, "int32"]
Int64 = Annotated[Array, "int64"]


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """The contents of `corpus.json`."""

    language: str
    lowercase: bool
    namespaces: list[int]
    pages: int
    words: int  # of running text
    vocabulary: int  # different words
    entities: int
    links: int
    redirects: int
    surfaces: int
    skipped: dict[str, Any]  # by reason: how many, and a few examples
    dumps: list[dict[str, Any]]  # name, size
    licence: str = "unknown"
    seconds: float = 0.0
    version: str = ""
    format: int = FORMAT
    tokeniser: str = DEFAULT
    passages: bool = False  # whether sentences about pages were kept

    def write(self, folder: Path) -> None:
        """Write `corpus.json`."""
        files.write_json(folder / INFO, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> "CorpusInfo":
        """Read `corpus.json`; raise `EbertError` if `folder` is not a corpus that this version can open."""
        if not folder.is_dir():
            raise EbertError(f"there is no corpus at {folder}; make one with 'ebert corpus build'")
        value = files.read_json(folder / INFO, "a corpus")
        version = value.get("format", 0)
        if isinstance(version, int) and version > FORMAT:
            raise EbertError(
                f"{folder} has corpus format {version}; this version of ebert reads up to {FORMAT}: upgrade ebert"
            )
        try:
            return cls(**{f.name: value[f.name] for f in fields(cls) if f.name in value})
        except TypeError as error:
            raise EbertError(f"{folder / INFO} is damaged ({error}); build the corpus again") from None


@dataclass(frozen=True)
class Corpus:
    """An open corpus. Arrays are mapped, not read; lists of names are read when first asked for."""

    path: Path
    info: CorpusInfo
    word_counts: Int64  # (words)
    entity_counts: Int64  # (entities) links to each
    tokens: Int32  # word numbers of all text
    paragraphs: Int64  # (paragraphs + 1) offsets into tokens
    page_entity: Int32  # (pages)
    page_paragraphs: Int64  # (pages + 1) offsets into paragraphs
    page_opening: Int32  # (pages) tokens before the first heading
    page_anchors: Int64  # (pages + 1) offsets into anchors
    anchor_start: Int64  # (anchors) token
    anchor_length: Int32  # (anchors) tokens, may be 0
    anchor_entity: Int32
    surface_occurrences: Int64  # (surfaces) how often their words occur in the text, linked or not
    surface_mentions: Int64  # (surfaces + 1) offsets into mentions
    mention_entity: Int32
    mention_count: Int64  # falling in each surface

    @classmethod
    def open(cls, path: str | Path) -> "Corpus":
        """Open a corpus."""
        folder = Path(path)
        files.recover(folder.absolute())
        info = CorpusInfo.read(folder)
        return cls(path=folder, info=info, **{name: _map(folder, name, kind) for name, kind in ARRAYS.items()})

    @cached_property
    def words(self) -> list[str]:
        """All words, the most frequent first."""
        return _lines(self.path / WORDS, len(self.word_counts))

    @cached_property
    def entities(self) -> list[str]:
        """All titles, the most linked first."""
        return _lines(self.path / ENTITIES, len(self.entity_counts))

    @cached_property
    def page_titles(self) -> frozenset[str]:
        """The titles that have a page of their own."""
        return frozenset(self.entities[entity] for entity in np.unique(self.page_entity).tolist())

    @cached_property
    def surfaces(self) -> list[str]:
        """All surfaces: the words of links, joined by blanks."""
        return _lines(self.path / SURFACES, len(self.surface_occurrences))

    @property
    def redirects(self) -> Iterator[tuple[str, str]]:
        """Other titles with the entity they lead to."""
        return _pairs(self.path / REDIRECTS)

    def wikidata(self) -> dict[str, int]:
        """Return the Wikidata ids of entities, as far as `ebert corpus wikidata` found them."""
        path = self.path / WIKIDATA
        if not path.exists():
            return {}
        return {title: int(number.removeprefix("Q")) for title, number in _pairs(path)}


# Every array of a corpus with its type.
ARRAYS: dict[str, str] = {field.name: get_args(field.type)[1] for field in fields(Corpus)[2:]}


def _lines(path: Path, count: int) -> list[str]:
    """Read a file of names, one per line."""
    try:
        names = path.read_bytes().decode("utf-8").split("\n")[:-1]
    except (FileNotFoundError, UnicodeDecodeError) as error:
        raise EbertError(f"{path} is damaged ({error}); build the corpus again") from None
    if len(names) != count:
        raise EbertError(f"{path} is damaged (it has {len(names):,} names, not {count:,}); build the corpus again")
    return names


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Read a file with two names per line, separated by a tab."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            left, _, right = line.rstrip("\n").partition("\t")
            yield left, right


def _map(folder: Path, name: str, kind: str) -> Array:
    path = folder / f"{name}.npy"
    try:
        array = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise EbertError(f"{path} is damaged ({error}); build the corpus again") from None
    if array.dtype != np.dtype(kind) or array.ndim != 1:
        raise EbertError(f"{path} is damaged (it holds {array.dtype}, not {kind}); build the corpus again")
    return array


@contextmanager
def array_writer(folder: Path, name: str) -> Iterator[Callable[[Array], object]]:
    """Write an array with the function that is yielded, some values at a time."""
    kind = np.dtype(ARRAYS[name])
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False}
    with (folder / f"{name}.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {**header, "shape": (0,)})
        start = file.tell()
        yield lambda values: file.write(np.ascontiguousarray(values, kind).data)
        length = (file.tell() - start) // kind.itemsize
        file.seek(0)
        np.lib.format.write_array_header_1_0(file, {**header, "shape": (length,)})  # numpy leaves room for any length


def write_array(folder: Path, name: str, values: Array) -> None:
    """Write a whole array."""
    with array_writer(folder, name) as append:
        append(values)
