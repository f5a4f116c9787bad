"""Which entity a mention means: by its id where that is known, else by its words.

The paper used the ids of FewRel. Where a store knows no Wikidata ids, a table of ids and titles may help, and the words
of the mention themselves: the page or redirect of that name, or what the words mean most often in the store's text.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, get_args

from ebert.errors import EbertError
from ebert.relations.data import Sample, Span
from ebert.text import titles
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors

Way = Literal["id", "named", "title", "redirect", "surface", "none"]
WAYS: tuple[Way, ...] = get_args(Way)
"""By a Wikidata id, by the title given in the data, by a page or a redirect called like the mention, by what the
mention's words mean most often; or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvingOptions:
    """How far from the ids of the data one goes."""

    ids_only: bool = False
    """Keep to entities that the data names, by id or title."""
    threshold: float = 0.5
    """The share of a surface's links that its commonest entity must have."""

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise EbertError(f"threshold is {self.threshold}; it must be between 0 and 1")


@dataclass(slots=True)
class Coverage:
    """How many mentions and samples have a vector, and by which way."""

    samples: int = 0
    covered: int = 0
    """Samples whose subject and object both have a vector."""
    mentions: int = 0
    ways: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WAYS, 0))

    def as_json(self) -> dict[str, object]:
        """Give it for `run.json`."""
        return asdict(self)


class Resolver:
    """Finds the entities of mentions in a store."""

    def __init__(
        self, vectors: Vectors | None, options: ResolvingOptions | None = None, ids: Mapping[int, str] | None = None
    ) -> None:
        self._vectors, self._options = vectors, options or ResolvingOptions()
        self._ids = dict(ids or {})
        self._numbers: dict[str, int] = {}  # of titles, as far as they have a vector
        if vectors is not None:
            for number, title in self._ids.items():
                if (entity := vectors.find(title)) is not None:
                    self._numbers.setdefault(entity.title, number)
        self._known: dict[tuple[str, str | None], tuple[Way, Entity | None]] = {}

    def __call__(self, sample: Sample, span: Span) -> tuple[Way, Entity | None]:
        """Give the entity of a sample's subject or object, and how it was found."""
        key = (sample.surface(span), span.entity)
        if key not in self._known:
            self._known[key] = self._resolve(*key) if self._vectors is not None else ("none", None)
        return self._known[key]

    def coverage(self, samples: Iterable[Sample]) -> Coverage:
        """Count by which way the entities of samples are found."""
        total, ways = Coverage(), Counter[str]()
        for sample in samples:
            both = [self(sample, span)[0] for span in (sample.subject, sample.object)]
            ways.update(both)
            total.samples += 1
            total.covered += "none" not in both
        total.mentions = 2 * total.samples
        total.ways = {way: ways[way] for way in WAYS}
        return total

    def _resolve(self, surface: str, named: str | None) -> tuple[Way, Entity | None]:
        assert self._vectors is not None
        number = titles.wikidata_id(named) if named else None
        if named is not None:
            title = self._ids.get(number) if number is not None else None
            found = self._vectors.find(named)  # the store's own ids go before a table's
            if found is None and title is not None:
                found = self._vectors.find(title)
            if found is not None:
                return ("named" if number is None else "id"), found
            if number is None or title is not None:  # what is meant is known, and has no vector
                return "none", None
        if self._options.ids_only:
            return "none", None
        way, found = self._by_words(surface)
        if found is None or (number is not None and self._number(found) not in (None, number)):
            return "none", None  # the words' entity is known to be another one
        return way, found

    def _by_words(self, surface: str) -> tuple[Way, Entity | None]:
        """Give the page of that name, unless the words mostly mean another one, as 'Sierra Nevada' does."""
        assert self._vectors is not None
        found = self._vectors.find(surface) if titles.wikidata_id(surface) is None else None
        best = next(iter(self._vectors.candidates(surface)), None)
        if best is not None and best.prior > self._options.threshold and best.entity != found:
            return "surface", best.entity
        if found is None:
            return "none", None
        return ("title" if found.title in titles.spellings(surface) else "redirect"), found

    def _number(self, entity: Entity) -> int | None:
        return entity.wikidata if entity.wikidata is not None else self._numbers.get(entity.title)
