"""What a report is made of (sections of text, tables and plots), and a report as HTML, Markdown, CSV and SVG files.

The HTML page needs nothing else: style, script and plots are inside. Neither torch nor numpy is imported.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from ebert._bootstrap import Interval
from ebert._io import files
from ebert._options import Options, option

MISSING = "–"
MINUS = "−"
DECIMALS = 4  # of figures in CSV
LONG = 25  # rows from which a table scrolls in a window of its own
WIDE = 28  # characters from which a column gets more room
MARKER = "report.json"


class Points(float):
    """A difference in points without an interval; it is shown with its sign."""


Cell = str | int | float | Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(Options):
    """What may be chosen about a report on probing runs."""

    all_relations: bool = option(False, "Draw all relations, not only those with a change of 7.5 points.")
    examples: int = option(10, "Questions gained and lost to show.", low=1)
    resamples: int = option(3000, "Resamples of the bootstrap.", low=100)


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
class ReportDocument:
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
    if isinstance(cell, Interval):
        return f"{signed(cell.value)} [{signed(cell.low)}, {signed(cell.high)}]"
    if isinstance(cell, Points):
        return signed(cell)
    if isinstance(cell, float):
        return f"{cell:.1f}".replace("-", MINUS)
    return f"{cell:,}" if isinstance(cell, int) else cell


def signed(value: float) -> str:
    """Write a difference with its sign; what rounds to nothing has none."""
    text = f"{value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", MINUS)


def flat(table: Table) -> list[list[str]]:
    """Return the lines of a table's CSV file: a change with an interval becomes three columns."""
    wide = [any(isinstance(row[place], Interval) for row in table.rows) for place in range(len(table.header))]
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
    values = [cell.value, cell.low, cell.high] if isinstance(cell, Interval) else [cell]
    texts = [
        "" if value is None else f"{round(value, DECIMALS):g}" if isinstance(value, float) else str(value)
        for value in values
    ]
    return texts + [""] * (width - len(texts))


def write_report(
    report: ReportDocument, out: Path, *, runs: Sequence[str], overwrite: bool, more: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Write a report on runs, and `more` texts by their path in the folder; return what `report.json` says."""
    summary = {
        "kind": "report",
        "format": 1,
        "runs": list(runs),
        "headlines": list(report.headlines),
        "warnings": list(report.warnings),
        "tables": [table.key for table in report.tables],
        "plots": [plot.key for plot in report.plots],
    }
    texts = {
        "index.html": as_html(report),
        "report.md": as_markdown(report),
        **{f"tables/{table.key}.csv": as_csv(flat(table)) for table in report.tables},
        **{f"plots/{plot.key}.svg": plot.alone for plot in report.plots},
        **(more or {}),
    }
    with files.replacing_folder(out, overwrite=overwrite, marker=MARKER) as folder:
        for path, text in texts.items():
            with files.replacing(folder / path, "w") as file:
                file.write(text)
        files.write_json(folder / MARKER, summary)
    return summary


def as_csv(rows: Iterable[Sequence[object]]) -> str:
    """Write rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def as_html(report: ReportDocument) -> str:
    """Write the page."""
    links = "".join(f'<a href="#{escape(one.key)}">{escape(one.title)}</a>' for one in report.sections)
    warnings = "".join(f'<p class="warning" role="note">⚠ {escape(text)}</p>' for text in report.warnings)
    about = "".join(
        f'<p class="about">{escape(what)}<br><code>{escape(command)}</code></p>\n' for what, command in report.about
    )
    headlines = "".join(f"<li>{escape(text)}</li>" for text in report.headlines)
    sections = "".join(map(_html_section, report.sections))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.title)}</title>\n<style>\n{_page_file('page.css')}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(report.title)}</h1>\n{about}{warnings}\n"
        f'<ul class="headlines">{headlines}</ul>\n<nav aria-label="Sections">{links}</nav>\n{sections}'
        "<footer>Made by <code>ebert report</code>. The tables are beside this page as CSV, the plots as SVG."
        "</footer>\n"
        f"</main>\n<script>\n{_page_file('page.js')}</script>\n</body>\n</html>\n"
    )


def _page_file(name: str) -> str:
    return (resources.files("ebert.report") / "data" / name).read_text(encoding="utf-8")


def _html_section(section: Section) -> str:
    text = "".join(f"<p>{escape(paragraph)}</p>\n" for paragraph in section.text)
    parts = "".join(_html_plot(part) if isinstance(part, Plot) else _html_table(part) for part in section.parts)
    return f'<section id="{escape(section.key)}">\n<h2>{escape(section.title)}</h2>\n{text}{parts}</section>\n'


def _html_plot(plot: Plot) -> str:
    return (
        f'<figure>\n<div class="plot" role="img" aria-label="{escape(plot.title)}">\n{plot.svg}</div>\n'
        f"<figcaption>{escape(plot.caption)}</figcaption>\n</figure>\n"
    )


def _html_table(table: Table) -> str:
    texts = [any(isinstance(row[place], str) for row in table.rows) for place in range(len(table.header))]
    kinds = [
        "number" if not is_text else "text wide" if max(len(shown(row[place])) for row in table.rows) > WIDE else "text"
        for place, is_text in enumerate(texts)
    ]
    head = "".join(
        f'<th scope="col" class="{kind}"><button>{escape(name)}</button></th>'
        for name, kind in zip(table.header, kinds, strict=True)
    )
    body = "".join(
        f"<tr{' class=published' if number in table.published else ''}>"
        + "".join(_html_cell(cell, kind) for cell, kind in zip(row, kinds, strict=True))
        + "</tr>\n"
        for number, row in enumerate(table.rows)
    )
    long = " long" if len(table.rows) > LONG else ""
    note = f'<p class="note">{escape(table.note)}</p>\n' if table.note else ""
    return (
        f'<h3>{escape(table.title)}</h3>\n<div class="scroll{long}" tabindex="0"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n{note}"
    )


def _html_cell(cell: Cell, kind: str) -> str:
    if isinstance(cell, Interval):
        if cell.clear:
            kind += " up" if cell.value > 0 else " down"
        value = str(cell.value)
    else:
        value = "" if cell is None else str(cell)
    return f'<td class="{kind}" data-value="{escape(value)}">{escape(shown(cell))}</td>'


def as_markdown(report: ReportDocument) -> str:
    """Write the document."""
    lines = [f"# {markdown_escape(report.title)}", ""]
    for what, command in report.about:
        lines += [markdown_escape(what), "", f"    {' '.join(command.split())}", ""]
    for text in report.warnings:
        lines += [f"> **Warning:** {markdown_escape(text)}", ""]
    lines += [f"- {markdown_escape(text)}" for text in report.headlines] + [""]
    for section in report.sections:
        lines += _markdown_section(section)
    return "\n".join(lines).rstrip() + "\n"


def markdown_escape(text: str) -> str:
    """Write text so that Markdown shows it as it is."""
    return re.sub(r"([\\`*_\[\]<>|#&~$])", r"\\\1", text.replace("\r", " ").replace("\n", " "))


def _markdown_section(section: Section) -> list[str]:
    lines = [f"## {markdown_escape(section.title)}", ""]
    for paragraph in section.text:
        lines += [markdown_escape(paragraph), ""]
    for part in section.parts:
        lines += _markdown_plot(part) if isinstance(part, Plot) else _markdown_table(part)
    return lines


def _markdown_plot(plot: Plot) -> list[str]:
    return [f"![{markdown_escape(plot.title)}](plots/{plot.key}.svg)", "", markdown_escape(plot.caption), ""]


def _markdown_table(table: Table) -> list[str]:
    texts = [any(isinstance(row[place], str) for row in table.rows) for place in range(len(table.header))]
    lines = [f"### {markdown_escape(table.title)}", ""]
    lines.append("| " + " | ".join(map(markdown_escape, table.header)) + " |")
    lines.append("|" + "|".join("---" if is_text else "--:" for is_text in texts) + "|")
    lines += ["| " + " | ".join(markdown_escape(shown(cell)) for cell in row) + " |" for row in table.rows]
    return [*lines, "", *([markdown_escape(table.note), ""] if table.note else [])]
