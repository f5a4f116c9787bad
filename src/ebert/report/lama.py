"""From run folders to a report: read, check, write the sections, put them into a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.report import curves, differences, examples, facts, frequency, lama_questions, lama_relations, lama_scores
from ebert.report.checking import verified
from ebert.report.comparison import common
from ebert.report.document import Options, Report
from ebert.report.material import Material
from ebert.report.runs import Run, read_runs
from ebert.report.writing import MARKER, write

SECTIONS = (
    lama_scores.section, differences.section, lama_relations.changes, curves.section, frequency.section,
    lama_questions.section, examples.native, examples.changed, lama_relations.every, facts.section,
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
    summary = write(report, out, runs=[run.label for run in runs], overwrite=overwrite)
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
