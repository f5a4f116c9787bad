"""Scores of a probing run: Hits@k, mean reciprocal rank and the answer's probability, by mode, filter and relation.

This is the one place that computes them: a run writes `metrics.json` with it, and a report computes them again from the
predictions and compares. It needs numpy only. As in Section 4.3 of the paper, questions are averaged within relations
first, then relations (`macro`); the mean over all questions is there too (`micro`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.probing.filters import FILTERS, check_filters

TOP = 100  # the largest k of Hits@k
NAMES = (*(f"hits@{k}" for k in range(1, TOP + 1)), "mrr", "probability")
DECIMALS = 4


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What happened to every question of a run, as columns."""

    relations: tuple[str, ...]  # in the order in which they first come
    relation: NDArray[np.int32]  # (questions,) number of the relation
    covered: NDArray[np.bool_]  # (questions,) whether the subject has a vector
    dropped: NDArray[np.int8]  # (questions,) place of the filter that took it out, 0 if none did
    rank: Mapping[str, NDArray[np.int32]]  # by mode: (questions,) 1 is best
    probability: Mapping[str, NDArray[np.float64]]  # by mode: (questions,) of the answer, 0 to 1

    @classmethod
    def read(cls, rows: Iterable[Mapping[str, Any]], modes: Sequence[str]) -> "Outcomes":
        """Read the columns from the rows of `predictions.jsonl`."""
        known, relations = [one.rule for one in FILTERS.values()], dict[str, int]()
        relation, covered, dropped = [], [], []
        rank: dict[str, list[int]] = {mode: [] for mode in modes}
        probability: dict[str, list[float]] = {mode: [] for mode in modes}
        for number, row in enumerate(rows, 1):
            try:
                relation.append(relations.setdefault(row["relation"], len(relations)))
                covered.append(bool(row["covered"]))
                dropped.append(known.index(row["dropped"]))
                for mode in modes:
                    answer = row["modes"][mode]
                    rank[mode].append(int(answer["rank"]))
                    probability[mode].append(float(answer["probability"]))
                    if rank[mode][-1] < 1:
                        raise ValueError(f"a rank of {rank[mode][-1]}")
            except (KeyError, TypeError, ValueError) as error:
                what = f"no {error}" if isinstance(error, KeyError) else str(error)
                raise EbertError(f"row {number} of the predictions is damaged ({what}); probe again") from None
        return cls(
            tuple(relations), np.array(relation, np.int32), np.array(covered, np.bool_), np.array(dropped, np.int8),
            {mode: np.array(values, np.int32) for mode, values in rank.items()},
            {mode: np.array(values, np.float64) for mode, values in probability.items()},
        )  # fmt: skip

    def of(self, relation: str) -> NDArray[np.bool_]:
        """Return which questions are of a relation: (questions,)."""
        return self.relation == (self.relations.index(relation) if relation in self.relations else -1)

    def kept(self, name: str) -> NDArray[np.bool_]:
        """Return which questions a filter leaves: (questions,)."""
        check_filters([name])
        last = list(FILTERS).index(name)  # its rule and those of the filters before it count
        kept: NDArray[np.bool_] = (self.dropped == 0) | (self.dropped > last)
        return kept


def metrics(rows: Iterable[Mapping[str, Any]], modes: Sequence[str], filters: Sequence[str]) -> dict[str, Any]:
    """Compute the object "modes" of `metrics.json` from the rows of `predictions.jsonl`."""
    return score(Outcomes.read(rows, modes), filters)


def score(outcomes: Outcomes, filters: Sequence[str]) -> dict[str, Any]:
    """Compute all scores in percent, by mode and filter, over all questions and over those with a vector."""
    scores: dict[str, Any] = {}
    for mode in outcomes.rank:
        scores[mode] = {}
        for name in filters:
            kept = outcomes.kept(name)
            scores[mode][name] = _block(outcomes, mode, kept)
            scores[mode][name]["covered_only"] = _block(outcomes, mode, kept & outcomes.covered)
    return scores


def _block(outcomes: Outcomes, mode: str, kept: NDArray[np.bool_]) -> dict[str, Any]:
    """Score the questions that are kept."""
    count = len(outcomes.relations)
    relation = outcomes.relation[kept]
    questions = np.bincount(relation, minlength=count)  # (relations,)
    covered = np.bincount(relation, weights=outcomes.covered[kept], minlength=count).astype(int)
    sums = _sums(relation, outcomes.rank[mode][kept], outcomes.probability[mode][kept], count)
    asked = np.flatnonzero(questions)
    means = 100 * sums[asked] / questions[asked, None]  # (relations with questions, scores)
    total = int(questions.sum())
    return {
        "macro": _named(means.mean(axis=0)) if total else {},
        "micro": _named(100 * sums.sum(axis=0) / total) if total else {},
        "questions": total,
        "covered": int(covered.sum()),
        "relations": {
            outcomes.relations[number]: {
                "questions": int(questions[number]),
                "covered": int(covered[number]),
                **_named(row),
            }
            for number, row in zip(asked, means, strict=True)
        },
    }


def _sums(
    relation: NDArray[np.int32], rank: NDArray[np.int32], probability: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    """Add up the scores of the questions of each relation: (relations, scores)."""
    sums = np.zeros((count, len(NAMES)))
    inside = rank <= TOP
    cells = relation[inside].astype(np.int64) * TOP + rank[inside] - 1
    sums[:, :TOP] = np.bincount(cells, minlength=count * TOP).reshape(count, TOP).cumsum(axis=1)
    sums[:, TOP] = np.bincount(relation, weights=1 / rank, minlength=count)
    sums[:, TOP + 1] = np.bincount(relation, weights=probability, minlength=count)
    return sums


def _named(values: NDArray[np.float64]) -> dict[str, float]:
    return dict(zip(NAMES, np.round(values, DECIMALS).tolist(), strict=True))
