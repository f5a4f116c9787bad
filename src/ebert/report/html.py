"""A report as one HTML page that needs nothing else: style, script and plots are inside."""

from html import escape
from importlib import resources

from ebert.report.comparison import Change
from ebert.report.document import Cell, Plot, Report, Section, Table, shown

LONG = 25  # rows from which a table scrolls in a window of its own
WIDE = 28  # characters from which a column gets more room


def page(report: Report) -> str:
    """Write the page."""
    links = "".join(f'<a href="#{escape(one.key)}">{escape(one.title)}</a>' for one in report.sections)
    warnings = "".join(f'<p class="warning" role="note">⚠ {escape(text)}</p>' for text in report.warnings)
    about = "".join(
        f'<p class="about">{escape(what)}<br><code>{escape(command)}</code></p>\n' for what, command in report.about
    )
    headlines = "".join(f"<li>{escape(text)}</li>" for text in report.headlines)
    sections = "".join(map(_section, report.sections))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.title)}</title>\n<style>\n{_data('page.css')}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(report.title)}</h1>\n{about}{warnings}\n"
        f'<ul class="headlines">{headlines}</ul>\n<nav aria-label="Sections">{links}</nav>\n{sections}'
        "<footer>Made by <code>ebert report</code>. The tables are beside this page as CSV, the plots as SVG."
        "</footer>\n"
        f"</main>\n<script>\n{_data('page.js')}</script>\n</body>\n</html>\n"
    )


def _data(name: str) -> str:
    return (resources.files("ebert.report") / "data" / name).read_text(encoding="utf-8")


def _section(section: Section) -> str:
    text = "".join(f"<p>{escape(paragraph)}</p>\n" for paragraph in section.text)
    parts = "".join(_plot(part) if isinstance(part, Plot) else _table(part) for part in section.parts)
    return f'<section id="{escape(section.key)}">\n<h2>{escape(section.title)}</h2>\n{text}{parts}</section>\n'


def _plot(plot: Plot) -> str:
    return (
        f'<figure>\n<div class="plot" role="img" aria-label="{escape(plot.title)}">\n{plot.svg}</div>\n'
        f"<figcaption>{escape(plot.caption)}</figcaption>\n</figure>\n"
    )


def _table(table: Table) -> str:
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
        + "".join(_cell(cell, kind) for cell, kind in zip(row, kinds, strict=True))
        + "</tr>\n"
        for number, row in enumerate(table.rows)
    )
    long = " long" if len(table.rows) > LONG else ""
    note = f'<p class="note">{escape(table.note)}</p>\n' if table.note else ""
    return (
        f'<h3>{escape(table.title)}</h3>\n<div class="scroll{long}" tabindex="0"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n{note}"
    )


def _cell(cell: Cell, kind: str) -> str:
    if isinstance(cell, Change):
        if cell.clear:
            kind += " up" if cell.value > 0 else " down"
        value = str(cell.value)
    else:
        value = "" if cell is None else str(cell)
    return f'<td class="{kind}" data-value="{escape(value)}">{escape(shown(cell))}</td>'
