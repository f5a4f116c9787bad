"""Mention tables for a store: counted anew from a corpus without test articles, from KnowBert's format, or given."""

import json

import corpora
import link_world
import pytest

from ebert import Vectors
from ebert.errors import EbertError
from ebert.linking.candidates import knowbert
from ebert.linking.candidates.given import read_candidates
from ebert.linking.candidates.recount import choose_pages, page_numbers, recount, title_surfaces
from ebert.linking.candidates.table import MentionTable
from ebert.linking.document import Document
from ebert.linking.options import CandidateOptions
from ebert.vectors.copies import with_surfaces

ALL = CandidateOptions(min_link_probability=0.0)


@pytest.fixture
def store(tmp_path):
    return link_world.write_store(tmp_path / "store")


def link(words, title):
    return words.split(), title


@pytest.fixture
def corpus(tmp_path):
    """Two pages with many links, one of which is a test document, and one without links."""
    links = [link("Adams", "Tony Adams (footballer)"), "of", link("England", "England"), "met", "Adams"]
    article = [*links, link("Platt", "David Platt (footballer)"), link("London", "London"), link("Cairo", "Cairo")]
    florida = link("Platt", "Platt (Florida)")
    test = [link("Adams", "John Adams"), *links, florida, florida, link("NATO", "NATO"), "Adams"]
    return corpora.write_corpus(
        tmp_path / "corpus",
        [
            ("Article", [article]),
            ("Test article", [test]),
            ("Opening", [["Adams", "and", "Adams", "and", "Adams", link("Injury", "Injury")]]),
        ],
        redirects=[("Tested", "Test article")],
    )


def new_table(corpus, store, path, leave_out):
    return with_surfaces(store, path, recount(corpus, store, choose_pages(corpus, leave_out)), made={"why": "test"})


def counts(vectors, surface):
    return {c.entity.title: c.count for c in vectors.candidates(surface)}


def test_test_articles_do_not_count(corpus, store, tmp_path):
    with_it = new_table(corpus, store, tmp_path / "with", [])
    assert counts(with_it, "Adams") == {"Tony Adams (footballer)": 2, "John Adams": 1}
    without = new_table(corpus, store, tmp_path / "without", ["test_article"])
    assert counts(without, "Adams") == {"Tony Adams (footballer)": 1}
    assert counts(with_it, "Platt") == {"David Platt (footballer)": 1, "Platt (Florida)": 2}
    # By its title, which names it as if it had been linked once, not by the links of the test article.
    assert counts(without, "Platt") == {"David Platt (footballer)": 1, "Platt (Florida)": 1}
    assert without.info.made["mentions"] == {"why": "test"}


def test_link_probability_is_counted_in_pages_with_links(corpus, store, tmp_path):
    """Adams stands twice in the linked article and is linked once; the three in the opening tell nothing."""
    table = new_table(corpus, store, tmp_path / "new", ["Test article"])
    assert table.link_probability("Adams") == pytest.approx(1 / 2)
    assert table.link_probability("Injury") == 1  # a link elsewhere is an occurrence that is a link


def test_pages_are_found_by_redirects_too(corpus):
    assert list(page_numbers(corpus, ["tested"]).values()) == ["Test article"]
    assert choose_pages(corpus, ["Tested", "Unknown"]).left_out == ("Test article",)


def test_titles_name_their_entities(corpus, store, tmp_path):
    """John Adams was linked by nobody who counts, but his title is in the words of the corpus... as London's is."""
    table = new_table(corpus, store, tmp_path / "new", ["Test article"])
    assert counts(table, "NATO") == {"NATO": 1}  # by its title alone: no page that counts links it
    assert title_surfaces("Paris, Texas (film)") == {"Paris Texas", "Paris"}
    assert title_surfaces("Story paper") == {"Story paper", "story paper"}
    assert title_surfaces("New York") == {"New York"}


def test_vectors_are_shared_and_the_old_store_stays(corpus, store, tmp_path):
    store.add("Zorblax", [1, 2, 3, 4])
    table = new_table(corpus, store, tmp_path / "new", [])
    assert table.fingerprint == store.fingerprint
    assert (table["England"] == store["England"]).all()
    assert table.candidates("Zorblax")[0].entity.added
    assert (tmp_path / "new" / "entities.safetensors").stat().st_nlink == 2
    assert counts(Vectors.open(store.path), "al Qaeda") == {"Al-Qaeda": 20}
    with pytest.raises(EbertError, match="the store itself"):
        with_surfaces(store, store.path, [], made={})


KNOWBERT = (
    "Adams\t100\t1,0.7,Tony_Adams_(footballer)\t2,0.2,John_Adams\t3,0.2,Nobody,_Somewhere\t\n"
    "ADAMS\t10\t2,1.0,John_Adams\n"
    "!!!\t5\t2,1.0,John_Adams\n"
    "Paris\t5\t9,1.0,Paris\n"
)


def test_knowberts_table(store, tmp_path):
    path = tmp_path / "table.txt"
    path.write_text(KNOWBERT, "utf-8")
    report = knowbert.TableReport()
    made = with_surfaces(store, tmp_path / "new", knowbert.surfaces(path, store, report), made={})
    assert counts(made, "Adams") == {"Tony Adams (footballer)": 70, "John Adams": 20}
    assert made.occurrences("Adams") == 100  # as the store knew; a table does not tell
    assert made.link_probability("ADAMS") == 1
    assert (report.mentions, report.surfaces, report.candidates) == (3, 2, 3)
    assert dict(report.dropped) == {
        "candidates that the store does not have": 2, "mentions without words": 1, "surfaces without a candidate": 1,
    }  # fmt: skip
    assert report.examples == ["Nobody,_Somewhere", "Paris"]
    [span] = MentionTable(made, ALL)(Document("1", "Adams"))
    assert [c.title for c in span.choices] == ["Tony Adams (footballer)", "John Adams"]
    assert span.choices[0].prior == pytest.approx(7 / 9, abs=0.002)  # "ADAMS" tells a little, too


@pytest.mark.parametrize(
    ("line", "priors"),
    [
        ("2\t1,0.9,John_Adams\t2,0.1,NATO", {"John Adams": 0.9, "NATO": 0.1}),
        ("1\t1,0.5,John_Adams\t2,0.3,NATO\t3,0.2,London", {"John Adams": 0.5, "NATO": 0.3, "London": 0.2}),
        ("3\t1,0.64,John_Adams\t2,0.352,NATO\t3,0.008,London", {"John Adams": 0.64, "NATO": 0.352, "London": 0.008}),
        ("700\t1,0.9994,John_Adams\t2,0.0006,NATO", {"John Adams": 0.9994, "NATO": 0.0006}),
        ("0\t1,0.75,John_Adams\t2,0.25,NATO", {"John Adams": 0.75, "NATO": 0.25}),
    ],
)
def test_priors_of_rare_mentions_stay_right(store, tmp_path, line, priors):
    """Counts are whole numbers; for England, which stands 1000 times in the text, its link probability stays too."""
    path = tmp_path / "table.txt"
    path.write_text(f"England\t{line}\nZorblax\t{line}\n", "utf-8")
    made = with_surfaces(store, tmp_path / "new", knowbert.surfaces(path, store, knowbert.TableReport()), made={})
    frequency = max(1, int(line.partition("\t")[0]))
    for surface, linked in (("England", frequency / 1000), ("Zorblax", 1.0)):
        found = {c.entity.title: c.prior for c in made.candidates(surface)}
        assert found == pytest.approx(priors, abs=0.0005)
        assert made.link_probability(surface) == pytest.approx(linked, rel=0.005)


def test_counts_that_are_whole_stay_what_they_are(store, tmp_path):
    """So that spellings of a name that are taken together weigh as they do in the table."""
    path = tmp_path / "table.txt"
    path.write_text("Adams\t100\t1,0.7,John_Adams\t2,0.3,NATO\nADAMS\t10\t2,1.0,NATO\n", "utf-8")
    made = with_surfaces(store, tmp_path / "new", knowbert.surfaces(path, store, knowbert.TableReport()), made={})
    assert counts(made, "Adams") == {"John Adams": 70, "NATO": 30}
    assert counts(made, "ADAMS") == {"NATO": 10}


@pytest.mark.parametrize("surface", ["Zürich", "Zu\u0308rich"])
def test_accents_are_part_of_their_letters_in_other_tables(store, tmp_path, surface):
    """However they are written there: an accent of its own would never be found."""
    path = tmp_path / "table.txt"
    path.write_text(f"{surface}\t10\t1,1.0,NATO\n", "utf-8")
    made = with_surfaces(store, tmp_path / "new", knowbert.surfaces(path, store, knowbert.TableReport()), made={})
    assert counts(made, "Zürich") == {"NATO": 10}
    generator = given(tmp_path, store, {"surface": surface, "candidates": ["NATO"]})
    assert [(span.start, span.end) for span in generator(Document("1", "in Zürich"))] == [(3, 9)]


@pytest.mark.parametrize("share", ["inf", "nan", "-0.5", "1e999", "1e300"])
def test_a_share_that_is_none_is_named(store, tmp_path, share):
    path = tmp_path / "table.txt"
    path.write_text(f"Adams\t1\t1,0.5,John_Adams\nPlatt\t2\t1,{share},NATO\n", "utf-8")
    with pytest.raises(EbertError, match=rf"table\.txt, line 2: .*{share}.*probability"):
        list(knowbert.surfaces(path, store, knowbert.TableReport()))


@pytest.mark.parametrize(
    "text",
    [
        "Adams\tmany\t1,0.5,A\n", "Adams\n", "Adams\t1\t1,x,A\n", "Adams\t1\t1\n", "Adams\t²\t1,1,A\n", "",
        f"Adams\t{'9' * 23}\t1,1,A\n", f"Adams\t{'9' * 5000}\t1,1,A\n",
    ],
)  # fmt: skip
def test_broken_tables(store, tmp_path, text):
    path = tmp_path / "table.txt"
    path.write_text(text, "utf-8")
    with pytest.raises(EbertError, match=r"line 1|no mentions"):
        list(knowbert.surfaces(path, store, knowbert.TableReport()))


def test_a_folder_is_no_table(store, tmp_path):
    with pytest.raises(EbertError, match="is a folder; give the table in it"):
        list(knowbert.surfaces(tmp_path, store, knowbert.TableReport()))


def given(tmp_path, store, *rows):
    path = tmp_path / "candidates.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return read_candidates(path, store)


def test_given_priors_by_title(tmp_path, store):
    generator = given(tmp_path, store, {"surface": "London", "candidates": {"London": 3, "Cairo": 1}})
    [span] = generator(Document("1", "in London"))
    assert [(choice.title, choice.prior) for choice in span.choices] == [("London", 0.75), ("Cairo", 0.25)]


def test_given_twice_counts_together(tmp_path, store):
    spans = [{"start": 6, "end": 12, "candidates": [["London", 1]]}, {"start": 6, "end": 12, "candidates": ["Cairo"]}]
    generator = given(
        tmp_path, store,
        {"surface": "al Qaeda", "candidates": {"London": 3, "Cairo": 1}},
        {"surface": "al-Qaeda", "candidates": ["NATO"]},
        {"id": "2", "spans": spans[:1]}, {"id": "2", "spans": spans[1:]},
    )  # fmt: skip
    [span] = generator(Document("1", "al-Qaeda"))
    shares = [(choice.title, choice.prior) for choice in span.choices]
    assert shares == [("London", 0.6), ("Cairo", 0.2), ("NATO", 0.2)]
    [span] = generator(Document("2", "is in London"))
    assert [(choice.title, choice.prior) for choice in span.choices] == [("Cairo", 0.5), ("London", 0.5)]
    with pytest.raises(EbertError, match="priors of 'Cairo' and others are too large"):
        given(tmp_path, store, *[{"surface": "London", "candidates": {"London": 1e308, "Cairo": 1e308}}] * 2)


def test_given_surfaces_stay_in_their_sentence(tmp_path, store):
    rows = [{"surface": surface, "candidates": ["NATO"]} for surface in ("World Cup", "World", "World Cup qualifier")]
    generator = given(tmp_path, store, *rows)
    text = "the whole World.\n\nCup ties; World | Cup, World Cup"
    found = [(span.start, text[span.start : span.end]) for span in generator(Document("1", text))]
    assert found == [(10, "World"), (28, "World"), (41, "World"), (41, "World Cup")]


def test_given_spans_and_surfaces(tmp_path, store):
    generator = given(
        tmp_path, store,
        {"id": "1", "spans": [{"start": 10, "end": 15, "candidates": [["David_Platt_(footballer)", 3], ["None", 1]]}]},
        {"surface": "World Cup", "candidates": [{"entity": "FIFA World Cup"}, {"entity": "Qualifier", "prior": 3}]},
        {"id": "2", "surface": "World Cup", "candidates": ["1998 FIFA World Cup"]},
    )  # fmt: skip
    one = generator(Document("1", link_world.TEXT))
    assert [(s.start, s.end, [(c.title, c.prior) for c in s.choices]) for s in one] == [
        (10, 15, [("David Platt (footballer)", 1.0)]), (65, 74, [("Qualifier", 0.75), ("FIFA World Cup", 0.25)]),
    ]  # fmt: skip
    [two] = generator(Document("2", link_world.TEXT))
    assert [c.title for c in two.choices] == ["1998 FIFA World Cup"]
    assert dict(generator.dropped) == {"candidates that the store does not have": 1}
    with pytest.raises(EbertError, match="not for this text"):
        generator(Document("1", "short"))


def test_given_candidates_without_any_prior_can_be_chosen_all_the_same(tmp_path, store):
    generator = given(
        tmp_path, store,
        {"surface": "Adams", "candidates": [["John Adams", 0], ["Tony Adams (footballer)", 0]]},
        {"surface": "Platt", "candidates": [["David Platt (footballer)", 1], ["Qualifier", 0]]},
    )  # fmt: skip
    adams, platt = generator(Document("1", "Adams and Platt"))
    assert {c.title: c.prior for c in adams.choices} == {"John Adams": 0.5, "Tony Adams (footballer)": 0.5}
    assert {c.title: c.prior for c in platt.choices} == {"David Platt (footballer)": 1.0, "Qualifier": 0.0}


@pytest.mark.parametrize(
    "row",
    [
        {"spans": []}, {"id": "1"}, {"surface": "a"}, {"id": "1", "spans": [{"start": 0}]},
        {"surface": "a", "candidates": [3]},
    ],
)  # fmt: skip
def test_broken_candidates(tmp_path, store, row):
    with pytest.raises(EbertError, match="line 1"):
        given(tmp_path, store, row)


def test_knowberts_table_as_given_candidates(tmp_path, store):
    path = tmp_path / "table.txt"
    path.write_text(KNOWBERT, "utf-8")
    generator = read_candidates(path, store, candidates=1)
    [span] = generator(Document("1", "so Adams went"))
    assert (span.start, span.end, [choice.title for choice in span.choices]) == (3, 8, ["Tony Adams (footballer)"])
    assert generator.describe()["file"] == "table.txt"
    assert dict(generator.dropped) == {"candidates that the store does not have": 2}
