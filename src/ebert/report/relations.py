"""A report on runs of relation classification: scores beside the published ones, differences, relations, confusions."""

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

from ebert._bootstrap import Interval
from ebert._io import compressed, files
from ebert.errors import EbertError
from ebert.relations.evaluate import ANSWERS, EVALUATIONS, RESAMPLES, Numbers, confusion, difference, macro_f1, scores
from ebert.relations.options import VARIANTS
from ebert.report.document import MARKER, MINUS, Plot, ReportDocument, Section, Table, as_csv, write_report
from ebert.report.plots import COLOURS, INK, drawing
from ebert.report.runs import distinct_names

FEWREL = 80  # relations


@dataclass(frozen=True)
class RunAnswers:
    """What a run answered on the samples of a file, in their order."""

    gold: NDArray[np.int64]
    given: NDArray[np.int64]
    vectors: NDArray[np.int64]
    """How many of the two entities have vectors."""
    data: dict[str, Any]
    """Which file it was: name, hash, samples."""


@dataclass(frozen=True)
class RelationsRun:
    """A run as a report sees it."""

    name: str
    folder: Path
    info: dict[str, Any]
    metrics: dict[str, Any]
    labels: tuple[str, ...]
    splits: dict[str, RunAnswers]
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
        """Return a relation's name beside its label, where known."""
        name = (self.info.get("names") or {}).get(label)
        return f"{label} {name}" if name else label


def read_runs(folders: Sequence[Path]) -> list[RelationsRun]:
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


def common_splits(runs: Sequence[RelationsRun]) -> list[str]:
    """Return the names of the files that all runs have been evaluated on; test is the last, if it is there."""
    names = set.intersection(*(set(run.splits) for run in runs))
    return sorted(names, key=lambda name: (name == "test", name))


@cache
def published_figures() -> dict[str, list[float | None]]:
    """Return the paper's figures by model: precision, recall and F1 on dev and on test."""
    text = (resources.files("ebert.report") / "data" / "fewrel.json").read_text(encoding="utf-8")
    models: dict[str, list[float | None]] = json.loads(text)["models"]
    return models


def is_fewrel(run: RelationsRun) -> bool:
    """Return whether a run is about FewRel, whose 80 relations have Wikidata's numbers."""
    return len(run.labels) == FEWREL and all(re.fullmatch(r"P[0-9]+", label) for label in run.labels)


def published_for(run: RelationsRun, split: str) -> list[float | None]:
    """Return precision, recall and F1 that the paper has for a run's variant, on dev or test."""
    if not is_fewrel(run) or split not in ("dev", "test"):
        return [None] * 3
    row = published_figures()[VARIANTS[run.mode].published]
    return row[:3] if split == "dev" else row[3:]


def _read(folder: Path, name: str) -> RelationsRun:
    info = files.read_json(folder / "run.json", "a run of 'ebert relations train'")
    if info.get("kind") != "relations":
        raise EbertError(f"{folder} is not a run of 'ebert relations train'")
    if not info.get("complete"):
        raise EbertError(f"{folder} is not complete; give the command that made it again")
    try:
        labels = tuple(info["labels"])
        number = {label: index for index, label in enumerate(labels)}
        splits = {path.stem: _answers(path, number) for path in sorted((folder / EVALUATIONS).glob("*.json"))}
        return RelationsRun(
            name, folder, info, files.read_json(folder / "metrics.json", "a complete run"), labels, splits
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, EbertError):
            raise
        raise EbertError(f"{folder} is damaged ({error}); evaluate or train it again") from None


def _answers(figures: Path, number: dict[str, int]) -> RunAnswers:
    """Read the answers that stand beside the figures of an evaluation; shipped ones are packed."""
    path = figures.with_name(figures.stem + ANSWERS)
    shipped = path.with_name(f"{path.name}.xz")
    try:
        with compressed.bounded(shipped if shipped.is_file() else path) as file:
            text = file.read().decode()
    except compressed.DAMAGED as error:
        raise EbertError(f"{path} cannot be read ({error}); evaluate the run again with --keep") from None
    rows = [json.loads(line) for line in text.split("\n") if line]
    return RunAnswers(
        gold=np.array([number[row["label"]] for row in rows], np.int64),
        given=np.array([number[row["given"]] for row in rows], np.int64),
        vectors=np.array([row["vectors"] for row in rows], np.int64),
        data=files.read_json(figures, "an evaluation")["data"],
    )


PAIRS = 30  # most frequent confusions to show
LEAST = 20  # samples of a kind below which an F1 says nothing
HAVING = ("all", "both entities have a vector", "one has", "none has")


def make_report(
    folders: Sequence[Path], out: Path, *, resamples: int = RESAMPLES, overwrite: bool = False
) -> dict[str, Any]:
    """Write a report on runs into the folder `out`; the first run is the one that others are compared with."""
    files.refuse_existing(out, overwrite=overwrite, marker=MARKER)
    runs = read_runs(folders)
    splits = common_splits(runs)
    differences = {split: _differences(runs, split, resamples) for split in splits}
    sections = [_macro(runs, splits, resamples), _curves(runs)]
    if len(runs) > 1:
        sections.append(Section("differences", "Differences", [
            f"Macro F1 of each run minus that of {runs[0].name}, in points, with 95 % intervals of a paired bootstrap, "
            "over all samples and by how many of the two entities have a vector."],
            [table for table, _ in differences.values()]))  # fmt: skip
    sections += [_relations(runs, splits[-1]), _confusions(runs, splits[-1])]
    headlines = [line for _, lines in differences.values() for line in lines] or _headlines(runs, splits)
    about = [(f"{run.name}: {run.mode}, {run.info['options']['epochs']} epochs", run.info["command"]) for run in runs]
    report = ReportDocument(
        "Relation classification: " + ", ".join(run.name for run in runs), about, [], headlines, sections
    )
    matrices = {f"tables/matrix-{run.key}.csv": _matrix(run, splits[-1]) for run in runs}
    return write_report(report, out, runs=[run.name for run in runs], overwrite=overwrite, more=matrices)


def _macro(runs: Sequence[RelationsRun], splits: Sequence[str], resamples: int) -> Section:
    tables = []
    for split in splits:
        rows = []
        for run in runs:
            found = run.splits[split]
            macro = scores(confusion(found.gold, found.given, len(run.labels))).macro()
            interval = macro_f1(found.gold, found.given, len(run.labels), resamples=resamples)
            theirs = [_two(value) for value in published_for(run, split)]
            rows.append((
                run.name, run.mode, run.info["options"]["epochs"], len(found.gold), _two(macro["precision"]),
                _two(macro["recall"]), _two(macro["f1"]), f"{interval.low:.2f} to {interval.high:.2f}", *theirs,
            ))  # fmt: skip
        header = ("run", "mode", "epochs", "samples", "P", "R", "F1", "95 % of F1", "published P", "published R",
                  "published F1")  # fmt: skip
        tables.append(Table(f"macro-{split}", f"Macro scores on {split}, in percent", header, rows))
    if "dev" not in splits:
        tables.append(_dev(runs))
    text = ["The published figures are those of the same variant in the paper, after its search for the best learning "
            "rate and number of epochs (5e-5 and 10 for concat)."]  # fmt: skip
    if not any(map(is_fewrel, runs)):
        return Section("macro", "Macro precision, recall and F1", [], tables)
    models = [(model, *map(_two, row)) for model, row in published_figures().items()]
    columns = ("model", "dev P", "dev R", "dev F1", "test P", "test R", "test F1")
    tables.append(Table("published", "As published", columns, models, published=frozenset(range(len(models)))))
    return Section("macro", "Macro precision, recall and F1", text, tables)


def _dev(runs: Sequence[RelationsRun]) -> Table:
    """Return what a training itself found on the dev samples that it chose its best epoch by."""
    rows = [
        (run.name, run.mode, run.metrics["best epoch"], run.metrics.get("dev samples"),
         *(_two(run.metrics["dev"][name]) for name in ("precision", "recall", "f1")),
         *(_two(value) for value in published_for(run, "dev")))
        for run in runs
    ]  # fmt: skip
    header = ("run", "mode", "best epoch", "samples", "P", "R", "F1", "published P", "published R", "published F1")
    return Table("macro-dev", "Macro scores on dev, of the epoch that was chosen by them, in percent", header, rows)


def _curves(runs: Sequence[RelationsRun]) -> Section:
    rows = [
        (run.name, epoch["epoch"], _three(epoch["loss"]), _three(epoch.get("dev loss")), _two(epoch["dev"]["f1"]))
        for run in runs
        for epoch in run.metrics["epochs"]
    ]
    with drawing("learning", width=6.5) as made:
        axes = made.panels(1)[0]
        for number, run in enumerate(runs):
            epochs = run.metrics["epochs"]
            colour = INK if run.mode == "bert" else COLOURS[number % len(COLOURS)]
            axes.plot([e["epoch"] for e in epochs], [e["dev"]["f1"] for e in epochs], marker="o", markersize=3,
                      color=colour, linestyle="-" if number % 2 == 0 else "--", label=run.name)  # fmt: skip
        axes.set_xlabel("epoch")
        axes.set_ylabel("macro F1 (dev)")
        made.legend(axes.get_legend_handles_labels()[0])
    parts: list[Table | Plot] = [
        made.plot("learning", "Learning curves", "Macro F1 on the dev samples after every epoch."),
        Table("learning", "Every epoch", ("run", "epoch", "loss", "dev loss", "dev F1"), rows),
    ]
    return Section("learning", "Learning curves", [], parts)


def _differences(runs: Sequence[RelationsRun], split: str, resamples: int) -> tuple[Table, list[str]]:
    base, lines = runs[0].splits[split], []
    rows = []
    for run in runs[1:]:
        found = run.splits[split]
        vectors = _vectors(found, base)
        row: list[str | int | None] = [run.name]
        for having in HAVING:
            chosen = np.ones(len(found.gold), bool) if having == "all" else vectors == 3 - HAVING.index(having)
            row.append(int(chosen.sum()))
            if chosen.sum() < LEAST:
                row.append(None)
                continue
            change = difference(
                found.gold[chosen], found.given[chosen], base.given[chosen], len(run.labels), resamples=resamples
            )
            row.append(_change(change))
            if having == "all":
                lines.append(f"{split}: {run.name} against {runs[0].name}: {_change(change)} points of macro F1"
                             f"{'' if change.clear else ', which may be chance'}.")  # fmt: skip
        rows.append(tuple(row))
    header = ("run", *(cell for having in HAVING for cell in (f"samples: {having}", having)))
    return Table(f"differences-{split}", f"On {split}, beside {runs[0].name}", header, rows), lines


def _relations(runs: Sequence[RelationsRun], split: str) -> Section:
    """Write, for every relation, F1 by run, and how often it was found with and without vectors."""
    by_run = [
        scores(confusion(run.splits[split].gold, run.splits[split].given, len(run.labels))).f1 * 100 for run in runs
    ]
    rows = []
    for index, label in enumerate(runs[0].labels):
        row: list[str | int | None] = [runs[0].title(label), int((runs[0].splits[split].gold == index).sum())]
        row += [_two(f1[index]) for f1 in by_run]
        if len(runs) > 1:
            row += _found(runs, split, index)
        rows.append(tuple(row))
    header = ["relation", "samples", *(f"F1: {run.name}" for run in runs)]
    if len(runs) > 1:
        header.append("both entities have a vector")
        header += [f"gain with: {run.name}" for run in runs[1:]] + [f"gain without: {run.name}" for run in runs[1:]]
    text = [
        f"On {split}. A gain is the share of a relation's samples that a run finds minus the share that {runs[0].name} "
        "finds, in points, among samples whose two entities have vectors (with) and among the others (without)."
    ]
    return Section("relations", "Every relation", text, [Table("relations", "Relations", tuple(header), rows)])


def _found(runs: Sequence[RelationsRun], split: str, index: int) -> list[str | int | None]:
    base = runs[0].splits[split]
    here = base.gold == index
    cells: list[str | int | None] = []
    gains: dict[bool, list[str | None]] = {True: [], False: []}
    covered = [_vectors(run.splits[split], base) == 2 for run in runs[1:]]
    cells.append(int((here & np.any(covered, axis=0)).sum()))
    for run, own in zip(runs[1:], covered, strict=True):
        for having in (True, False):
            among = here & (own == having)
            right = (
                [(rows.given[among] == index).mean() * 100 for rows in (run.splits[split], base)] if among.any() else []
            )
            gains[having].append(_signed(float(right[0] - right[1])) if right else None)
    return [*cells, *gains[True], *gains[False]]


def _confusions(runs: Sequence[RelationsRun], split: str) -> Section:
    tables = []
    for run in runs:
        table = confusion(run.splits[split].gold, run.splits[split].given, len(run.labels)).copy()
        support = table.sum(axis=1)
        np.fill_diagonal(table, 0)
        order = np.argsort(-table, axis=None, kind="stable")[:PAIRS]
        pairs = [(int(place) // len(run.labels), int(place) % len(run.labels)) for place in order]
        rows = [
            (run.title(run.labels[gold]), run.title(run.labels[given]), int(table[gold, given]),
             f"{100 * table[gold, given] / support[gold]:.1f}")
            for gold, given in pairs
            if table[gold, given]
        ]  # fmt: skip
        header = ("true relation", "given", "samples", "% of the true relation's")
        tables.append(Table(f"confusions-{run.key}", f"{run.name}: the commonest confusions", header, rows))
    return Section("confusions", "Confusions", [f"On {split}."], tables)


def _vectors(found: RunAnswers, base: RunAnswers) -> Numbers:
    """Return how many entities of each sample have vectors: by the store of one of two runs, as BERT alone has none."""
    return found.vectors if found.vectors.any() else base.vectors


def _matrix(run: RelationsRun, split: str) -> str:
    """Write how often which relation (column) was given for which (row)."""
    table = confusion(run.splits[split].gold, run.splits[split].given, len(run.labels))
    return as_csv([("", *run.labels), *((label, *row) for label, row in zip(run.labels, table.tolist(), strict=True))])


def _headlines(runs: Sequence[RelationsRun], splits: Sequence[str]) -> list[str]:
    lines = []
    for split in splits:
        found = runs[0].splits[split]
        macro = scores(confusion(found.gold, found.given, len(runs[0].labels))).macro()
        lines.append(f"{split}: {runs[0].name} has a macro F1 of {macro['f1']:.2f} %.")
    return lines


def _two(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"


def _three(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", MINUS)


def _change(change: Interval) -> str:
    return f"{_signed(change.value)} [{_signed(change.low)}, {_signed(change.high)}]"
