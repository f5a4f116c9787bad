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
    "surfaces": [
        ["Marais", 4, [[0, 3], [1, 1]]], ["swab", 2, [[1, 1]]], ["Q tip", 70_000, [[0, 5]]],
        ["Jean Marais", 9, [[0, 8]]],
    ],
    "licence": "CC BY-SA 4.0", "made": {"from": "a test"},
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
        # So few rows are all in the codebooks, in half precision.
        assert vectors.word_matrix == pytest.approx(matrices["words"], abs=0.002)
        assert vectors.word_outputs == pytest.approx(matrices["outputs"], abs=0.002)
        assert vectors["Jean Marais"] == pytest.approx(matrices["entities"][0], abs=0.002)
        assert vectors["Q-tip"] == pytest.approx(matrices["entities"][1], abs=0.002)
        assert (vectors.info.dtype, vectors.info.made["from"]) == ("pq", "a test")
        assert vectors.find("Marais").qid == "Q168359"
        assert (vectors.find("Jean Marais").count, vectors.find("Q-tip").count) == (12, 3)
        assert vectors.find("Q-tip").wikidata is None
        assert vectors.word_count("the") == 900
        assert vectors.info.licence == "CC BY-SA 4.0"


def test_surfaces_come_out_again(packed, tmp_path):
    """Also those that are the words of a title: of one that means it, and of one that means something else."""
    folder, _ = packed
    packing.unpack(folder, tmp_path / "store")
    with Vectors.open(tmp_path / "store") as vectors:
        found = sorted((surface, seen, list(meant)) for surface, seen, meant in vectors.catalogue.surfaces())
    assert found == [
        ("Jean Marais", 9, [(0, 8)]), ("Marais", 4, [(0, 3), (1, 1)]), ("Q tip", 70_000, [(0, 5)]),
        ("swab", 2, [(1, 1)]),
    ]  # fmt: skip


def test_entities_come_out_in_the_order_of_their_counts(tmp_path):
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    names = {
        **NAMES, "entities": ["B", "A", "C"], "entity_counts": [1, None, 5], "wikidata": [[1, 7]],
        "redirects": [["D", 1]], "surfaces": [["d", 3, [[1, 2]]]],
    }  # fmt: skip
    packing.pack(tmp_path / "packed", {"words": matrix, "outputs": matrix, "entities": matrix}, names)
    packing.unpack(tmp_path / "packed", tmp_path / "store")
    with Vectors.open(tmp_path / "store") as vectors:
        assert vectors.catalogue.names("entities", 0, 3) == ["C", "B", "A"]
        assert [vectors[title].tolist() for title in "ABC"] == matrix[[1, 0, 2]].tolist()
        assert [vectors.known(title).count for title in "ABC"] == [None, 1, 5]
        assert (vectors.find("D").title, vectors.find("Q7").title) == ("A", "A")
        assert [one.entity.title for one in vectors.candidates("d")] == ["A"]


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
    packing.seal(packed[0])
    monkeypatch.setattr(get, "DATA", packed[0])

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfile", interrupted)
        with pytest.raises(KeyboardInterrupt):
            get_starter()
    assert [path.suffix for path in (home / "starter").iterdir()] == [".lock"]
    assert (get_starter() / "ebert.json").is_file()


def test_another_linker_makes_another_starter(home, packed, monkeypatch):
    """Its folder goes by all files: an adapter that was trained anew has the same size, on the same model."""
    monkeypatch.setattr(get, "DATA", packed[0])
    (packed[0] / "ebert.json").touch()
    found = []
    for adapter in (b"one", b"two"):
        (packed[0] / "adapter.safetensors").write_bytes(adapter)
        packing.seal(packed[0])
        found.append(get_starter())
        assert (found[-1] / "adapter.safetensors").read_bytes() == adapter
    assert found[0] != found[1]


def test_a_package_without_its_data(home, monkeypatch, tmp_path):
    monkeypatch.setattr(get, "DATA", tmp_path)
    with pytest.raises(EbertError, match="install ebert again"):
        get_starter()


def test_what_ships(unpacked):
    size = sum(path.stat().st_size for path in get.DATA.iterdir())
    assert size < 30 * 2**20
    assert "CC BY-SA" in (get.DATA / "LICENCE.md").read_text(encoding="utf-8")
    with Vectors.open(get_starter() / "vectors") as vectors:
        assert vectors.info.entities >= 200_000
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
