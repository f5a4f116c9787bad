"""From run folders to a report: read, check, write the sections, put them into a folder."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ebert import files
from ebert.errors import EbertError
from ebert.progress import Advance, silent
from ebert.report import curves, differences, examples, filters, frequency, html, markdown, means, relations
from ebert.report.checking import verified
from ebert.report.comparing import common
from ebert.report.content import Cell, Options, Report, Section, Table, flat
from ebert.report.material import Material
from ebert.report.runs import Run, read_runs

MARKER = "report.json"
STEPS = 11  # what `advance` counts: reading, the sections, writing


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
    makers = (
        _runs, means.section, differences.section, relations.changes, curves.section, frequency.section,
        filters.section, examples.native, examples.changed, relations.every,
    )  # fmt: skip
    sections = []
    for maker in makers:
        section = maker(material)
        if section is not None:
            sections.append(section)
        advance(1)
    names = ", ".join(run.name for run in material.runs)
    what = "LAMA" if material.is_lama else "Probing"
    return Report(f"{what}: {names}", _warnings(material.runs), differences.headlines(material), sections)


def _have_something_in_common(runs: Sequence[Run]) -> None:
    for number, run in enumerate(runs):
        for earlier in runs[:number]:
            if run.is_lama != earlier.is_lama or not common(run, earlier)[0].size:
                raise EbertError(
                    f"{earlier.folder} and {run.folder} have no question in common; report them one by one"
                )


def _warnings(runs: Sequence[Run]) -> list[str]:
    said = []
    for run in runs:
        if not run.complete:
            said.append(f"{run.name} is incomplete: {len(run.ids):,} questions so far. Its figures will change.")
        if run.info.get("limit") is not None:
            said.append(
                f"{run.name} asked at most {run.info['limit']} questions of each relation (--limit). "
                "Its figures are for trying out, not to be quoted or set against published ones."
            )
        if run.info.get("oracle"):
            said.append(f"{run.name} took its subjects' entities from the benchmark's own annotation (--oracle).")
        said += [f"{run.name}: {note}." for note in run.notes]
    return said


def _runs(material: Material) -> Section:
    """Say what was run: encoders, vectors, commands."""
    facts = [_facts(run) for run in material.runs]
    names = list(dict.fromkeys(name for one in facts for name in one))
    rows = [(name, *(one.get(name) for one in facts)) for name in names]
    text = ["All scores below were computed anew from the predictions of these runs and agree with their metrics.json."]
    return Section("runs", "Runs", text, [
        Table("runs", "What was run", ("", *(run.label for run in material.runs)), rows),
    ])  # fmt: skip


def _facts(run: Run) -> dict[str, Cell]:
    info = run.info
    model = info.get("model") or {}
    vectors = model.get("vectors") or {}
    covered = int(run.outcomes.covered.sum())
    return {
        "benchmark": str(info["benchmark"]),
        "encoder": run.encoder,
        "model": str(model["name"]) if model.get("name") else "none: plain BERT",
        "vectors": Path(str(vectors["path"])).name if vectors.get("path") else None,
        "command": info.get("command"),
        "entities": vectors.get("entities"),
        "dimension": vectors.get("dimension"),
        "modes": ", ".join(run.modes),
        "filters": ", ".join(run.filters),
        "questions": len(run.ids),
        "with a vector": f"{covered:,} ({100 * covered / len(run.ids):.1f} %)",
        "found by": _listed(info.get("covered_by")),
        "not asked": _listed(info.get("not asked")),
        "candidate answers": info.get("candidates"),
        "precision": info.get("precision"),
        "state": run.warning or "complete",
        "ebert": info.get("ebert"),
        "minutes": round(float(info["seconds"]) / 60, 1) if info.get("seconds") is not None else None,
        "machine": info.get("machine"),
    }


def _listed(counts: Any) -> str | None:
    if not isinstance(counts, dict):
        return None
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items() if count) or "none"


def _csv(table: Table) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(flat(table))
    return file.getvalue()


def _write(path: Path, text: str) -> None:
    with files.replacing(path, "w") as file:
        file.write(text)
