"""Wikitext to running text with anchors, feature by feature. What is expected is written as markup again: a link whose
words are not its title is ``[[Title|words]]``."""

import pytest

from ebert.wikipedia.site import ENGLISH, Site
from ebert.wikipedia.wikitext import to_plain


def read(source: str, site: Site = ENGLISH) -> str:
    """Return the text with its anchors written as links."""
    plain = to_plain(source, site)
    out, done = [], 0
    for start, end, title in plain.anchors:
        words = plain.text[start:end]
        out += [plain.text[done:start], f"[[{title}]]" if words == title else f"[[{title}|{words}]]"]
        done = end
    return "".join([*out, plain.text[done:]])


def check(cases: str):
    """Make a test of lines ``source => expected``; ⏎ stands for a line break."""
    lines = [line.partition(" => ") for line in cases.strip().splitlines() if line.strip()]
    pairs = [(left.strip().replace("⏎", "\n"), right.strip().replace("⏎", "\n")) for left, _, right in lines]
    return pytest.mark.parametrize(("source", "expected"), pairs)


@check("""
    [[Paris]] => [[Paris]]
    [[actor]] => [[Actor|actor]]
    [[France|French]] => [[France|French]]
    [[radical]]s => [[Radical|radicals]]
    [[bus|coach]]es => [[Bus|coaches]]
    [[Paris]]ian, [[Paris]]2, [[Paris]]Match => [[Paris|Parisian]], [[Paris]]2, [[Paris]]Match
    [[Paris]]é => [[Paris]]é
    [[Jean_Marais]] => [[Jean Marais]]
    [[ Jean  Marais ]] => [[Jean Marais]]
    [[Caf%C3%A9]] => [[Café]]
    [[Caf%C3%A9|a bar]] => [[Café|a bar]]
    [[AT&amp;T]] => [[AT&T]]
    [[France#History|its past]] => [[France|its past]]
    [[France#History]] => [[France|France#History]]
    [[#History|above]] and [[#Later]] => above and Later
    [[a|b|c]] => [[A|b|c]]
    [[:Paris]] => [[Paris]]
    [[Star Trek: Voyager|Voyager]] => [[Star Trek: Voyager|Voyager]]
    [[2001: A Space Odyssey]] => [[2001: A Space Odyssey]]
    [[en:Paris|here]] => [[Paris|here]]
    [[sans-culotte|''sans-culottes'']] => [[Sans-culotte|sans-culottes]]
    [[Iliad|the '''''Iliad''''']] => [[Iliad|the Iliad]]
    ''[[Iliad]]''s => [[Iliad]]s
    [[Odyssey|l'''Odyssée'']] => [[Odyssey|l'Odyssée]]
    a[[Paris| city ]]-b => a [[Paris|city]] -b
    a [[Paris| city]] b => a [[Paris|city]] b
    [[Paris|&nbsp;]] x => x
    [[Paris|the&nbsp;city]] => [[Paris|the city]]
    [[]] [[|]] [[ ]] [[|x]] => x
    [[http://example.org|x]] [[http://example.org some text]] => x some text
""")
def test_links(source, expected):
    assert read(source) == expected


@check("""
    [[Paris|the {{nowrap|big city}}]] => [[Paris|the big city]]
    [[Paris|the <small>city</small>]] => [[Paris|the city]]
    [[Paris|the <nowiki>[city]</nowiki>]]s => [[Paris|the [city]s]]
    [[Paris|big⏎city]] => [[Paris|big city]]
    [[Paris|big⏎⏎city]] => big⏎city
    [[Paris<!-- the city -->|the city]] => [[Paris|the city]]
    [[Paris<!-- the city -->]] => [[Paris]]
    [[{{PAGENAME}} (film)|the film]] => [[(film)|the film]]
    [[{{nowrap|New York}}|there]] => [[New York|there]]
    [[Paris|the [[Seine]] city]] => the [[Seine]] city
    [[Paris|the [[Seine|river]] and [[Louvre]]]] => the [[Seine|river]] and [[Louvre]]
    [[Paris|<!-- nothing -->]]s => s
    [[Paris|{{x}}]]y => y
    [[fr:{{PAGENAME}}]]x => x
    [[wikt:x|a {{nowrap|b}}]] => a b
""")
def test_links_with_more_than_letters(source, expected):
    assert read(source) == expected


@check("""
    [[Mercury (planet)|]] => [[Mercury (planet)|Mercury]]
    [[Paris, Texas|]] => [[Paris, Texas|Paris]]
    [[Help:Links (all)|]] => Links
    [[Pub (x), London|]] => [[Pub (x), London|Pub]]
    [[Mercury (planet)|]]s => [[Mercury (planet)|Mercurys]]
    [[水星（惑星）|]] => [[水星（惑星）|水星]]
    [[(x)|]] => [[(x)]]
""")
def test_pipe_trick(source, expected):
    assert read(source) == expected


@check("""
    a[[File:x.jpg]]b => ab
    a[[Image:x.jpg|thumb|200px|A [[city]] in [[France|French]] style]]b => ab
    a[[image:x.jpg|thumb|[[a|[[b]]]]]]b => ab
    a[[File:x.jpg|thumb|alt=|a {{nowrap|[[b]]}} <ref>]]</ref> ]]b => ab
    a[[Media:x.ogg|listen]]b => ab
    a[[Category:Cities]]b => ab
    a[[category : Cities|*]]b => ab
    a[[fr:Paris]]b => ab
    a[[simple:Paris]][[zh-min-nan:Paris]]b => ab
    a [[:fr:Paris|Paris]] => a Paris
    a [[:Category:Cities|cities]] => a cities
    a [[:Category:Cities]] => a Category:Cities
    a [[:File:x.jpg|a picture]] => a a picture
    a [[:Image:x.jpg|a {{nowrap|picture}}]] => a a picture
    a [[wikt:city|city]], [[Wiktionary:town]], [[w:Paris|Paris]] => a city, Wiktionary:town, Paris
    a [[Wikipedia:Links|b]] [[User talk:X|c]] [[Portal:Art|d]] [[Special:Random|e]] => a b c d e
    [[File:x.jpg|thumb|never closed [[Paris]] => thumb|never closed [[Paris]]
    [[File:a.jpg|never closed⏎== H ==⏎b]] c => never closed⏎b c
    [[File:a.jpg|frame|<gallery>]]</gallery>text]]b => b
""")
def test_files_categories_and_other_wikis(source, expected):
    assert read(source) == expected


def test_namespaces_of_the_language_and_english_ones_are_known():
    german = Site.of("de")
    source = "a[[Datei:x.jpg|mini|[[Stadt]]]][[Bild:x.jpg]][[File:x.jpg]][[Kategorie:Stadt]][[Category:X]][[en:X]]b"
    assert read(source, german) == "ab"
    assert read("[[Hilfe:X|y]] [[:Kategorie:X|z]] [[de:Stadt|w]]", german) == "y z [[Stadt|w]]"
    assert read("[[Datei:x.jpg|mini]]") == "[[Datei:x.jpg|mini]]"  # an article like any other in English


@pytest.mark.parametrize(
    ("language", "source", "expected"),
    [
        ("de", "[[Stadt]]größe", "[[Stadt|Stadtgröße]]"),
        ("de", "[[Stadt]]Bahn", "[[Stadt]]Bahn"),
        ("fr", "[[élève]]s", "[[Élève|élèves]]"),
        ("ru", "[[город]]ами", "[[Город|городами]]"),
        ("he", "[[עיר]]ות", "[[עיר|עירות]]"),
        ("ja", "[[東京]]は", "[[東京]]は"),
        ("ja", "[[漢字|かんじ]]です", "[[漢字|かんじ]]です"),
        ("zh", "[[北京]]市", "[[北京]]市"),
        ("de", "[[Stadt|''Stadt'' {{nowrap|am See}}]]ufer", "[[Stadt|Stadt am Seeufer]]"),
    ],
)
def test_letters_behind_a_link_belong_to_it(language, source, expected):
    assert read(source, Site.of(language)) == expected


@check("""
    a{{box}}b => ab
    a{{box|x={{y|{{z}}}}|[[Paris]]}}b => ab
    a{{box⏎| x = 1⏎| y = {{z}}⏎}}b => ab
    a{{box|{{{1|{{{2}}}}}}}}b => ab
    a{{box|<math>x^{y^{2}}}</math>}}b => ab
    a{{box|<nowiki>}}</nowiki>}}b => ab
    a{{box|<!-- }} -->}}b => ab
    a{{box|x={y}}}b => a}b
    a{{#if:x|y|z}}{{PAGENAME}}{{#invoke:x|y}}b => ab
    a{{{x}}}b => ab
    a{{{{{x}}} y}}b => ab
    a{{box|{{{{{x}}} y}} z}}b => ab
    a{{{x|default}}}b => adefaultb
    a{{{x|[[Paris]] = x}}}b => a[[Paris]] = xb
    a{{{x|{{{y|z}}}}}}b => azb
    a{{{x|1|2}}}b => a1b
    a {{never closed | b [[Paris]] => a b [[Paris]]
    {{Infobox⏎| name = x⏎| place = y⏎Text [[Paris]] => Text [[Paris]]
    {{Infobox⏎| name = x⏎== H ==⏎b }} c => b c
    a }} b => a b
    a{{lang|fr|[[b|c}} d]] => ac d
""")
def test_templates(source, expected):
    assert read(source) == expected


@check("""
    {{lang|fr|[[bon]] ''mot''}} => [[Bon|bon]] mot
    {{lang|fr|{{lang|de|{{nowrap|x}}}}}} => x
    {{Lang-fr|bon}} {{lang-grc-gre|x}} => bon x
    {{transl|ar|DIN|foo}} {{transl|ja|bar}} => foo bar
    {{nowrap|a b}} {{small|c}} {{abbr|d|details}} => a b c d
    {{nowrap|1=E = mc²}} => E = mc²
    {{nowrap | a }}b => a b
    {{convert|5|km|mi|abbr=on}} => 5 km
    {{convert|5|to|10|km|mi}} => 5 to 10 km
    {{convert|5|ft|3|in|m}} {{convert|5|×|6|m}} => 5 ft 3 in 5 × 6 m
    {{convert|5|km|3}} {{convert|5}} {{convert}} => 5 km 5
    {{circa|1500}} {{circa|1500|1510}} {{circa}} x => c. 1500 c. 1500 – 1510 c. x
    {{frac|1|2}} {{frac|3|1|2}} {{frac|4}} {{frac}} x => 1/2 3 1/2 1/4 x
    {{birth date|1950|1|2}}, {{start date|2001|09}} => 2 January 1950, September 2001
    {{date|14|juillet|1789}}, {{date|1789}} => 14 juillet 1789, 1789
    {{nihongo|'''[[Tokyo]]'''|東京|Tōkyō}} {{nihongo|Tokyo}} {{nihongo||東京}} => Tokyo (東京, Tōkyō) Tokyo (東京)
    {{hlist|[[a]]|b|class=x|c}} => [[A|a]], b, c
    {{chem|H|2|O}} => H2O
    {{as of|2015|3}} x => as of 2015 3 x
    {{sortname|Jean|Marais}} => Jean Marais
    {{US$|5}} {{£|6}} => US$5 £6
    {{formatnum:1234}} {{lc:X}} => 1234 X
    it{{'}}s a{{ndash}}b{{snd}}c{{mdash}}d{{nbsp}}e{{=}}f => it's a–b – c—d e=f
    a{{quote|text=''b''|author=c}}d => a⏎b⏎d
    a{{quote|b|c}}d => a⏎b⏎d
    {{flag|France}} {{sort|1|x}} => France x
    {{NOWRAP|x}} {{ nowrap |x}} {{Angle_bracket|x}} => x x x
    {{nowrap}}a => a
    {{nowrap|}}a => a
    {{nowrap|a|b}} => a
    {{nowrap|a=b|c}} {{nowrap|x|1=y}} => c xy
    {{hlist|a|12=b|x y=c|d}} => a, b, d
    {{lang|fr|never closed [[Paris]] => never closed [[Paris]]
    {{lang|fr|a⏎==H==⏎b}} c => a⏎b c
""")
def test_templates_that_are_text(source, expected):
    assert read(source) == expected


@check("""
    a⏎{|⏎| b || [[c]]⏎|-⏎! d⏎|}⏎e => a⏎e
    a⏎{|⏎| b⏎{|⏎| c⏎|}⏎| d⏎|}⏎e => a⏎e
    a⏎::{| class=x⏎| {{b|}}⏎  |}⏎e => a⏎e
    a {| b⏎| c⏎|} d => a⏎d
    a⏎{|⏎| {{box|⏎|}}⏎|}⏎e => a⏎e
    a⏎{|⏎| <nowiki>⏎|}</nowiki>⏎|}⏎e => a⏎e
    a⏎{| never closed⏎| b⏎Text [[c]] => a⏎Text [[C|c]]
    a⏎{|⏎| b⏎== H ==⏎c⏎|}⏎d => a⏎c⏎d
    a<table><tr><td>b<table><tr></tr></table></td></tr></table>c => a⏎c
    a<TABLE class="x"><tr><td>b</td></tr></TABLE >c => a⏎c
    a<table><tr><td>never closed</td></tr>c => a⏎never closed⏎c
    Name : [[Paris|city]] ; Country : [[France]] . => Name : [[Paris|city]] ; Country : [[France]] .
""")
def test_tables(source, expected):
    assert read(source) == expected


@check("""
    a<ref>b</ref>c => ac
    a<ref name="x">b [[c]]</ref><ref name=x />d => ad
    a<REF>b</REF >c => ac
    a<ref>{{cite|x}}</ref>b<ref>c</ref>d => abd
    a<ref name="x">text [[Paris]] <ref>b</ref> c => atext [[Paris]] c
    a<ref>never closed => anever closed
    a</ref>b => ab
    a<ce>b<center>c</center>d</ce>e<ref>f</references>g</ref>h => aeh
    a<ref name=x => a<ref name=x
    a<!-- b -->c<!---->d => acd
    a<!-- [[b]] {{c}} <ref> -->d => ad
    a<!-- never closed [[Paris]] => a never closed [[Paris]]
    a <math>\\frac{{x}}{{y}}</math> b => a b
    a<gallery>⏎File:x.jpg|[[b]]⏎</gallery>c => ac
    a<syntaxhighlight lang="python">x = [[1]]</syntaxhighlight>b<source>x</source>c => abc
    a<timeline>x</timeline>b<score>c</score>d => abd
    a<references>⏎<ref name=x>b</ref>⏎</references>c<references />d => acd
    a<br>b<br/>c<BR />d => a b c d
    H<sub>2</sub>O <span style="x">b</span> <i>c</i> <u >d</u> => H2O b c d
    <div align=center>a</div>b<p>c => a⏎b⏎c
    a < b > c <3 <foo> </bar> <> => a < b > c <3 <foo> </bar> <>
    <poem>a⏎b</poem> => a⏎b
    <noinclude>a</noinclude><includeonly>b</includeonly>c => ac
""")
def test_tags(source, expected):
    assert read(source) == expected


@check("""
    a<nowiki>[[b]] {{c}} ''d'' &amp; <ref></nowiki>e => a[[b]] {{c}} ''d'' & <ref>e
    a<nowiki/>b<nowiki />c => abc
    a<pre>⏎[[b]]⏎<nowiki>{{c}}</nowiki></pre>d => a⏎[[b]]⏎{{c}}d
    &amp;lt; &#91;&#91;a&#93;&#93; => &lt; [[a]]
    a<nowiki>never closed => anever closed
""")
def test_what_is_no_markup(source, expected):
    plain = to_plain(source)
    assert plain.text == expected
    assert plain.anchors == []


@check("""
    ''a'' '''b''' '''''c''''' => a b c
    ''''a'''' => 'a'
    ''''''a'''''' => 'a'
    'a' it's => 'a' it's
    l'''Odyssée'' => l'Odyssée
    L'''Odyssée'' et l'Iliade => L'Odyssée et l'Iliade
    '''dell'''Odissea'' di '''Omero => dell'Odissea di Omero
    a '''b''' c ''d'' e => a b c d e
    never ''closed => never closed
    never '''closed⏎l'''Odyssée'' => never closed⏎l'Odyssée
    '''A''' was ''B '''C => A was B C
    a'''b ''c'' d => ab c d
    a'''b''' ''c => ab c
    a '''''b''' c d'''e => a b c d'e
""")
def test_quotes(source, expected):
    assert to_plain(source).text == expected


@check("""
    a [http://x.org b c] d => a b c d
    a [http://x.org] d => a d
    a [//x.org b] [mailto:x@y.z c] [ftp://x d] => a b c d
    a [http://x.org ''b'' [[Paris]]] c => a b [[Paris]] c
    a http://x.org b => a http://x.org b
    a [sic] [b => a [sic] [b
    [http://x.org never closed [[Paris]] => never closed [[Paris]]
    [http://x.org [[Paris]]] => [[Paris]]
""")
def test_links_to_outside(source, expected):
    assert read(source) == expected


@check("""
    * a⏎** b⏎# c⏎#: d⏎; e⏎: f => a⏎b⏎c⏎d⏎e⏎f
    a⏎⏎⏎b⏎ c => a⏎b⏎c
    a⏎----⏎b => a⏎b
    a⏎-----b => a⏎b
    *[[Paris]]⏎*⏎*''b'' => [[Paris]]⏎b
    __NOTOC__a__TOC__b __notoc__ __init__ __KEIN_X => ab __init__ __KEIN_X
    a &amp; b &lt; c&nbsp;d &#8211; &#x2014; &eacute; => a & b < c d – — é
    &bogus; &amp &#xD800; &#99999999; &#1114112; &; => &bogus; &amp &#xD800; &#99999999; &#1114112; &;
    a&#10;b&#1;c&#150;d => a b c–d
    -{zh-hans:简; zh-hant:繁}- -{text}- -{A|zh-cn:x;zh-tw:y}- -{H|zh-cn:x}- => 简 text x
    -{a [[Paris]] b}- c => a [[Paris]] b c
    a-{b c => ab c
    x}- 1-{{convert|2|km}} => x}- 1-2 km
    a | b => a | b
    a	b   c => a b c
""")
def test_lines_and_characters(source, expected):
    assert read(source) == expected


@check("""
    a⏎==b==⏎c => a⏎c
    == b ==⏎c => c
    =b=⏎c⏎======d======⏎e => c⏎e
    a⏎==b== ⏎c⏎== d == <!-- x -->⏎e⏎== f == <!-- y⏎z -->⏎g => a⏎c⏎e⏎g
    a⏎== [[b]] ''c'' <!-- d --> ==⏎e => a⏎e
    a⏎=⏎==⏎b => a⏎=⏎==⏎b
    a⏎= b⏎c = d⏎==e⏎f => a⏎= b⏎c = d⏎==e⏎f
    a == b == c => a == b == c
""")
def test_headings(source, expected):
    assert read(source) == expected


@pytest.mark.parametrize(
    ("source", "opening"),
    [
        ("a\nb\n== h ==\nc\n== i ==\nd", "a\nb"),
        ("a [[Paris|p]] b\n==h==\n[[c]]", "a p b"),
        ("== h ==\na", ""),
        ("a [[b]]", "a b"),
        ("a\n== h ==", "a"),
        ("a{{box|\n== h ==\n}}b\n==i==\nc", "a"),
        ("", ""),
        ("  \n\n ", ""),
    ],
)
def test_opening_ends_at_the_first_heading(source, opening):
    plain = to_plain(source)
    assert plain.text[: plain.opening] == opening


def test_offsets_are_those_of_the_text():
    plain = to_plain("  ''The'' [[city]]s &amp; [[Paris|P&eacute;]]\n\n== x ==\n* [[ town | a  town]]!\n")
    assert plain.text == "The citys & Pé\na town!"
    assert [(a.start, a.end, a.title) for a in plain.anchors] == [(4, 9, "City"), (12, 14, "Paris"), (15, 21, "Town")]
    assert plain.opening == 14


def test_marks_of_our_own_in_a_page_do_no_harm():
    plain = to_plain("a\x01b\x02c\x03d [[Paris\x01|x\x03y]]\r\n\x00z &#1;&#3; [[A%01b]]")
    assert plain.text == "a b c d x y\n\x00z A%01b"
    assert [(plain.text[a.start : a.end], a.title) for a in plain.anchors] == [("x y", "Paris"), ("A%01b", "A%01b")]
