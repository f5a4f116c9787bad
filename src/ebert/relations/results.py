"""Reading runs for a report: what they are, their learning curve, and their answers on a split."""

import json
import lzma
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert import files
from ebert.errors import EbertError
from ebert.relations.variants import VARIANTS

SPLITS = ("dev", "test")
FEWREL = 80  # relations


@dataclass(frozen=True)
class Answers:
    """What a run answered on a split, in the order of its file."""

    gold: NDArray[np.int64]
    given: NDArray[np.int64]
    vectors: NDArray[np.int64]
    """How many of the two entities have vectors."""


@dataclass(frozen=True)
class Run:
    """A run as a report sees it."""

    folder: Path
    info: dict[str, Any]
    metrics: dict[str, Any]
    labels: tuple[str, ...]
    splits: dict[str, Answers]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.folder.resolve().name

    @property
    def mode(self) -> str:
        """Which variant it is."""
        return str(self.info["mode"])

    def title(self, label: str) -> str:
        """Give a relation's name beside its label, where known."""
        name = (self.info.get("names") or {}).get(label)
        return f"{label} {name}" if name else label


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read complete runs that classify the same relations and have been evaluated on a split that all have."""
    runs = [_read(folder) for folder in folders]
    for run in runs[1:]:
        if run.labels != runs[0].labels:
            raise EbertError(f"{runs[0].folder} and {run.folder} have other relations; report them one by one")
        for split in run.splits.keys() & runs[0].splits.keys():
            if not np.array_equal(run.splits[split].gold, runs[0].splits[split].gold):
                raise EbertError(f"{runs[0].folder} and {run.folder} were evaluated on other {split} samples")
    if not any(all(split in run.splits for run in runs) for split in SPLITS):
        raise EbertError(
            "the runs have no evaluation in common; make them with 'ebert relations evaluate RUN DATA/test.json --keep'"
        )
    return runs


@cache
def published() -> dict[str, list[float | None]]:
    """Give the paper's figures by model: precision, recall and F1 on dev and on test."""
    text = (resources.files("ebert.relations") / "published.json").read_text(encoding="utf-8")
    models: dict[str, list[float | None]] = json.loads(text)["models"]
    return models


def is_fewrel(run: Run) -> bool:
    """Tell whether a run is about FewRel, whose 80 relations have Wikidata's numbers."""
    return len(run.labels) == FEWREL and all(re.fullmatch(r"P[0-9]+", label) for label in run.labels)


def published_for(run: Run, split: str) -> list[float | None]:
    """Give precision, recall and F1 that the paper has for a run's variant, on a split."""
    if not is_fewrel(run):
        return [None] * 3
    row = published()[VARIANTS[run.mode].published]
    return row[:3] if split == "dev" else row[3:]


def _read(folder: Path) -> Run:
    info = files.read_json(folder / "run.json", "a run of 'ebert relations train'")
    if info.get("kind") != "relations":
        raise EbertError(f"{folder} is not a run of 'ebert relations train'")
    if not info.get("complete"):
        raise EbertError(f"{folder} is not complete; give the command that made it again")
    try:
        labels = tuple(info["labels"])
        number = {label: index for index, label in enumerate(labels)}
        splits = {split: rows for split in SPLITS if (rows := _answers(folder, split, number)) is not None}
        return Run(folder, info, files.read_json(folder / "metrics.json", "a complete run"), labels, splits)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, EbertError):
            raise
        raise EbertError(f"{folder} is damaged ({error}); evaluate or train it again") from None


def _answers(folder: Path, split: str, number: dict[str, int]) -> Answers | None:
    path = folder / f"{split}.predictions.jsonl"
    packed = path.with_name(f"{path.name}.xz")
    if path.is_file():
        text = path.read_text(encoding="utf-8")
    elif packed.is_file():
        text = lzma.decompress(packed.read_bytes()).decode()
    else:
        return None
    rows = [json.loads(line) for line in text.splitlines()]
    columns = [[number[row["label"]] for row in rows], [number[row["given"]] for row in rows]]
    return Answers(*(np.array(column, np.int64) for column in (*columns, [row["vectors"] for row in rows])))
