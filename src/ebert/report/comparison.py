"""Differences between two columns, question by question, with paired bootstrap intervals.

Questions are resampled within each relation, as many as it has; the mean over relations is taken of every resample. For
the mean over questions they are resampled from all relations at once, since a handful may come from many relations. A
question's difference in Hits@1 is -1, 0 or 1, so that drawing n questions with replacement is drawing three counts from
a multinomial distribution: thousands of resamples of 40,000 questions take milliseconds, and nothing is approximated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._bootstrap import SEED, Interval, bounds
from ebert.probing.filters import FILTERS
from ebert.report import published
from ebert.report.document import ReportOptions
from ebert.report.plots import Look, looks
from ebert.report.runs import Column, ProbeRun, columns

RESAMPLES = ReportOptions().resamples


@dataclass(frozen=True)
class Comparison:
    """By how much one column is better than another, over the questions that both have."""

    questions: int
    right: tuple[int, int]  # questions that each column has right
    macro: Interval  # relations count the same
    micro: Interval  # questions count the same
    relations: dict[str, Interval]
    gained: dict[str, int]  # by relation: questions that only the first column has right
    lost: dict[str, int]  # by relation: questions that only the second column has right


def compare(
    one: Column,
    other: Column,
    name: str = "all",
    *,
    covered_only: bool = False,
    among: NDArray[np.bool_] | None = None,
    resamples: int = RESAMPLES,
) -> Comparison | None:
    """Compare the Hits@1 of two columns after a filter; none if no question is left.

    `among` narrows the questions of the first column's run.
    """
    here, there = common(one.run, other.run)
    a, b = one.run.outcomes, other.run.outcomes
    kept = a.kept(name)[here] & b.kept(name)[there]
    if covered_only:
        kept &= a.covered[here] & b.covered[there]
    if among is not None:
        kept &= among[here]
    here, there = here[kept], there[kept]
    if not here.size:
        return None
    right, other_right = a.rank[one.mode][here] == 1, b.rank[other.mode][there] == 1
    size = len(a.relations)
    relation = a.relation[here]
    asked = np.bincount(relation, minlength=size)  # (relations,)
    gained = np.bincount(relation[right & ~other_right], minlength=size)
    lost = np.bincount(relation[~right & other_right], minlength=size)
    present = np.flatnonzero(asked)
    asked, gained, lost = asked[present], gained[present], lost[present]
    drawn = _resample(asked, gained, lost, resamples)  # (relations, resamples)
    net = gained - lost
    names = [a.relations[number] for number in present]
    return Comparison(
        questions=int(asked.sum()),
        right=(int(right.sum()), int(other_right.sum())),
        macro=_change((net / asked).mean(), (drawn / asked[:, None]).mean(axis=0)),
        micro=_pooled(int(asked.sum()), int(gained.sum()), int(lost.sum()), resamples),
        relations={
            label: _change(net[row] / asked[row], drawn[row] / asked[row]) for row, label in enumerate(names)
        },
        gained=dict(zip(names, gained.tolist(), strict=True)),
        lost=dict(zip(names, lost.tolist(), strict=True)),
    )  # fmt: skip


def common(one: ProbeRun, other: ProbeRun) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places, in each run, of the questions that both have."""
    if one.ids == other.ids:
        every = np.arange(len(one.ids))
        return every, every
    places = {name: place for place, name in enumerate(other.ids)}
    pairs = [(place, places[name]) for place, name in enumerate(one.ids) if name in places]
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def baseline(column: Column, runs: Sequence[ProbeRun]) -> Column | None:
    """Find plain BERT for a column: of its own run, else of another run, with the same encoder if there is one."""
    if column.mode == "bert":
        return None
    if "bert" in column.run.modes:
        return Column(column.run, "bert")
    others = [run for run in runs if "bert" in run.modes]
    others.sort(key=lambda run: run.encoder != column.run.encoder)  # stable: the first given wins
    return Column(others[0], "bert") if others else None


def pairs(runs: Sequence[ProbeRun]) -> list[tuple[Column, Column]]:
    """Return the columns to compare: modes of a run, the same mode of two runs, others if two runs share none."""
    found: list[tuple[Column, Column]] = []
    for number, run in enumerate(runs):
        modes = sorted(run.modes, key=lambda mode: mode != "bert")
        found += [
            (Column(run, one), Column(run, modes[place])) for place in range(len(modes)) for one in modes[place + 1 :]
        ]
        for earlier in runs[:number]:
            found += _between(run, earlier)
    return list(dict.fromkeys(found))


def _between(run: ProbeRun, earlier: ProbeRun) -> list[tuple[Column, Column]]:
    """Return the columns of two runs to compare; where plain BERT is one of them, the other is held against it."""
    shared = [mode for mode in run.modes if mode in earlier.modes]
    found = [(Column(run, mode), Column(earlier, mode)) for mode in shared]
    for one, other in ((run, earlier), (earlier, run)):
        if "bert" not in one.modes and "bert" in other.modes:
            found += [(Column(one, mode), Column(other, "bert")) for mode in one.modes]
    if not shared:
        known = [(Column(run, m), Column(earlier, n)) for m in run.modes for n in earlier.modes]
        found += [(one, other) for one, other in known if "bert" not in (one.mode, other.mode)]
    return found


def _resample(
    asked: NDArray[np.int64], gained: NDArray[np.int64], lost: NDArray[np.int64], resamples: int
) -> NDArray[np.int64]:
    """Draw the net gain of each relation, many times: (relations, resamples)."""
    rng = np.random.default_rng(SEED)
    drawn = np.empty((len(asked), resamples), dtype=np.int64)
    for row, (n, up, down) in enumerate(zip(asked.tolist(), gained.tolist(), lost.tolist(), strict=True)):
        counts = rng.multinomial(n, [up / n, down / n, max(0.0, (n - up - down) / n)], size=resamples)
        drawn[row] = counts[:, 0] - counts[:, 1]
    return drawn


def _pooled(asked: int, gained: int, lost: int, resamples: int) -> Interval:
    drawn = _resample(np.array([asked]), np.array([gained]), np.array([lost]), resamples)[0]
    return _change((gained - lost) / asked, drawn / asked)


def _change(value: float, drawn: NDArray[np.float64]) -> Interval:
    return Interval(*(round(100 * float(x), 4) + 0.0 for x in (value, *bounds(drawn))))


@dataclass(frozen=True)
class ReportData:
    """The runs of a report with their scores, recomputed from the predictions, by the run's name."""

    runs: Sequence[ProbeRun]
    scores: Mapping[str, Any]
    options: ReportOptions

    @cached_property
    def columns(self) -> list[Column]:
        """All modes of all runs."""
        return columns(self.runs)

    @cached_property
    def looks(self) -> dict[str, Look]:
        """How each column is drawn, by label."""
        return looks(self.columns)

    @property
    def is_lama(self) -> bool:
        """Whether published figures may stand beside ours."""
        return self.runs[0].is_lama

    @property
    def filters(self) -> list[str]:
        """The filters that any run has."""
        return [name for name in FILTERS if any(name in run.filters for run in self.runs)]

    @cached_property
    def relations(self) -> list[str]:
        """All relations, in the order of the runs."""
        return list(dict.fromkeys(name for run in self.runs for name in run.outcomes.relations))

    @cached_property
    def questions(self) -> dict[str, Mapping[str, Any]]:
        """The questions by id, as far as a run has their text; runs over the same questions are read once."""
        found: dict[str, Mapping[str, Any]] = {}
        for run in self.runs:
            if run.has("questions.jsonl") and not all(one in found for one in run.ids):
                found = {**run.questions(), **found}
        return found

    @cached_property
    def without_questions(self) -> list[ProbeRun]:
        """The runs whose questions no run has the text of."""
        return [run for run in self.runs if not any(one in self.questions for one in run.ids)]

    @cached_property
    def changes(self) -> list[tuple[Column, Column, Comparison]]:
        """Every column beside its plain BERT, on all questions."""
        found = []
        for column in self.columns:
            plain = baseline(column, self.runs)
            if plain is not None:
                compared = compare(column, plain, resamples=self.options.resamples)
                if compared is not None:
                    found.append((column, plain, compared))
        return found

    def block(self, column: Column, name: str, *, covered_only: bool = False) -> Mapping[str, Any] | None:
        """Return the scores of a column after a filter; none if the run did not have the filter."""
        found: Mapping[str, Any] | None = self.scores[column.run.name][column.mode].get(name)
        return found["covered_only"] if found is not None and covered_only else found

    def hits(self, column: Column, name: str, *, covered_only: bool = False) -> float | None:
        """Return the mean Hits@1 of a column after a filter."""
        block = self.block(column, name, covered_only=covered_only)
        return block["macro"].get("hits@1") if block else None

    def label(self, relation: str) -> str:
        """Name a relation for people."""
        return published.label(relation, is_lama=self.is_lama)
