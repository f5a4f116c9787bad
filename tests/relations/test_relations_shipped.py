"""The runs on FewRel in results/: their scores follow from their answers, and they differ in their mode only."""

import json
from pathlib import Path

import pytest

from ebert.relations.evaluate import confusion, scores
from ebert.relations.options import VARIANTS
from ebert.report.relations import is_fewrel, read_runs

SHIPPED = Path(__file__).parents[2] / "results" / "fewrel"
FOLDERS = sorted(path.parent for path in SHIPPED.glob("*/run.json"))


@pytest.fixture(scope="module")
def runs():
    return read_runs(FOLDERS)


def test_scores_follow_from_the_answers(runs):
    for run in runs:
        found = run.splits["test"]
        said = json.loads((run.folder / "evaluations" / "test.json").read_text(encoding="utf-8"))
        assert scores(confusion(found.gold, found.given, len(run.labels))).macro() == pytest.approx(said["macro"])
        assert (is_fewrel(run), len(found.gold), said["covered"]) == (True, 16_000, int((found.vectors == 2).sum()))


def test_the_variants_differ_in_their_mode_only(runs):
    alike = {
        run.mode: {key: run.info[key] for key in ("options", "resolving", "model", "data", "coverage")}
        for run in runs
        if run.name == run.mode
    }
    assert set(alike) == set(VARIANTS)
    assert all(one == alike["bert"] for one in alike.values())


def test_plain_bert_is_that_of_the_paper(runs):
    (run,) = (run for run in runs if run.name == "bert-10")
    assert (run.mode, run.info["options"]["epochs"], run.info["options"]["learning_rate"]) == ("bert", 10, 5e-5)
    said = json.loads((run.folder / "evaluations" / "test.json").read_text(encoding="utf-8"))
    assert said["macro"]["f1"] == pytest.approx(85.45, abs=1.5)


def test_no_text_of_fewrel_and_no_folder_of_a_machine_is_shipped(runs):
    for run in runs:
        assert " /" not in run.info["command"]
        assert not list(run.folder.rglob("*.predictions.jsonl"))  # packed, and without the text
        assert {path.name for path in run.folder.rglob("*") if path.is_file()} == {
            "run.json", "metrics.json", "test.json", "test.predictions.jsonl.xz",
        }  # fmt: skip
