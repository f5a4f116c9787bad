"""Candidates of parts of longer names: whoever was named may be called by one of the names alone."""

import link_world
import pytest

from ebert.linking.candidates.table import MentionTable
from ebert.linking.document import Document
from ebert.text.passage import Mention

ENTITIES = [
    "The Hague",
    "Greek Physics",
    "Brian Kemp",
    "Kemp, Texas",
    "England",
    "Bank of England",
    "Rose Leslie",
    "Rose",
    "Steel",
    "Steel (band)",
]
TABLE = {
    "Brian Kemp": (10, {"Brian Kemp": 9}),
    "The Hague": (10, {"The Hague": 9}),
    "Greek Physics": (10, {"Greek Physics": 9}),
    "Kemp": (200, {"Kemp, Texas": 2}),
    "England": (1000, {"England": 900}),
    "Bank of England": (30, {"Bank of England": 20}),
    "Rose Leslie": (5, {"Rose Leslie": 5}),
    "rose": (90, {"Rose": 30}),
    "steel": (900, {"Steel": 90}),
    "Steel": (100, {"Steel": 10, "Steel (band)": 10}),
}


@pytest.fixture(scope="module")
def generator(tmp_path_factory):
    store = link_world.write_store(
        tmp_path_factory.mktemp("stores") / "store", table=TABLE, entities=ENTITIES, redirects=[], wikidata=[]
    )
    return MentionTable(store)


def found(generator, text):
    return [
        (text[span.start : span.end], {c.title: c for c in span.choices}) for span in generator(Document("1", text))
    ]


def test_a_part_of_a_name_may_mean_what_the_name_means(generator):
    (_, whole), (_, inside), (surname, meant) = found(generator, "Brian Kemp spoke. Then Kemp's car came.")
    assert inside.keys() == {"Kemp, Texas"}
    assert surname == "Kemp"
    assert list(meant) == ["Brian Kemp", "Kemp, Texas"]  # of which the first is likelier here
    assert (meant["Brian Kemp"].part, meant["Kemp, Texas"].part, whole["Brian Kemp"].part) == (True, False, False)
    assert sum(choice.prior for choice in meant.values()) == pytest.approx(1)


def test_a_part_that_the_table_does_not_know_is_a_span_too(generator):
    text = "A day with Leslie in town: Rose Leslie is here."
    (first, meant), *_ = found(generator, text)
    assert (first, list(meant)) == ("Leslie", ["Rose Leslie"])  # also before it is named in full
    span = generator(Document("1", text))[0]
    assert 0 < span.link_probability < 1


def test_parts_need_a_longer_name_and_capitals(generator):
    assert found(generator, "The Kemp family met.")[0][1].keys() == {"Kemp, Texas"}
    named = found(generator, "Rose Leslie has a rose of Leslie. O'Leslie has none. brian has one.")
    assert [words for words, _ in named] == ["Rose", "Rose Leslie", "rose", "Leslie"]
    assert named[2][1].keys() == {"Rose"}


def test_parts_of_names_with_small_words_and_those_inside_the_name_mean_nothing_more(generator):
    named = found(generator, "The Bank of England is in England.")
    assert [words for words, _ in named] == ["Bank of England", "England", "England"]
    assert all(meant.keys() == {"England"} for _, meant in named[1:])


def test_common_words_are_no_first_parts_and_none_where_a_sentence_begins(generator):
    assert [words for words, _ in found(generator, "In The Hague it rains. The end.")] == ["The Hague"]
    named = found(generator, "Greek Physics is a band. Physics is hard. He likes Physics most.")
    assert [words for words, _ in named] == ["Greek Physics", "Physics"]


def test_given_mentions_have_the_same_candidates(generator):
    text = "Brian Kemp spoke. Then Kemp left."
    document = Document("1", text, (Mention(23, 27, "Brian Kemp"),))
    (span,) = generator.gold(document)
    assert span.choices[0].title == "Brian Kemp"


def test_a_choice_says_how_often_its_links_are_in_lower_case(generator):
    ((_, steel),) = found(generator, "Steel is heavy")
    assert steel["Steel"].lower == pytest.approx(0.9)
    assert steel["Steel (band)"].lower == 0
