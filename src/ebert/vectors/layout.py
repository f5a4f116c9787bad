"""What a store is on disk: a folder of six files, the smallest of which is described here."""

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_origin

from ebert import files
from ebert.errors import EbertError

FORMAT = 1
INFO, WORDS, ENTITIES, CATALOGUE = "store.json", "words.safetensors", "entities.safetensors", "catalogue.sqlite"
OUTPUTS = "outputs.safetensors"  # optional: the words' output vectors, which adding an entity by a description needs
ADDED = "added.sqlite"  # entities added after the store was made; the only file that ever changes


def identity(folder: Path) -> int | None:
    """Tell one store from another that takes its place: the number of its description on the disk."""
    try:
        return (folder / INFO).stat().st_ino
    except OSError:
        return None


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
