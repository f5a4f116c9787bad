"""A report as Markdown, with its plots as files beside it."""

import re

from ebert.report.document import Plot, Report, Section, Table, shown


def document(report: Report) -> str:
    """Write the document."""
    lines = [f"# {escape(report.title)}", ""]
    for what, command in report.about:
        lines += [escape(what), "", f"    {' '.join(command.split())}", ""]
    for text in report.warnings:
        lines += [f"> **Warning:** {escape(text)}", ""]
    lines += [f"- {escape(text)}" for text in report.headlines] + [""]
    for section in report.sections:
        lines += _section(section)
    return "\n".join(lines).rstrip() + "\n"


def escape(text: str) -> str:
    """Write text so that Markdown shows it as it is."""
    return re.sub(r"([\\`*_\[\]<>|#&~$])", r"\\\1", text.replace("\r", " ").replace("\n", " "))


def _section(section: Section) -> list[str]:
    lines = [f"## {escape(section.title)}", ""]
    for paragraph in section.text:
        lines += [escape(paragraph), ""]
    for part in section.parts:
        lines += _plot(part) if isinstance(part, Plot) else _table(part)
    return lines


def _plot(plot: Plot) -> list[str]:
    return [f"![{escape(plot.title)}](plots/{plot.key}.svg)", "", escape(plot.caption), ""]


def _table(table: Table) -> list[str]:
    texts = [any(isinstance(row[place], str) for row in table.rows) for place in range(len(table.header))]
    lines = [f"### {escape(table.title)}", ""]
    lines.append("| " + " | ".join(map(escape, table.header)) + " |")
    lines.append("|" + "|".join("---" if is_text else "--:" for is_text in texts) + "|")
    lines += ["| " + " | ".join(escape(shown(cell)) for cell in row) + " |" for row in table.rows]
    return [*lines, "", *([escape(table.note), ""] if table.note else [])]
