"""``ebert bert``, ``align``, ``fill``, ``export`` and ``doctor``."""

import io
import json
from pathlib import Path

import pytest
from paper import NATIVE_LANGUAGES

from ebert import EBert, Vectors
from ebert._io import trusted

QUESTION = "the native language of [[Jean Marais]] is [MASK] ."


def test_bert_get_prints_the_folder_and_nothing_else(ebert, small_bert):
    assert ebert("bert", "get", small_bert).out == f"{small_bert}\n"
    assert ebert("bert", "get", small_bert, "--json").json["folder"] == small_bert
    missing = ebert("bert", "get", "./no-such-folder")
    assert (missing.code, missing.out) == (2, "")


def test_align_writes_a_model_and_reports(ebert, store, small_bert, tmp_path):
    arguments = ["align", store, "--bert", small_bert, "--out", tmp_path / "m", "--intercept", "--length", "2"]
    done = ebert(*arguments, "--json")
    assert done.code == 0
    assert done.json["report"]["pairs"] == 14
    assert done.json["options"]["length"] == 2
    model = EBert.from_pretrained(tmp_path / "m")
    assert model.alignment.options.intercept
    assert model.project(["Paris"]).norm() == pytest.approx(2, rel=1e-4)
    again = ebert(*arguments)
    assert (again.code, "exists" in again.err) == (2, True)
    people = ebert(*arguments, "--overwrite")
    assert "R²" in people.out


def test_align_refuses_what_cannot_be(ebert, store, small_bert, tmp_path):
    done = ebert("align", store, "--bert", small_bert, "--out", tmp_path / "m", "--method", "none")
    assert (done.code, "dimension 8 cannot go without alignment" in done.err) == (2, True)
    done = ebert("align", store, "--bert", small_bert, "--out", tmp_path / "m", "--weight-power", "0.5")
    assert (done.code, "how often its words occur" in done.err) == (2, True)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "options", [("--seed", "-1"), ("--ridge", "nan"), ("--length", "nan"), ("--length", "0"), ("--held-out", "2")]
)
def test_align_with_impossible_options(ebert, store, small_bert, tmp_path, options):
    done = ebert("align", store, "--bert", small_bert, "--out", tmp_path / "m", *options)
    assert (done.code, options[0].strip("-") in done.err) == (2, True)


def test_align_replaces_models_only_and_whole(ebert, store, small_bert, tmp_path):
    arguments = ["align", store, "--bert", small_bert, "--overwrite", "--out"]
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.txt").write_text("years of work")
    assert ebert(*arguments, tmp_path / "papers").code == 2
    assert ebert(*arguments, store).code == 2
    assert ebert(*arguments, tmp_path / "papers" / "thesis.txt" / "m").code == 2
    assert (tmp_path / "papers" / "thesis.txt").exists()
    assert not (Path(store) / "ebert.json").exists()
    ebert(*arguments, tmp_path / "m", "--include-vectors")
    assert ebert(*arguments, tmp_path / "m").code == 0
    assert not (tmp_path / "m" / "vectors").exists()
    inside = ebert("align", tmp_path / "m" / "vectors", "--bert", small_bert, "--overwrite", "--out", tmp_path / "m")
    assert (inside.code, "lies in" in inside.err) == (2, True)


def test_a_folder_named_like_the_encoder_does_not_confuse(ebert, store, small_bert, tmp_path, monkeypatch):
    monkeypatch.chdir(Path(small_bert).parent)
    name = Path(small_bert).name
    assert ebert("align", store, "--bert", name, "--out", tmp_path / "m").code == 0
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    assert ebert("fill", "--model", tmp_path / "m", QUESTION).code == 0


def test_a_model_can_take_its_store_along(ebert, store, small_bert, tmp_path):
    ebert("align", store, "--bert", small_bert, "--out", tmp_path / "m", "--include-vectors")
    (tmp_path / "m").rename(tmp_path / "moved")
    model = EBert.from_pretrained(tmp_path / "moved")
    assert model.vectors.path == tmp_path / "moved" / "vectors"


def test_fill_json_has_the_promised_shape(ebert, model):
    done = ebert("fill", "--model", model, "--top", 2, "--json", QUESTION, "[[Nobody]] is [MASK] [MASK]")
    first, second = done.lines
    assert first["text"] == "the native language of Jean Marais is [MASK] ."
    assert list(first["modes"]) == ["bert", "concat", "replace"]
    assert first["missing"] == []
    assert second["missing"] == ["Nobody"]
    assert [mask["mask"] for mask in second["modes"]["concat"]] == [0, 1]
    for mask in first["modes"].values():
        answers = mask[0]["answers"]
        assert [set(answer) for answer in answers] == [{"token", "probability"}] * 2
        assert 1 > answers[0]["probability"] >= answers[1]["probability"] > 0
    library = EBert.from_pretrained(model).fill(QUESTION, mode="replace", top=2)
    assert first["modes"]["replace"][0]["answers"][0]["token"] == library.best


def test_fill_side_by_side(ebert, model):
    done = ebert("fill", "--model", model, "--mode", "bert,replace", "--top", 3, QUESTION)
    header, *rows = done.out.splitlines()[1:5]
    assert header.split() == ["bert", "replace"]
    assert all(len(row.split()) == 4 for row in rows)


def test_fill_says_what_is_missing(ebert, model):
    done = ebert("fill", "--model", model, "[[Jean Maris]] spoke [MASK] .")
    assert "no vector for Jean Maris; nearest titles: Jean Marais" in done.err


def test_why_shows_the_answer_without_each_entity(ebert, model):
    text = "[[Jean Marais]] spoke French in [[Paris]] [[Nowhere]] [MASK] ."
    done = ebert("fill", "--model", model, "--why", "--mode", "concat", "--json", text)
    why = done.json["why"]
    assert [reason["without"] for reason in why] == ["Jean Marais", "Paris"]
    alone = EBert.from_pretrained(model).fill("Jean Marais spoke French in [[Paris]] Nowhere [MASK] .", mode="concat")
    assert why[0]["modes"]["concat"][0]["answers"][0]["probability"] == pytest.approx(alone.answers[0].probability)
    assert "without Paris:" in ebert("fill", "--model", model, "--why", text).out


@pytest.mark.parametrize("good", [1, 3])
def test_lines_before_a_bad_one_are_answered(ebert, small_bert, monkeypatch, good):
    monkeypatch.setattr("ebert.cli.fill.WINDOW", 2)  # texts that are filled together
    texts = [f"Paris is {'a ' * number}[MASK]" for number in range(good)]
    done = ebert("fill", "--bert", small_bert, "--json", stdin="\n".join([*texts, "no mask", "a [MASK]"]) + "\n")
    assert done.code == 2
    assert [line["text"] for line in done.lines] == texts
    assert f"text {good + 1}: the text has no mask" in done.err


def test_fill_from_standard_input(ebert, small_bert, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{QUESTION}\n\nParis is [MASK] .\n"))
    done = ebert("fill", "--bert", small_bert, "--json")
    assert [line["text"] for line in done.lines] == [
        "the native language of Jean Marais is [MASK] .",
        "Paris is [MASK] .",
    ]
    assert list(done.lines[0]["modes"]) == ["bert"]
    assert done.lines[0]["missing"] == ["Jean Marais"]


def test_fill_with_candidates(ebert, small_bert, tmp_path):
    (tmp_path / "words.txt").write_text("French\nItalian\n")
    done = ebert("fill", "--bert", small_bert, "--candidates", tmp_path / "words.txt", "--json", "a [MASK]")
    answers = done.json["modes"]["bert"][0]["answers"]
    assert {answer["token"] for answer in answers} == {"French", "Italian"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "MODEL", "--bert", "x", "[MASK]"], "not both"),
        (["--bert", "BERT", "--mode", "concat", "[MASK]"], "needs entity vectors"),
        (["--bert", "BERT", "--mode", "magic", "[MASK]"], "unknown mode 'magic'"),
        (["--bert", "BERT", "--vectors", "x", "[MASK]"], "--vectors goes with --model"),
        (["--bert", "BERT", "--why", "[MASK]"], "--why"),
        (["--bert", "BERT", "no mask here"], "no mask"),
        (["--bert", "BERT", ""], "empty"),
        (["--bert", "BERT", "[MASK] [[Paris"], "never closes"),
        (["--bert", "BERT", "[MASK]" + " a" * 99], "102 wordpieces; .* takes 64"),
        (
            ["--bert", "BERT", "--candidates", "nowhere.txt", "[MASK]"],
            r"nowhere.txt cannot be read .*one word per line",
        ),
        (["--model", "nowhere", "[MASK]"], "there is no model at .*nowhere"),
        (["--bert", "BERT", "--candidates", "/", "[MASK]"], "cannot be read"),
        (["--bert", "BERT", "--device", "nonsense", "[MASK]"], "device 'nonsense' cannot be used"),
        (["--bert", "BERT", "a \udcff [MASK]"], "not UTF-8"),
        (["--model", "MODEL", "[[Paris|a [MASK] city]] is [MASK] ."], "mention of 'Paris' covers a mask"),
    ],
)
def test_fill_refuses(ebert, model, small_bert, arguments, message):
    import re

    places = {"MODEL": model, "BERT": small_bert}
    done = ebert("fill", *(places.get(argument, argument) for argument in arguments))
    assert (done.code, done.out) == (2, "")
    assert re.search(message, done.err), done.err


def test_fill_with_a_moved_store(ebert, store, small_bert, tmp_path):
    ebert("align", store, "--bert", small_bert, "--out", tmp_path / "m")
    moved = Path(store).rename(tmp_path / "elsewhere")
    lost = ebert("fill", "--model", tmp_path / "m", QUESTION)
    assert (lost.code, "give its new path" in lost.err) == (2, True)
    assert ebert("fill", "--model", tmp_path / "m", "--vectors", moved, QUESTION).code == 0


def test_entities_added_later_are_known_to_the_model(ebert, store, small_bert, tmp_path):
    ebert("align", store, "--bert", small_bert, "--out", tmp_path / "m")
    Vectors.open(store).add("Zorblax", [1.0] * 8)
    done = ebert("fill", "--model", tmp_path / "m", "--json", "[[Zorblax]] is [MASK] .")
    assert done.json["missing"] == []


def test_export(ebert, model, tmp_path):
    (tmp_path / "titles.txt").write_text("jean_marais\nParis\n")
    bad = ebert("export", model, "--entities", tmp_path / "titles.txt", "--out", tmp_path / "plain")
    assert (bad.code, "nearest titles: 'Jean Marais'" in bad.err) == (2, True)
    (tmp_path / "titles.txt").write_text("jean_Marais\nParis\n\n")
    done = ebert("export", model, "--entities", tmp_path / "titles.txt", "--out", tmp_path / "plain", "--json")
    assert done.json["tokens"] == {"Jean Marais": "[[Jean Marais]]", "Paris": "[[Paris]]"}
    assert json.loads((tmp_path / "plain" / "entities.json").read_text()) == done.json["tokens"]
    again = ebert("export", model, "--entities", tmp_path / "titles.txt", "--out", tmp_path / "plain")
    assert (again.code, "exists" in again.err) == (2, True)
    empty = ebert("export", model, "--entities", "/dev/null", "--out", tmp_path / "other")
    assert (empty.code, "no titles" in empty.err) == (2, True)


def test_export_overwrites_checkpoints_only(ebert, model, tmp_path):
    (tmp_path / "titles.txt").write_text("Paris\n")
    export = ["export", model, "--entities", tmp_path / "titles.txt", "--overwrite", "--out"]
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.txt").touch()
    assert ebert(*export, tmp_path / "papers").code == 2
    assert (tmp_path / "papers" / "thesis.txt").exists()
    assert ebert(*export, tmp_path / "plain").code == 0
    assert ebert(*export, tmp_path / "plain").code == 0
    modes = {path.stat().st_mode for path in (tmp_path / "plain").iterdir()}
    assert len(modes) == 1


def test_a_truncated_encoder(ebert, small_bert, tmp_path):
    import shutil

    broken = Path(shutil.copytree(small_bert, tmp_path / "broken"))
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    done = ebert("fill", "--bert", broken, "a [MASK]")
    assert (done.code, "cannot be loaded as a masked language model" in done.err) == (2, True)
    assert ebert("doctor", broken).code == 2


def test_doctor_finds_broken_numbers(ebert, store):
    matrix = Path(store) / "entities.safetensors"
    data = bytearray(matrix.read_bytes())
    data[-4:] = b"\xff\xff\xff\xff"
    matrix.write_bytes(data)
    done = ebert("doctor", store)
    assert (done.code, "1 have values that are not numbers" in done.out) == (2, True)


def test_doctor_counts_vectors_that_are_all_zeros(ebert, tmp_path):
    arrays = {"words": ["a"], "word_vectors": [[1.0, 0.0]], "entities": ["A", "B"]}
    Vectors.from_arrays(**arrays, entity_vectors=[[0.0, 1.0], [0.0, 0.0]], path=tmp_path / "store").close()
    out = ebert("doctor", tmp_path / "store").out
    assert "1 of 2 are all zeros" in out
    assert out.count("all zeros") == 1


@pytest.mark.parametrize("name", ["words.safetensors", "entities.safetensors", "added"])
def test_doctor_finds_a_bit_that_flipped(ebert, store, name):
    for title in ("New", "Newer"):
        assert ebert("vectors", "add", store, title, "--vector", "-", stdin="1 " * 8).code == 0
    assert ebert("doctor", store).code == 0
    file = next(Path(store).glob("added-*.log")) if name == "added" else Path(store) / name
    content = bytearray(file.read_bytes())
    content[len(content) // 3 if name == "added" else -2] ^= 1
    file.write_bytes(content)
    done = ebert("doctor", store)
    assert done.code == 2
    assert file.name in done.out
    assert ebert("vectors", "info", store).code == (2 if name == "added" else 0)
    verified = ebert("vectors", "info", store, "--verify")
    assert verified.code == 2
    assert file.name in verified.err


def test_doctor_finds_nothing_wrong(ebert, store, model, small_bert):
    done = ebert("doctor", store, model, small_bert, "--json")
    assert done.code == 0
    assert {check["state"] for check in done.json} == {"good"}
    assert ebert("doctor", store).out.startswith("good")


def test_doctor_looks_at_the_installation(ebert, tmp_path, monkeypatch):
    monkeypatch.setenv("EBERT_HOME", str(tmp_path))
    done = ebert("doctor", "--json")
    assert done.code == 0
    seen = {check["what"]: check for check in done.json}
    assert {"python", "torch", "transformers", "sqlite", "mvn", "cache"} <= seen.keys()
    assert str(tmp_path) in seen["cache"]["detail"]
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EBERT_HOME", str(tmp_path / "file" / "inside"))
    broken = ebert("doctor")
    assert (broken.code, "set EBERT_HOME" in broken.out) == (1, True)


def test_doctor_finds_what_is_wrong(ebert, store, model, small_bert, tmp_path):
    assert "there is no store at" in ebert("doctor", tmp_path / "nothing").out
    (tmp_path / "empty").mkdir()
    assert ebert("doctor", tmp_path / "empty").code == 2
    entities = Path(store) / "entities.safetensors"
    entities.write_bytes(entities.read_bytes()[:-5])
    done = ebert("doctor", store)
    assert (done.code, "truncated" in done.out) == (2, True)
    other = tmp_path / "other-store"
    Vectors.from_arrays(words=["the"], word_vectors=[[1.0] * 8], path=other)
    info = Path(model) / "ebert.json"
    value = json.loads(info.read_text())
    value["vectors"]["name"] = str(other)
    value["saved_here"] = trusted.mark(value["encoder"]["name"], str(other))
    broken = tmp_path / "broken-model"
    broken.mkdir()
    (broken / "alignment.safetensors").write_bytes((Path(model) / "alignment.safetensors").read_bytes())
    (broken / "ebert.json").write_text(json.dumps(value))
    done = ebert("doctor", broken)
    assert (done.code, "fitted on other words" in done.out) == (2, True)


@pytest.mark.real
def test_the_first_column_of_the_paper_from_the_shell(ebert):
    texts = [f"The native language of {name} is [MASK] ." for name in NATIVE_LANGUAGES]
    done = ebert("fill", "--mode", "bert", "--top", 1, "--json", *texts)
    best = [line["modes"]["bert"][0]["answers"][0]["token"] for line in done.lines]
    assert best == list(NATIVE_LANGUAGES.values())


def test_fill_finds_titles_in_any_case(ebert, model):
    done = ebert("fill", "--model", model, "--json", "[[jean marais]] spoke [MASK] .")
    assert done.json["missing"] == []
    assert "'jean marais' is read as 'Jean Marais'" in done.err
    right = ebert("fill", "--model", model, "--json", "[[Jean Marais|jean marais]] spoke [MASK] .")
    assert right.json == done.json
    assert right.err == ""


def test_fill_does_not_choose_between_titles_in_another_case(ebert, store, small_bert, tmp_path):
    with Vectors.open(store) as vectors:
        for title in ("AIDS", "Aids"):
            vectors.add(title, [1.0] * 8)
    ebert("align", store, "--bert", small_bert, "--out", tmp_path / "m")
    done = ebert("fill", "--model", tmp_path / "m", "--json", "[[aiDS]] is [MASK] .")
    assert done.json["missing"] == ["aiDS"]
    assert "is read as" not in done.err
    assert ebert("fill", "--model", tmp_path / "m", "--json", "[[AIDS]] is [MASK] .").err == ""


def test_fill_offers_the_entities_of_a_text_without_any(ebert, store, small_bert, tmp_path):
    with Vectors.open(store) as vectors:
        vectors.add("Zorblax Inc.", [1.0] * 8, aliases=["Zorblax"])
    ebert("align", store, "--bert", small_bert, "--out", tmp_path / "m")
    fill = ["fill", "--model", tmp_path / "m", "--json"]
    done = ebert(*fill, "Zorblax is in [MASK] .")
    assert "no entity is marked" in done.err
    assert "[[Zorblax Inc.|Zorblax]] is in [MASK] ." in done.err
    assert done.code == 0
    assert "mark one as [[Title]]" in ebert(*fill, "nobody is in [MASK] .").err
    assert ebert(*fill, "[[Zorblax]] is in [MASK] .").err == ""
    assert ebert(*fill, "--mode", "bert", "Zorblax is in [MASK] .").err == ""


@pytest.mark.real
def test_the_demo_shows_more_right_answers_and_leaves_the_starter_as_it_is(ebert):
    from ebert import get_starter

    done = ebert("demo", "--json")
    asked, taught = done.json["asked"], done.json["taught"]
    before, after = (sum(one["fact"] == one[when] for one in asked) for when in ("before", "after"))
    assert after > before > 0
    assert [one["after"] for one in taught] == ["German", "composer"]
    linked = done.json["linked"]
    assert (linked["documents"], linked["f1"] > 30) == (40, True)
    assert [sentence.count("[[") > 1 for sentence in linked["sentences"]] == [True, True]
    assert list(Vectors.open(get_starter() / "vectors").added()) == []
