"""How Hits@1 depends on how often the subject's entity was linked when its vector was trained."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ebert.report.comparison import Change, difference
from ebert.report.document import Plot, Section, Table
from ebert.report.material import Material
from ebert.report.plots import INK, drawing
from ebert.report.runs import NO_COUNT, NOT_COVERED, Column, Run

EDGES = (0, 10, 100, 1_000, 10_000)
NAMES = (
    "not covered", "count unknown",
    *(f"{low:,}–{high - 1:,}" for low, high in pairwise(EDGES)), f"{EDGES[-1]:,} or more",
)  # fmt: skip


def section(material: Material) -> Section:
    """Write the section."""
    text = [
        "Questions by how often the subject's entity was linked in the text its vector was trained on. Hits@1 here is "
        "the share of questions, not the mean over relations, since some relations have few questions in a bucket. "
        "Changes have 95 % intervals of a paired bootstrap over all questions of the bucket."
    ]
    rows = list(_rows(material))
    if not rows:
        text = ["This needs a mode with vectors and plain BERT over the same questions."]
        return Section("frequency", "How often the entity was seen", text)
    table = Table(
        "frequency", "Hits@1 by how often the entity was seen",
        ("Model", "links", "questions", "Hits@1", "plain BERT", "change"),
        [(row[0].label, *row[1:]) for row in rows],
        note="Not covered: the subject has no vector, so that every mode is plain BERT.",
    )  # fmt: skip
    return Section("frequency", "How often the entity was seen", text, [_plot(material, rows), table])


def buckets(run: Run) -> list[tuple[str, NDArray[np.bool_]]]:
    """Sort the questions of a run into buckets: the name of each and its questions."""
    found = [run.count == NOT_COVERED, run.count == NO_COUNT]
    found += [(run.count >= low) & (run.count < high) for low, high in pairwise((*EDGES, np.inf))]
    return [(name, inside) for name, inside in zip(NAMES, found, strict=True) if inside.any()]


Row = tuple[Column, str, int, float, float, Change]


def _rows(material: Material) -> Iterator[Row]:
    for column, plain, _ in material.changes:
        for name, inside in buckets(column.run):
            found = difference(column, plain, among=inside, resamples=material.options.resamples)
            if found is not None:
                plain_hits = found.right[1] / found.questions * 100
                yield column, name, found.questions, found.right[0] / found.questions * 100, plain_hits, found.micro


def _plot(material: Material, rows: list[Row]) -> Plot:
    order = [name for name in NAMES if any(row[1] == name for row in rows)]
    columns = [column for column, _, _ in material.changes]
    with drawing("frequency", width=8, height=3.8) as drawn:
        axes = drawn.panels(1)[0]
        handles = []
        for number, column in enumerate(columns):
            mine = [row for row in rows if row[0] == column]
            look = material.looks[column.label]
            shift = (number - (len(columns) - 1) / 2) * min(0.14, 0.7 / len(columns))
            changes = [row[5] for row in mine]
            below = [change.value - (change.low or 0.0) for change in changes]
            above = [(change.high or 0.0) - change.value for change in changes]
            handles.append(axes.errorbar(
                [order.index(row[1]) + shift for row in mine], [change.value for change in changes], [below, above],
                color=look.colour, marker=look.marker, linestyle="none", linewidth=1.2, capsize=3, label=column.label,
            ))  # fmt: skip
        axes.axhline(0, color=INK, linewidth=1)
        axes.set_xticks(range(len(order)), [_tick(name, rows, single=len(material.runs) == 1) for name in order])
        axes.set_xlabel("how often the entity was linked")
        axes.set_ylabel("change in Hits@1 against\nplain BERT (points)")
        axes.grid(visible=False, axis="x")
        drawn.legend(handles)
    caption = "Gain over plain BERT by how often the subject's entity was linked, with 95 % intervals."
    return drawn.plot("frequency", "Gain by how often the entity was seen", caption)


def _tick(name: str, rows: list[Row], *, single: bool) -> str:
    asked = next(row[2] for row in rows if row[1] == name)
    return f"{name}\n{asked:,} questions" if single else name
