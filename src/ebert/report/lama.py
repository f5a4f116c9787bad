"""A report on runs of `ebert probe`: read, check, write the sections, put them into a folder."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.report import lama_questions, lama_scores, published
from ebert.report.comparison import ReportData, common
from ebert.report.document import MARKER, Cell, ReportDocument, ReportOptions, Section, Table, write_report
from ebert.report.runs import ProbeRun, read_runs


def make_report(
    folders: Sequence[Path], out: Path, options: ReportOptions, *, overwrite: bool = False, advance: Advance = silent
) -> dict[str, Any]:
    """Write the report on some runs into the folder `out`; return what its `report.json` says."""
    files.refuse_existing(out, overwrite=overwrite, marker=MARKER)
    runs = read_runs(folders)
    for one, other in combinations(runs, 2):
        if one.is_lama != other.is_lama or not common(one, other)[0].size:
            raise EbertError(f"{one.folder} and {other.folder} have no question in common; report them one by one")
    data = ReportData.of(runs, options)
    advance(1)
    sections = []
    for write in SECTIONS:
        sections.append(write(data))
        advance(1)
    report = ReportDocument(
        f"{'LAMA' if data.is_lama else 'Probing'}: {', '.join(run.name for run in runs)}",
        lama_scores.conclusion(data),
        [(_about(run), str(run.info.get("command", ""))) for run in runs],
        [f"{run.name}{said}" for run in runs for said in _warnings(run)],
        lama_scores.headlines(data),
        [section for section in sections if section is not None],
    )
    summary = write_report(report, out, runs=[run.label for run in runs], overwrite=overwrite)
    advance(1)
    return summary


def _warnings(run: ProbeRun) -> list[str]:
    """Return why a run is not an ordinary result, as sentences that begin with its name."""
    asked, limit = run.outcomes.relations, run.info.get("limit")
    said = []
    if not run.complete:
        said.append(f" is incomplete: {len(run.ids):,} questions so far. Its figures will change.")
    if limit is not None:
        said.append(
            f" asked at most {limit} questions of each relation (--limit). "
            "Its figures are for trying out, not to be quoted or set against published ones."
        )
    if run.is_lama and not published.covers(asked):
        said.append(
            f" has {len(asked)} of LAMA's {len(published.figures()['relations'])} relations: "
            "its means, and the published ones beside them, are over these."
        )
    if run.info.get("oracle"):
        said.append(" took its subjects' entities from the benchmark's own annotation (--oracle).")
    return said + [f": {note}." for note in run.notes]


def _runs_section(data: ReportData) -> Section:
    """Write the section on what was run: encoders, vectors, commands."""
    facts = [_facts(run) for run in data.runs]
    rows = [(name, *(one[name] for one in facts)) for name in facts[0] if any(one[name] for one in facts)]
    text = (
        "All scores of this report were computed again from the predictions of these runs, and agree with metrics.json."
    )
    if missing := [run.label for run in data.runs if not run.has("metrics.json")]:
        text = f"All scores were computed from the predictions; there is no metrics.json yet in {', '.join(missing)}."
    table = Table("runs", "What was run", ("", *(run.label for run in data.runs)), rows)
    return Section("runs", "Runs", [text], [table])


def _about(run: ProbeRun) -> str:
    """Return what a run is, in a line."""
    facts = _facts(run)
    said = f"no vectors, {facts['questions']:,} questions"
    if facts["vectors"]:
        entities = f"{facts['entities']:,} " if isinstance(facts["entities"], int) else ""
        said = (
            f"{entities}entity vectors ({facts['vectors']}), {facts['questions']:,} questions, "
            f"{facts['with a vector']} with a vector"
        )
    return f"{run.label}: {run.encoder}, {said}."


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
