"""Adding an entity to a store: what may be added under which names."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.vectors import lookup, titles
from ebert.vectors.catalogue import Catalogue
from ebert.vectors.entity import Entity
from ebert.vectors.overlay import Overlay


def add(
    catalogue: Catalogue,
    added: Overlay,
    title: str,
    vector: NDArray[np.float32],
    *,
    aliases: Iterable[str],
    wikidata: int | None,
    replace: bool,
) -> Entity:
    """Add an entity. One that is replaced keeps what else is known of it."""
    title = titles.clean(title)
    others = [alias for alias in map(titles.clean, aliases) if alias != title]
    for name in (title, *others):
        if not name or not titles.is_text(name):
            raise EbertError(f"an entity cannot be called {name!r}")
    known = catalogue.titled([title])
    if known and not replace:
        raise EbertError(f"{title!r} has a vector already; use replace=True (--replace) for another one")
    for alias in others:
        if catalogue.titled([alias]):
            raise EbertError(f"{alias!r} cannot be another name of {title!r}: it has a vector of its own")
        owner = lookup.find(catalogue, added, alias)
        if owner and owner.title not in (title, alias) and not replace:  # its own title is refused further on
            raise EbertError(f"{alias!r} is a name of {owner.title!r}; use replace=True (--replace) to take it over")
    if wikidata is not None and titles.wikidata_id(f"Q{wikidata}") != wikidata:
        raise EbertError(f"{wikidata!r} is not the number of a Wikidata id")
    if wikidata is not None and (other := catalogue.numbered(wikidata)) and other[1] != title:
        raise EbertError(f"Q{wikidata} is {other[1]!r} already; {title!r} needs its own Wikidata id or none")
    hides, _, count, number = known[1] if known else (None, title, None, None)
    row = added.add(
        title,
        vector,
        aliases=others,
        count=count,
        wikidata=number if wikidata is None else wikidata,
        replace=replace,
        hides=hides,
    )
    return lookup.entity(row, added=True)
