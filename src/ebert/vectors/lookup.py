"""Finding an entity by whatever people call it, in a store and among the entities added to it."""

import re

from ebert.text import titles
from ebert.vectors import lookup, suggestions
from ebert.vectors.added import Overlay
from ebert.vectors.catalogue import Catalogue, EntityRow, Names
from ebert.vectors.entity import Candidate, Entity
from ebert.wikipedia.tokens import words_of


def find(catalogue: Catalogue, added: Overlay, name: str) -> Entity | None:
    """Give the entity with a name, or None. Titles go before redirects, then come Wikidata ids, then own ids."""
    overlay = added if added else None  # asked once, as it looks at the disk
    if overlay is None and (exact := catalogue.titled([name])):  # most names are titles as they are
        return entity(exact[1])
    forms = titles.spellings(name)
    for step in (Names.titled, Names.redirected):
        made = step(catalogue, forms)
        later = step(overlay, forms) if overlay is not None else None
        if later and (not made or later[0] <= made[0]):
            return entity(later[1], added=True)
        if made:
            return current(overlay, made[1])
    number = titles.wikidata_id(name)
    if number is not None and (numbered := find_wikidata(catalogue, added, number)):
        return numbered
    return find_id(catalogue, added, name)


def find_wikidata(catalogue: Catalogue, added: Overlay, number: int) -> Entity | None:
    """Give the entity with a Wikidata id, or None."""
    overlay = added if added else None
    if overlay is not None and (row := overlay.numbered(number)):
        return entity(row, added=True)
    row = catalogue.numbered(number)
    return current(overlay, row) if row else None


def find_id(catalogue: Catalogue, added: Overlay, name: str) -> Entity | None:
    """Give the entity with an own id, or None."""
    name = name.strip()
    overlay = added if added else None
    if overlay is not None and (row := overlay.identified(name)):
        return entity(row, added=True)
    row = catalogue.identified(name)
    return current(overlay, row) if row else None


def id_of(catalogue: Catalogue, added: Overlay, known: Entity) -> str | None:
    """Give the own id of an entity, or None."""
    if not known.added:
        return catalogue.id_of(known.row)
    hidden = added.hides(known.row)
    return added.id_of(known.row) or (catalogue.id_of(hidden) if hidden is not None else None)


def aliases(catalogue: Catalogue, added: Overlay, known: Entity, count: int) -> list[str]:
    """Give other names that find an entity, in the order of their letters."""
    row = added.hides(known.row) if known.added else known.row
    found = set(catalogue.redirects_to(row, count)) if row is not None else set()
    if known.added:
        found.update(added.redirects_to(known.row, count))
    return sorted(found)[:count]


def suggest(catalogue: Catalogue, added: Overlay, name: str, count: int) -> list[str]:
    """Give the titles closest to a name, the closest first."""
    forms = titles.spellings(name)
    if not forms:
        return []
    places: list[Names] = [catalogue, added] if added else [catalogue]
    found = {title for names in places for form in forms[:2] for title in suggestions.candidates(names, form)}
    return suggestions.closest(forms[0], found, count)


def entity(row: EntityRow, *, added: bool = False) -> Entity:
    """Give the entity of a row."""
    number, title, count, wikidata = row
    return Entity(title, number, count, wikidata, added=added)


def current(overlay: Overlay | None, row: EntityRow) -> Entity:
    """Give the entity of a row of the catalogue, or what took its place."""
    later = overlay.titled([row[1]]) if overlay is not None else None
    return entity(later[1], added=True) if later else entity(row)


_APART = re.compile(r"\s*\([^()]*\)$")  # what tells a title from others: nobody writes it in running text


def surface_of(name: str, *, lowercase: bool = False) -> str:
    """Give the words that a name has in running text.

    >>> surface_of("Paris, Texas (film)")
    'Paris Texas'
    """
    return " ".join(words_of(_APART.sub("", name) or name, lowercase=lowercase))


def candidates(catalogue: Catalogue, added: Overlay, surface: str) -> list[Candidate]:
    """Give the entities that a surface may mean, the likeliest first. One that was added counts as if linked once."""
    _, meant, own = _meaning(catalogue, added, surface)
    total = sum(meant.values())
    order = sorted(meant, key=lambda entity: (-meant[entity], entity.title))
    return [Candidate(entity, meant[entity], meant[entity] / total, entity in own) for entity in order]


def link_probability(catalogue: Catalogue, added: Overlay, surface: str) -> float:
    """Give the share of a surface's occurrences that name an entity."""
    occurrences, meant, _ = _meaning(catalogue, added, surface)
    return sum(meant.values()) / occurrences if meant else 0.0


def occurrences(catalogue: Catalogue, added: Overlay, surface: str) -> int:
    """Give how often a surface stands in the text, linked or not."""
    return _meaning(catalogue, added, surface)[0]


def continues(catalogue: Catalogue, added: Overlay, surface: str) -> bool:
    """Tell whether there is a longer surface that begins with these words."""
    return catalogue.continues(surface) or (bool(added) and added.continues(surface))


def unlinked(catalogue: Catalogue, surface: str) -> int:
    """Give how often a surface that nobody linked stands in the text, as far as known: of single words only."""
    found = catalogue.word(surface)
    return (found[1] or 0) if found else 0


def _meaning(catalogue: Catalogue, added: Overlay, surface: str) -> tuple[int, dict[Entity, int], set[Entity]]:
    """Give how often a surface occurs, how often it means what, and what it means because somebody added it so."""
    found = catalogue.mentions(surface)
    occurrences, rows = found or (unlinked(catalogue, surface), [])
    overlay = added if added else None
    meant = {lookup.current(overlay, row): count for row, count in rows if count > 0}
    named = [lookup.entity(row, added=True) for row in overlay.named(surface)] if overlay is not None else []
    own = {entity for entity in named if entity not in meant}
    meant |= dict.fromkeys(own, 1)
    return max(occurrences + len(own), sum(meant.values())), meant, own
