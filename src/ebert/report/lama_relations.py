"""Every relation: Hits@1 of all models, and the change against plain BERT with the share of substring answers."""

import numpy as np

from ebert.report import published
from ebert.report.comparison import Change
from ebert.report.document import Cell, Plot, Section, Table
from ebert.report.material import Material
from ebert.report.plots import INK, PAPER, bar_handle, drawing, mark_handle
from ebert.report.runs import Run

THRESHOLD = 7.5  # points of change that bring a relation into the figure


def changes(material: Material) -> Section:
    """Write the section on the change against plain BERT."""
    if not material.changes:
        text = [
            "No run given has plain BERT (the mode bert) over these questions, so there is nothing to compare with."
        ]
        return Section("changes", "Change against plain BERT", text)
    text = [
        "Change in Hits@1 against plain BERT on each relation (all questions), and the share of questions whose answer "
        "is a substring of the subject's name, which BERT can copy and a vector alone cannot."
    ]
    chosen = _chosen(material)
    left = len(material.relations) - len(chosen)
    if left:
        text.append(
            f"The figure shows the {len(chosen)} relations where a model changes by {THRESHOLD} points or more; "
            f"{left} others are in the table only (--all-relations draws them too)."
        )
    parts: list[Table | Plot] = [_plot(material, chosen)] if chosen else []
    return Section("changes", "Change against plain BERT, by relation", text, [*parts, _changes(material)])


def every(material: Material) -> Section:
    """Write the section with all scores of all relations."""
    text = ["Hits@1 in per cent on every relation, a table for each filter. A click on a heading sorts."]
    return Section("relations", "Every relation", text, [_scores(material, name) for name in material.filters])


def substring_share(run: Run, relation: str) -> float | None:
    """Give the per cent of a relation's questions that the string-match filter takes out."""
    if "string-match" not in run.filters or relation not in run.outcomes.relations:
        return None
    inside = run.outcomes.relation == run.outcomes.relations.index(relation)
    return float(100 * np.mean(run.outcomes.dropped[inside] == 1))


def _share(material: Material, relation: str) -> float | None:
    shares = (substring_share(run, relation) for run in material.runs)
    return next((share for share in shares if share is not None), None)


def _chosen(material: Material) -> list[str]:
    """Choose the relations of the figure: those that change, the most substring answers first."""
    found = []
    for relation in material.relations:
        sizes = [abs(d.relations[relation].value) for _, _, d in material.changes if relation in d.relations]
        if sizes and (material.options.all_relations or max(sizes) >= THRESHOLD):
            first = next(d.relations[relation].value for _, _, d in material.changes if relation in d.relations)
            found.append((-round(_share(material, relation) or 0), first, relation))
    return [relation for _, _, relation in sorted(found)]


def _changes(material: Material) -> Table:
    header = ["relation", "questions", "substring answers (%)"]
    for column, _, _ in material.changes:
        header += [column.label, f"{column.label}: gained", f"{column.label}: lost"]
        if published.counterpart(column):
            header.append(f"{column.label}: published")
    rows = []
    for relation in material.relations:
        asked = max(
            int(np.sum(run.outcomes.relation == run.outcomes.relations.index(relation)))
            for run in material.runs
            if relation in run.outcomes.relations
        )
        row: list[Cell] = [material.label(relation), asked, _share(material, relation)]
        for column, _, compared in material.changes:
            row += [compared.relations.get(relation), compared.gained.get(relation), compared.lost.get(relation)]
            if published.counterpart(column):
                theirs = published.change(column, relation)
                row.append(None if theirs is None else Change(theirs))
        rows.append(tuple(row))
    return Table(
        "changes", "Change in Hits@1 against plain BERT", tuple(header), rows,
        note="Gained: questions that only this model has right. Lost: questions that only plain BERT has right.",
    )  # fmt: skip


def _scores(material: Material, name: str) -> Table:
    models = [model for model in published.MODELS if model != "K-Adapter"] if material.is_lama else []
    columns = [column for column in material.columns if name in column.run.filters]
    header = ["relation", "questions", "covered", *(column.label for column in columns)]
    header += [f"{published.MODELS[model]} (published)" for model in models]
    header += ["questions (published)"] if material.is_lama else []
    rows = []
    for relation in material.relations:
        blocks = [(material.block(column, name) or {})["relations"].get(relation) for column in columns]
        known = next((block for block in blocks if block), None)
        if known is None:
            continue
        row: list[Cell] = [material.label(relation), known["questions"], known["covered"]]
        row += [block["hits@1"] if block else None for block in blocks]
        row += [published.relation(model, relation, name) for model in models]
        row += [published.questions(relation, name)] if material.is_lama else []
        rows.append(tuple(row))
    note = "Questions and covered are those of the first run." if len(material.runs) > 1 else ""
    return Table(f"relations-{name}", f"Hits@1 by relation, filter {name}", tuple(header), rows, note=note)


def _plot(material: Material, chosen: list[str]) -> Plot:
    """Draw bars for changes and crosses for substring answers on one axis: both are per cent of the questions."""
    count = len(material.changes)
    with drawing("changes", width=8.5, height=1.2 + len(chosen) * (0.16 + 0.13 * count)) as drawn:
        axes = drawn.panels(1)[0]
        thick = 0.8 / count
        has_published = False
        for number, (column, _, compared) in enumerate(material.changes):
            look = material.looks[column.label]
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
        shares = [(_share(material, relation), place) for place, relation in enumerate(chosen)]
        crosses = [(share, place) for share, place in shares if share is not None]
        axes.plot([x for x, _ in crosses], [y for _, y in crosses], "x", color=INK, markersize=7, markeredgewidth=1.8,
                  linestyle="none", zorder=6)  # fmt: skip
        axes.axvline(0, color=INK, linewidth=1)
        axes.set_yticks(range(len(chosen)), [material.label(relation) for relation in chosen])
        axes.set_ylim(len(chosen) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        second = "   ×: substring answers (% of questions)" if crosses else ""
        axes.set_xlabel(f"bars: change in Hits@1 against plain BERT (points){second}")
        handles = [bar_handle(column.label, material.looks[column.label]) for column, _, _ in material.changes]
        handles += [mark_handle()] if has_published else []
        drawn.legend([*handles, *_cross(crosses)])
    which = "All relations" if material.options.all_relations else f"Relations with a change of {THRESHOLD} or more"
    caption = (
        f"{which}, the most substring answers first. Bars to the right: better than plain BERT; to the left: worse. "
        + ("Crosses: how many answers are a substring of the subject's name." if crosses else "")
    )
    return drawn.plot("changes", "Change against plain BERT, by relation", caption)


def _cross(crosses: list[tuple[float, int]]) -> list[object]:
    from matplotlib.lines import Line2D

    label = "substring answers"
    return [Line2D([], [], marker="x", linestyle="none", color=INK, markeredgewidth=1.8, label=label)] * bool(crosses)
