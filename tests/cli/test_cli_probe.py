"""``ebert probe`` and ``ebert lama`` as the shell runs them."""

import json

import pytest

OWN = [
    {"text": "the native language of [[Jean Marais]] is [MASK]", "answers": ["French"], "relation": "language"},
    {"text": "[[Paris]] is a city in [MASK]", "answers": ["France"], "relation": "country"},
    {"text": "a city in [[Atlantis|France]] is [MASK]", "answers": ["Paris"], "relation": "country"},
]


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in OWN))
    return path


@pytest.fixture
def lama(tmp_path):
    folder = tmp_path / "lama"
    (folder / "TREx").mkdir(parents=True)
    (folder / "TREx" / "P103.jsonl").write_text(
        json.dumps({"uuid": "1", "sub_label": "Jean Marais", "obj_label": "French"}) + "\n"
    )
    (folder / "relations.jsonl").write_text(
        json.dumps({"relation": "P103", "template": "language of [X] is [Y]"}) + "\n"
    )
    (folder / "common_vocab_cased.txt").write_text("French\nItalian\n")
    return folder


def test_own_questions_with_a_model(ebert, model, own, tmp_path):
    result = ebert("probe", "questions", own, "--model", model, "--mode", "all", "--out", tmp_path / "run", "--json")
    assert result.code == 0, result.err
    modes = json.loads(result.out)["modes"]
    assert set(modes) == {"bert", "concat", "replace"}
    found = modes["concat"]["all"]
    assert (found["questions"], found["covered"], found["covered_only"]["questions"]) == (3, 2, 2)
    assert set(found["relations"]) == {"language", "country"}
    assert {"hits@1", "hits@100", "mrr", "probability"} <= set(found["macro"])
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert told["command"].startswith("ebert probe questions")
    assert told["covered_by"] == {"given": 2}


def test_lama_without_entities(ebert, small_bert, lama, tmp_path):
    command = ["probe", "lama", lama, "--bert", small_bert, "--filter", "all,string-match", "--relations", "P103"]
    result = ebert(*command, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "Hits@1" in result.out
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["modes"]["bert"]["all"]["questions"] == 1


def test_names_are_asked_of_the_given_encoder(ebert, small_bert, lama, tmp_path):
    command = ["lama", "uhn", lama, "--bert", small_bert, "--out", tmp_path / "uhn", "--json"]
    result = ebert(*command)
    assert result.code == 0, result.err
    row = json.loads(result.out)
    assert (row["relation"], row["questions"], row["string-match"]) == ("P103", 1, 0)
    kept = (tmp_path / "uhn" / "TREx" / "P103.jsonl").read_text()
    assert (kept == "") == bool(row["name"])
    assert ebert(*command).code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --model"),
        (["--bert", "x", "--model", "y"], "give --model"),
        (["--bert", "BERT", "--mode", "concat"], "needs entity vectors"),
        (["--bert", "BERT", "--mode", "ernie"], "unknown mode"),
        (["--bert", "BERT", "--filter", "some"], "unknown filter"),
        (["--bert", "BERT", "--relations", "P1"], "has no relation P1"),
        (["--bert", "BERT", "--vocabulary", "nothing.txt"], "no file nothing.txt"),
        (["--bert", "BERT", "--labels", "nothing.tsv"], "nothing.tsv"),
        (["--bert", "BERT", "--vectors", "x"], "--vectors goes with --model"),
        (["--bert", "/nowhere/at/all"], "nowhere"),
    ],
)
def test_wrong_calls_exit_with_2(ebert, small_bert, lama, tmp_path, arguments, message):
    given = [small_bert if word == "BERT" else word for word in arguments]
    result = ebert("probe", "lama", lama, *given, "--out", tmp_path / "run")
    assert result.code == 2
    assert message in result.err
    assert not (tmp_path / "run").exists()


def test_lama_without_a_vocabulary(ebert, small_bert, lama, tmp_path):
    (lama / "common_vocab_cased.txt").unlink()
    command = ["probe", "lama", lama, "--bert", small_bert, "--filter", "all", "--out", tmp_path / "run"]
    assert "--vocabulary" in ebert(*command).err
    (tmp_path / "words.txt").write_text("French\nItalian\n")
    assert ebert(*command, "--vocabulary", tmp_path / "words.txt").code == 0


def test_the_person_name_filter_is_not_for_own_questions(ebert, small_bert, own, tmp_path):
    result = ebert("probe", "questions", own, "--bert", small_bert, "--filter", "uhn", "--out", tmp_path / "run")
    assert (result.code, "for LAMA's relations" in result.err) == (2, True)


def test_eight_bits_and_a_limit(ebert, small_bert, own, tmp_path):
    command = ["probe", "questions", own, "--bert", small_bert, "--precision", "int8", "--limit", "1"]
    result = ebert(*command, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "a quick look" in result.out
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (told["precision"], told["limit"], told["questions"]) == ("int8", 1, 2)
