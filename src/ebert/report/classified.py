"""Reading runs of relation classification: what they are, their learning curve, and their answers on labelled files."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io import compressed, files
from ebert.errors import EbertError
from ebert.relations.evaluate import ANSWERS, EVALUATIONS
from ebert.relations.inputs import VARIANTS
from ebert.report.runs import distinct_names

FEWREL = 80  # relations


@dataclass(frozen=True)
class Answers:
    """What a run answered on the samples of a file, in their order."""

    gold: NDArray[np.int64]
    given: NDArray[np.int64]
    vectors: NDArray[np.int64]
    """How many of the two entities have vectors."""
    data: dict[str, Any]
    """Which file it was: name, hash, samples."""


@dataclass(frozen=True)
class Run:
    """A run as a report sees it."""

    name: str
    folder: Path
    info: dict[str, Any]
    metrics: dict[str, Any]
    labels: tuple[str, ...]
    splits: dict[str, Answers]
    """By the name of the file: dev, test, ..."""

    @property
    def mode(self) -> str:
        """Which variant it is."""
        return str(self.info["mode"])

    @property
    def key(self) -> str:
        """Its name as part of a file's."""
        return self.name.replace("/", "-")

    def title(self, label: str) -> str:
        """Give a relation's name beside its label, where known."""
        name = (self.info.get("names") or {}).get(label)
        return f"{label} {name}" if name else label


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read complete runs that classify the same relations and have been evaluated on a file that all have in common."""
    places = [folder.resolve() for folder in folders]
    if twice := next((folder for folder, place in zip(folders, places, strict=True) if places.count(place) > 1), None):
        raise EbertError(f"{twice} is given twice; give every run once")
    runs = [_read(folder, name) for folder, name in zip(folders, distinct_names(places), strict=True)]
    for run in runs[1:]:
        if run.labels != runs[0].labels:
            raise EbertError(f"{runs[0].folder} and {run.folder} have other relations; report them one by one")
        for split in run.splits.keys() & runs[0].splits.keys():
            one, other = run.splits[split].data, runs[0].splits[split].data
            if any(one[key] != other[key] for key in ("sha256", "samples")):
                raise EbertError(f"{runs[0].folder} and {run.folder} were evaluated on other {split} samples")
    if not common_splits(runs):
        raise EbertError(
            "the runs have no evaluation in common; make them with 'ebert relations evaluate RUN DATA/test.json --keep'"
        )
    return runs


def common_splits(runs: Sequence[Run]) -> list[str]:
    """Give the names of the files that all runs have been evaluated on; test is the last, if it is there."""
    names = set.intersection(*(set(run.splits) for run in runs))
    return sorted(names, key=lambda name: (name == "test", name))


@cache
def published() -> dict[str, list[float | None]]:
    """Give the paper's figures by model: precision, recall and F1 on dev and on test."""
    text = (resources.files("ebert.report") / "data" / "fewrel.json").read_text(encoding="utf-8")
    models: dict[str, list[float | None]] = json.loads(text)["models"]
    return models


def is_fewrel(run: Run) -> bool:
    """Tell whether a run is about FewRel, whose 80 relations have Wikidata's numbers."""
    return len(run.labels) == FEWREL and all(re.fullmatch(r"P[0-9]+", label) for label in run.labels)


def published_for(run: Run, split: str) -> list[float | None]:
    """Give precision, recall and F1 that the paper has for a run's variant, on dev or test."""
    if not is_fewrel(run) or split not in ("dev", "test"):
        return [None] * 3
    row = published()[VARIANTS[run.mode].published]
    return row[:3] if split == "dev" else row[3:]


def _read(folder: Path, name: str) -> Run:
    info = files.read_json(folder / "run.json", "a run of 'ebert relations train'")
    if info.get("kind") != "relations":
        raise EbertError(f"{folder} is not a run of 'ebert relations train'")
    if not info.get("complete"):
        raise EbertError(f"{folder} is not complete; give the command that made it again")
    try:
        labels = tuple(info["labels"])
        number = {label: index for index, label in enumerate(labels)}
        splits = {path.stem: _answers(path, number) for path in sorted((folder / EVALUATIONS).glob("*.json"))}
        return Run(name, folder, info, files.read_json(folder / "metrics.json", "a complete run"), labels, splits)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, EbertError):
            raise
        raise EbertError(f"{folder} is damaged ({error}); evaluate or train it again") from None


def _answers(figures: Path, number: dict[str, int]) -> Answers:
    """Read the answers that stand beside the figures of an evaluation; shipped ones are packed."""
    path = figures.with_name(figures.stem + ANSWERS)
    shipped = path.with_name(f"{path.name}.xz")
    try:
        with compressed.bounded(shipped if shipped.is_file() else path) as file:
            text = file.read().decode()
    except compressed.DAMAGED as error:
        raise EbertError(f"{path} cannot be read ({error}); evaluate the run again with --keep") from None
    rows = [json.loads(line) for line in text.split("\n") if line]
    return Answers(
        gold=np.array([number[row["label"]] for row in rows], np.int64),
        given=np.array([number[row["given"]] for row in rows], np.int64),
        vectors=np.array([row["vectors"] for row in rows], np.int64),
        data=files.read_json(figures, "an evaluation")["data"],
    )
