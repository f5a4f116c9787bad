"""The commands, as the shell runs them."""

import json
import sys

import pytest

from ebert import cli

TRAIN = ["--epochs", "2", "--learning-rate", "3e-3", "--batch", "8", "--seed", "1"]


@pytest.fixture
def ebert(monkeypatch, capsys):
    """Run a command; give exit code, output and messages."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["ebert", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capsys.readouterr()
        return end.value.code, out, err

    return run


@pytest.mark.parametrize("mode", ["bert", "concat", "replace", "wikipedia2vec-concat", "wikipedia2vec-replace"])
def test_train_and_evaluate(ebert, data, tiny_folder, tmp_path, mode):
    run = tmp_path / "run"
    code, out, err = ebert("relations", "train", data, "--model", tiny_folder, "--mode", mode, *TRAIN, "--out", run)
    assert code == 0, err
    assert "best epoch" in out
    info = json.loads((run / "run.json").read_text())
    assert (info["mode"], info["complete"], info["options"]["seed"]) == (mode, True, 1)
    code, out, err = ebert("relations", "evaluate", run, data / "test.json", "--json", "--keep")
    assert code == 0, err
    value = json.loads(out)
    assert {"macro", "samples", "covered"} <= value.keys()
    assert value["macro"].keys() == {"precision", "recall", "f1"}
    assert 0 <= value["macro"]["f1"] <= 100
    assert (value["samples"], value["covered"]) == (24, 12)
    assert json.loads((run / "test.json").read_text()) == value
    answers = [json.loads(line) for line in (run / "test.predictions.jsonl").read_text().splitlines()]
    assert len(answers) == 24
    assert sum(answer["vectors"] == 2 for answer in answers) == 12
    right = sum(answer["label"] == answer["given"] for answer in answers)
    assert value["accuracy"] == pytest.approx(100 * right / 24)
