"""Names for somebody who is typing: what begins so, whatever the case and the accents, the usual ones first."""

import string
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebert import Vectors
from ebert.vectors.autocomplete import Beginnings, fold

TITLES = {
    "Paris": 900, "Paris, Texas": 40, "Parish": 100, "Parsec": 5, "Beyoncé": 80, "Jean Marais": 14, "Jean Marsh": 2,
    "New York City": 800, "New York (state)": 300, "Marais des Cygnes River": 1, "Çatalhöyük": 7, "NATO": 60,
    "Straße": 3, "AC/DC": 50,
}  # fmt: skip
REDIRECTS = [("City of Light", "Paris"), ("Big Apple", "New York City"), ("Parigi", "Paris")]


def store(path=None):
    random = np.random.default_rng(0)
    return Vectors.from_arrays(
        words=["a"], word_vectors=random.normal(size=(1, 4)), word_outputs=random.normal(size=(1, 4)),
        entities=list(TITLES), entity_vectors=random.normal(size=(len(TITLES), 4)), entity_counts=TITLES.values(),
        redirects=REDIRECTS, wikidata=[("Paris", 90)], path=path,
    )  # fmt: skip


@pytest.fixture(scope="module")
def vectors():
    return store()


def titles(vectors, typed, count=8):
    return [entity.title for entity in vectors.complete(typed, count)]


def test_the_usual_ones_go_first_and_the_very_name_before_them(vectors):
    assert titles(vectors, "par")[:3] == ["Paris", "Parish", "Paris, Texas"]
    assert titles(vectors, "parish")[0] == "Parish"
    assert titles(vectors, "new york") == ["New York City", "New York (state)"]
    assert titles(vectors, "par", 1) == ["Paris"]


@pytest.mark.parametrize(
    ("typed", "title"),
    [
        ("beyonce", "Beyoncé"), ("BEYONC", "Beyoncé"), ("catalhoyuk", "Çatalhöyük"), ("nato", "NATO"),
        ("strasse", "Straße"), ("jean_mar", "Jean Marais"), (" jean  mar", "Jean Marais"), ("ac/d", "AC/DC"),
        ("Q90", "Paris"), ("https://en.wikipedia.org/wiki/Paris", "Paris"), ("Jean Marais", "Jean Marais"),
    ],
)  # fmt: skip
def test_case_accents_blanks_and_other_spellings_do_not_matter(vectors, typed, title):
    assert titles(vectors, typed)[0] == title


def test_redirects_come_after_titles(vectors):
    assert titles(vectors, "city of li") == ["Paris"]
    assert titles(vectors, "big a") == ["New York City"]
    assert titles(vectors, "pari") == ["Paris", "Parish", "Paris, Texas"]  # once, though two names of it begin so


def test_words_within_titles_come_after_their_beginnings(vectors):
    assert titles(vectors, "marais") == ["Marais des Cygnes River", "Jean Marais"]
    assert titles(vectors, "york sta")[0] == "New York (state)"


def test_likeness_is_the_last_resort(vectors):
    assert titles(vectors, "Jaen Marais")[0] == "Jean Marais"
    assert titles(vectors, "Pariss")[0] == "Paris"
    assert titles(vectors, "zzzzzz") == []


@pytest.mark.parametrize("typed", ["", "   ", "_", "\x00", "\ud800", "%", "*", '"', "x" * 100_000, "\u0301"])
def test_whatever_is_typed_is_no_error(vectors, typed):
    assert len(vectors.complete(typed)) <= 8


def test_what_is_added_counts_at_once():
    vectors = store()
    assert titles(vectors, "zorb") == []
    vectors.add("Zorblax Inc.", [1, 2, 3, 4], aliases=["The Zorb"])
    assert titles(vectors, "zorb") == titles(vectors, "the zo") == ["Zorblax Inc."]
    assert vectors.complete("zorb")[0].added
    vectors.add("Paris", [1, 2, 3, 4], replace=True)
    (paris, *others) = vectors.complete("paris")
    assert paris.added
    assert "Paris" not in [entity.title for entity in others]


@settings(max_examples=200, deadline=None)
@given(
    names=st.lists(st.tuples(st.text(string.ascii_letters + "éß _", max_size=6), st.integers(0, 9)), max_size=30),
    typed=st.text(string.ascii_letters + "éß ", max_size=3),
    count=st.integers(1, 6),
)
def test_it_finds_what_a_plain_search_finds(names, typed, count):
    index = Beginnings((name, row, usual) for row, (name, usual) in enumerate(names))
    key = fold(typed)
    found = index.best(key, count)
    begins = [row for row, (name, _) in enumerate(names) if fold(name).startswith(key)]
    ranks = sorted(((fold(names[row][0]) == key, names[row][1]) for row in begins), reverse=True)
    assert len(found) == len(set(found)) == min(count, len(begins))
    assert set(found) <= set(begins)
    assert [(fold(names[row][0]) == key, names[row][1]) for row in found] == ranks[:count]


def test_a_hundred_thousand_names_take_a_few_bytes_each():
    index = Beginnings((f"Title number {number}", number, number) for number in range(100_000))
    arrays = (index._letters, index._ends, index._rows, index._counts)
    size = sum(part.nbytes if isinstance(part, np.ndarray) else sys.getsizeof(part) for part in arrays)
    assert size < 100_000 * 40
    assert index.best("title number 9999", 3) == [9999, 99999, 99998]
