"""What a classifier is worth on a labelled file."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io import files
from ebert._io.progress import progress
from ebert.errors import EbertError
from ebert.finetuning.folder import RUN
from ebert.relations.classifier import RelationClassifier
from ebert.relations.data import Sample, check_labels
from ebert.relations.folder import MODEL, WEIGHTS
from ebert.relations.resolving import Coverage
from ebert.relations.scores import Scores, confusion, scores

EVALUATIONS, ANSWERS = "evaluations", ".predictions.jsonl"  # in a run: what it was worth on which file


@dataclass(frozen=True)
class Evaluation:
    """The answers of a classifier on samples with labels."""

    labels: tuple[str, ...]
    gold: NDArray[np.int64]  # (samples,)
    given: NDArray[np.int64]
    probability: NDArray[np.float64]
    """Of the answer that was given."""
    vectors: NDArray[np.int64]
    """How many of the two entities have vectors."""
    coverage: Coverage
    shortened: int = 0

    @property
    def table(self) -> NDArray[np.int64]:
        """How often which relation (column) was given for which (row)."""
        return confusion(self.gold, self.given, len(self.labels))

    @property
    def scores(self) -> Scores:
        """Precision, recall and F1 by relation."""
        return scores(self.table)

    def as_json(self) -> dict[str, Any]:
        """Give what ``ebert relations evaluate --json`` prints."""
        found = self.scores
        return {
            "macro": found.macro(),
            "samples": len(self.gold),
            "covered": int((self.vectors == 2).sum()),
            "accuracy": 100 * float((self.gold == self.given).mean()),
            "coverage": self.coverage.as_json(),
            "shortened": self.shortened,
            "relations": {
                label: {
                    "precision": 100 * float(found.precision[row]),
                    "recall": 100 * float(found.recall[row]),
                    "f1": 100 * float(found.f1[row]),
                    "samples": int(found.support[row]),
                }
                for row, label in enumerate(self.labels)
            },
        }

    def keep(self, run: Path, data: Path) -> None:
        """Write the figures, and the answers without the text, into a run: what of, by which weights, how well."""
        folder = run / EVALUATIONS
        folder.mkdir(exist_ok=True)
        with files.replacing(folder / f"{data.stem}{ANSWERS}", "w") as file:
            for row, (gold, given) in enumerate(zip(self.gold, self.given, strict=True)):
                line = {
                    "label": self.labels[gold],
                    "given": self.labels[given],
                    "probability": round(float(self.probability[row]), 6),
                    "vectors": int(self.vectors[row]),
                }
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        facts = {
            "data": {"file": data.name, "sha256": files.sha256(data), "samples": len(self.gold)},
            "weights_sha256": files.sha256(run / MODEL / WEIGHTS),
        }
        files.write_json(folder / f"{data.stem}.json", {**self.as_json(), **facts})


def see_complete(run: Path) -> None:
    """Complain if something is not a complete run, whose best classifier does not change any more."""
    info = files.read_json(run / RUN, "a run of 'ebert relations train'")
    if not info.get("complete"):
        raise EbertError(f"{run} is not complete; give the command that made it again, and then evaluate it")


def evaluate(classifier: RelationClassifier, samples: list[Sample], *, budget: int | None = None) -> Evaluation:
    """Classify samples that have labels."""
    check_labels(samples, classifier.labels)
    number = {label: index for index, label in enumerate(classifier.labels)}
    prepared = classifier.inputs.prepare(samples)
    with progress("evaluating", total=len(samples), unit="samples") as advance:
        rows = classifier.probabilities(prepared, budget=budget, advance=advance)
    table = np.stack([row.numpy() for row in rows]).astype(np.float64)  # (samples, relations)
    return Evaluation(
        labels=classifier.labels,
        gold=np.array([number[str(sample.label)] for sample in samples]),
        given=table.argmax(axis=1),
        probability=table.max(axis=1),
        vectors=np.array([sum(title is not None for title in one.entities) for one in prepared]),
        coverage=classifier.inputs.resolver.coverage(samples),
        shortened=sum(one.shortened for one in prepared),
    )
