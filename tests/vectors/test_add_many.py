"""Adding a whole knowledge base."""

import json

import numpy as np
import pytest
from described import DIMENSION, make_store

from ebert import EbertError, Vectors
from ebert.vectors import add
from ebert.vectors.add import RejectedRow

ROWS = [
    {"title": "Esbjerg", "description": "a Danish harbour", "aliases": ["EBJ", "Esbjærg"], "id": "p-1"},
    {"title": "Skagen", "description": "a city of the Danish", "aliases": "The Skaw|Skaw", "wikidata": "Q1"},
    {"title": "Help!", "description": "a song of the band", "id": 17},
    {"title": "Given", "vector": [1.0] * DIMENSION, "description": None, "aliases": None, "id": "", "wikidata": ""},
]


@pytest.fixture
def store(tmp_path):
    with make_store(tmp_path / "store") as vectors:
        yield vectors


def test_each_row_is_added_as_alone(store, tmp_path):
    report = store.add_many(ROWS)
    assert (report.added, report.replaced, report.bad, report.rows) == (4, 0, [], 4)
    with make_store(tmp_path / "other") as other:
        for row in ROWS[:3]:
            other.add(row["title"], description=row["description"])
            np.testing.assert_allclose(store[row["title"]], other[row["title"]], atol=1e-5)
    assert store["Given"].tolist() == [1] * DIMENSION
    for name in ("EBJ", "Esbjærg", "p-1"):
        assert store.find(name).title == "Esbjerg"
    assert store.find("skaw").title == store.find("Q1").title == "Skagen"
    assert [store.id_of(store.find(name)) for name in ("EBJ", "Skagen", "Help!")] == ["p-1", None, "17"]
    assert store.candidates("The Skaw")[0].entity.title == "Skagen"


def test_own_ids_never_stand_for_titles(store, tmp_path):
    store.add("1984", np.ones(DIMENSION))
    store.add("Winston", np.zeros(DIMENSION), id="1984")
    store.add("Aarhus", np.ones(DIMENSION), id=" a_1 ", replace=True)
    assert store.find("1984").title == "1984"
    assert store.find_id("1984").title == "Winston"
    assert store.find_id(" a_1").title == "Aarhus"
    assert store.find_id("Winston") is None
    assert store.find_id("Q25319") is None
    with store.save(tmp_path / "saved") as saved:
        assert saved.find_id("1984").title == "Winston"
        assert saved.id_of(saved.find("Q25319")) == "a_1"
        saved.add("Aarhus", np.zeros(DIMENSION), replace=True)
        assert saved.find_id("a_1").added
        assert saved.id_of(saved.find("Aarhus")) == "a_1"
        with saved.save(tmp_path / "again") as again:
            assert again.find_id("a_1").title == "Aarhus"
            assert again.find_id("1984").title == "Winston"
        with pytest.raises(EbertError, match="the id '1984' is of 'Winston' already; 'X' needs its own"):
            saved.add("X", np.ones(DIMENSION), id="1984")


def test_an_id_is_changed_by_replacing(store):
    store.add("X", np.ones(DIMENSION), id="old")
    store.add("X", np.ones(DIMENSION), id="new", replace=True)
    assert (store.find_id("old"), store.find_id("new").title) == (None, "X")
    with pytest.raises(EbertError, match="cannot be called ''"):
        store.add("Y", np.ones(DIMENSION), id=" ")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, "it has no title"),
        ({"title": ""}, "it has no title"),
        ({"title": None, "description": "a city"}, "it has no title"),
        ({"title": 5, "description": "a city"}, "its title is not text but 5"),
        ({"title": " _ ", "description": "a city"}, "an entity cannot be called ''"),
        ({"title": "X"}, "'X' needs a description or a vector"),
        ({"title": "X", "description": "a city", "vector": [1.0] * DIMENSION}, "one of the two"),
        ({"title": "X", "description": ["a city"]}, "its description is not text"),
        ({"title": "X", "description": "xyzzy"}, "knows no word of the description 'xyzzy'"),
        ({"title": "X", "vector": [1.0]}, "dimension 24"),
        ({"title": "X", "vector": "1 2"}, "not made of numbers"),
        ({"title": "X", "description": "a city", "aliases": 5}, "its aliases are not a list of names but 5"),
        ({"title": "X", "description": "a city", "aliases": ["Y", None]}, "its aliases are not a list of names"),
        ({"title": "X", "description": "a city", "id": True}, "its id is not text or a whole number but True"),
        ({"title": "X", "description": "a city", "id": 1.5}, "its id is not text or a whole number but 1.5"),
        ({"title": "X", "description": "a city", "wikidata": "42"}, "'42' is not a Wikidata id such as Q42"),
        ({"title": "X", "description": "a city", "wikidata": 2**70}, "not the number of a Wikidata id"),
        ({"title": "X", "description": "a city", "wikidata": 25319}, "Q25319 is 'Aarhus' already"),
        ({"title": "X", "description": "a city", "wikidata": "Q1"}, "Q1 is 'Skagen' already"),
        ({"title": "X", "description": "a city", "id": "p-1"}, "the id 'p-1' is of 'Esbjerg' already"),
        ({"title": "Aarhus", "description": "a city"}, "'Aarhus' has a vector already"),
        ({"title": "Skagen", "description": "a city"}, "'Skagen' was added before"),
    ],
)
def test_a_bad_row_is_left_out_and_the_others_are_not(store, row, reason):
    report = store.add_many([*ROWS[:2], row, *ROWS[2:]])
    assert report.added == 4
    assert [bad.number for bad in report.bad] == [3]
    assert reason in report.bad[0].reason
    assert store.find("X") is None
    assert store.find("Help!") is not None


def test_a_name_that_means_something_else_is_a_surface_only(store):
    rows = [
        {"title": "Smith (baker)", "description": "a city", "aliases": ["Smith", "Århus", "Aarhus"]},
        {"title": "Smith (singer)", "description": "a song", "aliases": ["Smith", "The singer"]},
    ]
    report = store.add_many(rows)
    assert report.added == 2
    assert [(clash.name, clash.title, clash.means) for clash in report.clashes] == [
        ("Århus", "Smith (baker)", "Aarhus"), ("Aarhus", "Smith (baker)", "Aarhus"),
        ("Smith", "Smith (singer)", "Smith (baker)"),
    ]  # fmt: skip
    assert store.find("Smith").title == "Smith (baker)"
    assert store.find("Århus").title == store.find("Aarhus").title == "Aarhus"
    assert [c.entity.title for c in store.candidates("Smith")] == ["Smith (baker)", "Smith (singer)"]
    assert [c.entity.title for c in store.candidates("Århus")] == ["Smith (baker)"]
    again = store.add_many(rows, replace=True)
    assert (again.added, again.unchanged, again.clashes) == (0, 2, report.clashes)
    assert store.find("Smith").title == "Smith (baker)"


def test_of_rows_with_one_title_the_first_counts_or_with_replace_the_last(store):
    rows = [{"title": "X", "description": text} for text in ("a city", "a song", "a guitar")]
    report = store.add_many(rows)
    assert (report.added, [bad.number for bad in report.bad]) == (1, [2, 3])
    first = store["X"]
    report = store.add_many(rows, replace=True)
    assert (report.added, report.replaced, report.unchanged, report.bad) == (2, 2, 1, [])
    assert not np.allclose(store["X"], first)
    store.add("Y", description="a guitar")
    np.testing.assert_allclose(store["X"], store["Y"], atol=1e-6)


def test_bad_rows_are_told_in_their_order_whenever_they_were_found_to_be_bad(store):
    rows = [{"title": "Aarhus", "description": "a city"}, {}, {"title": "X", "description": "xyzzy"}, {}]
    assert [bad.number for bad in store.add_many(rows).bad] == [1, 2, 3, 4]


def test_fields_that_mean_nothing_are_told(store):
    assert store.add_many([{"title": "X", "description": "a city", "colour": "red", "": 1}]).unused == {"colour", ""}


def test_no_rows(store):
    report = store.add_many([])
    assert (report.added, report.bad) == (0, [])
    assert not list(store.path.glob("added-*"))


def test_many_batches(store, monkeypatch):
    monkeypatch.setattr(add, "BATCH", 7)
    seen = []
    rows = [{"title": f"T{i}", "description": "a city" if i % 5 else "xyzzy", "id": i} for i in range(100)]
    report = store.add_many(iter(rows), advance=seen.append)
    assert (report.added, len(report.bad), sum(seen)) == (80, 20, 100)
    assert [bad.number for bad in report.bad] == list(range(1, 101, 5))
    assert store.find_id("99").title == "T99"
    assert len(store) == 84


def test_what_was_committed_stays_when_it_is_interrupted(store, monkeypatch):
    monkeypatch.setattr(add, "BATCH", 10)

    def rows():
        for i in range(25):
            yield {"title": f"T{i}", "description": "a city"}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.add_many(rows())
    assert [title for title, _ in store.added()] == [f"T{i}" for i in range(20)]
    assert store.add_many([{"title": "T20", "description": "a city"}]).added == 1


def test_an_interrupted_batch_leaves_nothing(store, monkeypatch):
    store.add_many(ROWS[:1])
    add, calls = type(store.overlay).add, []

    def interrupted(self, new, vector):
        calls.append(new.title)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return add(self, new, vector)

    monkeypatch.setattr(type(store.overlay), "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.add_many(ROWS[1:])
    monkeypatch.undo()
    assert [title for title, _ in store.added()] == ["Esbjerg"]
    assert store.find("Skaw") is None
    assert store.candidates("Skaw") == []
    assert store.add_many(ROWS[1:]).added == 3


def test_a_store_without_outputs(tmp_path):
    with make_store(tmp_path / "other", word_outputs=None) as store:
        assert store.add_many(ROWS[3:]).added == 1
        with pytest.raises(EbertError, match="has no output vectors"):
            store.add_many(ROWS)


def test_from_a_file(store, tmp_path):
    path = tmp_path / "kb.jsonl"
    lines = [json.dumps(row) for row in ROWS]
    path.write_text("\n".join([*lines[:2], "", "{broken", *lines[2:]]) + "\n", encoding="utf-8")
    done = []
    report = store.add_many(path, advance=done.append)
    assert (report.added, sum(done)) == (4, path.stat().st_size)
    assert report.bad == [RejectedRow(4, None, report.bad[0].reason)]
    assert "it is not JSON" in report.bad[0].reason
    with Vectors.open(store.path) as other:
        assert other.find_id("17").title == "Help!"
