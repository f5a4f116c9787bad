"""A corpus: the text of a Wikipedia as numbers, with its links, in a folder of memory-mapped arrays."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io import files
from ebert.errors import EbertError
from ebert.wikipedia.tokens import DEFAULT

FORMAT = 1
INFO, WORDS, ENTITIES, SURFACES = "corpus.json", "words.txt", "entities.txt", "surfaces.txt"
REDIRECTS, WIKIDATA = "redirects.tsv", "wikidata.tsv"
# Every array with its type; see the properties of `Corpus` for what they mean.
ARRAYS = {
    "word_counts": "int64",
    "entity_counts": "int64",
    "tokens": "int32",
    "paragraphs": "int64",
    "page_entity": "int32",
    "page_paragraphs": "int64",
    "page_opening": "int32",
    "page_anchors": "int64",
    "anchor_start": "int64",
    "anchor_length": "int32",
    "anchor_entity": "int32",
    "surface_occurrences": "int64",
    "surface_mentions": "int64",
    "mention_entity": "int32",
    "mention_count": "int64",
}

Array = NDArray[Any]


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
    word_counts: Array  # (words)
    entity_counts: Array  # (entities) links to each
    tokens: Array  # word numbers of all text
    paragraphs: Array  # (paragraphs + 1) offsets into tokens
    page_entity: Array  # (pages)
    page_paragraphs: Array  # (pages + 1) offsets into paragraphs
    page_opening: Array  # (pages) tokens before the first heading
    page_anchors: Array  # (pages + 1) offsets into anchors
    anchor_start: Array  # (anchors) token
    anchor_length: Array  # (anchors) tokens, may be 0
    anchor_entity: Array
    surface_occurrences: Array  # (surfaces) how often its words stand in the text, linked or not
    surface_mentions: Array  # (surfaces + 1) offsets into mentions
    mention_entity: Array
    mention_count: Array  # falling in each surface

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


def _lines(path: Path, count: int) -> list[str]:
    """Read a file of names, one a line."""
    try:
        names = path.read_bytes().decode("utf-8").split("\n")[:-1]
    except (FileNotFoundError, UnicodeDecodeError) as error:
        raise EbertError(f"{path} is damaged ({error}); build the corpus again") from None
    if len(names) != count:
        raise EbertError(f"{path} is damaged (it has {len(names):,} names, not {count:,}); build the corpus again")
    return names


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Read a file of two names a line with a tab between them."""
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
def array_writer(folder: Path, name: str, length: int) -> Iterator[Callable[[Array], object]]:
    """Write an array of known length with the function that is yielded, some values at a time."""
    kind = np.dtype(ARRAYS[name])
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (length,)}
    with (folder / f"{name}.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        yield lambda values: file.write(np.ascontiguousarray(values, kind).data)


def write_array(folder: Path, name: str, values: Array) -> None:
    """Write a whole array."""
    with array_writer(folder, name, len(values)) as append:
        append(values)
