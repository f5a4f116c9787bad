"""Where encoders are kept, and whether they are still as they were.

`EBERT_HOME` (by default the user's cache folder) has one folder an encoder at `bert/<name>`, in the layout of
transformers plus `ebert-encoder.json`, the manifest: where the encoder came from and the size and hash of each file.
"""

from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from typing import Any

from ebert._io.files import read_json, sha256, write_json
from ebert._io.home import home
from ebert.errors import EbertError

FORMAT = 1
MANIFEST = "ebert-encoder.json"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What `ebert-encoder.json` says."""

    source: str
    artifact: str
    licence: str
    notice: str
    name: str
    variables: int | None  # unknown for weights that ebert 0.1 kept as a pickle
    parameters: int | None
    made: str
    files: dict[str, dict[str, Any]]  # size and sha256 of each, as it was when the encoder was made

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read the manifest of the encoder in `folder`."""
        path = folder / MANIFEST
        value = read_json(path, "an encoder in ebert's cache")
        if value.get("format") != FORMAT:
            raise EbertError(
                f"{path} has format {value.get('format')!r}, this ebert reads {FORMAT}; "
                "remove the folder or use the ebert that made it"
            )
        try:
            value["files"] = {
                name: {"size": one["size"], "sha256": one["sha256"]} for name, one in value["files"].items()
            }
            return cls(**{field.name: value[field.name] for field in fields(cls)})
        except (KeyError, TypeError, AttributeError) as error:
            raise EbertError(f"{path} is damaged ({error!r}); remove the folder and fetch it again") from None


def folder_of(name: str) -> Path:
    """Return the folder of an encoder in the cache, whether it is there or not."""
    # Names of the hub have no "--", so that no two names share a folder.
    return home() / "bert" / name.replace("/", "--")


def cached() -> list[Path]:
    """Return the folders of all encoders in the cache."""
    return sorted(path.parent for path in home().glob(f"bert/*/{MANIFEST}") if not path.parent.name.startswith("."))


def describe(folder: Path, *, name: str, source: str, artifact: str, licence: str, notice: str = "") -> None:
    """Write the manifest of the finished files in `folder`."""
    from safetensors import safe_open

    sizes: list[int] = []  # how many numbers each tensor has
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="numpy") as weights:
            sizes += [prod(weights.get_slice(key).get_shape()) for key in weights.keys()]  # noqa: SIM118 (it is no dict)
    manifest = Manifest(
        source=source,
        artifact=artifact,
        licence=licence,
        notice=notice,
        name=name,
        variables=len(sizes),
        parameters=sum(sizes),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        files={
            path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "sha256": sha256(path)}
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        },
    )
    write_json(folder / MANIFEST, {"format": FORMAT, **asdict(manifest)})


def verify(folder: Path, *, hashes: bool = True) -> list[str]:
    """Return what is wrong with an encoder in the cache: files that are missing or differ from what was fetched.

    Without `hashes` only sizes are compared, which is cheap enough for every use.
    """
    if not folder.is_dir():
        return [f"{folder} is not there"]
    try:
        files = Manifest.read(folder).files
    except EbertError as error:
        return [str(error)]
    problems = []
    for path, record in ((folder / name, record) for name, record in files.items()):
        if not path.is_file():
            problems.append(f"{path} is missing")
        elif (size := path.stat().st_size) != record["size"]:
            problems.append(f"{path} has {size} bytes instead of {record['size']}")
        elif hashes and sha256(path) != record["sha256"]:
            problems.append(f"{path} has changed: its sha256 is not that of the file that was fetched")
    return problems
