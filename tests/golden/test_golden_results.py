"""The committed results: their figures follow from their predictions, and reports of them say the same as ever."""

from pathlib import Path

from golden_tools import check_json, check_text, run

RESULTS = Path(__file__).parents[2] / "results"


def test_check_of_all_committed_runs(monkeypatch):
    monkeypatch.chdir(RESULTS.parent)
    runs = sorted(path.parent.relative_to(RESULTS.parent) for path in RESULTS.glob("lama/*/predictions.jsonl.xz"))
    check_json("report-check.json", run("report", "--check", "--json", *runs).json)
    check_text("report-check.txt", run("report", "--check", *runs).out)


def test_report_on_committed_relations(monkeypatch, tmp_path):
    monkeypatch.chdir(RESULTS.parent)
    runs = ["results/fewrel/bert", "results/fewrel/concat"]
    summary = run("relations", "report", *runs, "--resamples", 100, "--out", tmp_path / "report", "--json").json
    assert summary.pop("folder") == str(tmp_path / "report")
    check_json("relations-report.json", summary)
    for name in ("macro-test", "macro-dev", "published", "differences-test", "relations"):
        check_text(f"relations-report/{name}.csv", (tmp_path / "report" / "tables" / f"{name}.csv").read_text("utf-8"))
    check_text("relations-report/report.md", (tmp_path / "report" / "report.md").read_text("utf-8"))
