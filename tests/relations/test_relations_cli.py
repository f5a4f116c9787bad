"""The commands, as the shell runs them."""

import json
import lzma
import shutil

import pytest

from ebert._io import files
from ebert.relations.options import VARIANTS

TRAIN = ("--epochs", 2, "--learning-rate", "3e-3", "--batch", 8, "--seed", 1)
OWN = '{"text": "then Ann Lee was born in Rome .", "subject": [5, 12], "object": [25, 29], "label": "%s"}\n'


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Runs that are trained already, by mode."""
    return tmp_path_factory.mktemp("trained")


@pytest.fixture
def trained(ebert, data, tiny_folder, tmp_path, kept):
    """Return runs by mode; each is trained once, and a test gets a copy."""

    def make(mode):
        if not (kept / mode).exists():
            arguments = ("--model", tiny_folder, "--mode", mode, *TRAIN, "--out", kept / mode)
            code, _, err = ebert("relations", "train", data, *arguments)
            assert code == 0, err
        return shutil.copytree(kept / mode, tmp_path / mode)

    return make


def f1(answers):
    """Macro F1 in percent, counted by hand."""
    found = []
    for label in {answer[key] for answer in answers for key in ("label", "given")}:
        right = sum(answer["label"] == answer["given"] == label for answer in answers)
        found.append(2 * right / sum((answer["label"] == label) + (answer["given"] == label) for answer in answers))
    return 100 * sum(found) / len(found)


@pytest.mark.parametrize("mode", VARIANTS)
def test_train_and_evaluate(ebert, data, trained, mode):
    run = trained(mode)
    info = json.loads((run / "run.json").read_text())
    assert (info["mode"], info["complete"], info["options"]["seed"]) == (mode, True, 1)
    assert info["coverage"]["train"] == {
        "samples": 48, "covered": 27, "mentions": 96,
        "ways": {"id": 72, "named": 0, "title": 0, "redirect": 0, "surface": 0, "none": 24},
    }  # fmt: skip
    code, out, err = ebert("relations", "evaluate", run, data / "test.json", "--json", "--keep")
    assert code == 0, err
    value = json.loads(out)
    assert {"macro", "samples", "covered"} <= value.keys()
    assert value["macro"].keys() == {"precision", "recall", "f1"}
    assert (value["samples"], value["covered"]) == (24, 12)
    kept = json.loads((run / "evaluations" / "test.json").read_text())
    assert {key: kept[key] for key in value} == value
    assert kept["data"] == {"file": "test.json", "sha256": files.sha256(data / "test.json"), "samples": 24}
    assert kept["weights_sha256"] == files.sha256(run / "model" / "weights.safetensors")
    answers = [json.loads(line) for line in (run / "evaluations" / "test.predictions.jsonl").read_text().splitlines()]
    assert len(answers) == 24
    assert sum(answer["vectors"] == 2 for answer in answers) == 12
    right = sum(answer["label"] == answer["given"] for answer in answers)
    assert value["accuracy"] == pytest.approx(100 * right / 24)
    assert value["macro"]["f1"] == pytest.approx(f1(answers))
    assert ("text" in answers[0]) is False  # a run can be published where its data cannot
    code, out, _ = ebert("relations", "evaluate", run, data / "test.json", "--samples", 3)
    assert code == 0
    assert "macro f1" in out


def test_variants_differ_in_their_mode_only(trained):
    infos = [json.loads((trained(mode) / "run.json").read_text()) for mode in ("bert", "wikipedia2vec-replace")]
    differing = {key for key in infos[0] if infos[0][key] != infos[1][key]}
    assert differing <= {"mode", "command", "seconds of the last start", "padding"}
    assert "mode" in differing


def test_plain_bert_needs_no_model(ebert, data, tiny_bert, tmp_path):
    arguments = ("relations", "train", data, "--model", tiny_bert, *TRAIN, "--out", tmp_path / "run", "--mode")
    code, _, err = ebert(*arguments, "bert", "--json")
    assert code == 0, err
    assert json.loads((tmp_path / "run" / "run.json").read_text())["coverage"]["train"]["covered"] == 0
    code, _, err = ebert(*arguments, "concat")
    assert code == 2
    assert "is not a model" in err


def test_predict(ebert, trained, tmp_path):
    run = trained("concat")
    text = "then [[Ann Lee]] was born in [[Rome]] ."
    code, out, err = ebert("relations", "predict", run, text, "--json", "--top", 2)
    assert code == 0, err
    value = json.loads(out)
    assert value["text"] == "then Ann Lee was born in Rome ."
    assert value["subject"] == {"start": 5, "end": 12, "text": "Ann Lee", "entity": "Ann Lee"}
    assert [one["relation"] in ("P19", "P20", "P69") for one in value["relations"]] == [True, True]
    assert value["relations"][0]["probability"] >= value["relations"][1]["probability"]
    _, out, _ = ebert("relations", "predict", run, text, "--json", "--object-first")
    assert json.loads(out)["subject"]["text"] == "Rome"
    assert sum(one["probability"] for one in json.loads(out)["relations"]) == pytest.approx(1, abs=1e-5)
    (tmp_path / "own.jsonl").write_text(OWN % "P19" + OWN % "anything")
    code, out, _ = ebert("relations", "predict", run, "--data", tmp_path / "own.jsonl")
    assert code == 0
    assert out.count("Ann Lee (Ann Lee)") == 2
    assert out.count("%") == 6
    for arguments, complaint in (
        (["[[Rome]] is old ."], "text 1: it has 1 mentions; mark the subject and the object"),
        ([text, "[[Ann Lee]] [[|x]]"], "text 2: markup at character 12"),
        ([text, "--data", "own.jsonl"], "give --data or TEXT, not both"),
    ):
        code, _, err = ebert("relations", "predict", run, *arguments)
        assert code == 2
        assert complaint in err


def test_relations_have_names_where_the_data_has_them(ebert, data, tiny_folder, tmp_path):
    named, run = shutil.copytree(data, tmp_path / "named"), tmp_path / "run"
    (named / "pid2name.json").write_text('{"P19": ["place of birth", "where it was"], "P20": ["place of death"]}')
    assert ebert("relations", "train", named, "--model", tiny_folder, "--mode", "bert", *TRAIN, "--out", run)[0] == 0
    text = "then [[Ann Lee]] was born in [[Rome]] ."
    found = ebert("relations", "predict", run, text, "--json").json["relations"]
    assert {one["relation"]: one.get("name") for one in found} == {
        "P19": "place of birth", "P20": "place of death", "P69": None,
    }  # fmt: skip
    shown = ebert("relations", "predict", run, text).out
    assert "%  P19 place of birth\n" in shown
    assert "%  P69\n" in shown


def test_predict_takes_markup_and_json_by_every_door(ebert, trained, tmp_path):
    run = trained("concat")
    lines = "then [[Ann Lee]] was born in [[Rome]] .\n\n" + OWN % "P19" + "[[Rome]] is old .\n"
    (tmp_path / "lines.txt").write_text("[[Ann Lee]] was born in [[Rome]] .\n" + OWN % "P19")
    code, out, err = ebert("relations", "predict", run, "--data", tmp_path / "lines.txt", "--json")
    assert code == 0, err
    assert [json.loads(line)["object"]["start"] for line in out.splitlines()] == [20, 25]
    (tmp_path / "bad.txt").write_text(lines)
    code, out, err = ebert("relations", "predict", run, "--data", tmp_path / "bad.txt", "--json")
    assert (code, out) == (2, "")
    assert "bad.txt, line 4: it has 1 mentions" in err
    code, out, err = ebert("relations", "predict", run, "--json", stdin=lines)
    assert code == 2
    assert "line 4: it has 1 mentions" in err
    told = [json.loads(line)["subject"]["text"] for line in out.splitlines()]
    assert told == ["Ann Lee", "Ann Lee"]  # what was right
    released = {"text": "Oslo and Rome", "ents": [["Q585", 1, 4, 1], ["Q220", 9, 13, 1]]}
    (tmp_path / "released.jsonl").write_text(json.dumps(released))
    code, out, _ = ebert("relations", "predict", run, "--data", tmp_path / "released.jsonl", "--json")
    assert json.loads(out)["subject"]["text"] == "Oslo"
    (tmp_path / "deep.json").write_text("[" * 100_000)
    code, _, err = ebert("relations", "predict", run, "--data", tmp_path / "deep.json")
    assert code == 2
    assert "deep.json, line 1: " in err


def test_a_table_of_ids_is_part_of_a_run(ebert, data, tiny_folder, tmp_path):
    table = tmp_path / "ids.json"
    arguments = ("relations", "train", data, "--model", tiny_folder, "--mode", "concat", *TRAIN, "--out",
                 tmp_path / "run", "--ids", table, "--ids-only")  # fmt: skip
    table.write_text(json.dumps({"Q14": "Ann Lee"}))  # Dora May, whom the store does not know
    assert ebert(*arguments)[0] == 0
    code, out, _ = ebert("relations", "evaluate", tmp_path / "run", data / "test.json", "--json")
    assert json.loads(out)["coverage"]["ways"] == {
        "id": 40, "named": 0, "title": 0, "redirect": 0, "surface": 0, "none": 8,
    }  # fmt: skip
    table.write_text(json.dumps({"Q14": "Rome"}))
    code, _, err = ebert(*arguments)
    assert code == 2
    assert "contains a run with other resolving" in err


def test_search(ebert, data, tiny_folder, tmp_path):
    out = tmp_path / "search"
    arguments = (
        "relations", "search", data, "--model", tiny_folder, "--mode", "concat", "--batch", 8, "--learning-rate", 3e-3,
        "--learning-rate", 1e-6, "--epochs", 1, "--epochs", 2, "--out", out,
    )  # fmt: skip
    code, text, err = ebert(*arguments, "--json")
    assert code == 0, err
    result = json.loads(text)
    assert json.loads((out / "search.json").read_text()) == result
    found = {one["run"]: one["dev"]["f1"] for one in result["configurations"]}
    assert list(found) == ["0.003-1", "0.003-2", "1e-06-1", "1e-06-2"]
    assert found[result["best"]] == max(found.values())
    assert [(out / run / "model").exists() for run in found] == [run == result["best"] for run in found]
    assert result["expected maximum"] == sorted(result["expected maximum"])
    assert result["expected maximum"][0] == pytest.approx(sum(found.values()) / 4)
    assert (out / "curve.svg").read_text().startswith("<svg")
    code, again, err = ebert(*arguments, "--json")  # nothing is trained twice
    assert json.loads(again) == result
    assert err.count("is complete already") == 4
    fewer = [one for one in arguments if one not in (3e-3,)]
    fewer.remove("--learning-rate")
    code, _, err = ebert(*fewer)  # of these, no model was kept
    assert code == 2
    assert "contains a search of a grid with 0.003-1, 0.003-2, which this one lacks" in err
    code, more, err = ebert(*arguments, "--learning-rate", 2e-6, "--json")
    assert code == 0, err
    assert err.count("is complete already") == 4
    assert len(json.loads(more)["configurations"]) == 6
    assert (out / json.loads(more)["best"] / "model").exists()


def test_a_search_checks_all_its_values_first(ebert, data, tiny_folder, tmp_path):
    arguments = ("--model", tiny_folder, "--mode", "concat", "--epochs", 1, "--epochs", 0, "--out", tmp_path / "search")
    code, _, err = ebert("relations", "search", data, *arguments)
    assert code == 2
    assert "epochs is 0" in err
    assert not (tmp_path / "search").exists()


def test_what_is_kept_does_no_harm(ebert, data, trained, tmp_path):
    run = trained("bert")
    info = (run / "run.json").read_text()
    (tmp_path / "run.json").write_text((data / "test.json").read_text())
    assert ebert("relations", "evaluate", run, tmp_path / "run.json", "--keep")[0] == 0
    assert (run / "run.json").read_text() == info
    code, out, err = ebert("relations", "report", run, "--out", tmp_path / "report", "--resamples", 100)
    assert code == 0, err
    assert out.startswith("On run, bert has a macro F1 of")
    code, _, err = ebert("relations", "evaluate", run / "model", data / "test.json", "--keep")
    assert code == 2
    assert "is not a run of 'ebert relations train'" in err
    (run / "run.json").write_text(json.dumps({**json.loads(info), "complete": False}))
    code, _, err = ebert("relations", "evaluate", run, data / "test.json", "--keep")
    assert code == 2
    assert "is not complete" in err
    assert ebert("relations", "evaluate", run, data / "test.json")[0] == 0


def test_a_training_that_comes_apart_is_told(ebert, data, tiny_folder, tmp_path):
    arguments = ("--model", tiny_folder, "--mode", "bert", "--epochs", 2, "--learning-rate", "1e30")
    code, _, err = ebert("relations", "train", data, *arguments, "--out", tmp_path / "run")
    assert code == 2
    assert "the loss is no longer a number at step" in err
    assert "lower learning rate than 1e+30" in err


def test_report(ebert, data, trained, tmp_path):
    runs = [trained("bert"), trained("concat")]
    code, _, err = ebert("relations", "report", *runs, "--out", tmp_path / "report")
    assert code == 2
    assert "evaluate RUN DATA/test.json --keep" in err
    for run in runs:
        for split in ("dev", "test"):
            assert ebert("relations", "evaluate", run, data / f"{split}.json", "--keep")[0] == 0
    packed = runs[1] / "evaluations" / "test.predictions.jsonl"
    packed.with_name("test.predictions.jsonl.xz").write_bytes(lzma.compress(packed.read_bytes()))
    packed.unlink()
    code, out, err = ebert("relations", "report", *runs, "--out", tmp_path / "report", "--resamples", 100, "--json")
    assert code == 0, err
    value = json.loads(out)
    assert [line.split(":")[0] for line in value["headlines"]] == ["dev", "test"]
    text = (tmp_path / "report" / "report.md").read_text()
    macro = json.loads((runs[0] / "evaluations" / "test.json").read_text())["macro"]
    assert f"| {macro['f1']:.2f} |" in text
    assert "As published" not in text  # these are not FewRel's relations
    rows = (tmp_path / "report" / "tables" / "differences-test.csv").read_text().splitlines()
    assert rows[0].startswith("run,samples: all,all,samples: both entities have a vector")
    assert rows[1].startswith("concat,24,")
    assert (tmp_path / "report" / "plots" / "learning.svg").exists()
    code, out, _ = ebert("relations", "report", runs[0], "--out", tmp_path / "one", "--resamples", 100)
    assert code == 0
    assert "has a macro F1 of" in out


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("empty", "", "empty.jsonl is empty"),
        ("unknown", OWN % "P19" + OWN % "P99", "unknown.jsonl, line 2: the relation 'P99' has no training sample"),
        ("nothing", (OWN % "P19").replace(', "label": "P19"', ""), "nothing.jsonl, line 1: it has no label"),
        ("crossing", OWN.replace("[5, 12]", "[5, 27]") % "P19", "crossing.jsonl, line 1: the subject at 5:27 and"),
        ("outside", OWN.replace("29]", "99]") % "P19", "outside.jsonl, line 1: the object at 25:99 is not a span"),
        ("broken", OWN % "P19" + "{", "broken.jsonl, line 2: it is not JSON"),
    ],
)
def test_bad_data_at_evaluation(ebert, trained, tmp_path, name, text, complaint):
    (tmp_path / f"{name}.jsonl").write_text(text)
    code, out, err = ebert("relations", "evaluate", trained("bert"), tmp_path / f"{name}.jsonl", "--json")
    assert (code, out) == (2, "")
    assert complaint in err


def test_a_class_with_no_training_sample(ebert, data, tiny_folder, tmp_path):
    (tmp_path / "train.jsonl").write_text(OWN % "P19" + OWN % "P20")
    (tmp_path / "dev.jsonl").write_text(OWN % "P19" + OWN % "P69")
    arguments = ("--model", tiny_folder, "--mode", "bert", "--out", tmp_path / "run")
    code, _, err = ebert("relations", "train", tmp_path, *arguments)
    assert code == 2
    assert "dev.jsonl, line 2: the relation 'P69' has no training sample" in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--epochs", 0), "'--epochs': 0 is not in the range"),
        (("--threshold", 3), "'--threshold': 3.0 is not in the range"),
        (("--ids", "nowhere.json"), "nowhere.json cannot be read"),
    ],
)
def test_bad_options(ebert, data, tiny_folder, tmp_path, arguments, complaint):
    basic = ("--model", tiny_folder, "--mode", "bert", "--out", tmp_path / "run")
    code, _, err = ebert("relations", "train", data, *basic, *arguments)
    assert code == 2
    assert complaint in err
    assert not (tmp_path / "run").exists()
