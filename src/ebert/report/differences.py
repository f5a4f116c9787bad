"""Every difference between two columns, with its interval."""

from ebert.report.comparison import difference, pairs
from ebert.report.document import Cell, Section, Table, signed
from ebert.report.material import Material


def section(material: Material) -> Section:
    """Write the section."""
    text = [
        "Differences in mean Hits@1, in points, with 95 % intervals of a paired bootstrap: "
        f"{material.options.resamples:,} times, questions were drawn anew within each relation, the same for both "
        "sides. Only questions that both sides have are compared; their number is given. An interval without zero is "
        "printed bold."
    ]
    return Section("differences", "Differences and how sure they are", text, [_table(material)])


def headlines(material: Material) -> list[str]:
    """Say what came out, one line a column."""
    said = []
    for column in material.columns:
        scores = [
            f"{hits:.1f} on {name}" for name in material.filters if (hits := material.hits(column, name)) is not None
        ]
        line = f"{column.label}: Hits@1 {', '.join(scores)}"
        for one, plain, compared in material.changes:
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


def _table(material: Material) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one, other in pairs(material.runs):
        for name in material.filters:
            if name not in one.run.filters or name not in other.run.filters:
                continue
            resamples = material.options.resamples
            every = difference(one, other, name, resamples=resamples)
            covered = difference(one, other, name, covered_only=True, resamples=resamples)
            rows.append((
                one.label, other.label, name,
                every.questions if every else 0, every.macro if every else None,
                covered.questions if covered else 0, covered.macro if covered else None,
            ))  # fmt: skip
    header = ("Model", "against", "filter", "questions", "change", "covered questions", "change, covered only")
    return Table("differences", "Differences in mean Hits@1", header, rows)
