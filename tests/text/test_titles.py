"""The spellings people use for an entity."""

import string
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebert.text import titles


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Jean Marais", "Jean Marais"),
        ("Jean_Marais", "Jean Marais"),
        ("  Jean   Marais\t", "Jean Marais"),
        ("__Jean__Marais_", "Jean Marais"),
        ("Jean\u00a0Marais", "Jean Marais"),
        ("\u200eJean Marais\u200f", "Jean Marais"),
        ("Beyonce\u0301", "Beyoncé"),
        ("https://en.wikipedia.org/wiki/Jean_Marais", "Jean Marais"),
        ("http://en.wikipedia.org/wiki/Jean_Marais", "Jean Marais"),
        ("//en.wikipedia.org/wiki/Jean_Marais", "Jean Marais"),
        ("en.wikipedia.org/wiki/Jean_Marais", "Jean Marais"),
        ("EN.Wikipedia.ORG/wiki/Jean_Marais", "Jean Marais"),
        ("https://en.m.wikipedia.org/wiki/Jean_Marais", "Jean Marais"),
        ("https://wikipedia.org/wiki/Jean_Marais", "Jean Marais"),
        (" https://en.wikipedia.org/wiki/Jean_Marais ", "Jean Marais"),
        ("https://en.wikipedia.org/wiki/Jean_Marais#Early_life", "Jean Marais"),
        ("https://en.wikipedia.org/wiki/Jean_Marais?oldformat=true", "Jean Marais"),
        ("https://en.wikipedia.org/w/index.php?title=Jean_Marais&oldid=5", "Jean Marais"),
        ("https://en.wikipedia.org/w/index.php?title=C%2B%2B", "C++"),
        ("https://en.wikipedia.org/wiki/Beyonc%C3%A9", "Beyoncé"),
        ("https://en.wikipedia.org/wiki/AC/DC", "AC/DC"),
        ("https://en.wikipedia.org/wiki/AC%2FDC", "AC/DC"),
        ("https://en.wikipedia.org/wiki/100%25_(album)", "100% (album)"),
        ("100% (album)", "100% (album)"),
        ("100%25 (album)", "100%25 (album)"),  # only URLs are percent-encoded
        ("What's_Up,_Doc?", "What's Up, Doc?"),
        ("C#", "C#"),
        ("𝔘nicode", "𝔘nicode"),
    ],
)
def test_the_likeliest_title(name, title):
    assert titles.spellings(name)[0] == title


@pytest.mark.parametrize("name", ["", "  ", "_", "\u200e", "https://en.wikipedia.org/", "https://en.wikipedia.org/w/x"])
def test_no_title_at_all(name):
    assert titles.spellings(name) == []


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("iPhone", ["iPhone", "IPhone"]),
        ("IPhone", ["IPhone", "iPhone"]),
        ("ß", ["ß"]),  # its capital is two letters, which Wikipedia does not make of it
        ("ŉ", ["ŉ"]),
        ("İstanbul", ["İstanbul"]),
        ("ıstanbul", ["ıstanbul", "Istanbul"]),
        ("𐐨x", ["𐐨x", "𐐀x"]),  # a capital outside the basic plane
        ("C Sharp#History", ["C Sharp#History", "c Sharp#History", "C Sharp"]),
        ("c Sharp#History", ["c Sharp#History", "C Sharp#History", "c Sharp", "C Sharp"]),
    ],
)
def test_all_forms_in_order(name, forms):
    assert titles.spellings(name) == forms


@pytest.mark.parametrize("name", ["C#", "C# (programming language)", "F#A#∞", "Visual C# Express"])
def test_a_sharp_is_not_a_section(name):
    assert {form.casefold() for form in titles.spellings(name)} == {name.casefold()}


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("Q90", 90),
        (" q90 ", 90),
        ("wd:Q90", 90),
        ("https://www.wikidata.org/wiki/Q90", 90),
        ("http://www.wikidata.org/entity/Q90", 90),
        ("Q0", None),
        ("Q", None),
        ("Q9x", None),
        ("Q٣", None),
        ("Q" + "9" * 30, None),  # no id is that long, and SQLite holds no such number
    ],
)
def test_wikidata_ids(name, number):
    assert titles.wikidata_id(name) == number


@given(st.text())
def test_cleaning_twice_changes_nothing(name):
    assert titles.clean(titles.clean(name)) == titles.clean(name)


@given(st.text())
def test_any_text_gives_clean_forms_without_repetition(name):
    forms = titles.spellings(name)
    assert len(set(forms)) == len(forms) <= 5
    assert all(form == titles.clean(form) for form in forms)


@given(st.text(alphabet=string.ascii_letters + string.digits + " %&+,'()/?!:;éüß日本𝔘-.", min_size=1))
def test_every_spelling_of_a_title_leads_back_to_it(title):
    title = titles.clean(title)
    if not title:
        return
    spelled = [title, title.replace(" ", "_"), f"  {title} ", "https://en.wikipedia.org/wiki/" + quote(title)]
    if len(title[0].lower()) == 1 and title[0].lower().upper() == title[0]:
        spelled.append(title[0].lower() + title[1:])
    for name in spelled:
        assert title in titles.spellings(name)


def test_the_url_of_a_page_in_another_language_is_no_english_title():
    assert "Pain" not in titles.spellings("https://fr.wikipedia.org/wiki/Pain")
