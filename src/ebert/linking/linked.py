"""What linking gives: a document with its links, each with all that was weighed (plain data, no torch)."""

from dataclasses import dataclass

from ebert.linking.document import Document


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
    candidates: tuple[Scored, ...]  # the likeliest first
    url: str | None = None  # of the entity's Wikipedia page; None for one of your own


@dataclass(frozen=True, slots=True)
class Linked:
    """A document and the entities found in it, in the order of the text, not overlapping."""

    document: Document
    mentions: tuple[LinkedMention, ...]
