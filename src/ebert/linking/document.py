"""Plain data: documents, their spans that may name an entity, and linked documents."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from ebert.errors import EbertError
from ebert.text.passage import Mention, Passage


@dataclass(frozen=True, slots=True)
class Document:
    """A text to link, with its gold links if it has any. All offsets count characters."""

    id: str
    text: str
    gold: tuple[Mention, ...] = ()  # in the order of the text, not overlapping
    ignore: tuple[tuple[int, int], ...] = ()  # spans left out of the loss and of the evaluation
    sentences: tuple[int, ...] = ()  # where sentences begin, if known

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "gold", Passage(self.text, self.gold).mentions)  # sorted and checked
        except EbertError as error:
            raise EbertError(f"document {self.id!r}: {error}") from None

    def ignoring(self) -> Callable[[int, int], bool]:
        """Return a function that tells if a span is not judged: it lies in an ignored one and is not gold itself."""
        gold = {(mention.start, mention.end) for mention in self.gold}
        ignored = sorted(self.ignore)
        starts = [start for start, _ in ignored]
        reach = list(accumulate((end for _, end in ignored), max))  # how far those reach that have begun

        def is_ignored(start: int, end: int) -> bool:
            before = bisect_right(starts, start)
            return before > 0 and end <= reach[before - 1] and (start, end) not in gold

        return is_ignored


@dataclass(frozen=True, slots=True)
class Choice:
    """An entity that a span may mean."""

    title: str  # as in the store
    prior: float  # renormalised among the choices of the span
    lower: float = 0.0  # share of its links by the span's words that are in lower case, as those of common nouns are
    part: bool = False  # whether a longer name in the same text has the span's words and this choice


@dataclass(frozen=True, slots=True)
class Span:
    """A potential mention: where it stands, and what it may mean, the most likely first."""

    start: int
    end: int
    choices: tuple[Choice, ...]
    link_probability: float | None = None  # how often its words are a link in a text, if known
    links: int | None = None  # how many links of its words were counted, if known
    respelt: bool = False  # whether the mention table knows its words in another spelling only

    @property
    def sure(self) -> float:
        """The link probability, 1 where it is not known."""
        return 1.0 if self.link_probability is None else self.link_probability


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate of a mention: its prior, its score (Eq. 2 of the paper, before the softmax) and its probability."""

    title: str
    prior: float
    score: float
    probability: float


@dataclass(frozen=True, slots=True)
class LinkedMention:
    """A span of text linked to an entity.

    `probability` is that of `entity`, `null` that of "no entity"; with the candidates' they add up to one.
    """

    start: int
    end: int
    text: str
    entity: str
    probability: float
    null: float
    candidates: tuple[Scored, ...]  # the most likely first
    url: str | None = None  # of the entity's Wikipedia page; for one of your own its id if that is a URL, or None
    wikidata_id: str | None = None  # such as Q9617, if the store knows one
    id: str | None = None  # your own id, if the entity was added with one


@dataclass(frozen=True, slots=True)
class Linked:
    """A document and the entities found in it, in the order of the text, not overlapping."""

    document: Document
    mentions: tuple[LinkedMention, ...]

    def __iter__(self) -> Iterator[LinkedMention]:
        return iter(self.mentions)

    def __len__(self) -> int:
        return len(self.mentions)
