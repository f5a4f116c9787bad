"""One resolver for the names of models, stores, linkers and classifiers."""

import subprocess
import sys
from pathlib import Path

import pytest

from ebert import _names
from ebert.errors import EbertError


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(folder: Path, file: str) -> Path:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text("{}")
    return folder


def test_a_folder_is_found_and_comes_before_the_starter(here):
    assert _names.resolve("starter", "model") != here / "starter"
    make(here / "starter", "ebert.json")
    assert _names.resolve("starter", "model") == here / "starter"
    assert _names.resolve(Path("starter"), "linker") == here / "starter"


def test_the_store_of_a_model_goes_by_the_model_s_name(here):
    starter = _names.resolve("starter", "model")
    assert _names.resolve("starter", "store") == starter / "vectors"
    make(make(here / "mine", "ebert.json"), "vectors/store.json")
    assert _names.resolve("mine", "store") == here / "mine" / "vectors"


def test_an_unknown_name_lists_what_there_is(here):
    make(here / "enwiki-ebert", "ebert.json")
    make(here / "other", "config.json")
    with pytest.raises(EbertError, match=r"no model at enwiki.*use starter, enwiki-ebert, .*ebert align"):
        _names.resolve("enwiki", "model")
    with pytest.raises(EbertError, match=r"no classifier at starter: .*hub id; use a folder"):
        _names.resolve("starter", "classifier")


def test_a_path_is_never_asked_of_the_hub(here, monkeypatch):
    monkeypatch.setattr(_names, "_download", lambda *_args, **_hub: pytest.fail("the hub was asked"))
    for name in ("./a/b", "../a", "/a/b", "~nobody-of-this-name/b", Path("a/b"), ""):
        assert _names.resolve(name, "model").is_absolute()


def test_a_hub_id_is_downloaded_with_its_revision(here, monkeypatch):
    asked = []
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *a, **k: asked.append((a, k)) or str(here))
    assert _names.resolve("owner/name@v1", "linker") == here
    assert _names.resolve("owner/name", "store", token="t") == here
    assert asked == [(("owner/name",), {"revision": "v1"}), (("owner/name",), {"token": "t"})]
    with pytest.raises(EbertError, match="is another one"):
        _names.resolve("owner/name@v1", "model", revision="v2")
    with pytest.raises(TypeError, match="has no colour"):
        _names.resolve("owner/name", "model", colour="red")


def test_resolving_loads_nothing_heavy():
    code = "import sys, ebert._names as n; n.resolve('.', 'model'); print({'torch', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
