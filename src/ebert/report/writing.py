"""A report as a folder: a page, a Markdown file, tables as CSV, plots as SVG, and `report.json`."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ebert._io import files
from ebert.report import html, markdown
from ebert.report.document import Report, flat

MARKER = "report.json"


def write(
    report: Report, out: Path, *, runs: Sequence[str], overwrite: bool, more: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Write a report on runs, and `more` texts by their path in the folder; give what `report.json` says."""
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
        "index.html": html.page(report),
        "report.md": markdown.document(report),
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
