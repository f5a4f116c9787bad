"""Opening the store that a model, a linker or a classifier belongs to: by the name it has there, or where it is now."""

import os
from pathlib import Path

from ebert._io.trusted import locate
from ebert.errors import EbertError
from ebert.vectors.store import Vectors


def reopen(
    owner: Path, name: str, fingerprint: str, given: Vectors | str | Path | None, *, ours: bool, remedy: str = ""
) -> Vectors:
    """Open the store of `owner`, the folder that names it, unless another place or an open store is given."""
    place = given if given is not None else locate(owner, name, ours=ours)
    if not isinstance(place, Vectors):
        if not isinstance(place, str | Path) or not os.path.isdir(place):  # noqa: PTH112
            raise EbertError(f"the store of {owner} is not at {place}; say where it is now (vectors=..., --vectors)")
        place = Vectors.open(place)
    if place.fingerprint != fingerprint:
        raise EbertError(
            f"{place.path} has other words than the store that {owner} was made with; "
            f"give the right store (vectors=..., --vectors){remedy}"
        )
    return place
