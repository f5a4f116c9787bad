"""Hits@1 by relation and over relations, the error of a gain, and a choice among variants with cross-validation."""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ebert.probing.filters import string_match
from ebert.probing.questions import Question


@dataclass(frozen=True)
class Score:
    """Hits@1 in per cent, by relation and as the mean over relations."""

    all: float
    filtered: float
    relations: dict[str, dict[str, float]]

    def over(self, relations: Iterable[str], column: str = "filtered") -> float:
        """Return the mean over some relations."""
        return mean(self.relations[name][column] for name in relations if column in self.relations[name])


def mean(values: Iterable[float]) -> float:
    """Return the mean, or NaN if there are no values."""
    found = list(values)
    return sum(found) / len(found) if found else math.nan


def score(questions: Sequence[Question], answers: Sequence[str]) -> Score:
    """Count hits."""
    hits: dict[str, dict[str, list[float]]] = {}
    for question, answer in zip(questions, answers, strict=True):
        own = hits.setdefault(question.relation, {"all": [], "filtered": []})
        own["all"].append(100.0 * (answer == question.answers[0]))
        if not string_match(question):
            own["filtered"].append(own["all"][-1])
    relations = {}
    for name, own in hits.items():
        relations[name] = {
            "questions": len(own["all"]),
            "all": mean(own["all"]),
            "filtered questions": len(own["filtered"]),
        }
        if own["filtered"]:
            relations[name]["filtered"] = mean(own["filtered"])
    macro = {column: mean(own[column] for own in relations.values() if column in own) for column in ("all", "filtered")}
    return Score(macro["all"], macro["filtered"], relations)


def gain_error(questions: Sequence[Question], answers: Sequence[str], base: Sequence[str]) -> float:
    """Return the standard error of the filtered gain over `base`, question by question, relations as strata."""
    gains: dict[str, list[float]] = {}
    for question, answer, before in zip(questions, answers, base, strict=True):
        if not string_match(question):
            gain = 100.0 * ((answer == question.answers[0]) - (before == question.answers[0]))
            gains.setdefault(question.relation, []).append(gain)
    variances = []
    for own in gains.values():
        middle = mean(own)
        variances.append(mean((gain - middle) ** 2 for gain in own) / len(own))
    return math.sqrt(sum(variances)) / len(variances) if variances else math.nan


def halves(relations: Iterable[str]) -> tuple[list[str], list[str]]:
    """Split relations in two, always in the same way."""
    order = sorted(relations, key=lambda name: hashlib.sha256(f"half/{name}".encode()).hexdigest())
    return sorted(order[::2]), sorted(order[1::2])


def tune(scores: Mapping[str, Score]) -> dict[str, Any]:
    """Choose the best of several alignments on one half of the relations, report on the other, swap, average."""
    one, other = halves(next(iter(scores.values())).relations)
    picks: list[dict[str, Any]] = []
    for seen, unseen in ((one, other), (other, one)):
        best = max(scores, key=lambda name: scores[name].over(seen))
        figures = {column: scores[best].over(unseen, column) for column in ("all", "filtered")}
        picks.append({"chosen": best, "chosen on": seen, "there": scores[best].over(seen), **figures})
    means = {column: mean(float(pick[column]) for pick in picks) for column in ("all", "filtered")}
    return {**means, "halves": picks}
