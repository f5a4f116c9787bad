"""Names of models, stores, linkers and classifiers: "starter", a local folder or a hub id, everywhere the same.

Every `from_pretrained`, `Vectors.open` and each command-line option that takes one of these resolves its name here. A
hub id is `owner/name`, perhaps with a commit, tag or branch: `owner/name@v1`. Neither torch nor numpy is imported.
Encoders have two more sources, the cache and Maven: see `ebert.bert`.
"""

import os
import re
from pathlib import Path
from typing import Any, Literal, get_args

from ebert._io import files, trusted
from ebert._io.home import STARTER, home
from ebert.errors import EbertError

Kind = Literal["model", "store", "linker", "classifier"]

HUB_OPTIONS = frozenset({"revision", "token", "cache_dir", "force_download", "local_files_only"})
MOST_LISTED = 10  # names in an error

# The files of which a folder of each kind has one, and the command that makes such a folder.
MARKERS: dict[Kind, tuple[str, ...]] = {
    "model": ("ebert.json",),
    "store": ("store.json", "vectors/store.json"),
    "linker": ("linker.json", "model/linker.json", "ebert.json"),
    "classifier": ("relations.json", "model/relations.json"),
}
COMMANDS: dict[Kind, str] = {
    "model": "ebert align",
    "store": "ebert vectors import' or 'ebert vectors train",
    "linker": "ebert link train",
    "classifier": "ebert relations train",
}
_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*(@\w[\w./-]*)?")


def resolve(name: str | Path, kind: Kind, **hub: Any) -> Path:
    """Return the folder that a name stands for; what the hub has is downloaded (`hub`: see `HUB_OPTIONS`).

    A folder comes before other things of the same name. The store of a model may be asked for by the model's name.
    Raise `EbertError` with a list of what there is for a name that is nothing of this kind. A path with no folder is
    returned as it is: what opens it knows what to say.
    """
    if unknown := hub.keys() - HUB_OPTIONS:
        raise TypeError(f"from_pretrained has no {', '.join(sorted(unknown))}")
    folder = find_local(name, kind)
    if folder is None:
        if not _HUB_ID.fullmatch(str(name)):
            raise unknown_name(str(name), kind)
        folder = _download(str(name), kind, **hub)
    inside = folder / "vectors"
    if kind == "store" and not (folder / "store.json").exists() and (inside / "store.json").is_file():
        return inside
    return folder


def find_local(name: str | Path, kind: Kind) -> Path | None:
    """Return the absolute folder of a name that needs no hub, or None."""
    try:
        place = Path(name).expanduser()
    except RuntimeError:  # the home of a user who does not exist
        place = Path(name)
    if _exists(place):
        return place.absolute()
    if name == STARTER and kind != "classifier":
        from ebert.starter.get import get_starter

        return get_starter()
    if isinstance(name, Path) or place.is_absolute() or name.startswith((".", "~")) or not name:
        return place.absolute()
    if "\0" not in name:
        files.recover(place)  # a folder that is being replaced is away for a moment
    return place.absolute() if _exists(place) else None


def shared_store(name: str | Path) -> EbertError:
    """Return the error about a store that is to be changed but is the starter's."""
    return EbertError(
        f"the starter is shared, so {name} cannot be changed; make a store of your own from it "
        "('ebert vectors copy starter my-entities', which is instant) and change that one"
    )


def is_shared(folder: Path) -> bool:
    """Return whether a folder is of the starter in the cache, which everybody uses and nobody changes."""
    return folder.resolve().is_relative_to((home() / STARTER).resolve())


def store_of(owner: Path, name: str, given: str | Path | None, *, ours: bool) -> Path:
    """Return the folder of the store that a model or a linker names, unless it is given where the store is now."""
    place = trusted.locate(owner, name, ours=ours) if given is None else resolve(given, "store")
    if not os.path.isdir(place):  # noqa: PTH112 - which takes any name
        raise EbertError(f"the store of {owner} is not at {place}; give its new path (vectors=..., --vectors)")
    return place


def available(kind: Kind) -> list[str]:
    """Return the names that `resolve` knows without the hub: the starter and folders of the current directory."""
    here = sorted(path.name for path in Path().iterdir() if any((path / file).is_file() for file in MARKERS[kind]))
    return ([] if kind == "classifier" else [STARTER]) + [name for name in here if name != STARTER]


def unknown_name(name: str, kind: Kind, why: str = "") -> EbertError:
    """Return the error about a name that is nothing of this kind, with a list of what there is."""
    assert kind in get_args(Kind)
    names = available(kind)
    more = ", ..." if len(names) > MOST_LISTED else ""
    there = f"use {', '.join(names[:MOST_LISTED])}{more}, another" if names else "use a"
    return EbertError(
        f"there is no {kind} at {name}: it is neither a folder nor {f'on the hub ({why})' if why else 'a hub id'}; "
        f"{there} folder or a hub id (owner/name), or make one with '{COMMANDS[kind]}'"
    )


def _exists(place: Path) -> bool:
    return os.path.exists(place)  # noqa: PTH110 - which takes any name, too long or with a NUL


def _download(name: str, kind: Kind, **hub: Any) -> Path:
    from huggingface_hub import snapshot_download

    repository, _, revision = name.partition("@")
    if revision and hub.setdefault("revision", revision) != revision:
        raise EbertError(f"{name} has a revision, and revision={hub['revision']!r} is another one; give one of them")
    try:
        return Path(snapshot_download(repository, **hub))
    except Exception as error:  # the hub's client fails in many ways; all of them mean that there is nothing
        raise unknown_name(name, kind, str(error).strip().partition("\n")[0]) from None
