"""The candidate generator: golden values on the paper's own example, and what news and tweets do to names."""

import link_world
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebert.errors import EbertError
from ebert.linking.candidates.table import MentionTable
from ebert.linking.document import Document
from ebert.linking.options import CandidateOptions

ALL = CandidateOptions(min_link_probability=0.0)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return link_world.write_store(tmp_path_factory.mktemp("stores") / "store")


@pytest.fixture(scope="module")
def find(store):
    def found(text, options=ALL):
        return {text[s.start : s.end]: s for s in MentionTable(store, options)(Document("1", text))}

    return found


def test_the_papers_example(find):
    """Priors are shares of anchors; a span's link probability is the share of its occurrences that are links."""
    spans = find(link_world.TEXT)
    assert list(spans) == ["Adams", "Platt", "injured", "England", "opening", "World Cup", "World Cup qualifier"]
    adams = spans["Adams"]
    assert (adams.start, adams.end, adams.link_probability) == (0, 5, 10 / 100)
    assert [(c.title, round(c.prior, 6)) for c in adams.choices] == [
        ("Tony Adams (footballer)", 0.6), ("John Adams", 0.3), ("Adams County, Mississippi", 0.1),
    ]  # fmt: skip
    platt = spans["Platt"]
    assert [(c.title, round(c.prior, 6)) for c in platt.choices] == [
        ("David Platt (footballer)", 0.75),
        ("Platt (Florida)", 0.25),
    ]
    assert (spans["England"].start, spans["England"].end) == (47, 54)  # the possessive is not part of it
    assert spans["World Cup"].choices[1].prior == pytest.approx(0.4)


def test_at_most_n_candidates_renormalised(find):
    choices = find(link_world.TEXT, CandidateOptions(candidates=2))["Adams"].choices
    assert [(c.title, round(c.prior, 6)) for c in choices] == [
        ("Tony Adams (footballer)", 0.666667), ("John Adams", 0.333333),
    ]  # fmt: skip


def test_least_prior(find):
    choices = find(link_world.TEXT, CandidateOptions(min_prior=0.2))["Adams"].choices
    assert [c.title for c in choices] == ["Tony Adams (footballer)", "John Adams"]
    assert sum(c.prior for c in choices) == pytest.approx(1)


def test_threshold_on_link_probability(find):
    assert "opening" not in find(link_world.TEXT, CandidateOptions(min_link_probability=0.002))
    assert "opening" in find(link_world.TEXT, CandidateOptions(min_link_probability=0.001))


def test_whitespace_tokenised_text_has_the_same_spans(find):
    text = "Adams and Platt are both injured and will miss England 's opening World Cup qualifier ."
    assert list(find(text)) == list(find(link_world.TEXT))


def test_headlines_in_capitals(find):
    spans = find("ADAMS AND PLATT LEAVE UNIVERSITY OF LONDON, SAYS NATO")
    assert {"ADAMS", "PLATT", "UNIVERSITY OF LONDON", "LONDON", "NATO"} <= set(spans)
    assert spans["ADAMS"].choices[0].title == "Tony Adams (footballer)"
    assert spans["NATO"].link_probability == 0.5


def test_one_letter_in_a_headline(tmp_path):
    table = {"Once Upon a Time": (9, {"England": 9}), "Vitamin A": (9, {"London": 9}), "Vitamin a": (1, {"Cairo": 1})}
    generator = MentionTable(link_world.write_store(tmp_path / "store", table=table))
    [once, vitamin] = generator(Document("1", "ONCE UPON A TIME, Vitamin A"))
    assert [once.start, once.end] == [0, 16]
    assert [choice.title for choice in vitamin.choices] == ["London", "Cairo"]


def test_capitals_count_all_spellings(tmp_path):
    """ "OF" may be a link in a box score, but "of" never is: its occurrences count against it."""
    table = {"OF": (10, {"Injury": 10})}
    store = link_world.write_store(tmp_path / "store", table=table)
    assert MentionTable(store)(Document("1", "BANK OF ENGLAND")) == []
    [span] = MentionTable(store, ALL)(Document("1", "BANK OF ENGLAND"))
    assert span.link_probability == pytest.approx(10 / 2_000_010)


def test_capitals_that_are_no_headline_are_what_they_are_as_written(tmp_path):
    """ "the WHO" is a name, however often "who" is none; a headline does not tell."""
    table = {"WHO": (500, {"NATO": 60}), "Who": (2_000, {"London": 5}), "who": (50_000, {"Cairo": 1})}
    store = link_world.write_store(tmp_path / "store", table=table)

    def found(text):
        return [(text[s.start : s.end], s.choices[0].title) for s in MentionTable(store)(Document("1", text))]

    assert found("Officials of the WHO said that they are both injured .") == [("WHO", "NATO")]
    assert found("the OPEC, WHO and the UNICEF") == [("WHO", "NATO")]
    for headline in ("MAN WHO SHOT TWO", "WHO", "They are both injured and\nMAN WHO\nwill miss the opening"):
        assert found(headline) == []
    assert found("They said to us who will miss it") == []
    assert MentionTable(store).at("the WHO said", 4, 7).choices[0].prior > 0.98
    assert MentionTable(store).at("MAN WHO SHOT", 4, 7).choices[0].prior == pytest.approx(60 / 66)
    assert [c.title for c in MentionTable(store).at("MAN WHO SHOT", 4, 7).choices] == ["NATO", "London", "Cairo"]


def test_capitals_that_nothing_is_known_of_are_read_otherwise(find):
    assert find("Nadim Ladki LONDON 1996-12-06 Both are injured")["LONDON"].choices[0].title == "London"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He left the U.S. for good", "U.S."),
        ("He left the U. S. for good.", "U. S."),
        ("He left the U.S.", "U.S."),
        ("He left the U.S for good.", "U.S"),
        ("the U.S.S.R. is gone", "U.S"),
        ("He owns Yahoo! shares", "Yahoo!"),
        ("He owns Yahoo!", "Yahoo!"),
        ("He owns Yahoo.", "Yahoo"),
        ("He met Martin King Jr. there", "Martin King Jr."),
        ("He met Martin King Jr there.", "Martin King Jr"),
        ("He ate at McDonald.", "McDonald"),
        ("Does he like Cairo?", "Cairo"),
        ("Malcolm X.", "Malcolm X"),
        ("All are at Riot! Act one", "Riot!"),
        ("ALL ARE AT RIOT!", "RIOT!"),
    ],
)
def test_the_mark_that_a_name_ends_with_is_part_of_it(tmp_path, text, expected):
    entities = ["United States", "Yahoo!", "Riot! (album)", "Martin King", "McDonald", "Cairo", "Malcolm X"]
    surfaces = ["U S", "Yahoo", "Riot", "Martin King Jr", "McDonald", "Cairo", "Malcolm X"]
    table = {surface: (9, {title: 9}) for surface, title in zip(surfaces, entities, strict=True)}
    store = link_world.write_store(tmp_path / "store", table=table, entities=entities, redirects=[], wikidata=[])
    [span] = MentionTable(store)(Document("1", text))
    assert text[span.start : span.end] == expected


def test_possessives_hyphens_and_the_first_letter(find):
    assert "McDonald's" in find("I ate at McDonald's.")
    assert "McDonald’s" in find("I ate at McDonald’s.")
    assert "Anglo-Saxon" in find("the Anglo-Saxon king")
    assert "Cairo" in find("a Cairo-based firm")
    assert "al-Qaeda" in find("members of al-Qaeda")
    assert "Physics" in find("Physics is a science.")  # the table has it with a small letter
    assert "Nirvanas" in find("Nirvanas Nevermind")  # a genitive without its apostrophe


US = {"US": (4_000, {"England": 1_000, "London": 5}), "U S": (900, {"England": 300}), "us": (40_000, {"Cairo": 2})}


def found_in(store, text, **options):
    """Return the spans of a text as the likeliest title and the rounded link probability."""
    spans = MentionTable(store, CandidateOptions(**options))(Document("1", text))
    return {text[s.start : s.end]: (s.choices[0].title, round(s.link_probability, 3)) for s in spans}


def test_all_spellings_of_a_name_are_one_and_weigh_by_how_often_they_were_counted(tmp_path):
    """With l links among n occurrences of a spelling and the share P of the key: (l + 10 P) / (n + 10)."""
    store = link_world.write_store(tmp_path / "store", table=US)
    whole = 1307 / 44_900
    own, joined = (1005 + 10 * whole) / 4010, (300 + 10 * whole) / 910
    assert found_in(store, "The US left.") == {"US": ("England", round(own, 3))}
    assert found_in(store, "The U.S. left.") == {"U.S.": ("England", round(joined, 3))}
    assert found_in(store, "The U S left.") == {"U S": ("England", round(joined, 3))}
    assert found_in(store, "He told us that London fell.") == {}  # a pronoun: 2 links among 40,000
    assert found_in(store, "he told us that it fell") == {"us": ("England", round(whole, 3))}  # nobody can tell
    assert found_in(store, "He told us that London fell.", ignore_case=True) == {"us": ("England", round(whole, 3))}
    [us] = MentionTable(store)(Document("1", "The US left."))
    assert [choice.title for choice in us.choices] == ["England", "London", "Cairo"]
    assert us.choices[0].prior == pytest.approx((1000 + 10 * 1300 / 1307) / (1005 + 10))
    assert (us.links, us.respelt) == (1307, False)


@pytest.mark.parametrize(
    ("table", "text", "expected"),
    [
        ("Zürich", "He left Zurich.", "Zurich"),
        ("Zurich", "He left ZÜRICH today.", "ZÜRICH"),
        ("J R R Tolkien", "by JRR Tolkien", "JRR Tolkien"),
        ("JRR Tolkien", "By J. R. R. Tolkien", "J. R. R. Tolkien"),
        ("F 1", "The F1 race", "F1"),
        ("Bob Marley", "Bob Marleys songs", None),  # only single words lose an apostrophe
        ("Marley", "Marleys songs", "Marleys"),
        ("Levi s", "Levis jeans", "Levis"),
        ("IA", "Was I a fool?", None),
    ],
)
def test_spellings_that_are_the_same_name(tmp_path, table, text, expected):
    store = link_world.write_store(tmp_path / "store", table={table: (9, {"England": 9})})
    assert list(found_in(store, text)) == ([expected] if expected else [])


def test_a_spelling_that_nobody_linked_counts_by_how_often_it_occurs(tmp_path):
    """ "Opening" is a film; "opening" is a word that the text has 60 times without a link."""
    store = link_world.write_store(tmp_path / "store", table={"Opening": (20, {"Cairo": 20})})
    assert found_in(store, "The Opening was good")["Opening"][1] == round((20 + 10 * 0.25) / 30, 3)
    assert found_in(store, "The opening of London")["opening"][1] == round((10 * 0.25) / 70, 3)


def test_accents_alone_are_no_name(tmp_path):
    """A word of nothing but an accent has an empty key: it is left out of a table, and counted."""
    table = {"\u0301": (9, {"Cairo": 9}), "Zu\u0308rich": (9, {"England": 9})}
    store = link_world.write_store(tmp_path / "store", table=table)
    assert store.describe()["surfaces"] == 1
    assert store.info.made["dropped"]["surfaces"] == 1
    assert list(found_in(store, "\u0301 and Zurich")) == ["Zurich"]
    assert MentionTable(store).at("a \u0301 b", 2, 3) is None


def test_added_names_are_found_as_they_are_written(tmp_path):
    """Someone called May is not found in the verb, which the text has; a name that no text has is found anyhow."""
    store = link_world.write_store(tmp_path / "store", table={})
    store.add("Miss Marple", [1, 2, 3, 4], aliases=["Miss", "Zorblax"])
    generator = MentionTable(store)
    for text in ("Then Miss left London", "MISS", "Say zorblax to London"):
        [span] = generator(Document("1", text))
        assert (text[span.start : span.end].lower() in ("miss", "zorblax"), span.link_probability) == (True, None)
    assert generator(Document("1", "Then we miss London")) == []


def test_no_span_runs_over_a_line_or_a_sentence(find):
    assert "World\nCup" not in find("the World\nCup")
    assert "World; Cup" not in find("the World; Cup")
    assert "World. Cup" not in find("all the World. Cup ties")
    assert "World Cup" in find("the World Cup")


def test_a_span_runs_over_the_end_of_a_full_line(find):
    line = "All of them were injured and will miss the World"
    assert {"World\nCup", "World\nCup qualifier"} < set(find(f"Before.\n{line}\nCup qualifier"))
    assert "World \r\n Cup" in find(f"{line} \r\n Cup")
    assert "World\n\nCup" not in find(f"{line}\n\nCup")
    assert "World\nCup" not in find(f"{line[:-5] * 3} World\nCup")  # a paragraph, not a line that is full
    assert "World\nCup" not in find(f"{line[:8]}\n{line[8:16]} World\nCup")


@pytest.mark.parametrize("mark", ["\u200f", "\u202b", "\u2067", "\ufeff", "\u200b", "\u061c", "\U000e0001"])
def test_marks_that_cannot_be_seen_are_no_part_of_a_name(store, mark):
    text = f"{mark}England{mark} met {mark}{mark}World{mark} Cup{mark}{mark}"
    found = [(s.start, s.end) for s in MentionTable(store, ALL)(Document("1", text))]
    world = text.index("World")
    assert found == [(1, 8), (world, text.index("Cup") + 3)]


@pytest.mark.parametrize("mark", ["🎉", "™", "❤️", "👩🏽‍🚀", "\f", "\x0b", "\x85", "°"])
def test_names_that_touch_a_sign_are_found(store, mark):
    text = f"England{mark} and {mark}England or {mark}England{mark}World Cup"
    found = MentionTable(store, ALL)(Document("1", text))
    assert [text[s.start : s.end] for s in found] == ["England", "England", "England", "World Cup"]


def test_a_name_with_a_sign_in_it_is_one(tmp_path):
    table = {"A★Teens": (10, {"England": 10}), "C♯ Minor": (5, {"London": 5}), "Zürich": (5, {"Cairo": 5})}
    generator = MentionTable(link_world.write_store(tmp_path / "store", table=table))

    def found(text):
        return [(text[span.start : span.end], span.choices[0].title) for span in generator(Document("1", text))]

    assert found("A★Teens play C♯ Minor") == [("A★Teens", "England"), ("C♯ Minor", "London")]
    assert found("C♯★Minor") == []
    assert found("Zu\u0308rich and Zürich") == [("Zu\u0308rich", "Cairo"), ("Zürich", "Cairo")]  # however it is written
    assert generator.at("in Zürich🎉", 3, 10).choices[0].title == "Cairo"


def test_dates_are_no_spans(tmp_path):
    table = {"1998": (10, {"1998 FIFA World Cup": 10}), "May 1998": (1, {"Qualifier": 1})}
    store = link_world.write_store(tmp_path / "store", table=table)
    document = Document("1", "in May 1998")
    assert MentionTable(store)(document) == []
    assert len(MentionTable(store, CandidateOptions(dates=True))(document)) == 2
    store.add("Theresa May", [1, 2, 3, 4], aliases=["May"])  # somebody said that this is a name
    [may] = MentionTable(store)(document)
    assert (may.start, may.end, [choice.title for choice in may.choices]) == (3, 6, ["Theresa May"])


def test_given_spans_may_be_anything(store):
    generator = MentionTable(store, CandidateOptions(min_link_probability=0.9))
    assert generator(Document("1", link_world.TEXT)) == []
    assert generator.at(link_world.TEXT, 0, 5).choices[0].title == "Tony Adams (footballer)"
    assert generator.at("England's", 0, 9).choices[0].title == "England"
    assert generator.at("i love england", 7, 14).choices[0].title == "England"
    assert generator.at("nothing here", 0, 7) is None
    assert generator.at("...", 0, 3) is None


def test_entities_added_later_are_found_at_once(tmp_path):
    store = link_world.write_store(tmp_path / "store")
    generator = MentionTable(store)
    text = "Zorblax hired Adams."
    assert [s.start for s in generator(Document("1", text))] == [14]
    store.add("Zorblax Inc.", [1, 2, 3, 4], aliases=["Zorblax"])
    assert [text[s.start : s.end] for s in generator(Document("1", text))] == ["Zorblax", "Adams"]


def test_own_entities_with_an_ordinary_name_are_found(tmp_path):
    """A word that stands often in the corpus and is hardly ever a link: whoever adds it as a name wants it found."""
    table = {"opening": (1000, {"Qualifier": 1}), "Slack": (300, {"Qualifier": 1}), "Adams": (100, {"John Adams": 10})}
    store = link_world.write_store(tmp_path / "store", table=table)
    generator = MentionTable(store)
    text = "Slack and Miss opening met Adams."
    assert [(text[s.start : s.end], s.link_probability) for s in generator(Document("1", text))] == [("Adams", 0.1)]
    store.add("Slack Ltd", [1, 2, 3, 4], aliases=["Slack"])
    store.add("Miss (band)", [4, 3, 2, 1], aliases=["miss"])  # an ordinary word that nobody linked
    found = {text[s.start : s.end]: s for s in generator(Document("1", text))}
    assert list(found) == ["Slack", "Miss", "Adams"]  # the threshold holds for all others, as for "opening"
    assert found["Slack"].link_probability is None  # nothing is known of how often it will be a link
    assert {c.title for c in found["Slack"].choices} == {"Slack Ltd", "Qualifier"}
    for options in (CandidateOptions(candidates=1), CandidateOptions(min_prior=0.9)):
        slack = MentionTable(store, options)(Document("1", text))[0]
        assert "Slack Ltd" in {c.title for c in slack.choices}  # though the other was linked as often
    assert found["Miss"].link_probability is None
    assert found["Adams"].link_probability == 0.1
    assert generator.at(text, 0, 5).link_probability is None


def test_another_vector_changes_no_link_probability(tmp_path):
    """An entity that takes the place of one of the store keeps what was counted for it."""
    store = link_world.write_store(tmp_path / "store")
    text = "Adams at the opening of the Qualifier."
    before = MentionTable(store)(Document("1", text))
    store.add("Qualifier", [1, 2, 3, 4], replace=True)
    store.add("Tony Adams (footballer)", [1, 2, 3, 4], replace=True)
    after = MentionTable(store)(Document("1", text))
    assert [s for s in after if text[s.start : s.end] != "Qualifier"] == before  # whose title had been in no text


def test_an_uncased_store(tmp_path):
    table = {"adams": (10, {"John Adams": 5})}
    store = link_world.write_store(tmp_path / "store", table=table, lowercase=True)
    [span] = MentionTable(store)(Document("1", "ÁDAMS said"))
    assert (span.start, span.end) == (0, 5)


@pytest.mark.parametrize("text", ["", " \n ", "...", "😀😀", "no names at all"])
def test_texts_without_candidates(find, text):
    assert find(text) == {}


@given(
    st.lists(
        st.sampled_from(
            ["Adams", "World Cup", "😀", "👩‍👩‍👧", "שלום", "England", "مرحبا", "\u200f", "é", "'s", "-", "\n"]
        )
    )
)
def test_offsets_are_those_of_the_words(find, parts):
    """Emoji, writing from right to left and combining marks move nothing."""
    text = " ".join(parts)
    for surface in find(text):
        assert surface == surface.strip()
        assert surface[0].isalnum()
    assert ("Adams" in find(text)) == ("Adams" in parts)


@given(st.text(max_size=60))
def test_any_text_will_do(find, text):
    for span in find(text).values():
        assert 0 <= span.start < span.end <= len(text)
        assert sum(choice.prior for choice in span.choices) == pytest.approx(1)


@pytest.mark.parametrize("bad", [{"candidates": 0}, {"min_link_probability": 2.0}, {"longest": 0}, {"min_prior": 1.0}])
def test_bad_options(bad):
    with pytest.raises(EbertError):
        CandidateOptions(**bad)
