"""Folders of old code: a store with an addition, a model, a linker and runs. They open, and answer as then."""

import json
import shutil
from dataclasses import asdict

import pytest
from golden_tools import DATA, differences, run
from golden_world import QUESTION, TEXT

import ebert


@pytest.fixture(scope="module", params=["v0.1", "v0.2"])
def old(request, tmp_path_factory):
    """A copy of the folders."""
    return shutil.copytree(DATA / request.param, tmp_path_factory.mktemp("old") / request.param)


@pytest.fixture(scope="module")
def answers(old):
    """What the old code answered."""
    return json.loads((old / "answers.json").read_text("utf-8"))


def near(now, frozen) -> bool:
    """Return whether an answer is the old one; newer code may say more."""
    return not [text for text in differences(frozen, now, within=1e-3) if not text.endswith(": new")]


def test_the_store_and_what_was_added_to_it(old, answers, tmp_path):
    store = shutil.copytree(old / "model" / "vectors", tmp_path / "store")
    names = ["Zo", "Q4242", "z", "Zork", "jean_Marais"]
    assert near(run("vectors", "find", store, "--json", *names).json, answers["find"])
    assert near(run("vectors", "nearest", store, "Zork", "--top", 3, "--json").json, answers["nearest"])
    about = run("vectors", "info", store, "--json").json
    assert (about["words"], about["entities"], about["added"], about["surfaces"]) == (33, 12, 1, 6)
    with ebert.Vectors.open(store) as vectors:
        assert list(vectors["Zork"]) == [number / 8 for number in range(8)]
        assert [one.entity.title for one in vectors.candidates("Adams")] == ["John Adams", "Tony Adams (footballer)"]
    run("vectors", "add", store, "Newer", "--vector", "-", stdin="1 " * 8)  # what was added is kept
    assert near(run("vectors", "find", store, "--json", *names, "Newer").json[:-1], answers["find"])


def test_the_model(old, answers):
    model = ebert.EBert.from_pretrained(old / "model", encoder=str(old / "bert"))
    assert model.vectors.path == old / "model" / "vectors"
    for mode, (wanted,) in answers["fill"]["modes"].items():
        found = model.fill(QUESTION, mode=mode, top=3).answers
        assert near([{"token": one.token, "probability": one.probability} for one in found], wanted["answers"])
    assert model.fill("[[Zork]] is [MASK] .", mode="concat").missing == ()


def test_the_linker(old, answers):
    linked = run("link", "run", old / "linker", "--vectors", old / "model" / "vectors", "--json", "--text", TEXT).json
    assert near(linked, answers["link"])
    linker = ebert.Linker.from_pretrained(old / "linker", vectors=old / "model" / "vectors")
    assert asdict(linker.options)["rounds"] == 3


def test_the_relations_run(old, answers):
    vectors = ["--vectors", old / "model" / "vectors"]
    text = "[[Jean Marais]] was born in [[Paris]] ."
    assert near(run("relations", "predict", old / "relations-run", *vectors, "--json", text).json, answers["predict"])
    ebert.RelationClassifier.from_pretrained(old / "relations-run", vectors=old / "model" / "vectors")
    summary = run("relations", "report", old / "relations-run", "--out", old / "report", "--resamples", 100, "--json")
    assert summary.json["headlines"] == ["test: relations-run has a macro F1 of 44.44 %."]


def test_the_probe_run(old):
    told = run("report", "--check", old / "probe-run", "--json").json
    assert (told["ok"], told["questions"], told["differences"]) == (True, 4, [])
