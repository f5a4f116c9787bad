"""How ready a linker is to link: what is added to the null entity's score, chosen on the dev set.

A linker that is trained to be right span by span links where that is likelier than not. F1 asks for more links than
that when many are doubtful: the best threshold is about half the F1 that can be reached. The shift is found by decoding
the same scores of the dev set again and again, so that the encoder runs once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from ebert.linking.document import Document
from ebert.linking.evaluating import Counts, Same, score
from ebert.linking.linker import WINDOW, Linker
from ebert.linking.refinement import Judged, State, choose
from ebert.model.batching import windows
from ebert.text import Mention

SHIFTS = tuple(step / 4 for step in range(-16, 17))  # from -4 to 4: a factor of 55 on the odds


@dataclass(frozen=True, slots=True)
class Tuned:
    """The shift with the best micro F1, and what it gives."""

    shift: float
    counts: Counts


def tune(linker: Linker, documents: Sequence[Document], *, same: Same = str, shift: bool = True) -> Tuned:
    """Link documents in one round and find the shift that gives the best micro F1; without `shift` it stays zero."""
    totals = {number: Counts() for number in (SHIFTS if shift else (0.0,))}
    for window in windows(documents, WINDOW):
        states = [State(chunk) for chunk in linker.chunks(window)]
        verdicts = linker.judge(states, shift=0.0)
        for number in totals:
            links: list[list[Mention]] = [[] for _ in window]
            for state, judged in zip(states, verdicts, strict=True):
                links[state.chunk.document] += _links(judged, number)
            for document, own in zip(window, links, strict=True):
                totals[number] += score(document, sorted(own, key=lambda link: link.start), same=same).counts
    best = max(totals, key=lambda number: (totals[number].f1, -abs(number)))
    return Tuned(best, totals[best])


def shifted(judged: Judged, shift: float) -> Judged:
    """Give a verdict with another score of the null entity."""
    null, *others = judged.scores
    odds = exp(shift)
    total = 1 + (odds - 1) * judged.probabilities[0]
    first, *rest = judged.probabilities
    return Judged(judged.placed, (null + shift, *others), (first * odds / total, *(one / total for one in rest)))


def _links(judged: Sequence[Judged], shift: float) -> list[Mention]:
    linked = [one for one in (shifted(verdict, shift) for verdict in judged) if one.linked]
    chosen = choose(linked, len(linked))
    return [Mention(one.placed.span.start, one.placed.span.end, one.entity) for one in chosen]
