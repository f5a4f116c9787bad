"""Evidence besides the encoder about whether a span names an entity, and which one: counts of links, spelling, other
spans.

An adapter weighs it (`ebert.linking.adapter`). Evidence about a span is added to the score of the null entity, evidence
about a candidate to its own score.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ebert.linking.candidates.words import begins_sentence, has_capitals, in_headline
from ebert.linking.document import Span
from ebert.vectors.lookup import plain_name

SPAN = (
    "odds that its words are no link",
    "nobody knows how often they are a link",
    "how often they were linked",
    "in lower case where other words have capitals",
    "in lower case among words without capitals",
    "all in capitals",
    "capitals tell nothing here",
    "known in another spelling only",
    "begins a sentence",
    "two words",
    "three words or more",
    "link probability of a longer span around it",
    "link probability of a shorter span in it",
    "how sure the likeliest candidate is by its prior",
)
TRAITS = (
    "its title has just these words",
    "share of its links by these words that are in lower case",
    "a longer name in the text has these words and means it",
)
CANDIDATE = ("prior", "likeness to the other spans' candidates", *TRAITS)
WEIGHTED = {"odds that its words are no link": 1.0, "prior": 1.0}  # before any training; the others are 0

LEAST_DOUBT = 0.01  # the least doubt that a span is a link, however often its words were one: counts are small
LEAST = 1e-9  # link probability


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about a span, in the order of SPAN, and about each of its candidates, in the order of TRAITS."""

    span: tuple[float, ...]
    choices: tuple[tuple[float, ...], ...]


def gather(text: str, spans: Sequence[Span]) -> list[Evidence]:
    """Return the evidence about the spans of a text, which are in the order of their places."""
    cased = has_capitals(text)
    around, inside = _nested(spans)
    return [_evidence(text, span, cased, around[n], inside[n]) for n, span in enumerate(spans)]


def null_odds(span: Span) -> float:
    """Return the logarithm of the odds that a span is not a link, or 0 if it is unknown."""
    if span.link_probability is None:
        return 0.0
    probability = min(max(span.link_probability, LEAST), 1 - LEAST_DOUBT)
    return math.log((1 - probability) / probability)


def _evidence(text: str, span: Span, cased: bool, around: float, inside: float) -> Evidence:
    words = text[span.start : span.end]
    lower, capitals = words == words.lower(), len(words) > 1 and words == words.upper() != words.lower()
    count = len(words.split())
    best = span.choices[0].prior if span.choices else 0.0
    values = (
        null_odds(span),
        span.link_probability is None,
        math.log1p(span.links or 0),
        lower and cased,
        lower and not cased,
        capitals,
        in_headline(text, span.start, span.end),
        span.respelt,
        begins_sentence(text, span.start),
        count == 2,
        count > 2,
        around,
        inside,
        best,
    )
    folded = words.casefold()
    traits = ((float(plain_name(one.title).casefold() == folded), one.lower, float(one.part)) for one in span.choices)
    return Evidence(tuple(map(float, values)), tuple(traits))


def _nested(spans: Sequence[Span]) -> tuple[list[float], list[float]]:
    """Return the greatest link probability of the spans around each span, and of those inside it."""
    around, inside = [0.0] * len(spans), [0.0] * len(spans)
    for outer, one in enumerate(spans):
        for inner in range(outer + 1, len(spans)):
            other = spans[inner]
            if other.start >= one.end:
                break
            if other.end <= one.end:
                _nest(spans, outer, inner, around, inside)
            elif other.start == one.start:
                _nest(spans, inner, outer, around, inside)
    return around, inside


def _nest(spans: Sequence[Span], outer: int, inner: int, around: list[float], inside: list[float]) -> None:
    around[inner] = max(around[inner], spans[outer].sure)
    inside[outer] = max(inside[outer], spans[inner].sure)
