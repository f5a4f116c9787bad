"""A report on runs of `ebert probe`: read, check, write the sections, put them into a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.report import lama_questions, lama_scores, published
from ebert.report.comparison import ReportData, common
from ebert.report.document import MARKER, Cell, ReportDocument, ReportOptions, Section, Table, write_report
from ebert.report.runs import ProbeRun, read_runs, verified


def make_report(
    folders: Sequence[Path], out: Path, options: ReportOptions, *, overwrite: bool = False, advance: Advance = silent
) -> dict[str, Any]:
    """Write the report on some runs into the folder `out`; return what its `report.json` says."""
    files.refuse_existing(out, overwrite=overwrite, marker=MARKER)
    runs = read_runs(folders)
    _have_something_in_common(runs)
    data = ReportData(runs, {run.name: verified(run) for run in runs}, options)
    advance(1)
    report = _report(data, advance)
    summary = write_report(report, out, runs=[run.label for run in runs], overwrite=overwrite)
    advance(1)
    return summary


def _report(data: ReportData, advance: Advance) -> ReportDocument:
    sections = []
    for maker in SECTIONS:
        section = maker(data)
        if section is not None:
            sections.append(section)
        advance(1)
    names = ", ".join(run.name for run in data.runs)
    what = "LAMA" if data.is_lama else "Probing"
    about = [_about(run) for run in data.runs]
    return ReportDocument(f"{what}: {names}", about, _warnings(data.runs), lama_scores.headlines(data), sections)


def _have_something_in_common(runs: Sequence[ProbeRun]) -> None:
    for number, run in enumerate(runs):
        for earlier in runs[:number]:
            if run.is_lama != earlier.is_lama or not common(run, earlier)[0].size:
                raise EbertError(
                    f"{earlier.folder} and {run.folder} have no question in common; report them one by one"
                )


def _warnings(runs: Sequence[ProbeRun]) -> list[str]:
    """Return what keeps the runs from being results like others."""
    said = []
    for run in runs:
        if not run.complete:
            said.append(f"{run.name} is incomplete: {len(run.ids):,} questions so far. Its figures will change.")
        if run.info.get("limit") is not None:
            said.append(
                f"{run.name} asked at most {run.info['limit']} questions of each relation (--limit). "
                "Its figures are for trying out, not to be quoted or set against published ones."
            )
        if run.is_lama and not published.covers(run.outcomes.relations):
            said.append(
                f"{run.name} has {len(run.outcomes.relations)} of LAMA's {len(published.figures()['relations'])} "
                "relations: its means, and the published ones beside them, are over these."
            )
        if run.info.get("oracle"):
            said.append(f"{run.name} took its subjects' entities from the benchmark's own annotation (--oracle).")
        said += [f"{run.name}: {note}." for note in run.notes]
    return said


def _runs_section(data: ReportData) -> Section:
    """Write the section on what was run: encoders, vectors, commands."""
    facts = [_facts(run) for run in data.runs]
    names = list(dict.fromkeys(name for one in facts for name in one))
    rows = [(name, *cells) for name in names if any(cells := [one.get(name) for one in facts])]
    text = [
        "All scores of this report were computed anew from the predictions of these runs, and agree with metrics.json."
    ]
    missing = [run.label for run in data.runs if not run.has("metrics.json")]
    if missing:
        text = [f"All scores were computed from the predictions; there is no metrics.json yet in {', '.join(missing)}."]
    return Section("runs", "Runs", text, [
        Table("runs", "What was run", ("", *(run.label for run in data.runs)), rows),
    ])  # fmt: skip


def _about(run: ProbeRun) -> tuple[str, str]:
    """Return what a run is, in a line, and its command."""
    facts = _facts(run)
    vectors = facts["vectors"]
    said = f"no vectors, {facts['questions']:,} questions"
    if vectors:
        entities = f"{facts['entities']:,} " if isinstance(facts["entities"], int) else ""
        said = (
            f"{entities}entity vectors ({vectors}), {facts['questions']:,} questions, "
            f"{facts['with a vector']} with a vector"
        )
    return f"{run.label}: {run.encoder}, {said}.", str(run.info.get("command", ""))


def _facts(run: ProbeRun) -> dict[str, Cell]:
    info = run.info
    model = info.get("model") or {}
    vectors = model.get("vectors") or {}
    covered = int(run.outcomes.covered.sum())
    return {
        "benchmark": str(info["benchmark"]),
        "encoder": run.encoder,
        "model": model.get("name") if model else "none: plain BERT",
        "vectors": Path(str(vectors["path"])).name if vectors.get("path") else None,
        "command": info.get("command"),
        "vectors' fingerprint": str(vectors["fingerprint"])[:12] if vectors.get("fingerprint") else None,
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


SECTIONS = (
    lama_scores.means, lama_scores.differences, lama_scores.changes, lama_scores.curves, lama_questions.frequency,
    lama_questions.deleted, lama_questions.native, lama_questions.changed, lama_scores.every_relation, _runs_section,
)  # fmt: skip
STEPS = len(SECTIONS) + 2  # what `advance` counts: reading, the sections, writing
