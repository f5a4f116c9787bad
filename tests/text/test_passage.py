"""Passages, mentions and the markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebert import EbertError, Mention, Passage

TEXT = "Taylor was later part of the ensemble cast in MGM 's classic World War II drama `` Battleground '' ( 1949 ) ."


def test_markup_gives_text_and_offsets():
    passage = Passage.parse("The native language of [[Jean_Marais]] is [MASK], says [[Paris (mythology)|Paris]].")
    assert passage.text == "The native language of Jean Marais is [MASK], says Paris."
    assert [passage.surface(m) for m in passage.mentions] == ["Jean Marais", "Paris"]
    assert [m.entity for m in passage.mentions] == ["Jean_Marais", "Paris (mythology)"]


@pytest.mark.parametrize(
    ("markup", "text", "entities"),
    [
        ("no mention [MASK]", "no mention [MASK]", []),
        ("[[[Paris]]]", "[Paris]", ["Paris"]),
        (r"\[[Paris]] and \\[[Rome]]", "[[Paris]] and \\Rome", ["Rome"]),
        ("[[A|b|c]]", "b|c", ["A"]),
        ("a ]] b", "a ]] b", []),
        ("[[Paris|[MASK]]] is [[Rome|the [so-called] city]]", "[MASK] is the [so-called] city", ["Paris", "Rome"]),
    ],
)
def test_markup_edges(markup, text, entities):
    passage = Passage.parse(markup)
    assert (passage.text, [m.entity for m in passage.mentions]) == (text, entities)


@pytest.mark.parametrize("markup", ["The [[Jean Marais is", "[[]]", "[[ |x]]", "[[A|]]", "[[A [[B]] ]]"])
def test_broken_markup_says_where(markup):
    with pytest.raises(EbertError, match=r"character \d+"):
        Passage.parse(markup)


@pytest.mark.parametrize("span", [(0, 0), (-1, 3), (5, 3), (0, 99)])
def test_mentions_must_be_spans_of_the_text(span):
    with pytest.raises(EbertError, match="is not a span of the text"):
        Passage("Jean Marais", (Mention(*span, "Jean Marais"),))


def test_mentions_are_sorted_and_may_not_overlap():
    first, second = Mention(0, 4, "A"), Mention(5, 11, "B")
    assert Passage("Jean Marais", (second, first)).mentions == (first, second)
    with pytest.raises(EbertError, match="overlaps"):
        Passage("Jean Marais", (Mention(0, 6, "A"), second))


def test_markers_stand_around_subject_and_object():
    subject = Mention(TEXT.index("Battleground"), TEXT.index("Battleground") + 12, "Battleground_(film)")
    object_ = Mention(TEXT.index("World"), TEXT.index("World") + 12, "World_War_II")
    marked = Passage(TEXT, (subject, object_)).mark({subject: "#", object_: "$"})
    assert marked.text.endswith("classic $ World War II $ drama `` # Battleground # '' ( 1949 ) .")
    assert [marked.surface(m) for m in marked.mentions] == ["World War II", "Battleground"]


def test_an_edit_may_not_cut_a_mention():
    passage = Passage("Jean Marais spoke", (Mention(0, 11, "Jean Marais"),))
    assert passage.replace_text([(12, 17, "sang well")]).text == "Jean Marais sang well"
    for edit in [(5, 12, ""), (3, 4, ""), (0, 17, "x")]:
        with pytest.raises(EbertError, match="cuts the mention"):
            passage.replace_text([edit])


@st.composite
def passages(draw):
    text, mentions = "", []
    for _ in range(draw(st.integers(0, 4))):
        text += draw(st.text("a[]\\| ", max_size=6))
        surface = draw(st.text("b[]\\| ", min_size=1, max_size=5))
        mentions.append(Mention(len(text), len(text) + len(surface), draw(st.text("T_é([]\\", min_size=1, max_size=4))))
        text += surface
    return Passage(text + draw(st.text("c[]\\", max_size=6)), tuple(mentions))


@given(passages())
def test_markup_round_trip(passage):
    assert Passage.parse(passage.markup()) == passage


def test_what_cannot_be_written_as_markup():
    with pytest.raises(EbertError, match="cannot be written as markup"):
        Passage("Paris", (Mention(0, 5, "a|b"),)).markup()


@given(st.text("[]|\\ab", max_size=12))
def test_any_text_is_parsed_or_refused(text):
    try:
        passage = Passage.parse(text)
    except EbertError:
        return
    assert Passage.parse(passage.markup()) == passage
