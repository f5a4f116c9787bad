"""What the words of a text may mean: the entities of a surface, how likely each, and how likely any."""

import re

from ebert.vectors import lookup
from ebert.vectors.catalogue import Catalogue
from ebert.vectors.entity import Candidate, Entity
from ebert.vectors.overlay import Overlay
from ebert.wikipedia.tokens import words_of

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
