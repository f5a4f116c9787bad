"""What a report is made of: sections of text, tables and plots, before they become HTML, Markdown or CSV."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ebert.probing.metrics import DECIMALS
from ebert.report.comparison import RESAMPLES, Change

Cell = str | int | float | Change | None
MISSING = "–"
MINUS = "−"


@dataclass(frozen=True)
class Options:
    """What may be chosen about a report."""

    all_relations: bool = False  # in the figure of changes, also those that hardly change
    examples: int = 10  # questions gained and questions lost to show for each column
    resamples: int = RESAMPLES  # of the bootstrap


@dataclass(frozen=True)
class Table:
    """A table; `key` names its CSV file."""

    key: str
    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    note: str = ""
    published: frozenset[int] = frozenset()  # numbers of the rows that hold published figures only


@dataclass(frozen=True)
class Plot:
    """A plot as SVG; `key` names its file, `caption` says in words how to read it."""

    key: str
    title: str
    caption: str
    svg: str

    @property
    def alone(self) -> str:
        """The SVG for a file of its own, which has no page to take its colours from."""
        return self.svg.replace("<svg ", '<svg style="background: #fff; color: #1c1e21" ', 1)


@dataclass(frozen=True)
class Section:
    """A heading, some paragraphs, tables and plots."""

    key: str
    title: str
    text: Sequence[str]
    parts: Sequence[Table | Plot] = ()


@dataclass(frozen=True)
class Report:
    """A whole report."""

    title: str
    about: Sequence[tuple[str, str]]  # of every run: what it is, the command that made it
    warnings: Sequence[str]
    headlines: Sequence[str]
    sections: Sequence[Section] = field(default_factory=list)

    @property
    def tables(self) -> list[Table]:
        """All tables of all sections."""
        return [part for section in self.sections for part in section.parts if isinstance(part, Table)]

    @property
    def plots(self) -> list[Plot]:
        """All plots of all sections."""
        return [part for section in self.sections for part in section.parts if isinstance(part, Plot)]


def shown(cell: Cell) -> str:
    """Write a cell for people."""
    if cell is None:
        return MISSING
    if isinstance(cell, Change):
        text = signed(cell.value)
        return text if cell.low is None or cell.high is None else f"{text} [{signed(cell.low)}, {signed(cell.high)}]"
    if isinstance(cell, float):
        return f"{cell:.1f}".replace("-", MINUS)
    return f"{cell:,}" if isinstance(cell, int) else cell


def signed(value: float) -> str:
    """Write a difference with its sign; what rounds to nothing has none."""
    text = f"{value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", MINUS)


def flat(table: Table) -> list[list[str]]:
    """Give the lines of a table's CSV file: a change with an interval becomes three columns."""
    wide = [
        any(isinstance(cell, Change) and cell.low is not None for cell in (row[place] for row in table.rows))
        for place in range(len(table.header))
    ]
    header: list[str] = []
    for name, is_wide in zip(table.header, wide, strict=True):
        header += [name, f"{name} (low)", f"{name} (high)"] if is_wide else [name]
    lines = [header]
    for row in table.rows:
        line: list[str] = []
        for cell, is_wide in zip(row, wide, strict=True):
            line += _plain(cell, 3 if is_wide else 1)
        lines.append(line)
    return lines


def _plain(cell: Cell, width: int) -> list[str]:
    values = [cell.value, cell.low, cell.high][:width] if isinstance(cell, Change) else [cell]
    texts = [
        "" if value is None else f"{round(value, DECIMALS):g}" if isinstance(value, float) else str(value)
        for value in values
    ]
    return texts + [""] * (width - len(texts))
