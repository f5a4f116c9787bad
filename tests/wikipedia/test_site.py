"""Titles, namespaces, redirects, and what the head of a dump says about a wiki."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebert.wikipedia import languages, site
from ebert.wikipedia.site import ENGLISH, Site, decode

GERMAN = Site.of("de")


@pytest.mark.parametrize(
    ("raw", "title"),
    [
        ("Jean Marais", "Jean Marais"),
        ("jean_Marais", "Jean Marais"),
        ("  jean   Marais_", "Jean Marais"),
        ("jean\u00a0Marais\t", "Jean Marais"),
        ("\u200ejean Marais\u200f", "Jean Marais"),
        (":Jean Marais", "Jean Marais"),
        (" : Jean Marais", "Jean Marais"),
        ("Jean Marais#Career", "Jean Marais"),
        ("Jean Marais # Career", "Jean Marais"),
        ("#Career", ""),
        ("", ""),
        (" _ ", ""),
        (":", ""),
        ("Beyonce\u0301", "Beyoncé"),
        ("Beyonc%C3%A9", "Beyoncé"),
        ("Beyonc%c3%a9%23x", "Beyoncé"),
        ("100%", "100%"),
        ("100% (song)", "100% (song)"),
        ("50%FF", "50%FF"),  # not UTF-8
        ("a%00b", "A%00b"),
        ("AT&amp;T", "AT&T"),
        ("AT&T", "AT&T"),
        ("&#945;&#x3b2;", "Αβ"),
        ("Caf&eacute;", "Café"),
        ("&bogus;", "&bogus;"),
        ("élan", "Élan"),
        ("ßx", "ßx"),  # SSx would be another page
        ("ŉx", "ŉx"),
        ("თბილისი", "თბილისი"),  # Georgian has capitals, and Wikipedia does not use them so
        ("ǆx", "Ǆx"),
        ("iPod", "IPod"),
        ("漢字", "漢字"),
        ("category: towns", "Category:Towns"),
        ("user talk:x", "User talk:X"),
        ("User_talk:x", "User talk:X"),
        ("2001: a Space Odyssey", "2001: a Space Odyssey"),
        ("Category:", "Category:"),
    ],
)
def test_titles(raw, title):
    assert ENGLISH.title(raw) == title
    assert ENGLISH.title(title) == title


def test_wikis_that_tell_small_letters_from_capitals():
    wiki = Site.of("en", "case-sensitive")
    assert wiki.title("apple_pie") == "apple pie"
    assert wiki.title("category:apple") == "category:apple"
    assert wiki.target("apple") == "apple"


@given(st.text("ab C_ :#%é\u200e\ud800&;漢", max_size=12))
def test_every_title_is_tidy(raw):
    title = ENGLISH.title(raw)
    assert title == " ".join(title.split())
    assert "#" not in title
    assert "_" not in title
    assert not title.startswith(":")


@pytest.mark.parametrize(
    ("title", "number"),
    [
        ("Paris", 0),
        ("Category:Towns", 14),
        ("Image:X.jpg", 6),
        ("User talk:X", 3),
        ("user_talk:X", 3),
        ("Wikipedia:X", 4),
        ("2001: A Space Odyssey", 0),
        ("Kategorie:X", 0),
    ],
)
def test_namespaces(title, number):
    assert ENGLISH.namespace(title) == number


def test_local_namespaces():
    for line in languages._LOCAL.strip().splitlines():
        language = line.split()[0]
        wiki = Site.of(language)
        for english, number in (("File", 6), ("Image", 6), ("Category", 14), ("Template", 10), ("Help", 12)):
            assert wiki.namespace(f"{english}:X") == number, line
        names = line.removeprefix(language).strip().split("|")
        assert wiki.target(f"{names[4].split(',')[0]}:x.jpg") is None, line
        assert wiki.target(f"{names[7].split(',')[0]}:x") is None, line
        assert wiki.target(f"{names[5].split(',')[0]}:x") == "", line


@pytest.mark.parametrize(
    ("raw", "target"),
    [
        ("paris", "Paris"),
        ("paris#x", "Paris"),
        ("#x", ""),
        ("", ""),
        ("File:x.jpg", None),
        ("image:x.jpg", None),
        ("Media:x.ogg", None),
        ("Category:x", None),
        (" category :x", None),
        (":Category:x", ""),
        (":File:x", ""),
        ("fr:Paris", None),
        ("FR:Paris", None),
        (":fr:Paris", ""),
        (":::fr:Paris", ""),
        ("en:Paris", "Paris"),
        (":en:Paris", "Paris"),
        ("en:en:Category:x", None),
        ("wikt:paris", ""),
        ("Wiktionary:paris", ""),
        ("w:Paris", ""),
        ("s:fr:Paris", ""),
        ("Wikipedia:Paris", ""),
        ("Talk:Paris", ""),
        ("Portal:Paris", ""),
        ("http://x.org", ""),
        ("Paris: a city", "Paris: a city"),
        ("A#b:c", "A"),
        ("&#945;:x", "Α:x"),
        ("x" * (site.LONGEST + 1), ""),
    ],
)
def test_targets_of_links(raw, target):
    assert ENGLISH.target(raw) == target
    assert ENGLISH.target(raw) == target  # the second time it is remembered


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(site, "REMEMBERED", 10)
    wiki = Site()
    assert [wiki.target(f"x{number}") for number in range(35)] == [f"X{number}" for number in range(35)]
    assert len(wiki.seen) <= 10
    wiki.target("y" * 10_000)
    assert len(wiki.seen) <= 10
    assert max(map(len, wiki.seen)) < 100


def test_what_is_remembered_stays_behind():
    wiki = Site.of("de", "case-sensitive")
    wiki.target("x")
    copy = pickle.loads(pickle.dumps(wiki))
    assert copy == wiki
    assert not copy.seen
    assert copy.trail == wiki.trail


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("#REDIRECT [[Paris]]", "Paris"),
        ("#redirect [[paris]]", "Paris"),
        ("#Redirect[[Paris]]", "Paris"),
        ("#REDIRECT: [[Paris]]", "Paris"),
        ("#REDIRECT :[[Paris]]", "Paris"),
        ("# REDIRECT [[Paris]]", "Paris"),
        ("\n #REDIRECT\n[[Paris]]", "Paris"),
        ("#REDIRECT [[paris_(city)#History|x]] {{R from x}}\n[[Category:X]]", "Paris (city)"),
        ("#REDIRECT [[:Category:X]]", "Category:X"),
        ("#WEITERLEITUNG [[Paris]]", "Paris"),
        ("#Weiterleitung [[Paris]]\nmehr", "Paris"),
        ("#REDIRECCIÓN [[Paris]]", "Paris"),
        ("#ПЕРЕНАПРАВЛЕНИЕ [[Париж]]", "Париж"),
        ("#перенаправление [[Париж]]", "Париж"),
        ("#YÖNLENDİRME [[Paris]]", "Paris"),
        ("#転送 [[パリ]]", "パリ"),
        ("#重定向 [[巴黎]]", "巴黎"),
        ("#تحويل [[باريس]]", "باريس"),
        ("#पुनर्प्रेषित [[पेरिस]]", "पेरिस"),
        ("#đổi hướng [[Paris]]", "Paris"),
        ("#OHJAUS [[Pariisi]]", "Pariisi"),
        ("#NEVERHEARD [[Paris]]", "Paris"),
        ("#未知 [[Paris]]", "Paris"),
        ("#REDIRECT", None),
        ("#REDIRECT Paris", None),
        ("#REDIRECT [[]]", None),
        ("#REDIRECT [[#x]]", None),
        ("#REDIRECT [[Paris", None),
        ("REDIRECT [[Paris]]", None),
        ("x #REDIRECT [[Paris]]", None),
        ("#see [[Paris]]", None),  # a numbered list
        ("#SEE [[Paris]] and [[London]]", None),
        ("#1 [[Paris]]", None),
        ("# [[Paris]]\n# [[London]]", None),
        ("", None),
    ],
)
def test_redirects(source, target):
    assert ENGLISH.redirect(source) == target
    assert GERMAN.redirect(source) == target


SITEINFO = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="de">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>dewiki</dbname>
    <base>https://de.wikipedia.org/wiki/Wikipedia:Hauptseite</base>
    <generator>MediaWiki 1.43</generator>
    <case>first-letter</case>
    <namespaces>
      <namespace key="-2" case="first-letter">Medium</namespace>
      <namespace key="0" case="first-letter" />
      <namespace key="6" case="first-letter">Datei</namespace>
      <namespace case="first-letter" key="14">Kategorie</namespace>
      <namespace key="2600" case="first-letter">Q&amp;A_Thema</namespace>
    </namespaces>
  </siteinfo>
"""


def test_siteinfo():
    wiki = Site.from_siteinfo(SITEINFO)
    assert (wiki.language, wiki.case) == ("de", "first-letter")
    assert wiki.namespace("Datei:X") == wiki.namespace("File:X") == wiki.namespace("Bild:X") == 6
    assert wiki.namespace("Q&A Thema:X") == 2600
    assert wiki.namespace("X") == 0
    assert "" not in wiki.namespaces


@pytest.mark.parametrize(
    ("xml", "language", "case"),
    [
        ("", "en", "first-letter"),
        ("<siteinfo><sitename>Wikipedia</sitename></siteinfo>", "en", "first-letter"),
        ("<siteinfo><dbname>frwiki</dbname></siteinfo>", "fr", "first-letter"),
        ("<siteinfo><dbname>zh_yuewiki</dbname></siteinfo>", "zh-yue", "first-letter"),
        ("<siteinfo><dbname>simplewiki</dbname></siteinfo>", "simple", "first-letter"),
        ("<siteinfo><dbname>commonswiki</dbname></siteinfo>", "en", "first-letter"),
        ("<siteinfo><base>http://ja.wikipedia.org/wiki/X</base></siteinfo>", "ja", "first-letter"),
        ("<siteinfo><base>https://www.example.org/</base></siteinfo>", "en", "first-letter"),
        ("<mediawiki version='0.3' xml:lang='nl'><siteinfo>", "nl", "first-letter"),
        ("<m:mediawiki xml:lang='nl'><m:siteinfo><m:case>case-sensitive</m:case>", "nl", "case-sensitive"),
        (
            "<dbname>enwiktionary</dbname><case>case-sensitive</case><namespaces><namespace key='x'>A</namespace>",
            "en",
            "case-sensitive",
        ),
        ("<siteinfo><namespaces><namespace key='6'>Fil", "en", "first-letter"),
    ],
)
def test_siteinfo_that_lacks_nearly_everything(xml, language, case):
    wiki = Site.from_siteinfo(xml)
    assert (wiki.language, wiki.case) == (language, case)
    assert wiki.namespaces == languages.local_names(language)


@settings(max_examples=20)
@given(st.text())
def test_siteinfo_that_is_none(xml):
    assert Site.from_siteinfo(xml).namespace("File:X") == 6


def test_simple_english_is_english():
    assert Site.of("simple").trail == ENGLISH.trail == "a-z"


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("&lt;b&gt; &amp;amp; &quot;&apos;", "<b> &amp; \"'"),
        ("&eacute;&Eacute;&alpha;", "éÉα"),
        ("&#233;&#xe9;&#XE9;", "ééé"),
        ("&#128512;", "😀"),
        ("&#0;&#31;&#10;", "   "),
        ("&#150;&#x80;", "–€"),
        ("&#32;&#160;&#xD7FF;&#xE000;", " \xa0\ud7ff\ue000"),
        ("&#129;", "\ufffd"),
        ("&nosuch; &eacute &; &#; &#x; &#xZ; &#99999999;", "&nosuch; &eacute &; &#; &#x; &#xZ; &#99999999;"),
        ("&#xD800;&#1114112;", "&#xD800;&#1114112;"),
    ],
)
def test_entities(text, decoded):
    assert decode(text) == decoded
