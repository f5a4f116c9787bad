"""A report on made-up runs about FewRel's relations, of which we know what is true."""

import csv
import json

import numpy as np
import pytest

from ebert import EbertError
from ebert.report.relations import make_report, published_figures, read_runs

LABELS = [f"P{number}" for number in range(100, 180)]
PER_RELATION = 20


def write(folder, mode, given, vectors, *, labels=LABELS, complete=True, of="the test file"):
    """Write a run with these answers; the true relations go round."""
    (folder / "evaluations").mkdir(parents=True)
    f1 = {"precision": 50.0, "recall": 50.0, "f1": 50.0}
    info = {
        "kind": "relations", "complete": complete, "mode": mode, "labels": labels, "options": {"epochs": 3},
        "command": f"ebert relations train fewrel --mode {mode}", "names": {"P100": "place of something"},
    }  # fmt: skip
    epochs = [{"epoch": n, "loss": 1 / n, "dev loss": 1 / n, "dev": f1} for n in (1, 2, 3)]
    (folder / "run.json").write_text(json.dumps(info))
    (folder / "metrics.json").write_text(json.dumps({"best epoch": 1, "dev": f1, "dev samples": 9, "epochs": epochs}))
    lines = [
        {"label": labels[row % len(labels)], "given": labels[answer], "probability": 0.5, "vectors": int(vectors[row])}
        for row, answer in enumerate(given)
    ]
    answers = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (folder / "evaluations" / "test.predictions.jsonl").write_text(answers)
    data = {"file": "test.json", "sha256": of, "samples": len(lines)}
    (folder / "evaluations" / "test.json").write_text(json.dumps({"data": data}))
    return folder


@pytest.fixture
def runs(tmp_path):
    """Plain BERT has every second sample right; with entities, also all those whose entities both have vectors."""
    gold = np.arange(80 * PER_RELATION) % 80
    number = np.arange(len(gold)) // 80  # of the sample within its relation
    vectors = number % 3
    plain = np.where(number % 2 == 0, gold, (gold + 1) % 80)
    better = np.where(vectors == 2, gold, plain)
    return [write(tmp_path / "bert", "bert", plain, vectors), write(tmp_path / "concat", "concat", better, vectors)]


def rows(folder, table):
    with (folder / "tables" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_scores_stand_beside_the_published_ones(runs, tmp_path):
    summary = make_report(runs, tmp_path / "report", resamples=100)
    assert summary["tables"][:3] == ["macro-test", "macro-dev", "published"]
    chosen = rows(tmp_path / "report", "macro-dev")[1]
    assert (chosen["samples"], chosen["F1"], chosen["published F1"]) == ("9", "50.00", "88.19")
    plain, better = rows(tmp_path / "report", "macro-test")
    assert (plain["F1"], plain["published F1"]) == ("50.00", "85.45")
    assert (better["F1"], better["published F1"]) == ("65.00", "88.38")
    low, high = map(float, better["95 % of F1"].split(" to "))
    assert low < 65 < high
    theirs = {row["model"]: row["test F1"] for row in rows(tmp_path / "report", "published")}
    assert theirs["ERNIE"] == "88.32"
    assert theirs["Wikipedia2Vec-BERT-replace"] == "77.45"
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "place of something" in text
    assert (tmp_path / "report" / "index.html").read_text(encoding="utf-8").count("<svg") == 1


def test_gains_are_where_the_vectors_are(runs, tmp_path):
    summary = make_report(runs, tmp_path / "report", resamples=100)
    (headline,) = summary["headlines"]
    assert headline.startswith("test: concat against bert: +15.00 [")
    (row,) = rows(tmp_path / "report", "differences-test")
    assert row["samples: all"] == "1600"
    assert (row["samples: both entities have a vector"], row["samples: one has"]) == ("480", "560")
    assert row["both entities have a vector"].startswith("+50.00 [")
    assert row["one has"] == row["none has"] == "+0.00 [+0.00, +0.00]"
    first = rows(tmp_path / "report", "relations")[0]
    assert (first["samples"], first["F1: bert"], first["both entities have a vector"]) == ("20", "50.00", "6")
    assert (first["gain with: concat"], first["gain without: concat"]) == ("+50.00", "+0.00")
    worst = rows(tmp_path / "report", "confusions-bert")[0]
    assert (worst["true relation"], worst["given"], worst["samples"]) == ("P100 place of something", "P101", "10")
    matrix = rows(tmp_path / "report", "matrix-bert")[0]
    assert (matrix[""], matrix["P100"], matrix["P101"], matrix["P102"]) == ("P100", "10", "10", "0")


def test_gains_by_the_store_of_either_run(runs, tmp_path):
    """BERT trained without a store knows nothing of coverage."""
    plain = [json.loads(line) for line in (runs[0] / "evaluations" / "test.predictions.jsonl").read_text().splitlines()]
    given = [LABELS.index(row["given"]) for row in plain]
    alone = write(tmp_path / "alone", "bert", given, np.zeros(len(given), int))
    make_report([runs[1], alone], tmp_path / "report", resamples=100)
    (row,) = rows(tmp_path / "report", "differences-test")
    assert row["samples: both entities have a vector"] == "480"
    assert row["both entities have a vector"].startswith("\N{MINUS SIGN}50.00 [")
    assert rows(tmp_path / "report", "relations")[0]["both entities have a vector"] == "6"


def test_runs_of_the_same_name_are_told_apart(runs, tmp_path):
    number = np.arange(80 * PER_RELATION)
    other = write(tmp_path / "more" / "concat", "concat", number % 80, np.zeros(len(number), int))
    summary = make_report([runs[1], other], tmp_path / "report", resamples=100)
    assert summary["runs"] == [f"{tmp_path.name}/concat", "more/concat"]
    assert rows(tmp_path / "report", "confusions-more-concat") == []
    assert len(rows(tmp_path / "report", f"confusions-{tmp_path.name}-concat")) == 30
    with pytest.raises(EbertError, match="is given twice"):
        make_report([runs[1], runs[1]], tmp_path / "twice", resamples=100)


def test_odd_labels(tmp_path):
    labels = ["line\u2028break", "b"]
    run = write(tmp_path / "odd", "bert", [0, 1], [2, 2], labels=labels)
    assert make_report([run], tmp_path / "report", resamples=100)["headlines"] == [
        "test: odd has a macro F1 of 100.00 %."
    ]


def test_what_cannot_be_reported(runs, tmp_path):
    out = tmp_path / "report"
    other = write(tmp_path / "other", "bert", [0, 1], [2, 2], labels=["a", "b"])
    half = write(tmp_path / "half", "bert", [0, 1], [2, 2], complete=False)
    fewer = write(tmp_path / "fewer", "bert", list(range(80)), [2] * 80)
    elsewhere = write(tmp_path / "elsewhere", "bert", [0] * 1600, [2] * 1600, of="another file with the same relations")
    for folders, complaint in (
        ([runs[0], other], "have other relations"),
        ([half], "is not complete"),
        ([runs[0], fewer], "were evaluated on other test samples"),
        ([runs[0], elsewhere], "were evaluated on other test samples"),
        ([tmp_path], "is not a run of 'ebert relations train'"),
    ):
        with pytest.raises(EbertError, match=complaint):
            make_report(folders, out)
    assert not out.exists()
    make_report(runs[:1], out, resamples=100)
    with pytest.raises(EbertError, match="--overwrite"):
        make_report(runs, out, resamples=100)
    (runs[0] / "evaluations" / "test.predictions.jsonl").write_text('{"label": "P100"}\n')
    with pytest.raises(EbertError, match="is damaged"):
        read_runs(runs[:1])


def test_the_published_figures_are_whole():
    assert list(published_figures()) == [
        "BERT", "E-BERT-concat", "E-BERT-replace", "Wikipedia2Vec-BERT-concat", "Wikipedia2Vec-BERT-replace", "ERNIE",
    ]  # fmt: skip
    assert all(len(row) == 6 for row in published_figures().values())
    assert [row[5] for row in published_figures().values()] == [85.45, 88.38, 87.22, 85.84, 77.45, 88.32]
