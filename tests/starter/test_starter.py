"""The model that ships: packing, unpacking, and that it is whole."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from ebert import EBert, Vectors, get_starter
from ebert.errors import EbertError
from ebert.starter import get, packing

NAMES = {
    "words": ["piano", "king", "the"], "word_counts": [5, 7, 900], "entities": ["Jean Marais", "Q-tip"],
    "entity_counts": [12, 3], "redirects": [["Marais", 0]], "wikidata": [[0, 168359]],
    "surfaces": [["Marais", 4, [[0, 3], [1, 1]]]], "licence": "CC BY-SA 4.0", "made": {"from": "a test"},
}  # fmt: skip


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """A home that has the starter already, as one process after another finds it."""
    with pytest.MonkeyPatch.context() as patched:
        home = tmp_path_factory.mktemp("home")
        patched.setenv("EBERT_HOME", str(home))
        get_starter()
        yield home


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("EBERT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def packed(tmp_path):
    random = np.random.default_rng(3)
    matrices = {
        "words": random.normal(size=(3, 8)),
        "outputs": random.normal(size=(3, 8)),
        "entities": random.normal(size=(2, 8)),
    }
    matrices["words"][2] = 0
    packing.pack(tmp_path / "packed", matrices, NAMES)
    return tmp_path / "packed", matrices


def test_what_is_packed_comes_out_again(packed, tmp_path):
    folder, matrices = packed
    packing.unpack(folder, tmp_path / "store")
    with Vectors.open(tmp_path / "store") as vectors:
        for part, found in (
            ("words", vectors.word_matrix),
            ("outputs", vectors.word_outputs),
            ("entities", vectors.entity_matrix),
        ):
            step = np.abs(matrices[part]).max(axis=1, keepdims=True) / 127
            off = np.abs(found - matrices[part])
            assert (off <= 0.5 * step + 0.002).all()
            assert off.max() > 0
        assert vectors.find("Marais").qid == "Q168359"
        assert vectors.find("Jean Marais").count == 12
        assert vectors.word_count("the") == 900
        assert [(c.entity.title, c.count) for c in vectors.candidates("Marais")] == [("Jean Marais", 3), ("Q-tip", 1)]
        assert vectors.info.licence == "CC BY-SA 4.0"


@pytest.mark.parametrize("name", [packing.MATRICES, packing.NAMES])
@pytest.mark.parametrize("how", ["cut", "missing", "other"])
def test_damaged_data(packed, tmp_path, name, how):
    folder, _ = packed
    path = folder / name
    if how == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif how == "other":
        path.write_bytes(b"something else entirely")
    else:
        path.unlink()
    with pytest.raises(EbertError, match="install ebert again"):
        packing.unpack(folder, tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_it_is_unpacked_once(unpacked, monkeypatch):
    (folder,) = (info.parent for info in unpacked.glob("starter/*/ebert.json"))

    def again(*_):
        raise AssertionError("unpacked a second time")

    monkeypatch.setattr(packing, "unpack", again)
    assert get_starter() == folder


def test_the_command_loads_no_torch(unpacked):
    code = (
        "import sys; from ebert.cli import cli; cli(['starter'], standalone_mode=False);"
        " print(sorted({'torch', 'transformers', 'huggingface_hub'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(get_starter()), "[]"]


def test_what_is_added_to_it_goes_with_the_object(unpacked):
    before = {path: path.read_bytes() for path in (get_starter() / "vectors").iterdir()}
    with Vectors.open("starter") as vectors:
        for _ in range(2):
            vectors.add("Zorblax Inc.", description="Zorblax Inc. is a Danish maker of toys.", replace=True)
        assert "Zorblax Inc." in vectors
        with vectors.copy(unpacked / "mine") as own:
            assert "Zorblax Inc." in own
    for name in ("starter", get_starter() / "vectors"):
        with Vectors.open(name) as vectors:
            assert "Zorblax Inc." not in vectors
    assert {path: path.read_bytes() for path in (get_starter() / "vectors").iterdir()} == before


def test_interrupted_unpacking_leaves_nothing(home, packed, monkeypatch):
    for name in ("ebert.json", "alignment.safetensors"):
        shutil.copyfile(get.DATA / name, packed[0] / name)
    monkeypatch.setattr(get, "DATA", packed[0])

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfile", interrupted)
        with pytest.raises(KeyboardInterrupt):
            get_starter()
    assert [path.suffix for path in (home / "starter").iterdir()] == [".lock"]
    assert (get_starter() / "ebert.json").is_file()


def test_a_package_without_its_data(home, monkeypatch, tmp_path):
    monkeypatch.setattr(get, "DATA", tmp_path)
    with pytest.raises(EbertError, match="install ebert again"):
        get_starter()


def test_what_ships(unpacked):
    size = sum(path.stat().st_size for path in get.DATA.iterdir())
    assert size < 25 * 2**20
    assert "CC BY-SA" in (get.DATA / "LICENCE.md").read_text(encoding="utf-8")
    with Vectors.open(get_starter() / "vectors") as vectors:
        assert vectors.info.entities == 20_000
        assert vectors.info.words > 15_000
        assert vectors.word_outputs is not None
        assert "CC BY-SA" in vectors.info.licence
        assert vectors.candidates("Paris")[0].entity.title == "Paris"
        assert {n.name for n in vectors.nearest("France", top=15)} & {"Germany", "Italy", "Spain", "Belgium"}


@pytest.mark.real
def test_it_answers_by_fact(unpacked):
    model = EBert.from_pretrained(get_starter())
    assert model.fill("The native language of [[Jean Marais]] is [MASK] .", mode="concat", top=1).best == "French"
    assert json.loads((get.DATA / "ebert.json").read_text())["encoder"]["name"] == "bert-base-cased"
