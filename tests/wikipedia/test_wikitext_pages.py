"""Whole pages, with the text and the links that a person reads out of them, written down by hand."""

from ebert.wikipedia.site import ENGLISH, Site
from ebert.wikipedia.wikitext import to_plain


def links(plain):
    return [(plain.text[start:end], title) for start, end, title in plain.anchors]


def test_an_english_page():
    source = """{{short description|A bridge}}
{{Infobox bridge
| name  = Old Bridge
| over  = [[Elbe|River Elbe]]
| built = {{start date|1727}}
}}
The '''Old Bridge''' is an [[arch bridge]] over the [[Elbe]] in [[Dresden]], the [[Capital city|capital]] of
[[Saxony]], [[Germany]].<ref name="a">{{cite book|title=Bridges of [[Saxony]]|year=1990}}</ref>

It was [[Frost#Damage|damaged]] in 1784 and [[rebuild|rebuilt]].<ref name="a" />

== History ==
[[File:Old Bridge.jpg|thumb|right|The bridge and the [[Dresden Cathedral|cathedral]] in 1890]]
''Main article: [[History of Dresden]]''
* first built of wood
* then of [[sandstone]]

== See also ==
* [[List of bridges in Germany]]

{{Bridges of Dresden}}
[[Category:Bridges in Dresden]]
[[de:Alte Brücke]]
"""
    plain = to_plain(source)
    assert plain.text == (
        "The Old Bridge is an arch bridge over the Elbe in Dresden, the capital of\n"
        "Saxony, Germany.\n"
        "It was damaged in 1784 and rebuilt.\n"
        "Main article: History of Dresden\n"
        "first built of wood\n"
        "then of sandstone\n"
        "List of bridges in Germany"
    )
    assert plain.text[: plain.opening].endswith("1784 and rebuilt.")
    assert links(plain) == [
        ("arch bridge", "Arch bridge"),
        ("Elbe", "Elbe"),
        ("Dresden", "Dresden"),
        ("capital", "Capital city"),
        ("Saxony", "Saxony"),
        ("Germany", "Germany"),
        ("damaged", "Frost"),
        ("rebuilt", "Rebuild"),
        ("History of Dresden", "History of Dresden"),
        ("sandstone", "Sandstone"),
        ("List of bridges in Germany", "List of bridges in Germany"),
    ]
    assert ENGLISH.redirect(source) is None


def test_a_japanese_page():
    source = """{{Otheruses|山|その他}}
[[ファイル:Fuji.jpg|thumb|[[山梨県]]から見た富士山]]
'''富士山'''（{{lang-en-short|Mount Fuji}}）は[[静岡県]]と[[山梨県]]の[[火山|活火山]]。<ref>『[[年表]]』</ref>
標高{{convert|3776|m}}は[[日本]]の最高峰で、[[富士山 (代表的なトピック)|]]として[[世界遺産#一覧|世界遺産]]に登録された。

== 歴史 ==
{| class="wikitable"
! 年 !! 出来事
|-
| 781 || [[噴火]]
|}
最後の[[噴火]]は[[宝永大噴火]]。
[[Category:富士山|*]]
[[カテゴリ:日本の山]]
[[en:Mount Fuji]]
"""
    japanese = Site.of("ja")
    plain = to_plain(source, japanese)
    assert plain.text == (
        "富士山（Mount Fuji）は静岡県と山梨県の活火山。\n"
        "標高3776 mは日本の最高峰で、富士山として世界遺産に登録された。\n"
        "最後の噴火は宝永大噴火。"
    )
    assert links(plain) == [
        ("静岡県", "静岡県"),
        ("山梨県", "山梨県"),
        ("活火山", "火山"),
        ("日本", "日本"),
        ("富士山", "富士山 (代表的なトピック)"),
        ("世界遺産", "世界遺産"),
        ("噴火", "噴火"),
        ("宝永大噴火", "宝永大噴火"),
    ]
    assert japanese.redirect("#転送 [[富士山]]") == "富士山"
    assert japanese.redirect("#REDIRECT[[富士山#歴史]]") == "富士山"


# A page as bad as pages get: tables in templates in references in tables, things closed in the wrong order, and
# things never closed at all.
NASTY = """<!-- {{do not}} [[touch]] <ref> -->{{Use dmy dates|date=May 2020}}__NOTOC__
{{Infobox settlement
| name     = {{lang|cy|Aber|italic=no}}<ref>{{cite web |url=http://x.org/?a=b&c={{d}} |title={{small|[[Aber]]}}}}</ref>
| image    = [[File:Aber.jpg|thumb|{{center|The [[beach|''beach''
at [[dawn]]'']]}}]]
| list     = {{plainlist|
* [[One]]
* {{unbulleted list|a|{{hlist|b|c}}}}
}}
| table    =
{| class="x" style="width:{{{1|{{{w|10}}}}}}%"
| {{nested|<ref group="{{n}}">
{|
| in a reference
|}
</ref>}}
|}
| formula  = <math>\\frac{{a}}{{b_{c_{d}}}}</math>
}}<ref
name="early">Before the text, {{sfn|A|1990}}</ref>
'''''Aber'''''{{efn|A note{{efn|in a note}} with [[link]]}} ({{IPA-cy|ˈabɛr}}; {{lang-cy|''[[Aber (name)|Aber]]''}}, \
"[[river mouth|mouth of {{nowrap|a [[river]]}}]]") is a '''[[town]]'''ship in [[Wales|the country of ''Wales'']]&nbsp;\
&ndash; see [[:Category:Aber|the category]], [[wikt:aber|''aber'']] and [//x.org its [[web site]]].<ref>One<ref name=x/>
It lies {{convert|5|to|6|km|mi|abbr=on}} from [[Tref, Cymru|]], {{circa|[[1200]]}}, at 52&deg;&#8201;N&#x2c; \
it&#39;s [[AT&T|AT&amp;T]]{{'}}s, <nowiki>'''not''' [[bold]]</nowiki>; x<sub>1</sub>&lt;y.{{citation needed|{{date}}}
}}
:l'''Île'' is [[Isle of Man|an <!-- which? -->isle]]s{{spaced ndash}}-{zh-hans:岛; zh-hant:島}-.
{| class="wikitable" <!-- |} -->
|-
! [[Year]] !! {{abbr|No.|Number}}
|-
| 1990<ref>
|}
</ref> || {{box|
|}}
{|
| deeper
|}
|}
<gallery>
File:A.jpg|[[A]]
</gallery>
----
== [[History]] of {{PAGENAME}} == <!-- a comment
over two lines -->
; [[Term]] : what it {{em|means}}
#*: [[Image:x.png|20px]][[fr:Aber]] an entry[[Category:Towns| ]]
<blockquote>"A<br>quote"</blockquote>
{{unclosed | [[still]] text
| arg = 1
|}
[[unclosed link to [[Cardiff]] and ]] back, [ bracket ] and ''italics
=== Notes ===
{{reflist|refs=
<ref name="x">{{cite journal|title=[[Z]]}}</ref>
}}
The end {{{missing|}}}{{{shown|is [[here]]}}}.
"""


def test_a_nasty_page():
    plain = to_plain(NASTY)
    assert plain.text.split("\n") == [
        'Aber (; Aber, "mouth of a river") is a township in the country of Wales – '
        "see the category, aber and its web site.One",
        "It lies 5 to 6 km from Tref, c. 1200, at 52°\u2009N, it's AT&T's, '''not''' [[bold]]; x1<y.",
        "l'Île is an isles – 岛.",
        "Term : what it means",
        "an entry",
        '"A quote"',
        "still text",
        "unclosed link to Cardiff and back, [ bracket ] and italics",
        "The end is here.",
    ]
    assert plain.text[: plain.opening].endswith("岛.")
    assert links(plain) == [
        ("Aber", "Aber (name)"),
        ("river", "River"),
        ("town", "Town"),
        ("the country of Wales", "Wales"),
        ("web site", "Web site"),
        ("Tref", "Tref, Cymru"),
        ("AT&T", "AT&T"),
        ("an isles", "Isle of Man"),
        ("Term", "Term"),
        ("still", "Still"),
        ("Cardiff", "Cardiff"),
        ("here", "Here"),
    ]
