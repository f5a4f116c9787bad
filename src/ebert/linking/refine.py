"""Iterative refinement (Section 5.2): the surest spans are linked first, and help with the others as entities.

Of J rounds, round j links the best ``k = ceil(j (m + n) / J) - m`` spans, where m spans are linked already and n of the
others have an entity as their best answer; the surest are those with the smallest probability of the null entity.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log

from ebert.linking.sequences import Chunk, Placed

TINY = 1e-30  # a probability, so that it has a logarithm


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the model says about a span: the scores and probabilities of the null entity and of every candidate."""

    placed: Placed
    scores: tuple[float, ...]  # the null entity's first
    probabilities: tuple[float, ...]

    @classmethod
    def of(cls, placed: Placed, scores: Sequence[float], probabilities: Sequence[float]) -> "Verdict":
        """Take the part of two rows that is about a span's own candidates."""
        size = 1 + len(placed.span.choices)
        return cls(placed, tuple(scores[:size]), tuple(probabilities[:size]))

    @property
    def best(self) -> int:
        """The most likely candidate, by number."""
        return max(range(len(self.probabilities) - 1), key=lambda number: self.probabilities[number + 1])

    @property
    def entity(self) -> str:
        """The most likely candidate, by title."""
        return self.placed.span.choices[self.best].title

    @property
    def null(self) -> float:
        """The probability that it names no entity."""
        return self.probabilities[0]

    @property
    def linked(self) -> bool:
        """Whether an entity is the most likely answer."""
        return self.probabilities[1 + self.best] > self.null

    @property
    def worth(self) -> float:
        """The logarithm of the odds of its entity against no entity."""
        return log(max(self.probabilities[1 + self.best], TINY)) - log(max(self.null, TINY))

    def shifted(self, shift: float) -> "Verdict":
        """Return the verdict with `shift` added to the score of the null entity."""
        odds = exp(shift)
        total = 1 + (odds - 1) * self.null
        shares = (self.null * odds / total, *(one / total for one in self.probabilities[1:]))
        return replace(self, scores=(self.scores[0] + shift, *self.scores[1:]), probabilities=shares)


@dataclass(slots=True)
class ChunkState:
    """The state of a chunk: what is linked, and what is still open."""

    chunk: Chunk
    decoded: dict[Placed, Verdict] = field(default_factory=dict)

    @property
    def open(self) -> list[Placed]:
        """The spans that do not overlap a linked one."""
        return [p for p in self.chunk.spans if not any(p.overlaps(other) for other in self.decoded)]

    @property
    def titles(self) -> dict[Placed, str]:
        """The linked spans and their entities."""
        return {placed: verdict.entity for placed, verdict in self.decoded.items()}


Judge = Callable[[Sequence[ChunkState]], list[list[Verdict]]]  # judges all open spans of each state


def quota(round_: int, rounds: int, linked: int, more: int) -> int:
    """Return k, the number of spans that a round links: `linked` is m, `more` is n."""
    return -(-round_ * (linked + more) // rounds) - linked  # the ceiling, without floating point


def choose(verdicts: Iterable[Verdict], most: int, *, together: bool = False) -> list[Verdict]:
    """Return the surest spans, at most `most`, without overlaps; of equals the first, and the longer one.

    With `together` they come from the likeliest set of spans without overlaps.
    """
    chosen: list[Verdict] = []
    verdicts = best_set(list(verdicts)) if together else verdicts
    for one in sorted(verdicts, key=lambda v: (v.null, v.placed.first, -v.placed.stop)):
        if len(chosen) >= most:
            break
        if not any(one.placed.overlaps(other.placed) for other in chosen):
            chosen.append(one)
    return chosen


def best_set(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the set of spans without overlaps whose links together are the likeliest.

    A span is worth the logarithm of the odds of its entity against no entity (weighted interval scheduling).
    """
    ordered = sorted(verdicts, key=lambda one: (one.placed.stop, one.placed.first))
    stops = [one.placed.stop for one in ordered]
    best: list[tuple[float, Verdict | None, int]] = [
        (0.0, None, 0)
    ]  # of the first n: worth, the last one, the n before
    for number, one in enumerate(ordered):
        before = bisect_right(stops, one.placed.first, 0, number)
        worth = best[before][0] + one.worth
        best.append((worth, one, before) if worth > best[-1][0] else (best[-1][0], None, number))
    chosen: list[Verdict] = []
    number = len(ordered)
    while number:
        _, last, number = best[number]
        chosen += [last] if last else []
    return chosen[::-1]


def refine(
    chunks: Sequence[Chunk], judge: Judge, *, rounds: int, always: bool = False, together: bool = False
) -> list[list[ChunkState]]:
    """Link the spans of chunks in rounds; return the states after each round that had something to link.

    With `always` every span names an entity, as mentions are given. For `together` see `choose`.
    """
    states = [ChunkState(chunk) for chunk in chunks]
    steps: list[list[ChunkState]] = []
    for round_ in range(1, rounds + 1):
        states = [ChunkState(state.chunk, dict(state.decoded)) for state in states]
        waiting = [state for state in states if state.open]
        if not waiting:
            break
        for state, verdicts in zip(waiting, judge(waiting), strict=True):
            candidates = [verdict for verdict in verdicts if always or verdict.linked]
            most = quota(round_, rounds, len(state.decoded), len(candidates))
            state.decoded.update(
                {one.placed: one for one in choose(candidates, most, together=together and not always)}
            )
        steps.append(states)
    return steps or [states]
