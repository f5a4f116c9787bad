"""Models, linkers and classifiers from elsewhere: they do not choose which paths of this machine are opened."""

import json
import os
import shutil
import sys
import threading
from pathlib import Path

import encoders
import pytest
from huggingface_hub import constants

from ebert import EBert, EbertError, Linker, RelationClassifier, Vectors
from ebert._io import trusted
from ebert.doctor import check_path

sys.path.append(str(Path(__file__).parents[1] / "linking"))

import link_world

PIECES = [*encoders.SPECIAL, "/", ".", "Adams", *link_world.WORDS]
LOADERS = {
    "ebert.json": EBert.from_pretrained,
    "linker.json": Linker.from_pretrained,
    "relations.json": RelationClassifier.from_pretrained,
}
OUTSIDE = "is not inside it, and has no mark of being saved on this machine"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Goes to a machine, as far as ebert knows: each has a cache of its own. The tests begin on the first."""

    def go(name):
        monkeypatch.setenv("EBERT_HOME", str(tmp_path / f"home-{name}"))

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # nobody is asked for names that are made up here
    go("first")
    return go


@pytest.fixture
def made(tmp_path, machine):
    """A model, a linker and a classifier that name a store and an encoder by their paths."""
    bert = encoders.write_small(tmp_path / "bert", PIECES)
    model = EBert.fit(bert, link_world.write_store(tmp_path / "store"))
    model.save_pretrained(tmp_path / "ebert.json", include_vectors=False, include_encoder=False)
    Linker.fresh(model).save_pretrained(tmp_path / "linker.json")
    classifier = RelationClassifier.fresh(model, mode="concat", labels=["P19", "P20"])
    classifier.save_pretrained(tmp_path / "relations.json")
    return tmp_path


@pytest.fixture
def whole(tmp_path, machine):
    """A model with everything in its folder."""
    bert = encoders.write_small(tmp_path / "bert", PIECES)
    model = EBert.fit(bert, link_world.write_store(tmp_path / "store"))
    model.save_pretrained(tmp_path / "whole", include_vectors=True, include_encoder=True)
    return tmp_path / "whole"


def change(folder, file, **values):
    info = json.loads((folder / file).read_text("utf-8"))
    for name, value in values.items():
        info[name] = {**info[name], "name": value} if name in ("vectors", "encoder") else value
    (folder / file).write_text(json.dumps(info), "utf-8")


@pytest.mark.parametrize("kind", LOADERS)
def test_a_path_is_believed_on_the_machine_that_wrote_it(made, machine, kind):
    load = LOADERS[kind]
    assert load(made / kind).vectors.path == made / "store"
    folder = shutil.copytree(made / kind, made / "copy")
    assert load(folder).vectors.path == made / "store"
    machine("second")
    with pytest.raises(EbertError, match=rf"{folder} names {made / 'store'}, which {OUTSIDE}.*--vectors"):
        load(folder)
    given = {"vectors": made / "store"} | ({"encoder": made / "bert"} if kind == "ebert.json" else {})
    again = load(folder, **given)
    named = {"include_vectors": False, "include_encoder": False} if kind == "ebert.json" else {}
    again.save_pretrained(made / "again", **named)  # which is an act of this machine's
    assert load(made / "again").vectors.path == made / "store"


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize("forged", [None, "", "0" * 64, 1, [], "own", "other"])
def test_a_mark_cannot_be_forged(made, machine, kind, forged):
    """Without one (as of ebert 0.1), with any other, with that of another machine or of other paths."""
    if forged == "own":
        forged = json.loads((made / kind).joinpath(kind).read_text("utf-8"))["saved_here"]
        shutil.copytree(made / "store", made / "private")
        change(made / kind, kind, vectors=str(made / "private"))
    elif forged == "other":
        machine("second")
        forged = trusted.mark(str(made / "store"))
        machine("first")
    change(made / kind, kind, saved_here=forged)
    with pytest.raises(EbertError, match=OUTSIDE):
        LOADERS[kind](made / kind)


@pytest.mark.parametrize("part", ["vectors", "encoder"])
@pytest.mark.parametrize("way", ["absolute", "parent", "through", "root", "link", "file"])
def test_no_way_out_of_a_folder(whole, part, way):
    outside = whole.parent / {"vectors": "store", "encoder": "bert"}[part]
    names = {"absolute": str(outside), "parent": f"../{outside.name}", "through": f"{part}/../../{outside.name}",
             "root": "/", "link": "linked", "file": part}  # fmt: skip
    (whole / "linked").symlink_to(outside)
    if way == "file":
        file = next(path for path in sorted((whole / part).iterdir()) if (outside / path.name).is_file())
        file.unlink()
        file.symlink_to(outside / file.name)
    change(whole, "ebert.json", **{part: names[way]})
    with pytest.raises(EbertError, match=OUTSIDE):
        EBert.from_pretrained(whole)
    given = {part: outside}
    assert EBert.from_pretrained(whole, **given).fill("Adams are [MASK]").best
    details = [check.detail for check in check_path(str(whole)) if check.state == "bad"]
    assert len(details) == 1
    assert OUTSIDE in details[0]


@pytest.mark.parametrize("name", ["\0", "a\0b", "circle", "~", "", "no-such", "a/b/c", "\ud800", "x" * 5000, 5, None])
def test_names_that_are_none(whole, name):
    (whole / "circle").symlink_to("circle")
    change(whole, "ebert.json", vectors=name)
    with pytest.raises(EbertError):
        EBert.from_pretrained(whole)
    change(whole, "ebert.json", vectors="vectors", encoder=name)
    with pytest.raises(EbertError):
        EBert.from_pretrained(whole)


def test_the_folder_that_one_stands_in_is_not_looked_at(whole, monkeypatch):
    monkeypatch.chdir(whole.parent)
    change(whole, "ebert.json", vectors="store")
    with pytest.raises(EbertError, match=rf"the store of {whole} is not at {whole / 'store'}"):
        EBert.from_pretrained(whole)
    change(whole, "ebert.json", vectors="vectors", encoder="bert")
    with pytest.raises(EbertError, match="cannot get the encoder 'bert'"):
        EBert.from_pretrained(whole)


def test_a_folder_with_everything_in_it_opens_anywhere(whole, machine):
    machine("second")
    assert EBert.from_pretrained(whole.rename(whole.parent / "moved")).fill("Adams are [MASK]").best
    assert not Path(os.environ["EBERT_HOME"]).exists()


def test_the_links_of_the_hubs_cache_are_no_way_out(whole, tmp_path):
    """A snapshot is made of links to blobs; a link to anything else is not of the hub."""
    blobs, snapshot = tmp_path / "hub" / "blobs", tmp_path / "hub" / "snapshots" / "0123"
    blobs.mkdir(parents=True)
    for number, file in enumerate(path for path in sorted(whole.rglob("*")) if path.is_file()):
        place = snapshot / file.relative_to(whole)
        place.parent.mkdir(parents=True, exist_ok=True)
        file.rename(blobs / str(number))
        place.symlink_to(os.path.relpath(blobs / str(number), place.parent))
    assert EBert.from_pretrained(snapshot).fill("Adams are [MASK]").best
    (snapshot / "vectors" / "words.safetensors").unlink()
    (snapshot / "vectors" / "words.safetensors").symlink_to(tmp_path / "store" / "words.safetensors")
    with pytest.raises(EbertError, match=OUTSIDE):
        EBert.from_pretrained(snapshot)


def test_the_command_line_says_what_to_do(made, machine, ebert):
    machine("second")
    command = ("link", "run", made / "linker.json", "--text", "Adams are injured")
    done = ebert(*command)
    assert (done.code, done.out) == (2, "")
    assert OUTSIDE in done.err
    assert ebert(*command, "--vectors", made / "store").code == 0


def test_one_secret_for_all_that_begin_at_once(machine):
    found = []
    threads = [threading.Thread(target=lambda: found.append(trusted.mark("/a/path"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert trusted.known(found[0], "/a/path")
    home = Path(os.environ["EBERT_HOME"])
    (secret,) = home.glob("secret-*")
    assert secret.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in home.iterdir() if path != secret] == [f".{secret.name}.lock"]


def test_saving_goes_on_where_no_secret_can_be_kept(made, monkeypatch):
    model = EBert.from_pretrained(made / "ebert.json")
    (made / "file").touch()
    monkeypatch.setenv("EBERT_HOME", str(made / "file"))
    model.save_pretrained(made / "unmarked", include_vectors=False, include_encoder=False)
    with pytest.raises(EbertError, match=OUTSIDE):
        EBert.from_pretrained(made / "unmarked")
    parts = {"vectors": Vectors.open(made / "store"), "encoder": made / "bert"}
    assert EBert.from_pretrained(made / "unmarked", **parts).vectors is parts["vectors"]
