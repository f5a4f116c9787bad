"""A model on disk: a small folder that says which encoder and which store it belongs to, and holds W."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ebert import __version__, files
from ebert.alignment import Alignment
from ebert.errors import EbertError

FORMAT = 1
INFO, ALIGNMENT, VECTORS, ENCODER = "ebert.json", "alignment.safetensors", "vectors", "encoder"


@dataclass(frozen=True, slots=True)
class Part:
    """An encoder or a store that a model belongs to."""

    name: str  # a hub name or a path; relative paths are inside the model's folder
    fingerprint: str


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The contents of `ebert.json`."""

    encoder: Part
    vectors: Part
    alignment_sha256: str
    format: int = FORMAT

    def write(self, folder: Path) -> None:
        """Write `ebert.json`."""
        files.write_json(folder / INFO, {"ebert": __version__, **asdict(self)})

    @classmethod
    def read(cls, folder: Path) -> "ModelInfo":
        """Read `ebert.json`, or say why `folder` is not a model that this version can load."""
        if not folder.is_dir():
            raise EbertError(f"there is no model at {folder}; make one with 'ebert align'")
        value: dict[str, Any] = files.read_json(folder / INFO, "a model")
        version = value.get("format")
        if not isinstance(version, int) or version > FORMAT:
            raise EbertError(
                f"{folder} has model format {version}; this version of ebert reads up to {FORMAT}: upgrade ebert"
            )
        try:
            return cls(Part(**value["encoder"]), Part(**value["vectors"]), value["alignment_sha256"], version)
        except (KeyError, TypeError) as error:
            raise EbertError(f"{folder / INFO} is damaged ({error}); make the model again with 'ebert align'") from None


def load_alignment(folder: Path, info: ModelInfo) -> Alignment:
    """Read W and see that it is the one `ebert.json` speaks of."""
    alignment = Alignment.load(folder / ALIGNMENT)
    if files.sha256(folder / ALIGNMENT) != info.alignment_sha256:
        raise EbertError(
            f"{folder / ALIGNMENT} is not the one that {INFO} belongs to; make the model again with 'ebert align'"
        )
    return alignment


def resolve(folder: Path, name: str) -> str:
    """Give a path inside the model's folder as it is now, and any other name as it was written."""
    inside = folder / name
    return str(inside) if not Path(name).is_absolute() and name in (VECTORS, ENCODER) and inside.is_dir() else name
