"""``ebert vectors``."""

import io

import numpy as np
import pytest

from ebert import Vectors

TEXT = "king 1 0 0\nqueen 0.9 0.1 0\nENTITY/Jean_Marais 0 1 0\nENTITY/Paris 0 0.9 0.1\n"


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(TEXT)
    return path


def test_import_and_info(ebert, text, tmp_path):
    done = ebert("vectors", "import", text, "--out", tmp_path / "new", "--licence", "CC0", "--json")
    assert done.code == 0
    assert (done.json["words"], done.json["entities"], done.json["dimension"]) == (2, 2, 3)
    info = ebert("vectors", "info", tmp_path / "new")
    assert "CC0" in info.out
    assert "words" in info.out
    assert ebert("vectors", "info", tmp_path / "new", "--json").json == done.json


def test_import_does_not_overwrite_unasked(ebert, text, store):
    done = ebert("vectors", "import", text, "--out", store)
    assert (done.code, done.out) == (2, "")
    assert "exists" in done.err
    assert Vectors.open(store).info.entities == 3
    assert ebert("vectors", "import", text, "--out", store, "--overwrite").code == 0
    assert Vectors.open(store).info.entities == 2


def test_a_bad_line_is_named_and_the_old_store_survives(ebert, text, store):
    text.write_text(TEXT + "short 1 2\n")
    done = ebert("vectors", "import", text, "--out", store, "--overwrite")
    assert done.code == 2
    assert "line 5" in done.err
    assert Vectors.open(store).info.entities == 3


def test_find(ebert, store):
    done = ebert("vectors", "find", store, "jean_Marais", "Q168359", "--json")
    assert done.code == 0
    assert [line["title"] for line in done.lines] == ["Jean Marais", "Jean Marais"]
    assert done.lines[0]["wikidata"] == "Q168359"
    missed = ebert("vectors", "find", store, "Jean Maris")
    assert missed.code == 2
    assert "Jean Marais" in missed.out


def test_info_is_written_for_people(ebert, store):
    described = ebert("vectors", "info", store, "--json").json["made"]
    shown = ebert("vectors", "info", store).out
    assert all(f"made: {name}" in shown for name in described)
    assert not set("{}[]'") & set(shown.partition("made: ")[2].replace(str(store), ""))


def test_nearest(ebert, store):
    found = ebert("vectors", "nearest", store, "Paris", "--kind", "both", "--top", 4, "--json").json
    assert len(found) == 4
    expected = Vectors.open(store).nearest("Paris", kind="both", top=4)
    assert [n["name"] for n in found] == [n.name for n in expected]
    words = ebert("vectors", "nearest", store, "Paris", "--word", "--kind", "words", "--top", 2)
    head, *rows = (line.split() for line in words.out.splitlines())
    assert (head, len(rows)) == (["score", "cosine", "kind", "name"], 2)
    unknown = ebert("vectors", "nearest", store, "Pariss")
    assert unknown.code == 2
    assert "nearest titles: 'Paris'" in unknown.err


def test_add(ebert, store, tmp_path, monkeypatch):
    np.save(tmp_path / "v.npy", np.arange(8.0))
    done = ebert("vectors", "add", store, "Zorblax_Inc.", "--vector", tmp_path / "v.npy", "--alias", "ZI", "--json")
    assert done.json == {"title": "Zorblax Inc.", "oddity": None, "entities": 4, "changed": True}
    np.testing.assert_array_equal(Vectors.open(store)["ZI"], np.arange(8))
    np.save(tmp_path / "v.npy", np.arange(8.0) + 1e-6)
    again = ebert("vectors", "add", store, "Zorblax Inc.", "--vector", tmp_path / "v.npy")
    assert (again.code, "--replace" in again.err) == (2, True)
    monkeypatch.setattr("sys.stdin", io.StringIO("[1, 1, 1, 1, 1, 1, 1, 1]\n"))
    assert ebert("vectors", "add", store, "Zorblax Inc.", "--vector", "-", "--replace", "--wikidata", "Q7").code == 0
    np.testing.assert_array_equal(Vectors.open(store)["Q7"], np.ones(8))
    unknown = ebert("vectors", "remove", store, "ZI", "Zorblaxx")
    assert (unknown.code, "nearest titles: 'Zorblax Inc.'" in unknown.err) == (2, True)
    assert ebert("vectors", "remove", store, "ZI", "Q7", "--json").json == {"removed": ["Zorblax Inc."], "entities": 3}


@pytest.mark.parametrize(
    ("content", "message"), [("1 2 3", "dimension 8"), ("a b", "not a vector"), ("1 2 3 4 5 6 7 nan", "not a number")]
)
def test_add_what_is_no_vector(ebert, store, tmp_path, content, message):
    (tmp_path / "v.txt").write_text(content)
    done = ebert("vectors", "add", store, "X", "--vector", tmp_path / "v.txt")
    assert done.code == 2
    assert message in done.err
    assert "X" not in Vectors.open(store)


@pytest.mark.parametrize("array", [np.array(["a"] * 8), np.ones(8) * 1j, np.ones((2, 8))])
def test_add_an_array_that_is_no_vector(ebert, store, tmp_path, array):
    np.save(tmp_path / "v.npy", array)
    assert ebert("vectors", "add", store, "X", "--vector", tmp_path / "v.npy").code == 2
    assert "X" not in Vectors.open(store)


def test_a_folder_is_no_vector_and_an_ending_no_compression(ebert, store, tmp_path):
    assert ebert("vectors", "add", store, "X", "--vector", tmp_path).code == 2
    assert ebert("vectors", "export", store, tmp_path / "out.gz").code == 2
    assert ebert("vectors", "nearest", store, "Paris", "--top", 10**30, "--json").code == 0


def test_add_with_a_bad_wikidata_id(ebert, store, tmp_path):
    np.save(tmp_path / "v.npy", np.arange(8.0))
    done = ebert("vectors", "add", store, "X", "--vector", tmp_path / "v.npy", "--wikidata", "42")
    assert (done.code, "not a Wikidata id" in done.err) == (2, True)


def test_export_and_import_again(ebert, store, tmp_path):
    done = ebert("vectors", "export", store, tmp_path / "out.txt", "--json")
    assert done.json["lines"] == 17
    assert ebert("vectors", "export", store, tmp_path / "out.txt").code == 2
    assert ebert("vectors", "import", tmp_path / "out.txt", "--out", tmp_path / "again").code == 0
    one, other = Vectors.open(store), Vectors.open(tmp_path / "again")
    np.testing.assert_allclose(other["Jean Marais"], one["Jean Marais"], rtol=1e-5)
    np.testing.assert_allclose(other.word_vector("Paris"), one.word_vector("Paris"), rtol=1e-5)
