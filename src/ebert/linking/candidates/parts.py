"""Parts of longer names: a text that has named Brian Kemp may call him Kemp, whatever else that word means elsewhere.

The first or the last word of a name of several words, wherever else it stands in the text, may mean what the name
means. It gets the candidates of the name. The more often the word is a link by itself, the smaller the prior: "England"
is hardly ever the Bank of England, but "Kemp" mostly is the person who was named.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ebert.linking.candidates.words import begins_sentence
from ebert.linking.document import Choice, Span

RATE = 0.3  # how often a word means the longer name that it is part of; a judgement
LEAST_SURE = 0.1  # the least link probability of a longer name
LEAST_PRIOR = 0.2  # the least prior of what a longer name means
MOST = 2  # meanings of a longer name
SHORTEST = 3  # letters
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_APOSTROPHES = "'’"


def with_parts(text: str, spans: Sequence[Span], is_common: Callable[[str], bool]) -> list[Span]:
    """Return the spans of a text, sorted, with the candidates that their words have as parts of longer names.

    A word that `is_common` (The, New) is never a first part, and no part at all at the start of a sentence (Airlines).
    """
    means: dict[str, dict[str, float]] = {}  # what words mean as parts, and how likely the longer name means it
    longer: list[tuple[int, int]] = []
    for span in spans:
        words = _WORD.findall(text, span.start, span.end)
        if len(words) < 2 or span.sure < LEAST_SURE:
            continue
        longer.append((span.start, span.end))
        if "," not in text[span.start : span.end] and all(word[0].isupper() or word[0].isdigit() for word in words):
            first = words[:1] if len(words) == 2 and not is_common(words[0]) else []
            for word in (*first, words[-1]):
                if len(word) >= SHORTEST and word[0].isupper():
                    own = means.setdefault(word, {})
                    own |= {
                        c.title: max(c.prior, own.get(c.title, 0.0))
                        for c in span.choices[:MOST]
                        if c.prior >= LEAST_PRIOR
                    }
    if not any(means.values()):
        return list(spans)
    known = {(span.start, span.end): span for span in spans}
    for place in _places(text, means, longer):
        word = text[slice(*place)]
        if begins_sentence(text, place[0]) and is_common(word):
            continue
        known[place] = _with(known.get(place) or Span(*place, (), 0.0, 0), means[word])
    return [known[place] for place in sorted(known)]


def _places(
    text: str, means: dict[str, dict[str, float]], longer: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield the places of words that are parts, except those inside a longer name."""
    starts = [start for start, _ in longer]
    reach = 0
    reaches = [reach := max(reach, end) for _, end in longer]
    for found in _WORD.finditer(text):
        start, end = found.span()
        if not means.get(found[0]) or (start > 1 and text[start - 1] in _APOSTROPHES and text[start - 2].isalnum()):
            continue
        before = bisect_right(starts, start)
        if not before or reaches[before - 1] < end:
            yield start, end


def _with(span: Span, meant: dict[str, float]) -> Span:
    """Return a span with more candidates, or with its own marked as parts."""
    weights = {choice.title: choice.prior * span.sure for choice in span.choices}
    lower = {choice.title: choice.lower for choice in span.choices}
    for title, share in meant.items():
        weights[title] = weights.get(title, 0.0) + RATE * share
    total = sum(weights.values())
    best = sorted(weights, key=lambda title: (-weights[title], title))
    choices = tuple(Choice(title, weights[title] / total, lower.get(title, 0.0), title in meant) for title in best)
    if span.link_probability is None:  # an added entity always counts
        return replace(span, choices=choices)
    return replace(span, choices=choices, link_probability=1 - (1 - span.sure) * (1 - RATE))
