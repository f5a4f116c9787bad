"""Where encoders are kept, and whether they are still as they were.

`EBERT_HOME` (by default the user's cache folder) has one folder an encoder at `bert/<name>`, in the layout of
transformers plus `ebert-encoder.json`, the manifest: where the encoder came from and the size and hash of each file.
"""

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ebert._io.files import read_json, sha256, write_json
from ebert._io.home import home
from ebert.errors import EbertError

FORMAT = 1
MANIFEST = "ebert-encoder.json"


@dataclass(frozen=True)
class Origin:
    """Where an encoder came from."""

    source: str
    artifact: str
    licence: str
    notice: str = ""
    variables: int | None = None  # unknown for weights that ebert 0.1 kept as a pickle
    parameters: int | None = None


@dataclass(frozen=True)
class FileRecord:
    """A file as it was when the encoder was made."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What `ebert-encoder.json` says."""

    name: str
    origin: Origin
    made: str
    files: dict[str, FileRecord] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write the manifest into the encoder's folder."""
        value = asdict(self)
        write_json(folder / MANIFEST, {"format": FORMAT, "name": self.name} | value.pop("origin") | value)

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read the manifest of the encoder in `folder`."""
        value = read_json(folder / MANIFEST, "an encoder in ebert's cache")
        if value.get("format") != FORMAT:
            raise EbertError(
                f"{folder / MANIFEST} has format {value.get('format')!r}, this ebert reads {FORMAT}; "
                "remove the folder or use the ebert that made it"
            )
        try:
            return cls._of(value)
        except (KeyError, TypeError, AttributeError) as error:
            raise EbertError(
                f"{folder / MANIFEST} is damaged ({error!r}); remove the folder and fetch it again"
            ) from None

    @classmethod
    def _of(cls, value: dict[str, Any]) -> "Manifest":
        files = {name: FileRecord(**record) for name, record in value["files"].items()}
        origin = Origin(**{key: value[key] for key in Origin.__dataclass_fields__})
        return cls(name=value["name"], origin=origin, made=value["made"], files=files)


def folder_of(name: str) -> Path:
    """Give the folder of an encoder in the cache, whether it is there or not."""
    # Names of the hub have no "--", so that no two names share a folder.
    return home() / "bert" / name.replace("/", "--")


def cached() -> list[Path]:
    """List the folders of all encoders in the cache."""
    return sorted(path.parent for path in home().glob(f"bert/*/{MANIFEST}") if not path.parent.name.startswith("."))


def describe(folder: Path, *, name: str, origin: Origin) -> None:
    """Write the manifest of the finished files in `folder`."""
    files = {
        path.relative_to(folder).as_posix(): FileRecord(path.stat().st_size, sha256(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST
    }
    made = datetime.now(UTC).isoformat(timespec="seconds")
    Manifest(name=name, origin=origin, made=made, files=files).write(folder)


def quick_check(folder: Path) -> list[str]:
    """List what is wrong with an encoder as far as sizes show it; cheap enough for every use."""
    return _problems(folder, hashes=False)


def verify(folder: Path) -> list[str]:
    """List what is wrong with an encoder in the cache: files that are missing or differ from what was fetched."""
    return _problems(folder, hashes=True)


def _problems(folder: Path, *, hashes: bool) -> list[str]:
    try:
        manifest = Manifest.read(folder)
    except EbertError as error:
        return [str(error)]
    found = (_problem(folder / name, record, hashes=hashes) for name, record in manifest.files.items())
    return [problem for problem in found if problem]


def _problem(path: Path, record: FileRecord, *, hashes: bool) -> str | None:
    if not path.is_file():
        return f"{path} is missing"
    if (size := path.stat().st_size) != record.size:
        return f"{path} has {size} bytes instead of {record.size}"
    if hashes and sha256(path) != record.sha256:
        return f"{path} has changed: its sha256 is not that of the file that was fetched"
    return None
