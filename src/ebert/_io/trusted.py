"""Which paths a model, a linker or a saved pipeline may name: those inside it, and those with a mark of this machine.

A folder that came from elsewhere must not choose which paths of this machine are opened. A path outside a folder is
believed only if the folder has the mark of it: an HMAC with a secret that is made once, in `EBERT_HOME`, for each user.
"""

import hashlib
import hmac
import json
import os
import secrets
import tempfile
from pathlib import Path

from ebert._io.home import home, locked
from ebert.errors import EbertError


def mark(*names: str | None) -> str:
    """Return the mark of names that are about to be written; empty if no secret can be kept on this machine."""
    try:
        return _mark(_secret(), names)
    except (EbertError, OSError):  # saving goes on: a model without a mark has to be told where its parts are
        return ""


def known(found: object, *names: str | None) -> bool:
    """Return whether a mark is the one that this machine gave to the names."""
    try:
        secret = _place().read_bytes()
    except OSError:
        return False
    return isinstance(found, str) and hmac.compare_digest(found.encode(errors="replace"), _mark(secret, names).encode())


def locate(owner: Path, name: str, *, ours: bool, give: str = "vectors=..., --vectors") -> Path:
    """Return the folder that `owner` names by a path: one inside it or, in what this machine saved (`ours`), any.

    Raise an error about any other path, and say how to `give` it instead.
    """
    if name in ("", "."):  # the folder itself
        raise EbertError(f"{owner} names {name!r}, which is not a folder inside it; give the right one ({give})")
    place = owner / name  # an absolute path stays what it is
    if ours or _is_inside(owner, place):
        return place
    raise EbertError(
        f"{owner} names {name}, which is not inside it, and has no mark of being saved on this machine (ebert 0.1 set "
        f"none); if this is the right place, give it yourself ({give}), or save again what you load in this way"
    )


def _mark(secret: bytes, names: tuple[str | None, ...]) -> str:
    return hmac.new(secret, json.dumps(names).encode(), hashlib.sha256).hexdigest()


def _place() -> Path:
    # Several people may share a cache, but not a secret.
    return home() / f"secret-{os.getuid() if hasattr(os, 'getuid') else 'own'}"


def _secret() -> bytes:
    """Read the secret, which is made when it is first needed."""
    place = _place()
    if not place.exists():
        with locked(place):
            if not place.exists():
                handle, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)  # for the owner only
                with os.fdopen(handle, "wb") as file:
                    file.write(secrets.token_bytes(32))
                    file.flush()
                    os.fsync(file.fileno())
                Path(name).replace(place)
    return place.read_bytes()


def _is_inside(owner: Path, place: Path) -> bool:
    """Return whether a folder and all files in it are inside `owner`, wherever links lead."""
    try:
        root = _real(owner)
        if not _real(place).is_relative_to(root):
            return False
        # The hub's cache keeps the files of a snapshot as links to its blobs.
        blobs = root.parent.parent / "blobs" if root.parent.name == "snapshots" else root
        inside = map(_real, place.rglob("*"))
        return all(path.is_relative_to(root) or path.is_relative_to(blobs) for path in inside)
    except (OSError, ValueError):  # a name that cannot be one: too long, or with a NUL
        return False


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # which, unlike Path.resolve, copes with links in a circle
