"""Sections of a LAMA report: mean Hits@1 by filter, differences, Hits@k, change by relation, every relation."""

from typing import Any

import numpy as np

from ebert.probing.filters import FILTERS
from ebert.probing.metrics import TOP
from ebert.report import published
from ebert.report.comparison import ReportData, pairs
from ebert.report.document import Cell, Plot, Points, Section, Table, shown
from ebert.report.plots import GREY, INK, PAPER, drawing, mark, mark_handle, name_rows

KS = (1, 2, 3, 5, 10, 20, 50, 100)  # of Hits@k, in the table
THRESHOLD = 7.5  # points of change that bring a relation into the figure


def conclusion(data: ReportData) -> str:
    """Return the result in one sentence: the best column compared with its plain BERT."""
    if not data.changes:
        hits = {column: data.hits(column, data.filters[0]) or 0.0 for column in data.columns}
        best = max(hits, key=lambda column: hits[column])
        return f"{best.label} gives the right answer to {hits[best]:.1f} % of the questions."
    column, plain, compared = max(data.changes, key=lambda change: change[2].macro.value)
    hits = {one: data.hits(one, "all") or 0.0 for one in (column, plain)}
    said = (
        f"{column.label} gives the right answer to {hits[column]:.1f} % of the questions, {plain.label} to "
        f"{hits[plain]:.1f} %: {shown(compared.macro)} points"
    )
    covered = data.compare(column, plain, covered_only=True)
    if covered and covered.questions < compared.questions:
        said += f", and {shown(covered.macro)} points where the subject has a vector"
    return f"{said}."


def headlines(data: ReportData) -> list[str]:
    """Return the scores of every column, one per line."""
    against = {
        column: f"; {shown(compared.macro)} against {plain.label} on all questions"
        for column, plain, compared in data.changes
    }
    said = []
    for column in data.columns:
        scores = [f"{hits:.1f} on {name}" for name in data.filters if (hits := data.hits(column, name)) is not None]
        said.append(f"{column.label}: Hits@1 {', '.join(scores)}{against.get(column, '')}")
    return said


def means(data: ReportData) -> Section:
    """Write the section on the means, beside the published ones."""
    text = [
        "Hits@1 in percent: the share of questions whose answer is ranked first, averaged within relations, then over "
        "relations. Filters: " + "; ".join(f"{name}: {FILTERS[name].help}" for name in data.filters) + "."
    ]
    covered = []
    for column in data.columns:
        row: dict[str, Cell] = {"Model": column.label}
        for name in data.filters:
            row[name] = data.hits(column, name, covered_only=True)
            row[f"{name}, questions"] = data.block(column, name, covered_only=True).get("questions")
        covered.append(row)
    parts: list[Table | Plot] = [
        _means_plot(data),
        _means_table(data),
        Table.of(
            "means-covered", "Mean Hits@1, covered only", covered,
            note="Only questions whose subject has a vector; elsewhere every mode is plain BERT.",
        ),
    ]  # fmt: skip
    if data.is_lama:
        text.append(
            "Published figures are those of Poerner et al. (2020). Differences to them come from other vectors, and "
            "from coverage where fewer subjects have a vector than there (94 %)."
        )
        if not all(published.covers(run.outcomes.relations) for run in data.runs):
            text.append(
                "Not all of LAMA's relations were asked, so the published means below are over the same relations "
                "(K-Adapter is published as a mean over all of them only)."
            )
        theirs = published.figures()["mean hits@1"]["questions with a KnowBert subject"]
        models = [model for model in published.MODELS if model in theirs["all"]]
        rows = [(published.MODELS[model], *(theirs.get(name, {}).get(model) for name in FILTERS)) for model in models]
        parts.append(Table(
            "means-knowbert", "Published: questions with a KnowBert subject only", ("Model", *FILTERS), rows,
            note="Published figures only: which questions these are depends on KnowBert's own entities.",
            published=frozenset(range(len(rows))),
        ))  # fmt: skip
    return Section("means", "Mean Hits@1 by filter", text, parts)


def _means_table(data: ReportData) -> Table:
    rows: list[dict[str, Cell]] = []
    for column in data.columns:
        covered = int(column.run.outcomes.covered.sum())
        row: dict[str, Cell] = {"Model": column.label, "questions": len(column.run.ids), "with a vector": covered}
        for name in data.filters:
            ours = row[name] = data.hits(column, name)
            if data.is_lama:
                theirs = row[f"{name}, published"] = published.mean(column, name)
                row[f"{name}, difference"] = None if ours is None or theirs is None else Points(ours - theirs)
        rows.append(row)
    for model, label in published.MODELS.items() if data.is_lama else ():
        found = {f"{name}, published": published.means(name, data.relations).get(model) for name in data.filters}
        rows.append({"Model": f"{label} (published)", **found})
    return Table.of(
        "means", "Mean Hits@1", rows, published=frozenset(range(len(data.columns), len(rows))),
        note="The number of questions is that before the filters.",
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
                if value is None:
                    continue
                axes.barh(place, value, color=data.looks[column].colour, height=0.74)
                # In the bar, where no diamond covers it; beside the bar if that is too short.
                at, colour = (end / 60, PAPER) if value > end / 5 else (value + end / 25, INK)
                axes.text(at, place, f"{value:.1f}", va="center", fontweight="bold", color=colour)
                if (known := published.mean(column, name)) is not None:
                    mark(axes, [known], [place])
            for place, model in enumerate(models, len(data.columns)):
                if (known := theirs[name].get(model)) is not None:
                    axes.barh(place, known, color=GREY, alpha=0.55, height=0.6)
                    axes.text(known + end / 60, place, f"{known:.1f}", va="center")
            name_rows(axes, labels)
        panels[len(panels) // 2].set_xlabel("mean Hits@1 (%)")
        if models:
            drawn.legend([mark_handle()])
    said = " Grey bars are published; a diamond is the published figure of the same model." if models else ""
    return drawn.plot("Mean Hits@1 by filter", f"Mean Hits@1 of every model, by filter.{said}")


def differences(data: ReportData) -> Section:
    """Write the section on differences between columns."""
    text = (
        "Differences in mean Hits@1, in points, with 95 % intervals of a paired bootstrap: "
        f"{data.options.resamples:,} times, questions were drawn again within each relation, the same for both "
        "sides. Only questions that both sides have are compared; their number is given. An interval without zero is "
        "printed bold."
    )
    rows = []
    for one, other in pairs(data.runs):
        for name in (name for name in one.run.filters if name in other.run.filters):
            row: list[Cell] = [one.label, other.label, name]
            for covered_only in (False, True):
                found = data.compare(one, other, name, covered_only=covered_only)
                row += [found.questions, found.macro] if found else [0, None]
            rows.append(tuple(row))
    header = ("Model", "against", "filter", "questions", "change", "covered questions", "change, covered only")
    table = Table("differences", "Differences in mean Hits@1", header, rows)
    return Section("differences", "Differences and how sure they are", [text], [table])


def curves(data: ReportData) -> Section:
    """Write the section on Hits@k."""
    text = [
        "Hits@k: the share of questions whose answer is among the k best, mean over relations. MRR is the mean of one "
        "over the rank; probability is that of the answer. All in percent."
    ]
    if data.is_lama:
        text.append("Hits@k was published as a figure without numbers, so only Hits@1 has published diamonds.")
    scores = {**{f"Hits@{k}": f"hits@{k}" for k in KS}, "MRR": "mrr", "probability": "probability"}
    rows: list[tuple[Cell, ...]] = [
        (column.label, name, block["questions"], *(block["macro"][score] for score in scores.values()))
        for column in data.columns
        for name in data.filters
        if (block := data.block(column, name)).get("macro")
    ]
    table = Table("curves", "Mean Hits@k", ("Model", "filter", "questions", *scores), rows)
    return Section("curves", "Hits@k", text, [_curves_plot(data), table])


def _curves_plot(data: ReportData) -> Plot:
    ks = range(1, TOP + 1)
    with drawing("curves", width=10, height=4.2) as drawn:
        panels = drawn.panels(len(data.filters))
        handles: dict[str, Any] = {}
        marked = []
        for name, axes in zip(data.filters, panels, strict=True):
            for column in data.columns:
                macro = data.block(column, name).get("macro")
                if not macro:
                    continue
                look = data.looks[column]
                handles[column.label] = axes.plot(
                    ks, [macro[f"hits@{k}"] for k in ks], look.line, color=look.colour, marker=look.marker,
                    markersize=5, linewidth=1.8, markevery=[k - 1 for k in KS], label=column.label,
                )[0]  # fmt: skip
                if (theirs := published.mean(column, name)) is not None:
                    mark(axes, [1], [theirs], look.colour)
                    marked = [mark_handle()]
            axes.set(title=name, xscale="log", xlabel="k")
            axes.set_xticks(KS, [str(k) for k in KS])
            axes.minorticks_off()
            axes.set_ylim(bottom=0)
        panels[0].set_ylabel("mean Hits@k (%)")
        drawn.legend([*handles.values(), *marked], columns=4)
    return drawn.plot("Hits@k over k", "Mean Hits@k for k from 1 to 100, on a logarithmic axis, by filter.")


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
    shares = {relation: _substring_share(data, relation) for relation in data.relations}
    # The figure has the relations that change, the most substring answers first.
    order = []
    for relation in data.relations:
        sizes = [found.relations[relation].value for _, _, found in data.changes if relation in found.relations]
        if sizes and (data.options.all_relations or max(map(abs, sizes)) >= THRESHOLD):
            order.append((-round(shares[relation] or 0), sizes[0], relation))
    chosen = {relation: shares[relation] for _, _, relation in sorted(order)}
    if left := len(data.relations) - len(chosen):
        text.append(
            f"The figure shows the {len(chosen)} relations where a model changes by {THRESHOLD} points or more; "
            f"{left} others are in the table only (--all-relations draws them too)."
        )
    parts: list[Table | Plot] = [_changes_plot(data, chosen)] if chosen else []
    title = "Change against plain BERT, by relation"
    return Section("changes", title, text, [*parts, _changes_table(data, shares)])


def _substring_share(data: ReportData, relation: str) -> float | None:
    """Return the percentage of a relation's questions that the string-match filter removes, by the first run."""
    for run in data.runs:
        inside = run.outcomes.of(relation)
        if "string-match" in run.filters and inside.any():
            return float(100 * np.mean(run.outcomes.dropped[inside] == 1))
    return None


def _changes_table(data: ReportData, shares: dict[str, float | None]) -> Table:
    rows = []
    for relation, share in shares.items():
        asked = max(int(run.outcomes.of(relation).sum()) for run in data.runs)
        row: dict[str, Cell] = {"relation": data.label(relation), "questions": asked, "substring answers (%)": share}
        for column, _, compared in data.changes:
            row[column.label] = compared.relations.get(relation)
            row[f"{column.label}: gained"] = compared.gained.get(relation)
            row[f"{column.label}: lost"] = compared.lost.get(relation)
            if published.counterpart(column):
                theirs = published.change(column, relation)
                row[f"{column.label}: published"] = None if theirs is None else Points(theirs)
        rows.append(row)
    return Table.of(
        "changes", "Change in Hits@1 against plain BERT", rows,
        note="Gained: questions that only this model has right. Lost: questions that only plain BERT has right.",
    )  # fmt: skip


def _changes_plot(data: ReportData, chosen: dict[str, float | None]) -> Plot:
    """Draw bars for changes and crosses for substring answers on one axis: both are percent of the questions."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    count = len(data.changes)
    handles: list[Any] = []
    marked = []
    with drawing("changes", width=8.5, height=1.2 + len(chosen) * (0.16 + 0.13 * count)) as drawn:
        axes = drawn.panels(1)[0]
        thick = 0.8 / count
        for number, (column, _, compared) in enumerate(data.changes):
            look = data.looks[column]
            handles.append(Patch(facecolor=look.colour, edgecolor=PAPER, hatch=look.hatch, label=column.label))
            for place, relation in enumerate(chosen):
                if relation not in compared.relations:
                    continue
                at = place + (number - (count - 1) / 2) * thick
                value = compared.relations[relation].value
                axes.barh(at, value, height=thick * 0.92, color=look.colour, hatch=look.hatch, edgecolor=PAPER)
                if (theirs := published.change(column, relation)) is not None:
                    mark(axes, [theirs], [at], look.colour, markersize=3.6, markeredgewidth=0.8)
                    marked = [mark_handle()]
        crosses = [(share, place) for place, share in enumerate(chosen.values()) if share is not None]
        cross: Any = {"marker": "x", "linestyle": "none", "color": INK, "markeredgewidth": 1.8}
        axes.plot([x for x, _ in crosses], [y for _, y in crosses], **cross, markersize=7, zorder=6)
        axes.axvline(0, color=INK, linewidth=1)
        name_rows(axes, [data.label(relation) for relation in chosen])
        second = "   ×: substring answers (% of questions)" if crosses else ""
        axes.set_xlabel(f"bars: change in Hits@1 against plain BERT (points){second}")
        drawn.legend([*handles, *marked, *([Line2D([], [], **cross, label="substring answers")] if crosses else [])])
    which = "All relations" if data.options.all_relations else f"Relations with a change of {THRESHOLD} or more"
    caption = (
        f"{which}, the most substring answers first. Bars to the right: better than plain BERT; to the left: worse. "
        + ("Crosses: how many answers are a substring of the subject's name." if crosses else "")
    )
    return drawn.plot("Change against plain BERT, by relation", caption)


def every_relation(data: ReportData) -> Section:
    """Write the section with all scores of all relations."""
    models = [model for model in published.MODELS if model != "K-Adapter"] if data.is_lama else []
    tables = []
    for name in data.filters:
        columns = [column for column in data.columns if name in column.run.filters]
        rows = []
        for relation in data.relations:
            blocks = [data.block(column, name)["relations"].get(relation) for column in columns]
            known = next((block for block in blocks if block), None)
            if known is None:
                continue
            row: dict[str, Cell] = {
                "relation": data.label(relation),
                **{key: known[key] for key in ("questions", "covered")},
            }
            for column, block in zip(columns, blocks, strict=True):
                row[column.label] = block["hits@1"] if block else None
            for model in models:
                row[f"{published.MODELS[model]} (published)"] = published.relation(model, relation, name)
            if data.is_lama:
                row["questions (published)"] = published.questions(relation, name)
            rows.append(row)
        note = "Questions and covered are those of the first run." if len(data.runs) > 1 else ""
        tables.append(Table.of(f"relations-{name}", f"Hits@1 by relation, filter {name}", rows, note=note))
    text = ["Hits@1 in percent on every relation, a table for each filter. A click on a heading sorts."]
    return Section("relations", "Every relation", text, tables)
