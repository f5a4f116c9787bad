"""The layout of a store on disk: a folder of up to six files. The smallest, `store.json`, describes the others.

A new version of the format needs a higher FORMAT, and a function in MIGRATIONS that converts the description of the
previous version.
"""

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_origin

from ebert._io import files
from ebert.errors import EbertError

FORMAT = 2
INFO, WORDS, ENTITIES, CATALOGUE = "store.json", "words.safetensors", "entities.safetensors", "catalogue.sqlite"
OUTPUTS = "outputs.safetensors"  # optional: the words' output vectors, which adding an entity by a description needs
BIG = (WORDS, ENTITIES, OUTPUTS, CATALOGUE)  # files that never change, and whose hashes the description has

# How `ebert.vectors.matrix` stores them. With product-quantised codes (pq) an entity has one byte for four numbers.
# Words are in float16: they are few, and alignments are fitted on them.
StorageDtype = Literal["float32", "float16", "pq"]
Description = dict[str, Any]


def _from_1(value: Description) -> Description:
    """Migrate from version 0.1: no hashes of files. Its additions, in SQLite, are read by `ebert.vectors.log`."""
    return {**value, "sha256": {}}


MIGRATIONS: dict[int, Callable[[Description], Description]] = {1: _from_1}


def identity(folder: Path) -> tuple[int, int] | None:
    """Return what tells a store from one that replaces it: the identity and the time of its description file."""
    try:
        status = (folder / INFO).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def hashes(folder: Path) -> dict[str, str]:
    """Return the hashes of a store's big files."""
    return {name: files.sha256(folder / name) for name in BIG if (folder / name).exists()}


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """The contents of `store.json`."""

    dimension: int
    dtype: str
    words: int
    entities: int
    words_sha256: str  # of the words and their vectors: what an alignment was fitted on
    licence: str = "unknown"
    made: dict[str, Any] = field(default_factory=dict)  # the source, the version of ebert, what was dropped
    format: int = FORMAT
    sha256: dict[str, str] = field(default_factory=dict)  # of the big files, by name

    @property
    def added(self) -> str:
        """The name of the file with the entities added later. It differs for every store."""
        parts = (self.dimension, self.dtype, self.words, self.entities, self.words_sha256, sorted(self.sha256.items()))
        return f"added-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.log"

    def damaged(self, folder: Path) -> list[str]:
        """Return the names of big files that are not what they were when the store was made. All of them are read."""
        now = hashes(folder)
        return [name for name in BIG if name in self.sha256 and now.get(name) != self.sha256[name]]

    def write(self, folder: Path) -> None:
        """Write `store.json`."""
        files.write_json(folder / INFO, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> "StoreInfo":
        """Read `store.json`. Raise `EbertError` if `folder` is not a store that this version can open."""
        if not folder.is_dir():
            raise EbertError(f"there is no store at {folder}; make one with 'ebert vectors import'")
        value = files.read_json(folder / INFO, "a store of vectors")
        version = value.get("format", FORMAT)
        if isinstance(version, int) and version > FORMAT:
            raise EbertError(
                f"{folder} has store format {version}; this version of ebert reads up to {FORMAT}: upgrade ebert"
            )
        while isinstance(version, int) and version in MIGRATIONS:
            version += 1
            value = {**MIGRATIONS[version - 1](value), "format": version}
        try:
            # Unknown keys come from a later version that kept the format.
            info = cls(**{f.name: value[f.name] for f in fields(cls) if f.name in value})
            for f in fields(cls):
                kind = get_origin(f.type) or f.type
                if isinstance(kind, type) and not isinstance(getattr(info, f.name), kind):
                    raise TypeError(f"{f.name} cannot be {getattr(info, f.name)!r}")
        except TypeError as error:
            raise EbertError(f"{folder / INFO} is damaged ({error}); restore it or make the store again") from None
        return info
