"""Markup that nobody meant: random, deep, unclosed, enormous. Reading it never fails and never takes more than linear
time, which is counted and not measured."""

import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ebert.text.titles import clean
from ebert.wikipedia import wikitext, wikitext_markup
from ebert.wikipedia.site import ENGLISH, Site
from ebert.wikipedia.templates import CLOSE, HEADING, OPEN
from ebert.wikipedia.wikitext import Plain, to_plain

LANGUAGES = [ENGLISH, Site.of("de"), Site.of("zh"), Site.of("en", "case-sensitive")]

# Everything the parser knows a meaning of, and what comes close to it.
_PIECES = r"""
[[ ]] [[[ ]]] [ ] [[a| [[a|b]] [[a]] [[A_b#c|d]] [[File: [[File:x|thumb| [[Category:x]] [[fr:x]] [[:fr:x|y]]
[[wikt:x|y]] [[#x|y]] [[a (b)|]] [[|]] [[]] [[a|]] | || |- |} {| {{ }} {{{ }}} {{{{ }}}} { } {{x}} {{x|
{{lang|fr| {{nowrap| {{convert|5|km}} {{convert| {{circa| {{'}} {{!}} {{hlist| {{quote|text= {{formatnum:
{{{x|y}}} 1= text= = == === '' ''' '''' ''''' '''''' ' < > </ /> <!-- --> <ref> </ref> <ref name=x/> <ref
name="x" <REF> <nowiki> </nowiki> <nowiki/> <pre> </pre> <math> </math> <gallery> </gallery> <br> <div> </div>
<table> </table> <b> <foo> <references> </references> & &amp; &#1; &#10; &#x41; &nbsp; &#xD800; &lt; __
__NOTOC__ -{ }- -{zh-hans:x;zh-hant:y}- ---- * # : ; [http://x [http://x] [//x mailto: http:// % %C3%A9 %01
%FF _ a b A é ß 漢 字 s x-y
"""
PIECES = _PIECES.split()
ODD = ["\n\n", "\n== h ==\n", "\n=", "=\n", "  ", *"\n \t\r\x00\x01\x02\x03\xa0\ud800\u200e"]
SOUP = st.lists(st.sampled_from(PIECES + ODD) | st.text(max_size=3), max_size=60).map("".join)


def sound(plain: Plain) -> None:
    """Check what must hold for every page."""
    text, anchors, opening = plain
    done = 0
    for start, end, title in anchors:
        assert done <= start < end <= len(text)
        surface = text[start:end]
        assert surface == surface.strip()
        assert "\n" not in surface
        assert title
        assert title == clean(title)
        done = end
    assert not {OPEN, CLOSE, HEADING} & set(text)
    assert all(line and line == line.strip() for line in text.split("\n")) or not text
    assert "  " not in text
    assert text[:opening] == text[:opening].strip()
    assert text[opening : opening + 1] in ("", "\n") or opening == 0
    assert not any(start < opening < end for start, end, _ in anchors)


@settings(max_examples=400, deadline=None)
@given(SOUP, st.sampled_from(LANGUAGES))
@example("[[a|\n== h ==\n]]", ENGLISH)
@example("{{lang|fr|[[a|b}}]]", ENGLISH)
@example("[[Paris|\x1c]]", ENGLISH)
def test_soup(source, site):
    sound(to_plain(source, site))
    site.redirect("#REDIRECT [[" + source)


@settings(max_examples=100, deadline=None)
@given(SOUP, SOUP)
def test_reading_remembers_nothing_of_other_pages(one, other):
    alone = to_plain(one)
    to_plain(other)
    assert to_plain(one) == alone == to_plain(one, Site())


@settings(deadline=None)
@given(st.lists(st.text('abc é漢.,;!?()-"$%/0123456789', min_size=1)))
def test_text_without_markup_stays(lines):
    lines = [" ".join(line.split()) for line in lines]
    lines = [line for line in lines if line and line[0] not in ";-"]
    assert to_plain("\n\n".join(lines)).text == "\n".join(lines)


NO_BRACES = st.lists(st.sampled_from([p for p in PIECES if not set(p) & set("{}<")]) | st.just("\n"), max_size=20)


@settings(deadline=None)
@given(NO_BRACES.map("".join), st.integers(1, 5))
def test_nothing_in_a_template_comes_out(inside, depth):
    source = f"a{'{{box|' * depth}{inside.replace('==', '')}{'}}' * depth}z"
    assert to_plain(source).text == "az"


@settings(deadline=None)
@given(SOUP.filter(lambda soup: "--" not in soup and not soup.endswith("-")))
def test_nothing_in_a_comment_comes_out(inside):
    assert to_plain(f"a<!--{inside}-->z").text == "az"


NAMES = st.text("abcxyzABC éß漢", min_size=1, max_size=8).map(lambda name: " ".join(name.split())).filter(bool)


@settings(deadline=None)
@given(st.lists(st.tuples(NAMES, NAMES)))
def test_links_are_where_their_words_are(pairs):
    plain = to_plain("\n".join(f"x, [[{title}|{words}]], y" for title, words in pairs))
    found = [(title, plain.text[start:end]) for start, end, title in plain.anchors]
    assert found == [(ENGLISH.title(title), words) for title, words in pairs]


DEEP = 3_000  # more than Python's stack has room for


@pytest.mark.parametrize(
    ("opening", "closing", "expected"),
    [
        ("{{", "}}", ""),
        ("{{box|", "}}", ""),
        ("{{lang|fr|", "}}", "x"),
        ("{{nowrap|a ", "}}", None),
        ("{{circa|", "}}", None),
        ("{{{p|", "}}}", "x"),
        ("[[a|", "]]", "x"),
        ("[[<b>", "]]", None),
        ("[[File:a|", "]]", ""),
        ("[", "]", None),
        ("[http://x ", "]", "x"),
        ("\n{|\n|", "\n|}", ""),
        ("<table>", "</table>", ""),
        ("<ref>", "</ref>", None),
        ("<!--", "-->", None),
        ("<div>", "</div>", "x"),
        ("-{", "}-", "x"),
        ("<nowiki>", "</nowiki>", None),
        ("'' ", "'' ", "x"),
    ],
)
def test_deep_nesting(opening, closing, expected):
    for source in (opening * DEEP + "x", "x" + closing * DEEP, opening * DEEP + "x" + closing * DEEP):
        plain = to_plain(source)
        sound(plain)
    if expected is not None:
        assert plain.text == expected


def test_a_line_of_megabytes():
    plain = to_plain("word [[Paris]] " * 20_000)
    sound(plain)
    assert len(plain.anchors) == 20_000
    for letter in "a [|]{}<>='&_-:*\x00":
        sound(to_plain(letter * 100_000))


class Counting:
    """A pattern that counts the characters its searches go over."""

    def __init__(self, pattern, counter):
        self.pattern, self.counter = pattern, counter

    def search(self, source, start=0, end=sys.maxsize):
        match = self.pattern.search(source, start, end)
        self.counter.append((match.end() if match else min(end, len(source))) - start)
        return match


def work(source: str, monkeypatch) -> int:
    """Return the number of calls, of Python and of C functions, and of characters searched, that a page takes."""
    counter: list[int] = []
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    with monkeypatch.context() as patch:
        for name in ("BRACES", "BRACKETS", "TABLES", "HTML_TABLES"):
            counting = Counting(getattr(wikitext_markup, name), counter)
            patch.setattr(wikitext_markup, name, counting)
            patch.setattr(wikitext, name, counting)
        token, trail = wikitext._patterns(ENGLISH.trail)
        patch.setattr(wikitext, "_patterns", lambda _: (Counting(token, counter), trail))
        sys.setprofile(count)
        try:
            to_plain(source)
        finally:
            sys.setprofile(None)
    return calls + sum(counter)


# Whatever is looked for ahead of where it is opened, or behind where it is closed; then some of them together.
_ALONE = """
[[ [[a| [[File:x| [http://x ]] {{ {{x| {{{ {{convert| {{nowrap| }} {| |} | <!-- <ref> <nowiki> <math> <table> <
''' __ -{
"""
CRUEL = [
    *(f"\n{piece} x " for piece in _ALONE.split()),
    "{{a [[b <ref>",
    "{{a {|\n[[File:x|",
    "{{lang|fr|[[a|",
    "[[File:a|{{b|",
    "{{a\n== h ==\n",
    "[[File:a|\n== h ==\n",
    "{{a <math> [[File:b| <ref> \n",
    "{{a <nowiki> }} <pre>",
    "l'''a '' ",
    "\n== h == <!-- ",
    "\n= a ",
    "[[a|b\n",
    "{{convert|5|{{nowrap|",
    "{{circa|x {{lang|fr|[[a]] ",
    "[[<b>[[{{x}}",
    "{{hlist|a|",
    "-{a [[b]] ",
    "{{{a|{{b|",
    "\n{|\n| a\n{{b\n|}",
    "<table><ref>",
]


@pytest.mark.parametrize("piece", CRUEL)
def test_work_is_linear(piece, monkeypatch):
    short, long = (work(piece * count, monkeypatch) for count in (300, 1200))
    assert long <= 4.4 * short + 1000


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES + ODD), min_size=1, max_size=6), st.lists(st.sampled_from(PIECES), max_size=4))
def test_work_is_linear_for_any_repetition(repeated, last):
    with pytest.MonkeyPatch.context() as patch:
        short, long = (work("".join(repeated) * count + "".join(last) * count, patch) for count in (100, 400))
    assert long <= 4.4 * short + 1000
