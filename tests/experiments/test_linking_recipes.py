"""The recipes of the linking results, on a very small scale: what they compare, and that they do not mix results up."""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

import encoders
import pytest

from ebert import EBert, Vectors
from ebert.linking.evaluate import Counts, DocumentScore, LinkEvaluation

sys.path.append(str(Path(__file__).parents[1] / "linking"))
import link_world

ROOT = Path(__file__).parents[2]

PIECES = [*encoders.SPECIAL, "/", "*", ".", "'", "s", "Adams", "Platt", *link_world.WORDS]


def recipe(name):
    spec = importlib.util.spec_from_file_location(f"recipe_{name}", ROOT / "experiments" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def work(tmp_path):
    """A working folder as `experiments/linking.py` leaves it after its first steps."""
    store = link_world.write_store(tmp_path / "vectors")
    EBert.fit(encoders.write_small(tmp_path / "bert", PIECES), store).save_pretrained(
        tmp_path / "model", include_vectors=False, include_encoder=False
    )
    mentions = [{"start": 0, "end": 5, "entity": "Tony Adams (footballer)"}]
    (tmp_path / "documents").mkdir()
    for name, count in (("train.jsonl", 3), ("held-out.jsonl", 4)):
        rows = ({"id": str(n), "text": link_world.TEXT, "mentions": mentions} for n in range(count))
        (tmp_path / "documents" / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return tmp_path


def test_the_strategies_are_held_against_each_other_and_kept(work, monkeypatch, capsys):
    strategies = recipe("strategies")

    def run(*more):
        out = ["--work", str(work), "--out", str(work / "out"), "--spans", "8", "--chunk", "64"]
        monkeypatch.setattr(sys, "argv", ["strategies.py", *out, *more])
        strategies.main()
        return json.loads((work / "out.json").read_text("utf-8"))

    found = run("--documents", "2")
    assert list(found["rows"]) == list(strategies.ROWS)
    for name, row in found["rows"].items():
        for kind in ("end to end", "given mentions"):
            assert row[kind]["gold"] == row[kind]["documents"] == 2
            assert ("difference" in row[kind]) == (name != "paper")
    shown = (work / "out.md").read_text("utf-8").splitlines()
    assert [line.split(" | ")[0] for line in shown[2:]] == [f"| {name}" for name in strategies.ROWS]
    capsys.readouterr()
    assert run("--documents", "2") == found
    assert "steps" not in capsys.readouterr().out  # nothing was trained again
    with pytest.raises(SystemExit, match="judged on was 2, is 1"):
        run("--documents", "1")
    with pytest.raises(SystemExit, match="4 held-out documents are too few to tune and judge on 3 each"):
        monkeypatch.setattr(strategies, "FIGURES", "other.json")
        run("--documents", "3")


@pytest.mark.parametrize("ours", ["E-BERT-MLM, adapter", "E-BERT-MLM"])
def test_a_linker_is_held_against_the_baselines_that_were_run(tmp_path, ours):
    linking = recipe("linking")
    counts = {  # of two documents with two gold mentions each: how many links, and how many are right
        "prior only": ((2, 1), (2, 1)),
        ours: ((2, 2), (2, 2)),
        "Wikipedia2Vec-BERT-random without refinement": ((2, 2), (2, 0)),
    }
    rows = {name: {one: {} for one in linking.SETS} for name in counts}
    for name in linking.SETS:
        for kind in linking.KINDS:
            for row, documents in counts.items():
                made = [Counts(2, *counted) for counted in documents]
                scores = tuple(DocumentScore(str(n), one, one, reachable=2) for n, one in enumerate(made))
                value = LinkEvaluation(scores).value(per_document=True)
                path = linking.figures(tmp_path, row, name, kind)
                path.parent.mkdir(exist_ok=True)
                path.write_text(json.dumps(value), "utf-8")
                rows[row][name][kind] = value
    found = linking.compare(tmp_path, rows, linking.SETS)
    assert list(found) == ["prior only", "Wikipedia2Vec-BERT-random without refinement"]
    assert {change[kind]["value"] for change in found["prior only"].values() for kind in linking.KINDS} == {50}
    lines = linking.table({"rows": rows, "differences": found}).splitlines()
    assert sum(line.startswith(f"| {ours} against, with 95 % intervals |") for line in lines) == len(linking.KINDS)
    assert lines.count("| prior only | " + " | ".join(["+50.0 [+50.0, +50.0]"] * 4) + " |") == len(linking.KINDS)
    assert linking.compare(tmp_path, ["prior only"], linking.SETS) == {}


def test_a_working_folder_keeps_to_its_store(work, world):
    linking = recipe("linking")
    for name in (linking.ARCHIVE, "ids"):
        (work / name).write_text("as it was")
    options = argparse.Namespace(
        work=work, vectors=work / "vectors", model=work / "model", corpus=world.path, data=work, ids=work / "ids",
        **dict.fromkeys(linking.LASTING, 1),
    )  # fmt: skip
    facts = linking.claim(options)
    assert facts["vectors"]["entities"] == len(Vectors.open(work / "vectors"))
    assert linking.claim(options) == facts
    (work / linking.ARCHIVE).write_text("other sets")
    with pytest.raises(SystemExit, match="made with other options: sets has changed; choose another --work"):
        linking.claim(options)
    (work / linking.ARCHIVE).write_text("as it was")
    Vectors.open(work / "vectors").add("Zorblax", [0.5] * Vectors.open(work / "vectors").dimension)
    with pytest.raises(SystemExit, match="vectors entities was"):
        linking.claim(options)
