"""The full runs of LAMA in results/: their scores follow from their predictions, and plain BERT's are the paper's."""

from pathlib import Path

import pytest

from ebert.report.published import figures
from ebert.report.runs import read_run, verified

SHIPPED = Path(__file__).parents[2] / "results" / "lama"
OTHER_COPY = {"P131", "P276", "P279", "P361", "P1376"}  # where our copy of LAMA is known to differ


@pytest.fixture(scope="module", params=["best", "published-recipe"])
def run(request):
    return read_run(SHIPPED / request.param)


def test_metrics_follow_from_predictions_and_plain_bert_is_the_paper_s(run):
    scores = verified(run)["bert"]
    means = {"all": 29.2, "string-match": 22.3, "uhn": 20.2}
    for name, mean in means.items():
        assert scores[name]["macro"]["hits@1"] == pytest.approx(mean, abs=0.05)
        for relation, paper in figures()["relations"].items():
            own, wanted = scores[name]["relations"][relation], paper[name]
            other = relation in OTHER_COPY
            assert own["hits@1"] == pytest.approx(wanted["hits@1"]["BERT-base"], abs=1.0 if other else 0.1), relation
            assert abs(own["questions"] - wanted["questions"]) <= (3 if other else 0), relation


def test_entities_help_where_there_are_vectors(run):
    covered = {mode: scores["string-match"]["covered_only"] for mode, scores in verified(run).items()}
    gain = covered["concat"]["macro"]["hits@1"] - covered["bert"]["macro"]["hits@1"]
    assert gain > (4 if run.name == "best" else -1)


def test_no_text_of_lama_is_shipped(run):
    assert not run.has("questions.jsonl")
    some = next(iter(run.answers({run.ids[0]}).values()))
    assert set(some) == {"id", "relation", "covered", "count", "dropped", "modes"}
