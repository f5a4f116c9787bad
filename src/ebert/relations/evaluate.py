"""What a classifier is worth on a labelled file, and how certain that is.

Precision, recall and F1 are macro averages in percent, as scikit-learn computes them: the mean over relations. Their
intervals come from a bootstrap over the samples, paired for the difference of two runs.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._bootstrap import SEED, Interval, bounds
from ebert._io import files
from ebert._io.progress import progress
from ebert.errors import EbertError
from ebert.finetuning.folder import MODEL, WEIGHTS
from ebert.finetuning.run import RUN
from ebert.relations.classifier import RelationClassifier
from ebert.relations.data import Sample, check_labels

EVALUATIONS, ANSWERS = "evaluations", ".predictions.jsonl"  # in a run: what it was worth on which file
RESAMPLES = 1000

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Scores:
    """Precision, recall and F1 of every relation, as shares, and how often each occurs."""

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]
    support: Numbers
    given: Numbers
    """How often each was the classifier's answer."""

    def macro(self) -> dict[str, float]:
        """Return the means over the relations that occur or were given, in percent."""
        present = (self.support > 0) | (self.given > 0)
        return {
            name: 100 * float(getattr(self, name)[present].mean()) if present.any() else 0.0
            for name in ("precision", "recall", "f1")
        }


def confusion(gold: Sequence[int] | Numbers, given: Sequence[int] | Numbers, relations: int) -> Numbers:
    """Count, for each true relation (row), how often each relation (column) was given."""
    pairs = np.asarray(gold, np.int64) * relations + np.asarray(given, np.int64)
    return np.bincount(pairs, minlength=relations * relations).reshape(relations, relations)


def scores(table: Numbers) -> Scores:
    """Score a table of confusions. A relation that is never given has precision 0, as usual."""
    right = np.diagonal(table).astype(np.float64)
    support, given = table.sum(axis=1), table.sum(axis=0)
    f1 = 2 * right / np.maximum(support + given, 1)
    return Scores(right / np.maximum(given, 1), right / np.maximum(support, 1), f1, support, given)


@dataclass(frozen=True)
class RelationEvaluation:
    """The answers of a classifier on samples with labels."""

    labels: tuple[str, ...]
    gold: Numbers  # (samples,)
    given: Numbers
    probability: NDArray[np.float64]
    """Of the answer that was given."""
    vectors: Numbers
    """How many of the two entities have vectors."""
    coverage: dict[str, Any]
    shortened: int = 0

    @property
    def table(self) -> Numbers:
        """How often which relation (column) was given for which (row)."""
        return confusion(self.gold, self.given, len(self.labels))

    @property
    def scores(self) -> Scores:
        """Precision, recall and F1 by relation."""
        return scores(self.table)

    def as_json(self) -> dict[str, Any]:
        """Return what ``ebert relations evaluate --json`` prints."""
        found = self.scores
        return {
            "macro": found.macro(),
            "samples": len(self.gold),
            "covered": int((self.vectors == 2).sum()),
            "accuracy": 100 * float((self.gold == self.given).mean()),
            "coverage": self.coverage,
            "shortened": self.shortened,
            "relations": {
                label: {
                    **{name: 100 * float(getattr(found, name)[row]) for name in ("precision", "recall", "f1")},
                    "samples": int(found.support[row]),
                }
                for row, label in enumerate(self.labels)
            },
        }

    def keep(self, run: Path, data: Path) -> None:
        """Write the figures, and the answers without the text, into a run: what of, by which weights, how well."""
        folder = run / EVALUATIONS
        folder.mkdir(exist_ok=True)
        answers = zip(self.gold, self.given, self.probability, self.vectors, strict=True)
        with files.replacing(folder / f"{data.stem}{ANSWERS}", "w") as file:
            for gold, given, probability, vectors in answers:
                line = {
                    "label": self.labels[gold],
                    "given": self.labels[given],
                    "probability": round(float(probability), 6),
                    "vectors": int(vectors),
                }
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        facts = {
            "data": {"file": data.name, "sha256": files.sha256(data), "samples": len(self.gold)},
            "weights_sha256": files.sha256(run / MODEL / WEIGHTS),
        }
        files.write_json(folder / f"{data.stem}.json", {**self.as_json(), **facts})


def check_complete(run: Path) -> None:
    """Raise an error if something is not a complete run, whose best classifier does not change any more."""
    info = files.read_json(run / RUN, "a run of 'ebert relations train'")
    if not info.get("complete"):
        raise EbertError(f"{run} is not complete; run the command that made it again, and then evaluate it")


def evaluate(classifier: RelationClassifier, samples: list[Sample], *, budget: int | None = None) -> RelationEvaluation:
    """Classify samples that have labels."""
    check_labels(samples, classifier.labels)
    number = {label: index for index, label in enumerate(classifier.labels)}
    prepared = classifier.inputs.prepare(samples)
    with progress("evaluating", total=len(samples), unit="samples") as advance:
        rows = classifier.probabilities(prepared, budget=budget, advance=advance)
    table = np.stack([row.numpy() for row in rows]).astype(np.float64)  # (samples, relations)
    return RelationEvaluation(
        labels=classifier.labels,
        gold=np.array([number[str(sample.label)] for sample in samples]),
        given=table.argmax(axis=1),
        probability=table.max(axis=1),
        vectors=np.array([sum(title is not None for title in one.entities) for one in prepared]),
        coverage=classifier.inputs.resolver.coverage(samples),
        shortened=sum(one.shortened for one in prepared),
    )


# Intervals


def macro_f1(gold: Numbers, given: Numbers, relations: int, *, resamples: int = RESAMPLES) -> Interval:
    """Return a macro F1 in percent with its interval."""
    return _interval(gold, resamples, relations, lambda weights: _f1(gold, given, relations, weights))


def difference(gold: Numbers, one: Numbers, other: Numbers, relations: int, *, resamples: int = RESAMPLES) -> Interval:
    """Return by how many points the macro F1 of one run is above that of another on the same samples."""
    if not len(gold) == len(one) == len(other):
        raise EbertError("two runs can be compared only on the same samples")

    def apart(weights: NDArray[np.float64]) -> float:
        return _f1(gold, one, relations, weights) - _f1(gold, other, relations, weights)

    return _interval(gold, resamples, relations, apart)


def _interval(
    gold: Numbers, resamples: int, relations: int, figure: Callable[[NDArray[np.float64]], float]
) -> Interval:
    """Return a figure with its interval. `figure` takes how often each sample was drawn, always the same draws.

    Samples are drawn with replacement within each relation, as many as it has.
    """
    random = np.random.default_rng(SEED)
    groups = [np.flatnonzero(gold == relation) for relation in range(relations)]
    drawn = []
    for _ in range(resamples):
        picks = [group[random.integers(len(group), size=len(group))] for group in groups if len(group)]
        drawn.append(figure(np.bincount(np.concatenate(picks), minlength=len(gold)).astype(np.float64)))
    return Interval(figure(np.ones(len(gold))), *bounds(drawn))


def _f1(gold: Numbers, given: Numbers, relations: int, weights: NDArray[np.float64]) -> float:
    pairs = np.bincount(gold * relations + given, weights=weights, minlength=relations * relations)
    return scores(np.rint(pairs).astype(np.int64).reshape(relations, relations)).macro()["f1"]
