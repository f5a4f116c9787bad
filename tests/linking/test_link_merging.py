"""One page, one entity: which titles of a store are merged, what then finds what, and how it is undone."""

import corpora
import numpy as np
import pytest

from ebert import Vectors
from ebert.linking.candidates.merging import key_of, merges
from ebert.linking.candidates.same_page import Openings
from ebert.linking.candidates.table import MentionTable
from ebert.linking.document import Document
from ebert.linking.readers.layouts import Label, Labelled
from ebert.linking.resolve import TitleResolver
from ebert.vectors.copies import with_surfaces
from ebert.vectors.writer import writing

NEAR, FAR = [1.0, 0.1, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]
# title: vector, links
ENTITIES = {
    "Apple Inc.": (NEAR, 50),
    "Apple Inc": (NEAR, 30),
    "Apple Computer": (FAR, 20),
    "Apple": (FAR, 40),
    "Jean–Luc Godard": (NEAR, 1),
    "Jean-Luc Godard": (FAR, 9),
    "WHO": (NEAR, 9),
    "Who": (NEAR, 5),
    "Mercury (planet)": (NEAR, 8),
    "Mercury Planet": (NEAR, 1),
    "Mercury": (NEAR, 6),
    "Friendly Fire": (NEAR, 2),
    "Friendly fire": (FAR, 7),
    "Trojan war": (NEAR, 2),
    "Trojan War": (NEAR, 90),
    "C": (NEAR, 9),
    "C++": (NEAR, 8),
}
TABLE = {
    "Apple": (100, {"Apple": 30, "Apple Inc.": 25, "Apple Inc": 20, "Apple Computer": 15}),
    "Trojan War": (90, {"Trojan War": 80, "Trojan war": 2}),
}
WIKIDATA = [("Apple Inc", 312), ("Trojan War", 42), ("Trojan war", 43)]
REDIRECTS = [("Apple Computer", "Apple Inc"), ("Nobody", "Apple"), ("Who", "Nothing")]


def write_store(path, entities, table, *, wikidata=(), redirects=()):
    """Write a store of entities with their vectors and links, and a mention table, and open it."""
    rows = {title: row for row, title in enumerate(entities)}
    with writing(path, dimension=4) as writer:
        writer.add("words", ["the"], np.ones((1, 4)), counts=[100])
        vectors = np.array([vector for vector, _ in entities.values()])
        writer.add("entities", list(entities), vectors, counts=[count for _, count in entities.values()])
        writer.wikidata(wikidata)
        writer.redirects(redirects)
        writer.surfaces(
            (surface, often, [(rows[title], count) for title, count in meant.items()])
            for surface, (often, meant) in table.items()
        )
        writer.finish(licence="none", made={})
    return Vectors.open(path)


@pytest.fixture
def store(tmp_path):
    return write_store(tmp_path / "store", ENTITIES, TABLE, wikidata=WIKIDATA, redirects=[("iApple", "Apple Inc")])


@pytest.fixture
def merged(store, tmp_path):
    return with_surfaces(store, tmp_path / "merged", None, merged=merges(store, redirects=REDIRECTS))


def by_title(store, found):
    titles = list(ENTITIES)
    return {titles[one.row]: (titles[one.into], one.why) for one in found}


def test_titles_that_differ_in_punctuation_or_case_are_merged_into_the_most_linked(store):
    assert by_title(store, merges(store)) == {
        "Apple Inc": ("Apple Inc.", "punctuation"),
        "Jean–Luc Godard": ("Jean-Luc Godard", "kind of mark"),  # for which vectors need not be alike
        "Trojan war": ("Trojan War", "case"),
    }


def test_a_redirect_leads_to_its_target_and_on_to_what_that_is_merged_into(store):
    found = by_title(store, merges(store, redirects=REDIRECTS))
    assert found["Apple Computer"] == ("Apple Inc.", "redirect")
    directed = by_title(store, merges(store, redirects=[("Trojan War", "Trojan war")]))
    assert directed["Trojan War"] == ("Trojan war", "redirect")  # however few links it has


def test_a_circle_of_redirects_is_one_entity(store):
    circle = [("Apple", "Mercury"), ("Mercury", "C"), ("C", "Apple")]
    found = by_title(store, merges(store, redirects=circle))
    assert {title: into for title, (into, why) in found.items() if why == "redirect"} == {"Apple": "C", "Mercury": "C"}


def test_a_dictionary_merges_what_it_is_almost_sure_of_if_the_vectors_are_alike(store):
    entries = [
        ("Mercury Planet", "Mercury (planet)", 0.97), ("Who", "WHO", 0.7), ("Apple Computer", "Apple Inc.", 0.97),
        ("Unknown", "Apple", 1.0),
    ]  # fmt: skip
    rows = [(surface, store.known(title).row, score) for surface, title, score in entries]
    found = by_title(store, merges(store, dictionary=rows))
    assert found["Mercury Planet"] == ("Mercury (planet)", "dictionary")
    assert not {"Who", "WHO", "Apple Computer"} & found.keys()


def test_what_is_to_be_kept_apart_is_merged_with_nothing(store):
    found = by_title(store, merges(store, redirects=REDIRECTS, apart=["Apple_Inc"]))
    assert set(found) == {"Jean–Luc Godard", "Trojan war"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Washington, D.C.", "Washington DC", True),
        ("Yahoo!", "Yahoo", False),
        ("IEEE 802.3", "IEEE 8023", False),
        ("Kievan Rus'", "Kievan Rus", True),
        ("Pelé", "Pele", True),
        (".cat", "Cat", False),
        ("Tera-", "Tera", False),
        ("E.H. Carr", "E. H. Carr", True),
        ("Weeds (TV series)", "Weeds TV Series", False),
    ],
)
def test_keys_of_titles(one, other, same):
    assert (key_of(one) == key_of(other)) == same


def test_names_of_a_merged_entity_find_the_one_it_is_merged_into(merged):
    apple = merged.find("Apple Inc.")
    assert (apple.title, apple.wikidata) == ("Apple Inc.", 312)  # it had none
    for name in ("Apple Computer", "apple_Inc", "iApple", "Q312"):
        assert merged.find(name) == apple
    assert merged.find("Q43").title == "Trojan War"
    assert merged.find("Trojan War").wikidata == 42
    assert merged.aliases(apple) == ["Apple Computer", "Apple Inc"]
    assert [one.title for one in merged.complete("apple")] == ["Apple", "Apple Inc."]
    assert np.array_equal(merged["Apple Computer"], np.array(NEAR, np.float32))


def test_links_of_merged_entities_count_as_those_of_one(merged):
    assert {one.entity.title: one.count for one in merged.candidates("Apple")} == {"Apple Inc.": 60, "Apple": 30}
    (span,) = MentionTable(merged)(Document("1", "Apple"))
    assert [(one.title, pytest.approx(one.prior)) for one in span.choices] == [("Apple Inc.", 2 / 3), ("Apple", 1 / 3)]


def test_gold_is_resolved_through_merges(merged):
    label = Label(0, 5, ("Apple Computer",))
    resolved = TitleResolver(merged).documents([Labelled("1", "Apple", (label,))])
    assert resolved.documents[0].gold[0].entity == "Apple Inc."


def test_merged_entities_are_none_of_the_entities(merged):
    assert len(merged) == len(ENTITIES) - 4 == len(list(merged))
    assert "Apple Inc" not in list(merged)
    found = [one.name for one in merged.nearest("WHO", top=len(merged), by="cosine")]
    assert len(found) == len(set(found)) == len(merged) - 1
    assert merged.describe()["merged"] == 4


def test_a_saved_copy_keeps_the_merges_without_removed_entities(merged, tmp_path):
    merged.remove("Trojan war")  # which is Trojan War, all of it
    saved = merged.save(tmp_path / "saved")
    assert saved.find("Trojan War") is saved.find("Trojan war") is None
    assert saved.find("Apple Computer") == merged.find("Apple Computer")
    assert [title for title, _, _ in saved.merged()] == ["Apple Computer", "Apple Inc", "Jean–Luc Godard"]
    assert saved.find("C++").title == "C++"  # after those that were removed


def test_merges_can_be_undone(store, merged, tmp_path):
    again = with_surfaces(merged, tmp_path / "again", None, merged=[])
    for title in ENTITIES:
        assert again.find(title) == store.find(title)
    assert again.find("Apple Inc.").wikidata is None
    assert again.find("Q312").title == "Apple Inc"
    assert again.candidates("Apple") == store.candidates("Apple")
    assert len(again) == len(store)


def test_an_entity_that_was_replaced_is_merged_with_nothing(store, tmp_path):
    store.add("Apple Inc", FAR, replace=True)
    assert "Apple Inc" not in by_title(store, merges(store))
    one = with_surfaces(store, tmp_path / "one", None, merged=merges(store))
    assert one.find("Apple Inc").added


def test_merging_by_command(ebert, store, tmp_path):
    apart = tmp_path / "apart.txt"
    apart.write_text("Apple Inc\n", "utf-8")
    done = ebert("link", "candidates", store.path, "--keep-apart", apart, "--out", tmp_path / "new", "--json")
    found = done.json
    assert (found["merged"], found["surfaces"]) == (2, 2)
    listed = ebert("vectors", "merged", tmp_path / "new", "--json").json
    assert listed == [
        {"title": "Jean–Luc Godard", "into": "Jean-Luc Godard", "why": "kind of mark"},
        {"title": "Trojan war", "into": "Trojan War", "why": "case"},
    ]
    ebert("link", "candidates", tmp_path / "new", "--no-merge", "--out", tmp_path / "again")
    assert Vectors.open(tmp_path / "again").find("Trojan war").title == "Trojan war"


# Titles that are one page, as the corpus shows it

PAGES = {
    "United Nations": "The United Nations is an organisation of countries that wants peace",
    "NFL": "The National Football League is a league of football teams in America today",
    "National Football League": "The National Football League is a league of football teams in America",
    "Liverpool F.C.": "Liverpool Football Club is a club that plays football in the north",
    "Liverpool": "Liverpool is a city and a port in the north of England",
}
SAME = {
    "United Nations": (NEAR, 90), "UN": (NEAR, 20), "National Football League": (NEAR, 30), "NFL": (NEAR, 10),
    "Liverpool F.C.": (NEAR, 40), "Liverpool": (NEAR, 20), "Sun": (FAR, 4), "Kemp": (NEAR, 1),
    "Kemp (actor)": (NEAR, 5),
}  # fmt: skip
MEANT = {
    "UN": (100, {"United Nations": 30, "UN": 20}), "NFL": (100, {"National Football League": 30, "NFL": 60}),
    "Liverpool": (100, {"Liverpool F.C.": 30, "Liverpool": 20}), "Sun": (9, {"United Nations": 3, "Sun": 1}),
    "Kemp": (9, {"Kemp (actor)": 3, "Kemp": 1}),
}  # fmt: skip


def test_titles_that_mean_another_page_with_the_same_opening_or_have_no_page_are_merged(tmp_path):
    pages = [(title, [opening.split()]) for title, opening in PAGES.items()] + [("Kemp (actor)", [["Kemp", "acts"]])]
    openings = Openings(corpora.write_corpus(tmp_path / "corpus", pages))
    titles = list(SAME)
    found = merges(write_store(tmp_path / "store", SAME, MEANT), openings=openings)
    # Liverpool has a page of its own, Sun's vector is another, and of people called Kemp there may be several.
    assert [(titles[one.row], titles[one.into], one.why) for one in found] == [
        ("UN", "United Nations", "no page"), ("NFL", "National Football League", "same opening"),
    ]  # fmt: skip
