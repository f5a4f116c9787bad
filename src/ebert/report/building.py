"""From run folders to a report: read, check, write the sections, put them into a folder."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ebert import files
from ebert.errors import EbertError
from ebert.progress import Advance, silent
from ebert.report import curves, differences, examples, facts, filters, frequency, html, markdown, means, relations
from ebert.report.checking import verified
from ebert.report.comparing import common
from ebert.report.content import Options, Report, Table, flat
from ebert.report.material import Material
from ebert.report.runs import Run, read_runs

MARKER = "report.json"
SECTIONS = (
    means.section, differences.section, relations.changes, curves.section, frequency.section, filters.section,
    examples.native, examples.changed, relations.every, facts.section,
)  # fmt: skip
STEPS = len(SECTIONS) + 2  # what `advance` counts: reading, the sections, writing


def make_report(
    folders: Sequence[Path], out: Path, options: Options, *, overwrite: bool = False, advance: Advance = silent
) -> dict[str, Any]:
    """Write the report on some runs into the folder `out`; give what its `report.json` says."""
    files.refuse_existing(out, overwrite=overwrite, marker=MARKER)
    runs = read_runs(folders)
    _have_something_in_common(runs)
    material = Material(runs, {run.name: verified(run) for run in runs}, options)
    advance(1)
    report = _report(material, advance)
    summary = {
        "kind": "report",
        "format": 1,
        "runs": [run.label for run in runs],
        "headlines": list(report.headlines),
        "warnings": list(report.warnings),
        "tables": [table.key for table in report.tables],
        "plots": [plot.key for plot in report.plots],
    }
    with files.replacing_folder(out, overwrite=overwrite, marker=MARKER) as folder:
        _write(folder / "index.html", html.page(report))
        _write(folder / "report.md", markdown.document(report))
        for table in report.tables:
            _write(folder / "tables" / f"{table.key}.csv", _csv(table))
        for plot in report.plots:
            _write(folder / "plots" / f"{plot.key}.svg", plot.alone)
        files.write_json(folder / MARKER, summary)
    advance(1)
    return summary


def _report(material: Material, advance: Advance) -> Report:
    sections = []
    for maker in SECTIONS:
        section = maker(material)
        if section is not None:
            sections.append(section)
        advance(1)
    names = ", ".join(run.name for run in material.runs)
    what = "LAMA" if material.is_lama else "Probing"
    about = [facts.about(run) for run in material.runs]
    return Report(f"{what}: {names}", about, facts.warnings(material.runs), differences.headlines(material), sections)


def _have_something_in_common(runs: Sequence[Run]) -> None:
    for number, run in enumerate(runs):
        for earlier in runs[:number]:
            if run.is_lama != earlier.is_lama or not common(run, earlier)[0].size:
                raise EbertError(
                    f"{earlier.folder} and {run.folder} have no question in common; report them one by one"
                )


def _csv(table: Table) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(flat(table))
    return file.getvalue()


def _write(path: Path, text: str) -> None:
    with files.replacing(path, "w") as file:
        file.write(text)
