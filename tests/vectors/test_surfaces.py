"""What words of a text may mean."""

import sqlite3
from contextlib import closing
from functools import partial

import numpy as np
import pytest

from ebert import Vectors
from ebert.vectors import log
from ebert.vectors.lookup import surface_of
from ebert.vectors.writer import writing
from ebert.wikipedia.tokens import words_of

WORDS = ["paris", "Texas", "Apple", "Paris"]
COUNTS = [50, 40, 30, 700]
TITLES = ["Paris", "Paris, Texas", "Paris (mythology)", "Texas"]


@pytest.fixture
def store(tmp_path):
    with writing(tmp_path / "store", dimension=2) as writer:
        writer.add("words", WORDS, np.ones((4, 2)), counts=COUNTS, outputs=np.ones((4, 2)))
        writer.add("entities", TITLES, np.eye(4, 2), counts=[90, 9, 5, 20])
        writer.surfaces([("Paris", 200, [(0, 60), (2, 15), (1, 5)]), ("Paris Texas", 4, [(1, 4)])])
        writer.surfaces([("Texas", 50, [(3, 20)])])
        writer.finish(licence="CC0", made={"from": "a test"})
    with Vectors.open(tmp_path / "store") as vectors:
        yield vectors


def meanings(store, surface):
    return [(c.entity.title, c.count, round(c.prior, 4)) for c in store.candidates(surface)]


@pytest.mark.parametrize(
    ("name", "surface"),
    [
        ("Jean Marais", "Jean Marais"),
        ("Paris, Texas (film)", "Paris Texas"),
        ("AC/DC", "AC DC"),
        ("(What's the Story) Morning Glory?", "What s the Story Morning Glory"),
        ("(film)", "film"),
        ("!!!", ""),
        ("日本", "日 本"),
        ("F(x) (band)", "F x"),
    ],
)
def test_the_surface_of_a_name(name, surface):
    assert surface_of(name) == surface


def test_lower_case_surfaces():
    assert surface_of("Beyoncé Knowles", partial(words_of, lowercase=True)) == "beyonce knowles"


def test_candidates_and_their_priors(store):
    assert meanings(store, "Paris") == [
        ("Paris", 60, 0.75),
        ("Paris (mythology)", 15, 0.1875),
        ("Paris, Texas", 5, 0.0625),
    ]
    assert meanings(store, "Paris, Texas!") == [("Paris, Texas", 4, 1.0)]
    assert store.candidates("Paris")[0].entity == store.find("Paris")
    assert sum(candidate.prior for candidate in store.candidates("Paris")) == 1
    for nothing in ("paris", "Xyzzy", "", "...", "\ud800"):
        assert store.candidates(nothing) == []
        assert store.link_probability(nothing) == 0


def test_link_probability(store):
    assert store.link_probability("Paris") == 80 / 200
    assert store.link_probability(" Paris - Texas") == 1
    assert store.link_probability("Texas") == 20 / 50


def test_names_of_added_entities_are_surfaces(store):
    store.add("Zorblax (company)", [1, 2], aliases=["Zorblax Incorporated", "Apple"])
    assert meanings(store, "Zorblax") == meanings(store, "Zorblax Incorporated") == [("Zorblax (company)", 1, 1.0)]
    assert store.candidates("Zorblax")[0].entity.added
    assert store.link_probability("Zorblax") == 1
    assert store.link_probability("Apple") == 1 / 31  # it stands 30 times in the text, where nobody linked it
    store.add("Paris (Zorblax plant)", [2, 1])
    assert meanings(store, "Paris")[-1] == ("Paris (Zorblax plant)", 1, round(1 / 81, 4))
    assert store.link_probability("Paris") == 81 / 201
    with Vectors.open(store.path) as other:
        assert meanings(other, "Paris") == meanings(store, "Paris")


def test_a_name_without_words_is_no_surface(store):
    store.add("!!!", [1, 2], aliases=["???"])
    assert store.candidates("!!!") == store.candidates("") == []


def test_added_entities_may_share_a_surface(store):
    store.add("Foo (band)", [1, 2])
    store.add("Foo (film)", [2, 1])
    assert meanings(store, "Foo") == [("Foo (band)", 1, 0.5), ("Foo (film)", 1, 0.5)]


def test_a_replaced_entity_keeps_its_mentions(store):
    before = meanings(store, "Paris")
    store.add("Paris", [7, 7], aliases=["Lutetia"], replace=True)
    assert meanings(store, "Paris") == before
    assert store.candidates("Paris")[0].entity.added
    assert store.take([store.candidates("Paris")[0].entity]).tolist() == [[7, 7]]
    assert store.link_probability("Paris") == 80 / 200
    assert meanings(store, "Lutetia") == [("Paris", 1, 1.0)]


def test_saving_keeps_what_surfaces_mean(store, tmp_path):
    store.add("Paris (Zorblax plant)", [2, 1], aliases=["Apple", "The plant"])
    store.add("Texas", [7, 7], replace=True, aliases=["Lone Star State"])
    surfaces = ("Paris", "Paris Texas", "Texas", "Apple", "The plant", "Lone Star State", "Xyzzy")
    with store.save(tmp_path / "saved") as saved:
        for surface in surfaces:
            assert meanings(saved, surface) == meanings(store, surface)
            assert saved.link_probability(surface) == store.link_probability(surface)
        assert not any(c.entity.added for surface in surfaces for c in saved.candidates(surface))
        assert saved.take([saved.candidates("Lone Star State")[0].entity]).tolist() == [[7, 7]]
        assert (store.describe()["surfaces"], saved.describe()["surfaces"]) == (3, 6)
        with saved.save(tmp_path / "again") as again:
            assert [meanings(again, surface) for surface in surfaces] == [meanings(saved, s) for s in surfaces]


def test_many_surfaces_are_read_page_by_page(tmp_path):
    count = 20_000  # several pages, some of which have only surfaces that mean nothing
    with writing(tmp_path / "many", dimension=1) as writer:
        writer.add("entities", ["A", "B"], np.ones((2, 1)))
        writer.surfaces((f"s{i:05}", i + 1, [(0, 1), (1, i + 2)] if i % 2 or i > 15_000 else []) for i in range(count))
        writer.finish(licence="CC0", made={})
    with Vectors.open(tmp_path / "many") as store, store.save(tmp_path / "copy") as saved:
        assert saved.describe()["surfaces"] == count
        assert meanings(saved, "s00007") == [("B", 9, 0.9), ("A", 1, 0.1)]
        assert meanings(saved, "s19999")[0] == ("B", 20_001, 1.0)
        assert meanings(saved, "s00002") == []


def test_a_lower_case_store(tmp_path):
    with writing(tmp_path / "lower", dimension=1) as writer:
        writer.add("entities", ["Paris"], np.ones((1, 1)))
        writer.surfaces([("paris", 2, [(0, 1)])])
        writer.finish(licence="CC0", made={"corpus": {"lowercase": True}})
    with Vectors.open(tmp_path / "lower") as store:
        assert store.lowercase
        assert store.link_probability("PARIS") == 0.5
        store.add("Zürich (city)", [1])
        assert meanings(store, "zurich") == meanings(store, "ZÜRICH") == [("Zürich (city)", 1, 1.0)]


def test_stores_of_earlier_versions_have_no_surfaces(store, tmp_path):
    path = store.path
    with closing(sqlite3.connect(path / "catalogue.sqlite")) as connection, connection:
        for table in ("surfaces", "mentions", "ids"):
            connection.execute(f"DROP TABLE {table}")
    with closing(sqlite3.connect(path / "added.sqlite")) as connection, connection:
        for statement in (log.OLD_SCHEMA[0], log.OLD_SCHEMA[3]):  # entities and redirects
            connection.execute(statement)
        vector = np.full(2, 3, "<f4").tobytes()
        connection.execute("INSERT INTO entities (title, vector) VALUES ('Old', ?)", (vector,))
    with Vectors.open(path) as old:
        assert old.candidates("Paris") == old.candidates("Old") == []
        assert old.link_probability("Paris") == 0
        assert old.find_id("x") is None
        assert old.find("Old").title == "Old"
        assert old.id_of(old.find("Old")) is None
        assert "Old" in old.suggest("Oldd")
        assert old.describe()["surfaces"] == 0
        with old.save(tmp_path / "saved") as saved:
            assert saved["Old"].tolist() == [3, 3]
        old.add("New", [4, 4], aliases=["Newer"], id="n-1")
        assert meanings(old, "Newer") == [("New", 1, 1.0)]
        assert old.find_id("n-1").title == "New"
        assert {"Old", "New"} <= {*old.suggest("Oldd"), *old.suggest("Neww")}


def test_all_spellings_with_a_key(store):
    """Of single words those come along that nobody linked, as far as the text has them."""
    store.add("Paris (Zorblax plant)", [2, 1], aliases=["PARIS"])
    found = {one.surface: one for one in store.written("paris")}
    assert list(found) == ["Paris", "PARIS", "paris"]
    assert (found["Paris"].occurrences, found["paris"].occurrences, found["paris"].counts) == (201, 50, {})
    assert found["Paris"].counts == {
        "Paris": 60, "Paris (mythology)": 15, "Paris, Texas": 5, "Paris (Zorblax plant)": 1,
    }  # fmt: skip
    assert found["Paris"].own == found["PARIS"].own == {"Paris (Zorblax plant)"}
    assert [one.surface for one in store.written("paris texas")] == ["Paris Texas"]
    assert store.written("apple") == store.written("") == []
    assert (store.continues("paris "), store.continues("paris x"), store.continues("par")) == (True, False, True)
    store.remove("Paris (Zorblax plant)")
    assert [one.surface for one in store.written("paris")] == ["Paris", "paris"]


def test_stores_without_keys_get_them_when_they_are_asked_for(store):
    store.add("Paris (Zorblax plant)", [2, 1], aliases=["PARIS"])
    expected = store.written("paris"), store.written("paris texas"), store.continues("paris t")
    with closing(sqlite3.connect(store.path / "catalogue.sqlite")) as connection, connection:
        assert connection.execute("SELECT count(*) FROM keys").fetchone() == (3,)
        connection.execute("DROP TABLE keys")
    with Vectors.open(store.path) as old:
        assert (old.written("paris"), old.written("paris texas"), old.continues("paris t")) == expected
