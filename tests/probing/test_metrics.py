"""The scores of a probing run: by hand, against a slow and plain computation, at the edges."""

import random

import numpy as np
import pytest

from ebert.errors import EbertError
from ebert.probing.filters import FILTERS
from ebert.probing.metrics import NAMES, Outcomes, metrics


def row(relation, ranks, *, covered=True, dropped=None, probability=0.5):
    modes = {mode: {"rank": rank, "probability": probability, "top": []} for mode, rank in ranks.items()}
    return {"id": "x", "relation": relation, "covered": covered, "count": 1, "dropped": dropped, "modes": modes}


ROWS = [
    row("P1", {"bert": 1}),
    row("P1", {"bert": 2}, dropped="string-match"),
    row("P1", {"bert": 4}, covered=False),
    row("P2", {"bert": 101}, dropped="name", probability=0.1),
]


def test_by_hand():
    scores = metrics(ROWS, ["bert"], FILTERS)["bert"]
    every = scores["all"]
    assert (every["questions"], every["covered"]) == (4, 3)
    assert every["relations"]["P1"]["hits@1"] == 33.3333
    assert every["relations"]["P1"]["hits@3"] == 66.6667
    assert every["relations"]["P1"]["mrr"] == round(100 * (1 + 1 / 2 + 1 / 4) / 3, 4)
    assert every["relations"]["P2"]["hits@100"] == 0
    assert every["relations"]["P2"]["probability"] == 10
    assert every["macro"]["hits@1"] == 16.6667
    assert every["micro"]["hits@1"] == 25
    assert every["macro"]["probability"] == 30
    assert every["micro"]["probability"] == 40
    assert every["covered_only"]["relations"]["P1"] | {"hits@2": None} == {
        **every["covered_only"]["relations"]["P1"], "questions": 2, "covered": 2, "hits@1": 50, "hits@2": None,
    }  # fmt: skip


def test_filters():
    scores = metrics(ROWS, ["bert"], FILTERS)["bert"]
    assert [scores[name]["questions"] for name in FILTERS] == [4, 3, 2]
    assert scores["string-match"]["relations"]["P1"]["hits@1"] == 50
    assert set(scores["string-match"]["relations"]) == {"P1", "P2"}
    # A relation without questions is absent, and does not pull the mean down.
    assert set(scores["uhn"]["relations"]) == {"P1"}
    assert scores["uhn"]["macro"]["hits@1"] == 50


def test_nothing_left():
    empty = {"questions": 0, "covered": 0, "relations": {}, "macro": {}, "micro": {}}
    rows = [row("P1", {"bert": 1}, covered=False), row("P1", {"bert": 1}, covered=False, dropped="name")]
    assert metrics(rows, ["bert"], ["all"])["bert"]["all"]["covered_only"] == empty
    assert metrics([], ["bert"], ["uhn"])["bert"]["uhn"] == {**empty, "covered_only": empty}


def test_against_a_plain_computation():
    rng = random.Random(7)
    rows = [
        row(
            f"P{rng.randrange(6)}",
            {mode: int(10 ** rng.uniform(0, 2.5)) for mode in ("bert", "concat")},
            covered=rng.random() < 0.6,
            dropped=rng.choice([None, None, "string-match", "name"]),
            probability=rng.random(),
        )
        for _ in range(500)
    ]
    scores = metrics(iter(rows), ["bert", "concat"], FILTERS)

    def plain(mode, kept, name):
        values = []
        for line in kept:
            answer = line["modes"][mode]
            if name == "mrr":
                values.append(1 / answer["rank"])
            elif name == "probability":
                values.append(answer["probability"])
            else:
                values.append(answer["rank"] <= int(name.removeprefix("hits@")))
        return 100 * sum(values) / len(values)

    keeps = {
        "all": lambda _: True,
        "string-match": lambda line: line["dropped"] != "string-match",
        "uhn": lambda line: line["dropped"] is None,
    }
    for mode in scores:
        for name, keep in keeps.items():
            for covered_only in (False, True):
                kept = [line for line in rows if keep(line) and (line["covered"] or not covered_only)]
                block = scores[mode][name]["covered_only"] if covered_only else scores[mode][name]
                relations = sorted({line["relation"] for line in kept})
                assert sorted(block["relations"]) == relations
                for score in NAMES:
                    each = [plain(mode, [line for line in kept if line["relation"] == r], score) for r in relations]
                    assert [block["relations"][r][score] for r in relations] == pytest.approx(each, abs=6e-5)
                    assert block["macro"][score] == pytest.approx(np.mean(each), abs=6e-5)
                    assert block["micro"][score] == pytest.approx(plain(mode, kept, score), abs=6e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modes": {}}, "no 'bert'"),
        ({"dropped": "other"}, "row 2"),
        ({"modes": {"bert": {"rank": 0, "probability": 0.1}}}, "a rank of 0"),
        ({"modes": {"bert": {"rank": None, "probability": 0.1}}}, "row 2"),
        ({"modes": None}, "row 2"),
    ],
)
def test_damaged_rows(change, message):
    with pytest.raises(EbertError, match=message):
        metrics([ROWS[0], {**ROWS[1], **change}], ["bert"], ["all"])


def test_unknown_filter():
    with pytest.raises(EbertError, match="unknown filter 'other'; choose from all, string-match, uhn"):
        Outcomes.read(ROWS, ["bert"]).kept("other")
