"""`ebert report` and its check, through the door of the shell."""

import dataclasses

from fake_runs import make_run, read_json, write_json

from ebert.cli import report
from ebert.report.document import ReportOptions as Options


def test_a_report(ebert, tmp_path):
    run = make_run(tmp_path / "lama", size=8, limit=8)
    done = ebert("report", run, "--out", tmp_path / "report", "--resamples", 100)
    assert done.code == 0
    assert "lama (limit 8) · concat: Hits@1 " in done.out
    assert "warning: lama asked at most 8 questions" in done.err
    assert (tmp_path / "report" / "index.html").is_file()
    done = ebert("report", run, "--out", tmp_path / "report", "--resamples", 100, "--overwrite", "--json")
    assert done.json["runs"] == ["lama (limit 8)"]
    assert done.json["plots"] == ["means", "changes", "curves", "frequency", "deleted"]


def test_a_check(ebert, tmp_path):
    good, bad = make_run(tmp_path / "good", size=8), make_run(tmp_path / "bad", size=8)
    done = ebert("report", "--check", good)
    assert (done.code, done.out) == (0, f"{good}: ok, 88 questions\n")
    written = read_json(bad / "metrics.json")
    written["modes"]["bert"]["uhn"]["covered_only"]["micro"]["hits@7"] += 1
    write_json(bad / "metrics.json", written)
    done = ebert("report", "--check", bad, good)
    assert done.code == 2
    assert done.out == f"{good}: ok, 88 questions\n"
    assert "bad/metrics.json does not agree with the predictions beside it" in done.err
    assert "bert, uhn, covered_only, micro, hits@7: metrics.json has " in done.err
    done = ebert("report", "--check", bad, "--json")
    assert done.code == 2
    assert not done.json["ok"]
    assert len(done.json["differences"]) == 1


def test_bad_input(ebert, tmp_path):
    run = make_run(tmp_path / "lama", size=3)
    for arguments, message in (
        ([run], "say where the report goes"),
        ([run, "--check", "--out", "x"], "not both"),
        ([tmp_path / "nowhere", "--out", "x"], "there is no run at"),
        ([tmp_path, "--out", "x"], "is not a run"),
        ([run, "--out", run], "exists"),
        ([run, "--out", run / "run.json"], "is a file"),
        ([], "Missing argument"),
    ):
        done = ebert("report", *arguments)
        assert done.code == 2
        assert message in done.err


def test_options_agree_with_the_library():
    given = report.command.make_context("report", ["RUN"]).params
    assert {field.name: given[field.name] for field in dataclasses.fields(Options)} == dataclasses.asdict(Options())
