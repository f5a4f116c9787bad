"""``ebert vectors add --description`` and ``ebert vectors add-many``."""

import json

import numpy as np
import pytest

from ebert import Vectors

WORDS = ["city", "Danish", "harbour", "song", "band", "the"]


@pytest.fixture
def described(tmp_path):
    """The path of a store with output vectors."""
    rng = np.random.default_rng(3)
    learned = rng.normal(size=(len(WORDS), 8)) + 2 * np.repeat(rng.normal(size=(2, 8)), 3, axis=0)
    path = tmp_path / "described"
    Vectors.from_arrays(
        words=WORDS, word_vectors=rng.normal(size=(len(WORDS), 8)), word_counts=[9, 8, 7, 6, 5, 900],
        word_outputs=learned, entities=["Aarhus"], entity_vectors=np.ones((1, 8)), path=path,
    ).close()  # fmt: skip
    return str(path)


def test_add_by_a_description(ebert, described):
    done = ebert(
        "vectors", "add", described, "Esbjerg", "--description", "a Danish city", "--alias", "EBJ", "--id", "p-1",
        "--wikidata", "Q7", "--json",
    )  # fmt: skip
    assert (done.code, done.json) == (0, {"title": "Esbjerg", "oddity": None, "entities": 2, "changed": True})
    with Vectors.open(described) as store:
        store.add("Same", description="a Danish city")
        np.testing.assert_array_equal(store["p-1"], store["Same"])
        assert store.find("EBJ").title == store.find("Q7").title == store.find_id("p-1").title == "Esbjerg"
    found = ebert("vectors", "find", described, "p-1", "--json").json
    assert (found["title"], found["id"], found["wikidata"]) == ("Esbjerg", "p-1", "Q7")
    assert "id p-1" in ebert("vectors", "find", described, "Esbjerg").out
    assert "added Esbjerg" in ebert("vectors", "add", described, "Esbjerg", "--description", "song", "--replace").out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give one of --description and --vector"),
        (["--description", "city", "--vector", "x.npy"], "give one of --description and --vector"),
        (["--description", "xyzzy"], "knows no word of the description 'xyzzy'"),
        (["--description", ""], "knows no word"),
    ],
)
def test_what_cannot_be_described(ebert, described, options, message):
    done = ebert("vectors", "add", described, "X", *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "X" not in Vectors.open(described)


def test_a_store_without_outputs(ebert, store):
    done = ebert("vectors", "add", store, "X", "--description", "the native language")
    assert done.code == 2
    assert "ebert vectors train" in done.err
    assert "--vector" in done.err


def test_info_tells_whether_entities_can_be_described(ebert, store, described):
    assert ebert("vectors", "info", store, "--json").json["output vectors"] == 0
    facts = ebert("vectors", "info", described, "--json").json
    assert (facts["output vectors"], facts["surfaces"]) == (6, 0)


CSV = """title,description,aliases,id,colour
Esbjerg,"a Danish city, with a harbour",EBJ|Esbjærg,p-1,red
Nowhere,xyzzy,,p-2,blue
Help!,a song,Aarhus,p-3,
"""


def test_add_many(ebert, described, tmp_path):
    (tmp_path / "kb.csv").write_text(CSV, encoding="utf-8")
    done = ebert("vectors", "add-many", described, tmp_path / "kb.csv", "--rejected", tmp_path / "bad.jsonl", "--json")
    assert done.code == 0
    assert done.json == {
        "added": 2, "replaced": 0, "unchanged": 0, "left out": 1, "shared names": 1,
        "clashes": [{"name": "Aarhus", "title": "Help!", "means": "Aarhus"}],
        "odd titles": 0, "unused": ["colour"], "entities": 3,
    }  # fmt: skip
    assert "line 3, 'Nowhere': the store knows no word" in done.err
    rejected = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["line"], row["title"]) for row in rejected] == [(3, "Nowhere")]
    with Vectors.open(described) as store:
        assert store.find("EBJ").title == "Esbjerg"
        assert store.find_id("p-3").title == "Help!"


def test_add_many_for_people(ebert, described, tmp_path):
    (tmp_path / "kb.csv").write_text(CSV, encoding="utf-8")
    done = ebert("vectors", "add-many", described, tmp_path / "kb.csv")
    assert "added 2 entities, left 1 rows out" in done.out
    assert "names that clash: 1;" in done.out
    assert "'Aarhus', a name of 'Help!', finds 'Aarhus'" in done.err
    assert "not used: colour" in done.out
    (tmp_path / "kb.csv").write_text(CSV.replace("a Danish city", "a band"), encoding="utf-8")
    again = ebert("vectors", "add-many", described, tmp_path / "kb.csv", "--replace")
    assert again.code == 0
    assert "added 1 entities (1 of them in place of others), 1 were there already" in again.out


def test_exit_codes_of_add_many(ebert, described, tmp_path):
    (tmp_path / "kb.csv").write_text(CSV, encoding="utf-8")
    assert ebert("vectors", "add-many", described, tmp_path / "kb.csv", "--strict").code == 2
    with Vectors.open(described) as store:
        assert "Esbjerg" in store  # all the same
    again = ebert("vectors", "add-many", described, tmp_path / "kb.csv")
    assert (again.code, "added 0 entities, 2 were there already, left 1 rows out" in again.out) == (0, True)
    (tmp_path / "kb.csv").write_text(CSV.replace("a ", "the "), encoding="utf-8")
    nothing = ebert("vectors", "add-many", described, tmp_path / "kb.csv")
    assert nothing.code == 2
    assert "was added before; use replace=True (--replace)" in nothing.err
    missing = ebert("vectors", "add-many", described, tmp_path / "nowhere.csv")
    assert (missing.code, "there is no file" in missing.err) == (2, True)


def test_of_many_bad_rows_some_are_shown(ebert, described, tmp_path):
    (tmp_path / "kb.jsonl").write_text('{"title": "X"}\n' * 50)
    done = ebert("vectors", "add-many", described, tmp_path / "kb.jsonl")
    assert done.code == 2
    assert len(done.err.splitlines()) == 21
    assert "... and 30 more (--rejected FILE)" in done.err


def test_what_was_added_before_an_interruption_is_told(ebert, described, tmp_path, monkeypatch):
    from ebert._io import records
    from ebert.vectors import add

    rows = [json.dumps({"title": f"T{i}", "description": "city"}) for i in range(5)]
    (tmp_path / "kb.jsonl").write_text("\n".join(rows) + "\n")
    monkeypatch.setattr(add, "BATCH", 2)
    objects = records._objects

    def interrupted(lines):
        for number, row in objects(lines):
            if number == 5:
                raise KeyboardInterrupt
            yield number, row

    monkeypatch.setattr(records, "_objects", interrupted)
    done = ebert("vectors", "add-many", described, tmp_path / "kb.jsonl")
    assert done.code == 130
    assert "4 entities were added before this" in done.err
    with Vectors.open(described) as store:
        assert [title for title, _ in store.added()] == ["T0", "T1", "T2", "T3"]
