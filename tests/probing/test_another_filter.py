"""A filter is one entry of the registry: runs, scores, the command line and reports know it from there."""

import json

from ebert.cli import cli
from ebert.probing.filters import FILTERS, Filter


def test_another_filter_is_one_entry(small_model, lama, tmp_path, monkeypatch):
    short = Filter(
        name="long-names", rule="short-name", help="without subjects of less than five letters",
        takes_out=lambda question, _: len(question.subject) < 5,
    )  # fmt: skip
    monkeypatch.setitem(FILTERS, short.name, short)
    run, report = tmp_path / "run", tmp_path / "report"
    given = ["--model", small_model, "--filter", "all,long-names", "--out", str(run)]
    cli(["probe", "lama", str(lama), *given], standalone_mode=False)
    scores = json.loads((run / "metrics.json").read_text())["modes"]["bert"]
    predictions = [json.loads(line) for line in (run / "predictions.jsonl").read_text().splitlines()]
    left = [row for row in predictions if row["dropped"] is None]
    assert "short-name" in {row["dropped"] for row in predictions}
    assert scores["all"]["questions"] == len(predictions)
    assert scores["long-names"]["questions"] == len(left)
    cli(["report", "--check", str(run)], standalone_mode=False)
    cli(["report", str(run), "--out", str(report), "--resamples", "100"], standalone_mode=False)
    assert short.help in (report / "report.md").read_text()
    deleted = (report / "tables" / "deleted.csv").read_text().splitlines()
    assert "short-name" in deleted[0].split(",")
