"""What a store is on disk: a folder of five files, the smallest of which is described here."""

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ebert import files
from ebert.errors import EbertError

FORMAT = 1
INFO, WORDS, ENTITIES, CATALOGUE = "store.json", "words.safetensors", "entities.safetensors", "catalogue.sqlite"
ADDED = "added.sqlite"  # entities added after the store was made; the only file that ever changes


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
        version = value.get("format")
        if not isinstance(version, int) or version > FORMAT:
            raise EbertError(
                f"{folder} has store format {version}; this version of ebert reads up to {FORMAT}: upgrade ebert"
            )
        known = {f.name for f in fields(cls)}
        try:
            return cls(**{key: item for key, item in value.items() if key in known})
        except TypeError as error:
            raise EbertError(f"{folder / INFO} is damaged ({error}); make the store again") from None
