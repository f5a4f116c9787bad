"""Differences between two columns, question by question, with paired bootstrap intervals; the data of the sections.

Questions are resampled within each relation, as many as it has; each resample gives a mean over relations. For the mean
over questions they are resampled from all relations at once, since a handful may come from many relations. A question's
difference in Hits@1 is -1, 0 or 1, so that drawing n questions with replacement is drawing three counts from a
multinomial distribution: thousands of resamples of 40,000 questions take milliseconds, and the result is exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._bootstrap import SEED, Interval, bounds
from ebert.probing.filters import FILTERS
from ebert.report import published
from ebert.report.document import ReportOptions
from ebert.report.plots import COLOURS, HATCHES, INK, LINES, MARKERS, Look
from ebert.report.runs import Column, ProbeRun, verified


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
    resamples: int = ReportOptions().resamples,
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
    kind = np.select([right & ~other_right, ~right & other_right], [0, 1], 2)  # gained, lost, as before
    counts = np.zeros((len(a.relations), 3), dtype=np.int64)
    np.add.at(counts, (a.relation[here], kind), 1)
    present = np.flatnonzero(counts.sum(axis=1))
    names, counts = [a.relations[number] for number in present], counts[present]
    net = (counts[:, 0] - counts[:, 1]) / counts.sum(axis=1)  # (relations,)
    drawn = _resample(counts, resamples)  # (relations, resamples)
    pooled = counts.sum(axis=0, keepdims=True)
    return Comparison(
        questions=int(counts.sum()),
        right=(int(right.sum()), int(other_right.sum())),
        macro=_change(net.mean(), drawn.mean(axis=0)),
        micro=_change((pooled[0, 0] - pooled[0, 1]) / counts.sum(), _resample(pooled, resamples)),
        relations={label: _change(net[row], drawn[row]) for row, label in enumerate(names)},
        gained=dict(zip(names, counts[:, 0].tolist(), strict=True)),
        lost=dict(zip(names, counts[:, 1].tolist(), strict=True)),
    )


def _resample(counts: NDArray[np.int64], resamples: int) -> NDArray[np.float64]:
    """Draw the net share of questions gained in each relation, many times: (relations, resamples)."""
    asked = counts.sum(axis=1)[:, None]
    rng = np.random.default_rng(SEED)
    drawn = rng.multinomial(asked, (counts / asked)[:, None], size=(len(counts), resamples))
    share: NDArray[np.float64] = (drawn[..., 0] - drawn[..., 1]) / asked
    return share


def _change(value: float, drawn: NDArray[np.float64]) -> Interval:
    return Interval(*(round(100 * float(x), 4) + 0.0 for x in (value, *bounds(drawn))))


def common(one: ProbeRun, other: ProbeRun) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places, in each run, of the questions that both have."""
    places = {name: place for place, name in enumerate(other.ids)}
    both = [(place, places[name]) for place, name in enumerate(one.ids) if name in places]
    here, there = np.array(both, dtype=np.int64).reshape(-1, 2).T
    return here, there


def baseline(column: Column, runs: Sequence[ProbeRun]) -> Column | None:
    """Find plain BERT for a column: of its own run, else of another run, with the same encoder if there is one."""
    if column.mode == "bert":
        return None
    others = [run for run in runs if "bert" in run.modes]
    others.sort(key=lambda run: (run is not column.run, run.encoder != column.run.encoder))  # else the first given wins
    return Column(others[0], "bert") if others else None


def pairs(runs: Sequence[ProbeRun]) -> list[tuple[Column, Column]]:
    """Return the columns to compare: modes of a run, the same mode of two runs, others if two runs share none."""
    found: list[tuple[Column, Column]] = []
    for number, run in enumerate(runs):
        modes = sorted(run.modes, key=lambda mode: mode != "bert")
        found += [(Column(run, mode), Column(run, earlier)) for earlier, mode in combinations(modes, 2)]
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


@dataclass(frozen=True)
class ReportData:
    """The runs of a report, and the data of its sections."""

    runs: Sequence[ProbeRun]
    options: ReportOptions
    scores: Mapping[ProbeRun, Any]  # recomputed from the predictions
    is_lama: bool  # so that published figures may stand beside ours
    columns: list[Column]  # all modes of all runs
    filters: list[str]  # that any run has
    relations: list[str]  # in the order of the runs
    questions: Mapping[str, Mapping[str, Any]]  # by id, as far as a run has their text
    without_questions: list[ProbeRun]  # whose questions no run has the text of

    @classmethod
    def of(cls, runs: Sequence[ProbeRun], options: ReportOptions) -> "ReportData":
        """Compute scores and read questions; runs over the same questions are read once."""
        questions: dict[str, Mapping[str, Any]] = {}
        for run in runs:
            if not all(one in questions for one in run.ids):
                questions = {**run.questions(), **questions}
        return cls(
            runs, options, {run: verified(run) for run in runs}, runs[0].is_lama,
            [Column(run, mode) for run in runs for mode in run.modes],
            [name for name in FILTERS if any(name in run.filters for run in runs)],
            list(dict.fromkeys(name for run in runs for name in run.outcomes.relations)),
            questions, [run for run in runs if not any(one in questions for one in run.ids)],
        )  # fmt: skip

    @cached_property
    def looks(self) -> dict[Column, Look]:
        """How each column is drawn: plain BERT in the colour of the text, each other column in its own colour."""
        others = [column for column in self.columns if column.mode != "bert"]
        colours = {column: COLOURS[number % len(COLOURS)] for number, column in enumerate(others)}
        found = {}
        for column in self.columns:
            run = self.runs.index(column.run)
            marks = MARKERS.get(column.mode, "D"), LINES[run % len(LINES)], HATCHES[run % len(HATCHES)]
            found[column] = Look(colours.get(column, INK), *marks)
        return found

    @cached_property
    def changes(self) -> list[tuple[Column, Column, Comparison]]:
        """Every column beside its plain BERT, on all questions."""
        plain = {column: baseline(column, self.runs) for column in self.columns}
        found = [(column, other, self.compare(column, other)) for column, other in plain.items() if other]
        return [(column, other, compared) for column, other, compared in found if compared]

    def compare(self, one: Column, other: Column, name: str = "all", **among: Any) -> Comparison | None:
        """Compare two columns with as many resamples as were asked for."""
        return compare(one, other, name, resamples=self.options.resamples, **among)

    def block(self, column: Column, name: str, *, covered_only: bool = False) -> Mapping[str, Any]:
        """Return the scores of a column after a filter; empty if the run did not have the filter."""
        found: Mapping[str, Any] = self.scores[column.run][column.mode].get(name, {})
        return found.get("covered_only", {}) if covered_only else found

    def hits(self, column: Column, name: str, *, covered_only: bool = False) -> float | None:
        """Return the mean Hits@1 of a column after a filter."""
        hits: float | None = self.block(column, name, covered_only=covered_only).get("macro", {}).get("hits@1")
        return hits

    def label(self, relation: str) -> str:
        """Name a relation for people."""
        return published.label(relation, is_lama=self.is_lama)
