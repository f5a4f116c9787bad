"""The parts of a report (sections of text, tables and plots), and writing it as HTML, Markdown, CSV and SVG files.

The HTML page needs no other files: style, script and plots are inside. Neither torch nor numpy is imported.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib import resources
from itertools import groupby
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
PAGE = 157  # characters that the columns of a table may need next to each other; a wider one is shown in parts
WORD = 14  # characters of a word, at most, that a head keeps on one line
MARKER = "report.json"


class Points(float):
    """A difference in points without an interval; it is shown with its sign."""


Cell = str | int | float | Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(Options):
    """The options of a report on probing runs."""

    all_relations: bool = option(False, "Plot all relations, not only those that change by 7.5 points or more.")
    examples: int = option(10, "How many gained and lost questions to show.", low=1)
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

    @classmethod
    def of(cls, key: str, title: str, rows: Sequence[Mapping[str, Cell]], **rest: Any) -> "Table":
        """Make a table of rows that name their cells. The first row has all columns, others may lack some."""
        header = tuple(rows[0]) if rows else ("no rows",)
        return cls(key, title, header, [tuple(row.get(name) for name in header) for row in rows], **rest)

    def only(self, places: Sequence[int]) -> "Table":
        """Return the table with some of its columns."""
        rows = [tuple(row[place] for place in places) for row in self.rows]
        return replace(self, header=tuple(self.header[place] for place in places), rows=rows)

    @property
    def are_text(self) -> list[bool]:
        """Which columns hold text, not only figures."""
        return [any(isinstance(row[place], str) for row in self.rows) for place in range(len(self.header))]

    @property
    def lines(self) -> list[list[str]]:
        """The lines of the CSV file: a change with an interval becomes three columns."""
        wide = {place for row in self.rows for place, cell in enumerate(row) if isinstance(cell, Interval)}
        ends = [(("", " (low)", " (high)") if place in wide else ("",)) for place in range(len(self.header))]
        lines = [[name + end for name, own in zip(self.header, ends, strict=True) for end in own]]
        for row in self.rows:
            line: list[str] = []
            for cell, own in zip(row, ends, strict=True):
                values = (cell.value, cell.low, cell.high) if isinstance(cell, Interval) else (cell, None, None)
                line += map(_plain, values[: len(own)])
            lines.append(line)
        return lines


@dataclass(frozen=True)
class Plot:
    """A plot as SVG; `key` names its file, `caption` says in words how to read it."""

    key: str
    title: str
    caption: str
    svg: str

    @property
    def alone(self) -> str:
        """The SVG for a separate file, which has no page to take its colours from."""
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
    conclusion: str  # what came out, in one sentence
    about: Sequence[tuple[str, str]]  # of every run: what it is, the command that made it
    warnings: Sequence[str]
    headlines: Sequence[str]
    sections: Sequence[Section]


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
    """Write a difference with its sign; a difference that rounds to zero has no sign."""
    text = f"{value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", MINUS)


def _plain(value: str | float | None) -> str:
    if isinstance(value, float):
        return f"{round(value, DECIMALS):g}"
    return "" if value is None else str(value)


def write_report(
    report: ReportDocument, out: Path, *, runs: Sequence[str], overwrite: bool, more: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Write a report on runs, and `more` texts by their path in the folder; return what `report.json` says."""
    parts = [part for section in report.sections for part in section.parts]
    tables = [part for part in parts if isinstance(part, Table)]
    plots = [part for part in parts if isinstance(part, Plot)]
    summary = {
        "kind": "report",
        "format": 1,
        "runs": list(runs),
        "conclusion": report.conclusion,
        "headlines": list(report.headlines),
        "warnings": list(report.warnings),
        "tables": [table.key for table in tables],
        "plots": [plot.key for plot in plots],
    }
    texts = {
        "index.html": as_html(report),
        "report.md": as_markdown(report),
        **{f"tables/{table.key}.csv": as_csv(table.lines) for table in tables},
        **{f"plots/{plot.key}.svg": plot.alone for plot in plots},
        **(more or {}),
    }
    with files.replacing_folder(out, overwrite=overwrite, marker=MARKER) as folder:
        for path, text in texts.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
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
        f"<title>{escape(report.title)}</title>\n<style>\n{data_file('page.css')}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(report.title)}</h1>\n<p class="conclusion">{escape(report.conclusion)}</p>\n{about}{warnings}\n'
        f'<ul class="headlines">{headlines}</ul>\n<nav aria-label="Sections">{links}</nav>\n{sections}'
        "<footer>Made by <code>ebert report</code>. The tables are beside this page as CSV, the plots as SVG."
        "</footer>\n"
        f"</main>\n<script>\n{data_file('page.js')}</script>\n</body>\n</html>\n"
    )


def data_file(name: str) -> str:
    """Return the text of a file that this package ships."""
    return (resources.files("ebert.report") / "data" / name).read_text(encoding="utf-8")


def _html_section(section: Section) -> str:
    html = f'<section id="{escape(section.key)}">\n<h2>{escape(section.title)}</h2>\n'
    html += "".join(f"<p>{escape(paragraph)}</p>\n" for paragraph in section.text)
    for part in section.parts:
        if isinstance(part, Table):
            html += _html_table(part)
        else:
            html += f'<figure>\n<div class="plot" role="img" aria-label="{escape(part.title)}">\n{part.svg}</div>\n'
            html += f"<figcaption>{escape(part.caption)}</figcaption>\n</figure>\n"
    return f"{html}</section>\n"


def _html_table(table: Table) -> str:
    parts = _parts(table)
    note = f'<p class="note">{escape(table.note)}</p>\n' if table.note else ""
    html = ""
    for number, places in enumerate(parts, 1):
        title = f"{table.title} ({number} of {len(parts)})" if len(parts) > 1 else table.title
        html += _html_part(table.only(places), title)
    return html + note


def _parts(table: Table) -> list[list[int]]:
    """Return the columns of a table in parts of about the same width that fit on the page; each has the first.

    Columns with the same head before a colon stay together if they fit.
    """
    widths = [_width(table, place) for place in range(len(table.header))]
    same = groupby(range(1, len(widths)), key=lambda place: table.header[place].partition(":")[0])
    groups = [list(places) for _, places in same]
    parts = _cut(widths, groups, PAGE)
    narrower = (_cut(widths, groups, most) for most in range(PAGE // 2, PAGE))
    return next((found for found in narrower if len(found) == len(parts)), parts)


def _cut(widths: Sequence[int], groups: Iterable[list[int]], most: int) -> list[list[int]]:
    parts = [[0]]
    for group in groups:
        whole = widths[0] + sum(widths[place] for place in group) <= most
        for some in [group] if whole else [[place] for place in group]:
            if len(parts[-1]) > 1 and sum(widths[place] for place in parts[-1] + some) > most:
                parts.append([0])
            parts[-1] += some
    return parts


def _width(table: Table, place: int) -> int:
    """Return the approximate least width of a column in characters, including the room around it."""
    head = max((len(word) for word in re.findall(r"[^\s-]+-?", table.header[place])), default=0)
    texts = [shown(row[place]) for row in table.rows]
    longest = max(map(len, texts), default=0)
    if table.are_text[place]:
        longest = min(longest, WIDE if place == 0 or longest <= WIDE else WORD)
    else:
        longest = max((len(part) for text in texts for part in text.split(" [")), default=0) + 1
    return max(min(head, WORD), longest) + 3


def _html_part(table: Table, title: str) -> str:
    kinds = [
        "number" if not is_text else "text wide" if max(len(shown(row[place])) for row in table.rows) > WIDE else "text"
        for place, is_text in enumerate(table.are_text)
    ]
    head = "".join(
        f'<th scope="col" class="{kind}"><button>{escape(name)}</button></th>'
        for name, kind in zip(table.header, kinds, strict=True)
    )
    body = ""
    for number, row in enumerate(table.rows):
        cells = "".join(map(_html_cell, row, kinds, table.header))
        body += f"<tr{' class=published' if number in table.published else ''}>{cells}</tr>\n"
    long = " long" if len(table.rows) > LONG else ""
    return (
        f'<h3>{escape(title)}</h3>\n<div class="scroll{long}" tabindex="0"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n"
    )


def _html_cell(cell: Cell, kind: str, name: str) -> str:
    if isinstance(cell, Interval) and cell.clear:
        kind += " up" if cell.value > 0 else " down"
    value = cell.value if isinstance(cell, Interval) else "" if cell is None else cell
    text = (
        escape(shown(cell)).replace(" [", " <span>[").replace("]", "]</span>") if isinstance(cell, Interval) else None
    )
    label = escape(name)  # on a phone, where a row is a list, it stands before the value
    return (
        f'<td class="{kind}" data-name="{label}" data-value="{escape(str(value))}">{text or escape(shown(cell))}</td>'
    )


def as_markdown(report: ReportDocument) -> str:
    """Write the document."""
    blocks = [f"# {markdown_escape(report.title)}", f"**{markdown_escape(report.conclusion)}**"]
    for what, command in report.about:
        blocks += [markdown_escape(what), f"    {' '.join(command.split())}"]
    blocks += [f"> **Warning:** {markdown_escape(text)}" for text in report.warnings]
    blocks.append("\n".join(f"- {markdown_escape(text)}" for text in report.headlines))
    for section in report.sections:
        blocks += [f"## {markdown_escape(section.title)}", *map(markdown_escape, section.text)]
        for part in section.parts:
            if isinstance(part, Plot):
                blocks += [f"![{markdown_escape(part.title)}](plots/{part.key}.svg)", markdown_escape(part.caption)]
            else:
                blocks += [f"### {markdown_escape(part.title)}", _markdown_table(part)]
                blocks += [markdown_escape(part.note)] if part.note else []
    return "\n\n".join(blocks).rstrip() + "\n"


def markdown_escape(text: str) -> str:
    """Escape text so that Markdown shows it literally."""
    return re.sub(r"([\\`*_\[\]<>|#&~$])", r"\\\1", text.replace("\r", " ").replace("\n", " "))


def _markdown_table(table: Table) -> str:
    lines = [map(markdown_escape, table.header), *(map(markdown_escape, map(shown, row)) for row in table.rows)]
    head, *body = (f"| {' | '.join(cells)} |" for cells in lines)
    return "\n".join([head, f"|{'|'.join('---' if is_text else '--:' for is_text in table.are_text)}|", *body])
