"""Sections of a LAMA report: mean Hits@1 by filter, differences, Hits@k, change by relation, every relation."""

from typing import TYPE_CHECKING

import numpy as np

from ebert.probing.filters import FILTERS
from ebert.probing.metrics import TOP
from ebert.report import published
from ebert.report.comparison import ReportData, compare, pairs
from ebert.report.document import Cell, Plot, Points, Section, Table, signed
from ebert.report.plots import GREY, INK, PAPER, bar_handle, drawing, mark, mark_handle
from ebert.report.runs import ProbeRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def means(data: ReportData) -> Section:
    """Write the section."""
    text = [
        "Hits@1 in per cent: the share of questions whose answer is ranked first, averaged within relations, then over "
        "relations. Filters: " + "; ".join(f"{name}: {FILTERS[name].help}" for name in data.filters) + "."
    ]
    parts: list[Table | Plot] = [_means_plot(data), _means_table(data), _covered(data)]
    if data.is_lama:
        text.append(
            "Published figures are those of the paper. A difference to them is between two sets of vectors, and, "
            "where fewer subjects have a vector than in the paper (94 %), of coverage too."
        )
        if not all(published.covers(run.outcomes.relations) for run in data.runs):
            text.append(
                "Not all of LAMA's relations were asked, so the published means below are over the same relations "
                "(K-Adapter is published as a mean over all of them only)."
            )
        parts.append(_knowbert())
    return Section("means", "Mean Hits@1 by filter", text, parts)


def _means_table(data: ReportData) -> Table:
    header = ["Model", "questions", "with a vector"]
    for name in data.filters:
        header += [name, f"{name}, published", f"{name}, difference"] if data.is_lama else [name]
    rows: list[tuple[Cell, ...]] = []
    for column in data.columns:
        outcomes = column.run.outcomes
        row: list[Cell] = [column.label, len(column.run.ids), int(outcomes.covered.sum())]
        for name in data.filters:
            ours = data.hits(column, name)
            row.append(ours)
            if data.is_lama:
                theirs = published.mean(column, name)
                row += [theirs, None if ours is None or theirs is None else Points(ours - theirs)]
        rows.append(tuple(row))
    ours_end = len(rows)
    if data.is_lama:
        for model, label in published.MODELS.items():
            row = [f"{label} (published)", None, None]
            for name in data.filters:
                row += [None, published.means(name, data.relations).get(model), None]
            rows.append(tuple(row))
    return Table(
        "means", "Mean Hits@1", tuple(header), rows, published=frozenset(range(ours_end, len(rows))),
        note="The number of questions is that before the filters.",
    )  # fmt: skip


def _covered(data: ReportData) -> Table:
    header = ["Model"]
    for name in data.filters:
        header += [name, f"{name}, questions"]
    rows = []
    for column in data.columns:
        row: list[Cell] = [column.label]
        for name in data.filters:
            block = data.block(column, name, covered_only=True)
            row += [data.hits(column, name, covered_only=True), block["questions"] if block else None]
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


def _means_plot(data: ReportData) -> Plot:
    """Draw a bar for every model, a panel for every filter."""
    theirs = {name: published.means(name, data.relations) if data.is_lama else {} for name in data.filters}
    models = [model for model in published.MODELS if any(model in means for means in theirs.values())]
    labels = [column.label for column in data.columns]
    labels += [f"{published.MODELS[model]} (published)" for model in models]
    ours = [data.hits(column, name) or 0.0 for column in data.columns for name in data.filters]
    end = 1.14 * max(5.0, *ours, *(mean for means in theirs.values() for mean in means.values()))  # of all panels
    with drawing("means", width=10, height=0.9 + 0.24 * len(labels) + (0.3 if models else 0)) as drawn:
        panels = drawn.panels(len(data.filters))
        for name, axes in zip(data.filters, panels, strict=True):
            axes.set_title(name)
            axes.set_xlim(0, end)
            for place, column in enumerate(data.columns):
                value = data.hits(column, name)
                if value is not None:
                    axes.barh(place, value, color=data.looks[column.label].colour, height=0.74)
                    _write_value(axes, place, value)
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


def _write_value(axes: "Axes", place: int, value: float) -> None:
    """Write a value into its bar, where no diamond covers it; beside the bar if that is too short."""
    end = axes.get_xlim()[1]
    at, colour = (end / 60, PAPER) if value > end / 5 else (value + end / 25, INK)
    axes.text(at, place, f"{value:.1f}", va="center", fontweight="bold", color=colour)


def differences(data: ReportData) -> Section:
    """Write the section."""
    text = [
        "Differences in mean Hits@1, in points, with 95 % intervals of a paired bootstrap: "
        f"{data.options.resamples:,} times, questions were drawn anew within each relation, the same for both "
        "sides. Only questions that both sides have are compared; their number is given. An interval without zero is "
        "printed bold."
    ]
    return Section("differences", "Differences and how sure they are", text, [_differences_table(data)])


def headlines(data: ReportData) -> list[str]:
    """Return what came out, one line a column."""
    said = []
    for column in data.columns:
        scores = [f"{hits:.1f} on {name}" for name in data.filters if (hits := data.hits(column, name)) is not None]
        line = f"{column.label}: Hits@1 {', '.join(scores)}"
        for one, plain, compared in data.changes:
            if one == column:
                macro = compared.macro
                assert macro.low is not None
                assert macro.high is not None
                line += (
                    f"; {signed(macro.value)} [{signed(macro.low)}, {signed(macro.high)}] against {plain.label} "
                    "on all questions"
                )
        said.append(line)
    return said


def _differences_table(data: ReportData) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one, other in pairs(data.runs):
        for name in data.filters:
            if name not in one.run.filters or name not in other.run.filters:
                continue
            resamples = data.options.resamples
            every = compare(one, other, name, resamples=resamples)
            covered = compare(one, other, name, covered_only=True, resamples=resamples)
            rows.append((
                one.label, other.label, name,
                every.questions if every else 0, every.macro if every else None,
                covered.questions if covered else 0, covered.macro if covered else None,
            ))  # fmt: skip
    header = ("Model", "against", "filter", "questions", "change", "covered questions", "change, covered only")
    return Table("differences", "Differences in mean Hits@1", header, rows)


SHOWN = (1, 2, 3, 5, 10, 20, 50, 100)


def curves(data: ReportData) -> Section:
    """Write the section."""
    text = [
        "Hits@k: the share of questions whose answer is among the k best, mean over relations. MRR is the mean of one "
        "over the rank; probability is that of the answer. All in per cent."
    ]
    if data.is_lama:
        text.append("The paper gives its Hits@k as a figure without numbers, so only Hits@1 has published diamonds.")
    return Section("curves", "Hits@k", text, [_curves_plot(data), _curves_table(data)])


def _curves_table(data: ReportData) -> Table:
    names = [*(f"hits@{k}" for k in SHOWN), "mrr", "probability"]
    header = ("Model", "filter", "questions", *(name.replace("hits@", "Hits@").replace("mrr", "MRR") for name in names))
    rows: list[tuple[Cell, ...]] = []
    for column in data.columns:
        for name in data.filters:
            block = data.block(column, name)
            if block and block["macro"]:
                rows.append((column.label, name, block["questions"], *(block["macro"][score] for score in names)))
    return Table("curves", "Mean Hits@k", header, rows)


def _curves_plot(data: ReportData) -> Plot:
    ks = range(1, TOP + 1)
    with drawing("curves", width=10, height=4.2) as drawn:
        panels = drawn.panels(len(data.filters))
        handles = {}
        has_published = False
        for name, axes in zip(data.filters, panels, strict=True):
            axes.set_title(name)
            for column in data.columns:
                block = data.block(column, name)
                if not block or not block["macro"]:
                    continue
                look = data.looks[column.label]
                values = [block["macro"][f"hits@{k}"] for k in ks]
                handles[column.label] = axes.plot(
                    ks, values, look.line, color=look.colour, marker=look.marker, markersize=5, linewidth=1.8,
                    markevery=[k - 1 for k in SHOWN], label=column.label,
                )[0]  # fmt: skip
                theirs = published.mean(column, name)
                if theirs is not None:
                    has_published = True
                    mark(axes, [1], [theirs], look.colour)
            axes.set_xscale("log")
            axes.set_xticks(SHOWN, [str(k) for k in SHOWN])
            axes.minorticks_off()
            axes.set_ylim(bottom=0)
            axes.set_xlabel("k")
        panels[0].set_ylabel("mean Hits@k (%)")
        drawn.legend([*handles.values(), *([mark_handle()] if has_published else [])], columns=4)
    return drawn.plot("curves", "Hits@k over k", "Mean Hits@k for k from 1 to 100, on a logarithmic axis, by filter.")


THRESHOLD = 7.5  # points of change that bring a relation into the figure


def changes(data: ReportData) -> Section:
    """Write the section on the change against plain BERT."""
    if not data.changes:
        text = [
            "No run given has plain BERT (the mode bert) over these questions, so there is nothing to compare with."
        ]
        return Section("changes", "Change against plain BERT", text)
    text = [
        "Change in Hits@1 against plain BERT on each relation (all questions), and the share of questions whose answer "
        "is a substring of the subject's name, which BERT can copy and a vector alone cannot."
    ]
    chosen = _chosen(data)
    left = len(data.relations) - len(chosen)
    if left:
        text.append(
            f"The figure shows the {len(chosen)} relations where a model changes by {THRESHOLD} points or more; "
            f"{left} others are in the table only (--all-relations draws them too)."
        )
    parts: list[Table | Plot] = [_changes_plot(data, chosen)] if chosen else []
    return Section("changes", "Change against plain BERT, by relation", text, [*parts, _changes_table(data)])


def every_relation(data: ReportData) -> Section:
    """Write the section with all scores of all relations."""
    text = ["Hits@1 in per cent on every relation, a table for each filter. A click on a heading sorts."]
    return Section("relations", "Every relation", text, [_scores(data, name) for name in data.filters])


def substring_share(run: ProbeRun, relation: str) -> float | None:
    """Return the per cent of a relation's questions that the string-match filter takes out."""
    if "string-match" not in run.filters or relation not in run.outcomes.relations:
        return None
    inside = run.outcomes.relation == run.outcomes.relations.index(relation)
    return float(100 * np.mean(run.outcomes.dropped[inside] == 1))


def _share(data: ReportData, relation: str) -> float | None:
    shares = (substring_share(run, relation) for run in data.runs)
    return next((share for share in shares if share is not None), None)


def _chosen(data: ReportData) -> list[str]:
    """Choose the relations of the figure: those that change, the most substring answers first."""
    found = []
    for relation in data.relations:
        sizes = [abs(d.relations[relation].value) for _, _, d in data.changes if relation in d.relations]
        if sizes and (data.options.all_relations or max(sizes) >= THRESHOLD):
            first = next(d.relations[relation].value for _, _, d in data.changes if relation in d.relations)
            found.append((-round(_share(data, relation) or 0), first, relation))
    return [relation for _, _, relation in sorted(found)]


def _changes_table(data: ReportData) -> Table:
    header = ["relation", "questions", "substring answers (%)"]
    for column, _, _ in data.changes:
        header += [column.label, f"{column.label}: gained", f"{column.label}: lost"]
        if published.counterpart(column):
            header.append(f"{column.label}: published")
    rows = []
    for relation in data.relations:
        asked = max(
            int(np.sum(run.outcomes.relation == run.outcomes.relations.index(relation)))
            for run in data.runs
            if relation in run.outcomes.relations
        )
        row: list[Cell] = [data.label(relation), asked, _share(data, relation)]
        for column, _, compared in data.changes:
            row += [compared.relations.get(relation), compared.gained.get(relation), compared.lost.get(relation)]
            if published.counterpart(column):
                theirs = published.change(column, relation)
                row.append(None if theirs is None else Points(theirs))
        rows.append(tuple(row))
    return Table(
        "changes", "Change in Hits@1 against plain BERT", tuple(header), rows,
        note="Gained: questions that only this model has right. Lost: questions that only plain BERT has right.",
    )  # fmt: skip


def _scores(data: ReportData, name: str) -> Table:
    models = [model for model in published.MODELS if model != "K-Adapter"] if data.is_lama else []
    columns = [column for column in data.columns if name in column.run.filters]
    header = ["relation", "questions", "covered", *(column.label for column in columns)]
    header += [f"{published.MODELS[model]} (published)" for model in models]
    header += ["questions (published)"] if data.is_lama else []
    rows = []
    for relation in data.relations:
        blocks = [(data.block(column, name) or {})["relations"].get(relation) for column in columns]
        known = next((block for block in blocks if block), None)
        if known is None:
            continue
        row: list[Cell] = [data.label(relation), known["questions"], known["covered"]]
        row += [block["hits@1"] if block else None for block in blocks]
        row += [published.relation(model, relation, name) for model in models]
        row += [published.questions(relation, name)] if data.is_lama else []
        rows.append(tuple(row))
    note = "Questions and covered are those of the first run." if len(data.runs) > 1 else ""
    return Table(f"relations-{name}", f"Hits@1 by relation, filter {name}", tuple(header), rows, note=note)


def _changes_plot(data: ReportData, chosen: list[str]) -> Plot:
    """Draw bars for changes and crosses for substring answers on one axis: both are per cent of the questions."""
    count = len(data.changes)
    with drawing("changes", width=8.5, height=1.2 + len(chosen) * (0.16 + 0.13 * count)) as drawn:
        axes = drawn.panels(1)[0]
        thick = 0.8 / count
        has_published = False
        for number, (column, _, compared) in enumerate(data.changes):
            look = data.looks[column.label]
            for place, relation in enumerate(chosen):
                if relation not in compared.relations:
                    continue
                at = place + (number - (count - 1) / 2) * thick
                value = compared.relations[relation].value
                axes.barh(at, value, height=thick * 0.92, color=look.colour, hatch=look.hatch, edgecolor=PAPER)
                theirs = published.change(column, relation)
                if theirs is not None:
                    has_published = True
                    axes.plot([theirs], [at], "D", markersize=3.6, markerfacecolor=PAPER,
                              markeredgecolor=look.colour,
                              markeredgewidth=0.8, zorder=5)  # fmt: skip
        shares = [(_share(data, relation), place) for place, relation in enumerate(chosen)]
        crosses = [(share, place) for share, place in shares if share is not None]
        axes.plot([x for x, _ in crosses], [y for _, y in crosses], "x", color=INK, markersize=7, markeredgewidth=1.8,
                  linestyle="none", zorder=6)  # fmt: skip
        axes.axvline(0, color=INK, linewidth=1)
        axes.set_yticks(range(len(chosen)), [data.label(relation) for relation in chosen])
        axes.set_ylim(len(chosen) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        second = "   ×: substring answers (% of questions)" if crosses else ""
        axes.set_xlabel(f"bars: change in Hits@1 against plain BERT (points){second}")
        handles = [bar_handle(column.label, data.looks[column.label]) for column, _, _ in data.changes]
        handles += [mark_handle()] if has_published else []
        drawn.legend([*handles, *_cross(crosses)])
    which = "All relations" if data.options.all_relations else f"Relations with a change of {THRESHOLD} or more"
    caption = (
        f"{which}, the most substring answers first. Bars to the right: better than plain BERT; to the left: worse. "
        + ("Crosses: how many answers are a substring of the subject's name." if crosses else "")
    )
    return drawn.plot("changes", "Change against plain BERT, by relation", caption)


def _cross(crosses: list[tuple[float, int]]) -> list[object]:
    from matplotlib.lines import Line2D

    label = "substring answers"
    return [Line2D([], [], marker="x", linestyle="none", color=INK, markeredgewidth=1.8, label=label)] * bool(crosses)
