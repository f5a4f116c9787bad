"""Mean Hits@1 by filter: the paper's main table on LAMA, ours beside the published one."""

from typing import TYPE_CHECKING

from ebert.probing.filters import FILTERS
from ebert.report import published
from ebert.report.comparison import Change
from ebert.report.document import Cell, Plot, Section, Table
from ebert.report.material import Material
from ebert.report.plots import GREY, INK, PAPER, drawing, mark, mark_handle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXPLAINED = {
    "all": "all: every question",
    "string-match": "string-match: without questions whose answer is part of the subject's name",
    "uhn": "uhn: also without questions whose answer a person's name gives away",
}


def section(material: Material) -> Section:
    """Write the section."""
    text = [
        "Hits@1 in per cent: the share of questions whose answer is ranked first, averaged within relations, then over "
        "relations. Filters: " + "; ".join(EXPLAINED[name] for name in material.filters) + "."
    ]
    parts: list[Table | Plot] = [_plot(material), _table(material), _covered(material)]
    if material.is_lama:
        text.append(
            "Published figures are those of the paper. A difference to them is between two sets of vectors, and, "
            "where fewer subjects have a vector than in the paper (94 %), of coverage too."
        )
        if not all(published.covers(run.outcomes.relations) for run in material.runs):
            text.append(
                "Not all of LAMA's relations were asked, so the published means below are over the same relations "
                "(K-Adapter is published as a mean over all of them only)."
            )
        parts.append(_knowbert())
    return Section("means", "Mean Hits@1 by filter", text, parts)


def _table(material: Material) -> Table:
    header = ["Model", "questions", "with a vector"]
    for name in material.filters:
        header += [name, f"{name}, published", f"{name}, difference"] if material.is_lama else [name]
    rows: list[tuple[Cell, ...]] = []
    for column in material.columns:
        outcomes = column.run.outcomes
        row: list[Cell] = [column.label, len(column.run.ids), int(outcomes.covered.sum())]
        for name in material.filters:
            ours = material.hits(column, name)
            row.append(ours)
            if material.is_lama:
                theirs = published.mean(column, name)
                row += [theirs, None if ours is None or theirs is None else Change(ours - theirs)]
        rows.append(tuple(row))
    ours_end = len(rows)
    if material.is_lama:
        for model, label in published.MODELS.items():
            row = [f"{label} (published)", None, None]
            for name in material.filters:
                row += [None, published.means(name, material.relations).get(model), None]
            rows.append(tuple(row))
    return Table(
        "means", "Mean Hits@1", tuple(header), rows, published=frozenset(range(ours_end, len(rows))),
        note="The number of questions is that before the filters.",
    )  # fmt: skip


def _covered(material: Material) -> Table:
    header = ["Model"]
    for name in material.filters:
        header += [name, f"{name}, questions"]
    rows = []
    for column in material.columns:
        row: list[Cell] = [column.label]
        for name in material.filters:
            block = material.block(column, name, covered_only=True)
            row += [material.hits(column, name, covered_only=True), block["questions"] if block else None]
        rows.append(tuple(row))
    return Table(
        "means-covered", "Mean Hits@1, covered only", tuple(header), rows,
        note="Only questions whose subject has a vector; elsewhere every mode is plain BERT.",
    )  # fmt: skip


def _knowbert() -> Table:
    rows = [
        (label, *(published.knowbert_means(name).get(model) for name in FILTERS))
        for model, label in published.MODELS.items()
        if model in published.knowbert_means("all")
    ]
    return Table(
        "means-knowbert", "Published: questions with a KnowBert subject only", ("Model", *FILTERS), rows,
        note="Published figures only: which questions these are depends on KnowBert's own entities.",
        published=frozenset(range(len(rows))),
    )  # fmt: skip


def _plot(material: Material) -> Plot:
    """Draw a bar for every model, a panel for every filter."""
    theirs = {name: published.means(name, material.relations) if material.is_lama else {} for name in material.filters}
    models = [model for model in published.MODELS if any(model in means for means in theirs.values())]
    labels = [column.label for column in material.columns]
    labels += [f"{published.MODELS[model]} (published)" for model in models]
    ours = [material.hits(column, name) or 0.0 for column in material.columns for name in material.filters]
    end = 1.14 * max(5.0, *ours, *(mean for means in theirs.values() for mean in means.values()))  # of all panels
    with drawing("means", width=10, height=0.9 + 0.24 * len(labels) + (0.3 if models else 0)) as drawn:
        panels = drawn.panels(len(material.filters))
        for name, axes in zip(material.filters, panels, strict=True):
            axes.set_title(name)
            axes.set_xlim(0, end)
            for place, column in enumerate(material.columns):
                value = material.hits(column, name)
                if value is not None:
                    axes.barh(place, value, color=material.looks[column.label].colour, height=0.74)
                    _write(axes, place, value)
                    known = published.mean(column, name)
                    if known is not None:
                        mark(axes, [known], [place])
            for place, model in enumerate(models, len(labels) - len(models)):
                known = theirs[name].get(model)
                if known is not None:
                    axes.barh(place, known, color=GREY, alpha=0.55, height=0.6)
                    axes.text(known + end / 60, place, f"{known:.1f}", va="center")
            axes.grid(visible=False, axis="y")
            axes.tick_params(axis="y", length=0)
        panels[0].set_yticks(range(len(labels)), labels)
        panels[0].set_ylim(len(labels) - 0.4, -0.6)
        panels[len(panels) // 2].set_xlabel("mean Hits@1 (%)")
        if models:
            drawn.legend([mark_handle()])
    said = " Grey bars are published; a diamond is the published figure of the same model." if models else ""
    return drawn.plot("means", "Mean Hits@1 by filter", f"Mean Hits@1 of every model, by filter.{said}")


def _write(axes: "Axes", place: int, value: float) -> None:
    """Write a value into its bar, where no diamond covers it; beside the bar if that is too short."""
    end = axes.get_xlim()[1]
    at, colour = (end / 60, PAPER) if value > end / 5 else (value + end / 25, INK)
    axes.text(at, place, f"{value:.1f}", va="center", fontweight="bold", color=colour)
