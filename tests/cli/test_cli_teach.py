"""``ebert vectors`` for entities of one's own: check, list, copy, and adding a second time."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ebert import EBert
from ebert.model.check import check_entity
from ebert.starter import get


def test_check(ebert, model):
    done = ebert("vectors", "check", "jean_Marais", "--model", model, "--top", 2, "--json")
    assert (done.code, done.json["title"]) == (0, "Jean Marais")
    checked = check_entity(EBert.from_pretrained(model), "Jean Marais", top=2)
    assert [row["template"] for row in done.json["answers"]] == [one.template for one in checked]
    for row, one in zip(done.json["answers"], checked, strict=True):
        for name in ("before", "after"):
            answers = getattr(one, name)
            assert [a["token"] for a in row[name]] == [a.token for a in answers]
            assert [a["probability"] for a in row[name]] == pytest.approx([a.probability for a in answers], abs=1e-5)
    shown = ebert("vectors", "check", "Jean Marais", "--model", model).out
    assert f"{checked[0].after[0].token} {checked[0].after[0].probability:.0%}" in shown
    assert "The native language of ... is [MASK]." in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Jean Maris", "--model", "{model}"], "nearest titles: 'Jean Marais'"),
        (["Jean Marais", "--model", "nowhere"], "there is no model at nowhere"),
        (["Jean Marais", "--model", "{model}", "--vectors", "nowhere"], "there is no store at nowhere"),
    ],
)
def test_what_cannot_be_checked_is_told_before_torch_is_loaded(model, arguments, message):
    given = [one.format(model=model) for one in arguments]
    code = (
        "import sys; from ebert import cli; sys.argv[0] = 'ebert'\n"
        "try: cli.main()\n"
        "finally: print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, "vectors", "check", *given], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "[]\n")
    assert message in done.stderr


TEXT = "A Zorblax is a small Danish ship."


@pytest.fixture
def starter(tmp_path, monkeypatch):
    """A starter in a cache of this test's own: a small store, with a model."""
    from described import make_store

    folder = tmp_path / "home" / "starter" / "0123456789ab"
    monkeypatch.setenv("EBERT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(get, "get_starter", lambda: folder)
    make_store(folder / "vectors").close()
    (folder / "ebert.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    return folder


def contents_of(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def contents(starter):
    return contents_of(starter / "vectors")


@pytest.mark.parametrize("name", ["starter", "{folder}/vectors"])
def test_the_starter_is_not_changed_by_commands(ebert, starter, tmp_path, name):
    before, name = contents(starter), name.format(folder=starter)
    (tmp_path / "kb.csv").write_text("title,description\nX,a Danish city\n")
    for command in (
        ["add", name, "X", "--description", "a city"],
        ["add-many", name, "kb.csv"],
        ["remove", name, "Aarhus"],
    ):
        done = ebert("vectors", *command)
        assert (done.code, done.out) == (2, "")
        assert "ebert vectors copy starter my-entities" in done.err
    done = ebert("serve", name, "--keep")
    assert (done.code, "ebert vectors copy starter my-entities" in done.err) == (2, True)
    assert contents(starter) == before


def test_a_copy_takes_additions_and_making_it_again_changes_nothing(ebert, starter):
    before = contents(starter)
    assert ebert("vectors", "copy", "starter", "mine", "--json").json["changed"]
    assert (Path("mine") / "entities.safetensors").samefile(starter / "vectors" / "entities.safetensors")
    assert ebert("vectors", "add", "mine", "Zorblax", "--description", TEXT).code == 0
    again = ebert("vectors", "copy", "starter", "mine")
    assert (again.code, "nothing changed: mine is a copy of it already, with 5 entities" in again.out) == (0, True)
    assert ebert("vectors", "copy", "starter", "mine", "--overwrite", "--json").json["entities"] == 4
    Path("other").mkdir()
    Path("other/thesis.txt").write_text("all of it")
    assert ebert("vectors", "copy", "starter", "other").code == 2
    assert ebert("vectors", "copy", "mine", "mine").code == 2
    assert contents(starter) == before


def test_adding_the_same_thing_again_changes_nothing(ebert, starter):
    ebert("vectors", "copy", "starter", "mine")
    add = [
        "vectors",
        "add",
        "mine",
        "Zorblax",
        "--description",
        TEXT,
        "--alias",
        "Zorb",
        "--wikidata",
        "Q7",
        "--id",
        "z",
    ]
    first = ebert(*add)
    assert (first.code, "added Zorblax" in first.out) == (0, True)
    assert "ebert vectors check Zorblax --vectors mine" in first.err
    log = contents_of("mine")
    for more in ([], ["--replace"]):
        again = ebert(*add, *more)
        assert (again.code, "nothing changed: " in again.out) == (0, True)
        assert ebert(*add, *more, "--json").json["changed"] is False
    assert contents_of("mine") == log
    for other in (["--alias", "Blax"], ["--id", "y"], ["--wikidata", "Q8"]):
        assert "use replace=True (--replace)" in ebert(*add, *other).err
        assert ebert(*add, *other, "--replace", "--json").json["changed"]


def test_list(ebert, starter):
    ebert("vectors", "copy", "starter", "mine")
    assert ebert("vectors", "list", "mine", "--added").out == ""
    ebert(
        "vectors", "add", "mine", "Zorblax", "--description", TEXT, "--alias", "Zorb", "--wikidata", "Q7", "--id", "z"
    )
    ebert("vectors", "add", "mine", "Odense", "--description", "a Danish city", "--replace")
    assert ebert("vectors", "list", "mine", "--added", "--json").lines == [
        {"title": "Zorblax", "aliases": ["Zorb"], "wikidata": "Q7", "id": "z", "replaces": False},
        {"title": "Odense", "aliases": [], "wikidata": None, "id": None, "replaces": True},
    ]
    shown = "Zorblax (Q7; z; also Zorb)\nOdense (in place of the store's own)\n"
    assert ebert("vectors", "list", "mine", "--added").out == shown
    assert ebert("vectors", "remove", "mine", "Zorblax", "Odense").code == 0
    assert ebert("vectors", "list", "mine", "--added").out == ""
    assert ebert("vectors", "list", "mine").out.splitlines() == ["Aarhus", "Abbey Road", "Revolver (album)"]


def test_add_and_check_in_one_command(ebert, model, store, tmp_path):
    np.save(tmp_path / "v.npy", np.ones(8))
    add = ["vectors", "add", store, "Mara", "--vector", tmp_path / "v.npy", "--model", model]
    done = ebert(*add)
    assert "added Mara" in done.out
    assert "... is a [MASK]." in done.out
    checked = ebert("vectors", "check", "Mara", "--model", model, "--vectors", store, "--json").json
    assert ebert(*add, "--json").json["answers"] == checked["answers"]
    other = ebert("vectors", "add", store, "Jean", "--vector", tmp_path / "v.npy", "--model", "nowhere")
    assert (other.code, "there is no model at nowhere" in other.err) == (2, True)
    assert ebert("vectors", "find", store, "Jean", "--json").json["title"] is None


@pytest.mark.parametrize(
    "command",
    [
        "info {store}",
        "find {store} Paris",
        "nearest {store} Paris",
        "add {store} X --vector v.txt",
        "add-many {store} kb.jsonl",
        "remove {store} Paris",
        "list {store} --added",
        "copy {store} copied",
    ],
)
def test_no_torch_is_loaded(store, tmp_path, command):
    (tmp_path / "v.txt").write_text("1 2 3 4 5 6 7 8")
    (tmp_path / "kb.jsonl").write_text('{"title": "Y", "vector": [1, 2, 3, 4, 5, 6, 7, 8]}\n')
    code = (
        "import sys; from ebert.cli import cli; cli(sys.argv[1:], standalone_mode=False);"
        " print(sorted({'torch', 'transformers', 'huggingface_hub'} & set(sys.modules)))"
    )
    arguments = ["vectors", *command.format(store=store).split()]
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr


def test_refining_needs_a_description_and_a_model(ebert, starter):
    ebert("vectors", "copy", "starter", "mine")
    for what in (["--description", TEXT], ["--model", "starter", "--vector", "v.npy"]):
        done = ebert("vectors", "add", "mine", "Zorblax", *what, "--refine")
        assert (done.code, "--refine needs a --description" in done.err) == (2, True)
    assert ebert("vectors", "list", "mine", "--added").out == ""
