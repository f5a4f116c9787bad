"""LAMA-UHN, written from a small LAMA: the examples of the paper's Table 2, judged by the real BERT."""

import json
import shutil

import pytest
from small_lama import line, rows

from ebert import EbertError
from ebert.probing.filters import Deleted, write_uhn
from ebert.probing.lama import read_lama

KEPT = [("P103", "Daniel Ceccaldi", "French"), ("P176", "Boeing 747", "Airbus")]
DROPPED = [
    ("P1412", "Fulvio Tomizza", "Italian"),
    ("P103", "Tommy Nilsson", "Swedish"),
    ("P27", "Harumi Inoue", "Japan"),
    ("P176", "Fiat Multipla", "Fiat"),
    ("P138", "Christmas Island", "Christmas"),
    ("P1001", "Australian Senate", "Australia"),
]


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "lama"
    (folder / "TREx").mkdir(parents=True)
    for number, (relation, subject, answer) in enumerate(KEPT + DROPPED):
        with (folder / "TREx" / f"{relation}.jsonl").open("a") as file:
            file.write(line(f"u{number}", subject, answer, None, "TREx") + "\n")
    relations = dict.fromkeys(relation for relation, _, _ in KEPT + DROPPED)
    (folder / "relations.jsonl").write_text(
        "".join(json.dumps({"relation": name, "template": "[X] is [Y] ."}) + "\n" for name in relations)
    )
    (folder / "common_vocab_cased.txt").write_text("French\nItalian\n")
    return folder


@pytest.mark.real
def test_the_paper_s_examples_are_deleted_and_others_stay(bert, data, tmp_path):
    deleted, unjudged = write_uhn(data, tmp_path / "uhn", bert)
    assert unjudged == {}
    assert deleted == [
        Deleted(relation, asked, {"string-match": matched, "name": guessed})
        for relation, asked, matched, guessed in [
            ("P27", 1, 0, 1), ("P103", 2, 0, 1), ("P138", 1, 1, 0), ("P176", 2, 1, 0), ("P1001", 1, 1, 0),
            ("P1412", 1, 0, 1),
        ]
    ]  # fmt: skip
    left = read_lama(tmp_path / "uhn")
    assert sorted((q.relation, q.subject, q.answers[0]) for q in left.questions) == sorted(KEPT)
    for relation in ("P103", "P176"):  # lines are LAMA's own, to the byte
        own = (tmp_path / "uhn" / "TREx" / f"{relation}.jsonl").read_bytes()
        assert own in (data / "TREx" / f"{relation}.jsonl").read_bytes()
    assert (tmp_path / "uhn" / "relations.jsonl").read_bytes() == (data / "relations.jsonl").read_bytes()
    told = {row["relation"]: row for row in rows(tmp_path / "uhn" / "dropped.jsonl")}
    assert told["P103"]["parts"] == [{"part": "Tommy", "rank": None}, {"part": "Nilsson", "rank": 1}]
    assert told["P103"]["where"] == "TREx/P103.jsonl:2"
    assert told["P176"]["rule"] == "string-match"


def test_an_encoder_that_lower_cases_drops_names_too(data, lower_casing, tmp_path):
    """The answer is made one of its guesses, with a capital."""
    guess = lower_casing.fill("Tommy is a common name in the following language: [MASK].", mode="bert").best
    assert guess.islower()
    (data / "TREx" / "P103.jsonl").write_text(line("u", "Tommy Nilsson", guess.capitalize(), None, "TREx") + "\n")
    deleted = {row.relation: row for row in write_uhn(data, tmp_path / "uhn", lower_casing)[0]}
    assert deleted["P103"].by_rule["name"] == 1


def test_archives_are_written_alike_and_what_cannot_be_judged_is_told(data, lower_casing, tmp_path):
    shutil.copy(data / "TREx" / "P103.jsonl", data / "TREx" / "P9999.jsonl")
    archive = shutil.make_archive(str(tmp_path / "zipped"), "zip", data.parent, "lama")
    told = [write_uhn(source, tmp_path / f"uhn{n}", lower_casing) for n, source in enumerate([data, archive])]
    assert told[0] == told[1]
    assert list(told[0][1].values()) == [2]
    for file in sorted((tmp_path / "uhn0").rglob("*.*")):
        assert file.read_bytes() == (tmp_path / "uhn1" / file.relative_to(tmp_path / "uhn0")).read_bytes()


def test_nothing_else_is_overwritten(data, tmp_path):
    (tmp_path / "uhn").mkdir()
    (tmp_path / "uhn" / "mine").write_text("x")
    with pytest.raises(EbertError, match="exists"):
        write_uhn(data, tmp_path / "uhn", None)
    with pytest.raises(EbertError, match="contains something else"):
        write_uhn(data, tmp_path / "uhn", None, overwrite=True)
