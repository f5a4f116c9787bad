"""Hits@k over k on a logarithmic axis: how often the answer is near the top."""

from ebert.probing.metrics import TOP
from ebert.report import published
from ebert.report.document import Cell, Plot, Section, Table
from ebert.report.material import Material
from ebert.report.plots import drawing, mark, mark_handle

SHOWN = (1, 2, 3, 5, 10, 20, 50, 100)


def section(material: Material) -> Section:
    """Write the section."""
    text = [
        "Hits@k: the share of questions whose answer is among the k best, mean over relations. MRR is the mean of one "
        "over the rank; probability is that of the answer. All in per cent."
    ]
    if material.is_lama:
        text.append("The paper gives its Hits@k as a figure without numbers, so only Hits@1 has published diamonds.")
    return Section("curves", "Hits@k", text, [_plot(material), _table(material)])


def _table(material: Material) -> Table:
    names = [*(f"hits@{k}" for k in SHOWN), "mrr", "probability"]
    header = ("Model", "filter", "questions", *(name.replace("hits@", "Hits@").replace("mrr", "MRR") for name in names))
    rows: list[tuple[Cell, ...]] = []
    for column in material.columns:
        for name in material.filters:
            block = material.block(column, name)
            if block and block["macro"]:
                rows.append((column.label, name, block["questions"], *(block["macro"][score] for score in names)))
    return Table("curves", "Mean Hits@k", header, rows)


def _plot(material: Material) -> Plot:
    ks = range(1, TOP + 1)
    with drawing("curves", width=10, height=4.2) as drawn:
        panels = drawn.panels(len(material.filters))
        handles = {}
        has_published = False
        for name, axes in zip(material.filters, panels, strict=True):
            axes.set_title(name)
            for column in material.columns:
                block = material.block(column, name)
                if not block or not block["macro"]:
                    continue
                look = material.looks[column.label]
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
