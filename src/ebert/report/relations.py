"""A report on runs of relation classification: scores beside the published ones, differences, relations, confusions."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._bootstrap import Interval
from ebert._io import files
from ebert._io.records import objects, read_text
from ebert.errors import EbertError
from ebert.relations.evaluate import ANSWERS, EVALUATIONS, RESAMPLES, Numbers, confusion, difference, macro_f1, scores
from ebert.relations.options import VARIANTS
from ebert.report.document import MARKER, MINUS, Cell, ReportDocument, Section, Table, as_csv, data_file, write_report
from ebert.report.plots import COLOURS, INK, drawing
from ebert.report.runs import distinct_names

FEWREL = 80  # relations
PAIRS = 30  # most frequent confusions to show
LEAST = 20  # samples of a kind below which an F1 says nothing
HAVING = {"all": None, "both entities have a vector": 2, "one has": 1, "none has": 0}
PRF = ("precision", "recall", "f1")


@dataclass(frozen=True)
class RunAnswers:
    """The answers of a run on the samples of a file, in their order."""

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

    def title(self, number: int) -> str:
        """Return a relation's label and its name, where known."""
        label = self.labels[number]
        name = (self.info.get("names") or {}).get(label)
        return f"{label} {name}" if name else label

    def confusion(self, split: str) -> Numbers:
        """Count, for each true relation (row), how often each relation (column) was given."""
        return confusion(self.splits[split].gold, self.splits[split].given, len(self.labels))


def read_runs(folders: Sequence[Path]) -> list[RelationsRun]:
    """Read complete runs that classify the same relations and have been evaluated on a file that all have in common."""
    runs = [_read(folder, name) for folder, name in zip(folders, distinct_names(folders), strict=True)]
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
    models: dict[str, list[float | None]] = json.loads(data_file("fewrel.json"))["models"]
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
        raise EbertError(f"{folder} is not complete; run the command that made it again")
    metrics = files.read_json(folder / "metrics.json", "a complete run")
    try:
        labels = tuple(info["labels"])
        number = {label: index for index, label in enumerate(labels)}
        splits = {path.stem: _answers(path, number) for path in sorted((folder / EVALUATIONS).glob("*.json"))}
    except EbertError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise EbertError(f"{folder} is damaged ({error}); evaluate or train it again") from None
    return RelationsRun(name, folder, info, metrics, labels, splits)


def _answers(figures: Path, number: dict[str, int]) -> RunAnswers:
    """Read the answers stored beside the figures of an evaluation; those in the repository are compressed."""
    path = figures.with_name(figures.stem + ANSWERS)
    shipped = path.with_name(f"{path.name}.xz")
    rows = []
    for line, row in objects(read_text(shipped if shipped.is_file() else path).split("\n")):
        if isinstance(row, EbertError):
            raise EbertError(f"{path}, line {line}: {row}; evaluate the run again with --keep")
        rows.append(row)
    return RunAnswers(
        gold=np.array([number[row["label"]] for row in rows], np.int64),
        given=np.array([number[row["given"]] for row in rows], np.int64),
        vectors=np.array([row["vectors"] for row in rows], np.int64),
        data=files.read_json(figures, "an evaluation")["data"],
    )


def make_report(
    folders: Sequence[Path], out: Path, *, resamples: int = RESAMPLES, overwrite: bool = False
) -> dict[str, Any]:
    """Write a report on runs into the folder `out`; the first run is the one that others are compared with."""
    files.refuse_existing(out, overwrite=overwrite, marker=MARKER)
    runs = read_runs(folders)
    splits = common_splits(runs)
    last = splits[-1]
    sections = [_macro(runs, splits, resamples), _curves(runs)]
    headlines: list[str] = []
    found: list[tuple[Table, dict[str, Interval]]] = []
    if len(runs) > 1:
        found = [_differences(runs, split, resamples) for split in splits]
        headlines = [
            f"{split}: {name} against {runs[0].name}: {_change(change)} points of macro F1"
            f"{'' if change.clear else ', which may be chance'}."
            for split, (_, changes) in zip(splits, found, strict=True)
            for name, change in changes.items()
        ]
        text = (
            f"Macro F1 of each run minus that of {runs[0].name}, in points, with 95 % intervals of a paired bootstrap, "
            "over all samples and by how many of the two entities have a vector."
        )
        sections.append(Section("differences", "Differences", [text], [table for table, _ in found]))
    if not headlines:  # there is one run, or there are too few samples to compare
        f1 = {split: scores(runs[0].confusion(split)).macro()["f1"] for split in splits}
        headlines = [f"{split}: {runs[0].name} has a macro F1 of {value:.2f} %." for split, value in f1.items()]
    sections += [_relations(runs, last), _confusions(runs, last)]
    about = [(f"{run.name}: {run.mode}, {run.info['options']['epochs']} epochs", run.info["command"]) for run in runs]
    names = [run.name for run in runs]
    title = "Relation classification: " + ", ".join(names)
    conclusion = _conclusion(runs, last, found[-1][1] if found else {})
    report = ReportDocument(title, conclusion, about, [], headlines, sections)
    matrices = {}
    for run in runs:
        counts = zip(run.labels, run.confusion(last).tolist(), strict=True)
        matrices[f"tables/matrix-{run.key}.csv"] = as_csv(
            [("", *run.labels), *((label, *row) for label, row in counts)]
        )
    return write_report(report, out, runs=names, overwrite=overwrite, more=matrices)


def _conclusion(runs: Sequence[RelationsRun], split: str, changes: dict[str, Interval]) -> str:
    """Return the result in one sentence: the best run with entities, if there is one, compared with the first."""
    f1 = {run.name: scores(run.confusion(split)).macro()["f1"] for run in runs}
    others = [run for run in runs[1:] if run.mode != "bert"] or list(runs[1:]) or list(runs)
    best = max(others, key=lambda run: f1[run.name]).name
    said = f"On {split}, {best} has a macro F1 of {f1[best]:.2f} %"
    if best != runs[0].name:
        said += f", {runs[0].name} of {f1[runs[0].name]:.2f} %"
    return said + (f": {_change(changes[best])} points." if best in changes else ".")


def _macro(runs: Sequence[RelationsRun], splits: Sequence[str], resamples: int) -> Section:
    """Write the macro scores on every file. If dev was not evaluated again, its scores are those of the training."""
    tables = []
    beside = ("published P", "published R", "published F1")
    header: tuple[str, ...]
    for split in splits:
        rows: list[tuple[Cell, ...]] = []
        for run in runs:
            found = run.splits[split]
            macro = scores(run.confusion(split)).macro()
            interval = macro_f1(found.gold, found.given, len(run.labels), resamples=resamples)
            rows.append((
                run.name, run.mode, run.info["options"]["epochs"], len(found.gold), *(_fixed(macro[x]) for x in PRF),
                f"{interval.low:.2f} to {interval.high:.2f}", *map(_fixed, published_for(run, split)),
            ))  # fmt: skip
        header = ("run", "mode", "epochs", "samples", "P", "R", "F1", "95 % of F1", *beside)
        tables.append(Table(f"macro-{split}", f"Macro scores on {split}, in percent", header, rows))
    if "dev" not in splits:
        rows = [
            (run.name, run.mode, run.metrics["best epoch"], run.metrics.get("dev samples"),
             *(_fixed(run.metrics["dev"][x]) for x in PRF), *map(_fixed, published_for(run, "dev")))
            for run in runs
        ]  # fmt: skip
        header = ("run", "mode", "best epoch", "samples", "P", "R", "F1", *beside)
        title = "Macro scores on dev, of the epoch that was chosen by them, in percent"
        tables.append(Table("macro-dev", title, header, rows))
    text = []
    if any(map(is_fewrel, runs)):
        text = ["The published figures are those of the same variant in Poerner et al. (2020), after a search for the "
                "best learning rate and number of epochs (5e-5 and 10 for concat)."]  # fmt: skip
        models = [(model, *map(_fixed, row)) for model, row in published_figures().items()]
        columns = ("model", "dev P", "dev R", "dev F1", "test P", "test R", "test F1")
        tables.append(Table("published", "As published", columns, models, published=frozenset(range(len(models)))))
    return Section("macro", "Macro precision, recall and F1", text, tables)


def _curves(runs: Sequence[RelationsRun]) -> Section:
    rows = []
    with drawing("learning", width=6.5) as made:
        axes = made.panels(1)[0]
        for number, run in enumerate(runs):
            epochs = run.metrics["epochs"]
            rows += [
                (
                    run.name,
                    one["epoch"],
                    _fixed(one["loss"], 3),
                    _fixed(one.get("dev loss"), 3),
                    _fixed(one["dev"]["f1"]),
                )
                for one in epochs
            ]
            colour = INK if run.mode == "bert" else COLOURS[number % len(COLOURS)]
            axes.plot([one["epoch"] for one in epochs], [one["dev"]["f1"] for one in epochs], marker="o", markersize=3,
                      color=colour, linestyle="-" if number % 2 == 0 else "--", label=run.name)  # fmt: skip
        axes.set(xlabel="epoch", ylabel="macro F1 (dev)")
        made.legend(axes.get_legend_handles_labels()[0])
    plot = made.plot("Learning curves", "Macro F1 on the dev samples after every epoch.")
    table = Table("learning", "Every epoch", ("run", "epoch", "loss", "dev loss", "dev F1"), rows)
    return Section("learning", "Learning curves", [], [plot, table])


def _differences(runs: Sequence[RelationsRun], split: str, resamples: int) -> tuple[Table, dict[str, Interval]]:
    """Write the table of differences to the first run; also return those on all samples, by run."""
    base, changes = runs[0].splits[split], {}
    rows = []
    for run in runs[1:]:
        found = run.splits[split]
        vectors = _vectors(found, base)
        row: list[str | int | None] = [run.name]
        for having, count in HAVING.items():
            chosen = np.ones(len(found.gold), bool) if count is None else vectors == count
            change = None
            if chosen.sum() >= LEAST:
                one, other = found.given[chosen], base.given[chosen]
                change = difference(found.gold[chosen], one, other, len(run.labels), resamples=resamples)
            row += [int(chosen.sum()), _change(change) if change else None]
            if change and having == "all":
                changes[run.name] = change
        rows.append(tuple(row))
    header = ("run", *(cell for having in HAVING for cell in (f"samples: {having}", having)))
    return Table(f"differences-{split}", f"On {split}, beside {runs[0].name}", header, rows), changes


def _relations(runs: Sequence[RelationsRun], split: str) -> Section:
    """Write, for every relation, F1 by run, and how often it was found with and without vectors."""
    f1 = {run.name: scores(run.confusion(split)).f1 * 100 for run in runs}
    base = runs[0].splits[split]
    others = {run.name: run.splits[split] for run in runs[1:]}
    covered = {name: _vectors(found, base) == 2 for name, found in others.items()}
    rows = []
    for index in range(len(runs[0].labels)):
        here = base.gold == index
        row: dict[str, Cell] = {"relation": runs[0].title(index), "samples": int(here.sum())}
        row |= {f"F1: {name}": _fixed(values[index]) for name, values in f1.items()}
        if others:
            row["both entities have a vector"] = int((here & np.any(list(covered.values()), axis=0)).sum())
        for having in (True, False):
            for name, found in others.items():
                among = here & (covered[name] == having)
                gain = (
                    (found.given[among] == index).mean() - (base.given[among] == index).mean() if among.any() else None
                )
                row[f"gain {'with' if having else 'without'}: {name}"] = None if gain is None else _signed(100 * gain)
        rows.append(row)
    text = [
        f"On {split}. A gain is the share of a relation's samples that a run finds minus the share that {runs[0].name} "
        "finds, in points, among samples whose two entities have vectors (with) and among the others (without)."
    ]
    return Section("relations", "Every relation", text, [Table.of("relations", "Relations", rows)])


def _confusions(runs: Sequence[RelationsRun], split: str) -> Section:
    tables = []
    for run in runs:
        table = run.confusion(split)
        support = table.sum(axis=1)
        np.fill_diagonal(table, 0)
        order = np.argsort(-table, axis=None, kind="stable")[:PAIRS]
        rows = [
            (
                run.title(gold),
                run.title(given),
                int(table[gold, given]),
                f"{100 * table[gold, given] / support[gold]:.1f}",
            )
            for gold, given in zip(*np.unravel_index(order, table.shape), strict=True)
            if table[gold, given]
        ]
        header = ("true relation", "given", "samples", "% of the true relation's")
        tables.append(Table(f"confusions-{run.key}", f"{run.name}: the most common confusions", header, rows))
    return Section("confusions", "Confusions", [f"On {split}."], tables)


def _vectors(found: RunAnswers, base: RunAnswers) -> Numbers:
    """Return how many entities of each sample have vectors: by the store of one of two runs, as BERT alone has none."""
    return found.vectors if found.vectors.any() else base.vectors


def _fixed(value: float | None, digits: int = 2) -> str | None:
    return None if value is None else f"{value:.{digits}f}"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", MINUS)


def _change(change: Interval) -> str:
    return f"{_signed(change.value)} [{_signed(change.low)}, {_signed(change.high)}]"
