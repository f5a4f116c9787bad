"""What a store is on disk: a folder of six files, the smallest of which is described here."""

import hashlib
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_origin

from ebert._io import files
from ebert.errors import EbertError

FORMAT = 2  # 1, of version 0.1, has no hashes of files, and keeps what was added in an SQLite file
INFO, WORDS, ENTITIES, CATALOGUE = "store.json", "words.safetensors", "entities.safetensors", "catalogue.sqlite"
OUTPUTS = "outputs.safetensors"  # optional: the words' output vectors, which adding an entity by a description needs
BIG = (WORDS, ENTITIES, OUTPUTS, CATALOGUE)  # files that never change, and whose hashes the description has


def identity(folder: Path) -> tuple[int, int] | None:
    """Return what tells a store from another that takes its place: which file its description is, and of when."""
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
    made: dict[str, Any] = field(default_factory=dict)  # from what, by which version, what was dropped
    format: int = FORMAT
    sha256: dict[str, str] = field(default_factory=dict)  # of the big files, by name

    @property
    def added(self) -> str:
        """The name of the file with the entities added later. It is another one for every store."""
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
        """Read `store.json`, or say why `folder` is not a store that this version can open."""
        if not folder.is_dir():
            raise EbertError(f"there is no store at {folder}; make one with 'ebert vectors import'")
        value = files.read_json(folder / INFO, "a store of vectors")
        version = value.get("format", 0)
        if isinstance(version, int) and version > FORMAT:
            raise EbertError(
                f"{folder} has store format {version}; this version of ebert reads up to {FORMAT}: upgrade ebert"
            )
        try:
            # Keys that are not known are of a later version that kept the format.
            info = cls(**{f.name: value[f.name] for f in fields(cls) if f.name in value})
            for f in fields(cls):
                kind = get_origin(f.type) or f.type
                if isinstance(kind, type) and not isinstance(getattr(info, f.name), kind):
                    raise TypeError(f"{f.name} cannot be {getattr(info, f.name)!r}")
        except TypeError as error:
            raise EbertError(f"{folder / INFO} is damaged ({error}); restore it or make the store again") from None
        return info
