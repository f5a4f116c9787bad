"""Readers: small samples of every layout, written for these tests; offsets; files that are not what they should be."""

import bz2
import gzip
import json
import lzma
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebert.errors import EbertError
from ebert.linking.document import Document
from ebert.linking.evaluate import score
from ebert.linking.readers.aida import read_knowbert, read_yago
from ebert.linking.readers.kilt import read_kilt
from ebert.linking.readers.layouts import Label, Reading, read, recognise
from ebert.linking.readers.turtle import read as read_turtle
from ebert.text.passage import Mention

YAGO = """-DOCSTART- (1 Zoo)
Adams\tB\tAdams\tTony_Adams\thttp://en.wikipedia.org/wiki/Tony_Adams\t123\t/m/1
visits
New\tB\tNew York\tNew_York\thttp://en.wikipedia.org/wiki/New_York
York\tI\tNew York\tNew_York\thttp://en.wikipedia.org/wiki/New_York
.

Bob\tB\tBob\t--NME--
met
Jose\tB\tJose\tJos\\u00e9_X
-DOCSTART- (2 Sea)

Rome\tB\tRome\tRome\thttp://en.wikipedia.org/wiki/Rome
Oslo\tB\tOslo\tOslo\thttp://en.wikipedia.org/wiki/Oslo
"""
KNOWBERT = """DOCSTART_1_ZOO
MMSTART_5\tTony_Adams
Adams
MMEND
visits
MMSTART_6\tNew_York
New
York
MMEND
.
He
left
*NL*
*NL*
MMSTART_7\tRome
Rome
MMEND
DOCEND
DOCSTART_2_SEA
quiet
DOCEND
"""
NIF = """@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
@prefix itsrdf: <http://www.w3.org/2005/11/its/rdf#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
# a comment
<http://x.org/1#char=0,24>
    a nif:RFC5147String , nif:String , nif:Context ;
    nif:beginIndex "0"^^xsd:nonNegativeInteger ;
    nif:isString \"\"\"Adams said: "Oh, Rome!".\"\"\"@en .
<http://x.org/1#char=0,5>
    a nif:Phrase ; nif:anchorOf "Adams" ; nif:beginIndex "0"^^xsd:int ; nif:endIndex "5"^^xsd:int ;
    nif:referenceContext <http://x.org/1#char=0,24> ; itsrdf:taIdentRef <http://dbpedia.org/resource/Tony_Adams> .
<http://x.org/1#char=17,21>
    nif:anchorOf 'Rome' ; nif:beginIndex 17 ; nif:endIndex 21 ;
    nif:referenceContext <http://x.org/1#char=0,24> ;
    itsrdf:taIdentRef <http://www.wikidata.org/entity/Q220> , <http://dbpedia.org/resource/Caf%C3%A9> .
<http://x.org/1#char=13,15>
    nif:anchorOf "Oh" ; nif:beginIndex 13 ; nif:endIndex 15 ; nif:referenceContext <http://x.org/1#char=0,24> ;
    itsrdf:taIdentRef <http://aksw.org/notInWiki/Oh> .
[] a nif:Nothing ; nif:list ( 1 2.5 "a" ) .
"""


def write(tmp_path, text, name="data"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def lines(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def found(reading):
    return [[(d.text[x.start : x.end], *x.names) for x in d.labels] for d in reading.documents]


def test_aida_yago(tmp_path):
    reading = read(write(tmp_path, YAGO))
    assert reading.layout == "aida"
    url = "http://en.wikipedia.org/wiki/"
    assert found(reading) == [
        [("Adams", f"{url}Tony_Adams", "Tony_Adams"), ("New York", f"{url}New_York", "New_York"), ("Jose", "José_X")],
        [("Rome", f"{url}Rome", "Rome"), ("Oslo", f"{url}Oslo", "Oslo")],
    ]
    one, two = reading.documents
    assert (one.id, two.id) == ("1 Zoo", "2 Sea")
    assert one.text == "Adams visits New York .\nBob met Jose"
    assert [one.text[start:][:3] for start in one.sentences] == ["Ada", "Bob"]
    assert dict(reading.dropped) == {"name of nothing in Wikipedia": 1}


def test_aida_knowbert(tmp_path):
    reading = read(write(tmp_path, KNOWBERT))
    assert reading.layout == "knowbert"
    assert found(reading) == [[("Adams", "Tony_Adams"), ("New York", "New_York"), ("Rome", "Rome")], []]
    one = reading.documents[0]
    assert one.text == "Adams visits New York . He left\nRome"
    assert [one.text[start:][:2] for start in one.sentences] == ["Ad", "He", "Ro"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DOCSTART_1\nMMSTART_1\tA\nMMSTART_2\tB\n", "line 3: a mention begins inside another"),
        ("DOCSTART_1\nMMEND\n", "line 2: a mention ends that never began"),
        ("-DOCSTART- (1)\nAdams\tX\tAdams\n", "line 2: 'X' is neither B nor I"),
    ],
)
def test_broken_aida(tmp_path, text, message):
    with pytest.raises(EbertError, match=message):
        read(write(tmp_path, text))


def test_zelda(tmp_path):
    row = {"id": "Some_Article", "text": "Adams met Platt", "index": [[10, 15], [0, 6]], "wikipedia_titles": ["P", "T"]}
    reading = read(write(tmp_path, lines(row)))
    assert reading.layout == "zelda"
    assert found(reading) == [[("Adams", "T"), ("Platt", "P")]]  # the blank at the edge is no part of a name
    assert reading.documents[0].title == "Some Article"


def test_kilt(tmp_path):
    rows = [
        {"id": "a:0", "input": "[START_ENT] Adams [END_ENT] met Platt.", "output": [{"answer": "Tony Adams"}]},
        {"id": "a:1", "input": "Adams met [START_ENT] Platt [END_ENT] .", "output": [{"answer": "David Platt"}]},
        {"id": "a:2", "input": "Adams met [START_ENT] Platt [END_ENT].", "output": [{"answer": "David Platt"}]},
    ]
    reading = read(write(tmp_path, lines(*rows)))
    assert reading.layout == "kilt"
    assert [d.text for d in reading.documents] == ["Adams met Platt."]
    assert found(reading) == [[("Adams", "Tony Adams"), ("Platt", "David Platt")]]
    with pytest.raises(EbertError, match="line 1: 'input' has no"):
        read(write(tmp_path, lines({"input": "none", "output": []})))


def kilt(tmp_path, *inputs):
    rows = [{"id": f"a:{n}", "input": text, "output": [{"answer": f"T{n}"}]} for n, text in enumerate(inputs)]
    return read(write(tmp_path, lines(*rows)), "kilt")


def test_kilt_text_is_the_same_whichever_mention_is_marked(tmp_path):
    """A blank beside a mark may be the mark's: the lines that mark another mention know better."""
    reading = kilt(
        tmp_path,
        "[START_ENT] JAPAN [END_ENT] GET WIN , CHINA , IN DEFEAT ( ROME ) .",
        "JAPAN GET WIN , [START_ENT] CHINA [END_ENT] , IN DEFEAT ( ROME ) .",
        "JAPAN GET WIN , CHINA , IN DEFEAT ( [START_ENT] ROME [END_ENT] ) .",
    )
    assert [d.text for d in reading.documents] == ["JAPAN GET WIN , CHINA , IN DEFEAT ( ROME ) ."]
    assert found(reading) == [[("JAPAN", "T0"), ("CHINA", "T1"), ("ROME", "T2")]]
    reading = kilt(
        tmp_path,
        "He ( [START_ENT] Al Fox [END_ENT] , Rome's son) met Bo.",
        "He (Al Fox, [START_ENT] Rome [END_ENT] 's son) met Bo.",
        "He (Al Fox, Rome's son) met [START_ENT] Bo [END_ENT] .",
    )
    assert [d.text for d in reading.documents] == ["He (Al Fox, Rome's son) met Bo."]
    assert found(reading) == [[("Al Fox", "T0"), ("Rome", "T1"), ("Bo", "T2")]]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("[START_ENT] Al Fox [END_ENT] (born 1910)", "Al Fox (born 1910)"),
        ("a man ([START_ENT] Al Fox [END_ENT]) left", "a man (Al Fox) left"),
        ("in the UK, a [START_ENT] UK [END_ENT]-based firm", "in the UK, a UK-based firm"),
        ("Rome , [START_ENT] Oslo [END_ENT] , Bonn .", "Rome , Oslo , Bonn ."),  # words apart, as all over the line
        ("Rome, [START_ENT] Oslo [END_ENT] , Bonn.", "Rome, Oslo, Bonn."),  # as elsewhere in the line
        ("the town (near Rome), ( [START_ENT] Oslo [END_ENT] ) too", "the town (near Rome), (Oslo) too"),
        (" [START_ENT] Oslo [END_ENT] ", "Oslo"),
        ("one\n [START_ENT] Oslo [END_ENT] \ntwo  [START_ENT] x", "one\nOslo\ntwo  [START_ENT] x"),
        ("to  [START_ENT] Oslo [END_ENT]  and  back", "to Oslo and  back"),
        ("Oslo  and [START_ENT] Rome [END_ENT]" + " " * 300_000, "Oslo  and Rome"),
        ("שלום [START_ENT] Oslo [END_ENT] 😀 ", "שלום Oslo 😀 "),
    ],
)
def test_kilt_text_of_one_line(tmp_path, line, text):
    reading = kilt(tmp_path, line)
    [document] = reading.documents
    assert document.text == text
    assert len(found(reading)[0]) == 1


def test_kilt_label_without_words_is_counted(tmp_path):
    reading = kilt(tmp_path, "to [START_ENT] [END_ENT] Oslo", "to [START_ENT] Oslo [END_ENT]")
    assert [d.text for d in reading.documents] == ["to Oslo"]
    assert found(reading) == [[("Oslo", "T1")]]
    assert dict(reading.dropped) == {"label outside the text or without words": 1}


PARTS = st.tuples(st.sampled_from(["Adams", "😀", "(", ")", "שלום", ",", "'s", "-"]), st.sampled_from(["", " ", "\n"]))


@given(st.lists(PARTS, min_size=2, max_size=8))
def test_kilt_lines_are_one_document(parts):
    """Whatever blanks the marks bring, the lines of a text are one document, and each mention is where it was."""
    text = "".join(token + blank for token, blank in parts).strip()
    places = [(m.start(), m.end()) for m in re.finditer(r"Adams", text)]
    marked = [f"{text[:a].rstrip(' ')} [START_ENT] {text[a:b]} [END_ENT] {text[b:].lstrip(' ')}" for a, b in places]
    reading = Reading("kilt")
    read_kilt(lines(*({"input": line, "output": [{"answer": "T"}]} for line in marked)), "x", reading)
    assert len(reading.documents) == bool(marked)
    for document in reading.documents:
        assert "".join(document.text.split()) == "".join(text.split())
        assert [document.text[x.start : x.end] for x in document.labels] == ["Adams"] * len(marked)
        if len(places) > 2 and all(b < c - 1 for (_, b), (c, _) in pairwise(places)):
            assert document.text == text


def test_elevant(tmp_path):
    """The rules for wiki-fair-v2: neither optional nor coreference, with an id, in the evaluation span, outermost."""
    text = "Title\n\nThe old King of Spain met Bob in 1999. He left Rome."
    span = lambda words: [text.index(words), text.index(words) + len(words)]  # noqa: E731
    labels = [
        {"span": [0, 5], "entity_id": "Q1", "name": "Title"},
        {"span": span("Spain"), "entity_id": "Q29", "name": "Spain", "parent": 2},
        {"span": span("King of Spain"), "entity_id": "Q2", "name": "King"},
        {"span": span("Bob"), "entity_id": "<NIL>", "name": "Unknown"},
        {"span": span("1999"), "entity_id": "DATETIME", "name": "Unknown"},
        {"span": span("He"), "entity_id": "Q2", "name": "King", "coref": True},
        {"span": span("old"), "entity_id": "Q3", "name": "age", "optional": True},
        {"span": span("Rome"), "entity_id": "Q220", "name": "Unknown"},
    ]
    row = {"id": 7, "title": "T", "text": text, "evaluation_span": [7, len(text)], "labels": labels,
           "url": "https://en.wikipedia.org/wiki?curid=1"}  # fmt: skip
    reading = read(write(tmp_path, lines(row)))
    assert reading.layout == "elevant"
    assert found(reading) == [[("King of Spain", "Q2", "King"), ("Rome", "Q220")]]
    document = reading.documents[0]
    assert document.title == "T"
    assert {text[start:end] for start, end in document.ignore} == {"Title", "Title\n\n", "Spain", "1999", "He", "old"}
    assert sum(reading.dropped.values()) == 6


def test_own(tmp_path):
    row = {"id": "1", "text": "😀 Adams", "mentions": [{"start": 2, "end": 7, "entity": "T"}], "ignore": [[0, 1]]}
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(gzip.compress(lines(row, {"text": ""}).encode()))
    reading = read(path)
    assert reading.layout == "jsonl"
    assert found(reading) == [[("Adams", "T")], []]
    assert reading.documents[0].ignore == ((0, 1),)
    assert reading.documents[1].id == "2"  # by number, where none is given


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_damaged_files_are_named(tmp_path, suffix, pack):
    path = tmp_path / f"data.jsonl{suffix}"
    packed = pack(lines(*({"text": f"Adams {number}"} for number in range(300))).encode())
    middle = len(packed) // 2
    for damaged in (
        packed[:middle],
        packed[:middle] + bytes(20) + packed[middle + 20 :],
        packed[:12] + b"\xff" * 20 + packed[32:],
        packed[:-1] + bytes([packed[-1] ^ 255]),
        b"no archive",
    ):
        path.write_bytes(damaged)
        with pytest.raises(EbertError, match=rf"data\.jsonl\{suffix} cannot be unpacked .*; get it again"):
            read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"text": "a", "mentions": [{"start": 0}]}\n', "line 1: the title, a mention"),
        ('{"text": "a"}\n{"text": \n', "line 2: it is not JSON"),
        ('{"text": "a"}\n[1]\n', "line 2: it is not a JSON object"),
        ('{"text": "a"}\n{"id": 1}\n', "line 2: there is no 'text'"),
        ('{"text": "\\ud83d"}\n', "half a surrogate pair"),
        ("", "no layout"),
        ("just text", "no layout"),
        ('{"other": 1}', "none with 'text'"),
        ('{"text": "a", "mentions": [{"start": 0, "end": 1e999, "entity": "A"}]}', "line 1: .*a mention"),
        ('{"text": "a", "mentions": [{"start": 0, "end": 1, "entity": 5}]}', "line 1: .*a mention.*5 is no name"),
        ('{"text": "a", "title": 5}', "line 1: the title.*5 is no name"),
        ('{"text": "a", "title": 5, "url": "https://en.wikipedia.org/wiki/A", "labels": []}', "line 1: the title.*5"),
        ('{"text": "a", "labels": [{"span": [], "entity_id": "Q1"}]}', "line 1: the title or a label cannot be read"),
        ('{"text": "a", "index": [[0, 1]], "wikipedia_titles": [5]}', "do not fit .*5 is no name"),
        ('{"input": "[START_ENT] a [END_ENT]", "output": 5}', "line 1: 'output' cannot be read"),
        ('{"text": "a"}\n{"id": ' + "1" * 5000 + "}", "line 2: it is not JSON"),
        ('{"text": "a"}\n{"id": ' + "[" * 100_000, "line 2: it is not JSON .*nested too deeply"),
        ('{"id": ' + "[" * 100_000, "begins like JSON.*nested too deeply"),
    ],
)
def test_broken_json(tmp_path, text, message):
    with pytest.raises(EbertError, match=message):
        read(write(tmp_path, text))


def test_an_id_that_cannot_be_written_becomes_one(tmp_path):
    reading = read(write(tmp_path, '{"id": "a\\ud800", "text": "a"}'))
    assert [document.id for document in reading.documents] == ["a?"]


def test_no_entity_and_no_id(tmp_path):
    row = {"id": None, "text": "a", "mentions": [{"start": 0, "end": 1, "entity": None}]}
    reading = read(write(tmp_path, lines(row, row)))
    assert [(document.id, document.labels) for document in reading.documents] == [("1", ()), ("2", ())]
    assert dict(reading.dropped) == {"label without an entity": 2}


def test_labels_that_nobody_could_find_are_counted(tmp_path):
    row = {"text": "Adams met", "index": [[0, 5], [2, 9], [50, 55], [5, 6], [6, 99]], "wikipedia_titles": list("ABCDE")}
    reading = read(write(tmp_path, lines(row)))
    assert found(reading) == [[("Adams", "A"), ("met", "E")]]  # the last is cut at the end of the text
    assert dict(reading.dropped) == {
        "label that overlaps another": 1, "label outside the text or without words": 2,
    }  # fmt: skip
    assert reading.documents[0].ignore == ((2, 9),)  # a name, though not one that is asked for


def test_a_name_in_a_name_is_neither_right_nor_wrong(tmp_path):
    row = {"text": "University of London", "index": [[0, 20], [14, 20]], "wikipedia_titles": ["A", "London"]}
    (labelled,) = read(write(tmp_path, lines(row))).documents
    document = Document("1", labelled.text, (Mention(0, 20, "A"),), labelled.ignore)
    counts = score(document, [Mention(14, 20, "London")]).counts
    assert (counts.gold, counts.predicted, counts.correct) == (1, 0, 0)


def test_a_label_that_is_given_twice_hides_nothing(tmp_path):
    row = {"text": "University of London", "index": [[0, 20], [0, 20]], "wikipedia_titles": ["A", "A"]}
    (labelled,) = read(write(tmp_path, lines(row))).documents
    assert (len(labelled.labels), labelled.ignore) == (1, ())


def test_a_phrase_of_no_text(tmp_path):
    with pytest.raises(EbertError, match="has no nif:referenceContext"):
        read(write(tmp_path, NIF.replace("nif:referenceContext <http://x.org/1#char=0,24> ; itsrdf", "itsrdf")))


def test_nif(tmp_path):
    reading = read(write(tmp_path, NIF))
    assert reading.layout == "nif"
    assert reading.documents[0].text == 'Adams said: "Oh, Rome!".'
    assert reading.documents[0].id == "http://x.org/1"
    assert found(reading) == [[("Adams", "Tony_Adams"), ("Rome", "Café", "http://www.wikidata.org/entity/Q220")]]
    assert dict(reading.dropped) == {"name of nothing in Wikipedia": 1}


def test_nif_that_java_counted(tmp_path):
    """An emoji is two characters for Java; the words that a phrase gives tell who counted."""
    context = '<c> a nif:Context ; nif:isString "😀 Adams" .\n'
    phrase = (
        '<p> nif:anchorOf "Adams" ; nif:beginIndex {} ; nif:endIndex {} ;'
        " nif:referenceContext <c> ; itsrdf:taIdentRef <d> ."
    )
    head = "".join(NIF.splitlines(keepends=True)[:3])
    for start, end in ((2, 7), (3, 8)):
        assert found(read(write(tmp_path, head + context + phrase.format(start, end)))) == [[("Adams", "d")]]
    wrong = phrase.replace("<p>", "<q>").format(0, 4)  # one slip says nothing about who counted
    reading = read(write(tmp_path, head + context + phrase.format(2, 7) + wrong))
    assert found(reading) == [[("Adams", "d")]]
    reading = read(write(tmp_path, head + context + phrase.format(1, 6)))
    assert found(reading) == [[]]
    assert dict(reading.dropped) == {"label whose words are not those at its place": 1}


@given(st.text(max_size=30).filter(str.isprintable), st.booleans())
def test_turtle_gives_texts_back(text, ascii_only):
    """Turtle escapes as JSON does."""
    assert read_turtle(f"<s> <p> {json.dumps(text, ensure_ascii=ascii_only)}@en .") == {"s": {"p": [text]}}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("#char=0,5>\n    a nif:Phrase ;", "#char=0,5>\n    a nif:Phrase", "line 10: not Turtle"),
        ("@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .", "", "the prefix 'xsd:' stands for nothing"),
        ('nif:beginIndex 17', 'nif:beginIndex "x"', "no numbers where it begins"),
        ("nif:beginIndex 17 ;", "", "no numbers where it begins"),
        ("    nif:isString", "    nif:other", "has no nif:isString"),
        ('Rome!".\"\"\"@en .', "Rome!", "not Turtle"),
        ('"a" ) .', '"a"', "line 20: not Turtle"),
    ],
)  # fmt: skip
def test_broken_nif(tmp_path, old, new, message):
    assert old in NIF
    with pytest.raises(EbertError, match=message):
        read(write(tmp_path, NIF.replace(old, new), "broken.ttl"), "nif")


def test_layouts_can_be_named(tmp_path):
    with pytest.raises(EbertError, match="'conll' is not a layout"):
        read(write(tmp_path, YAGO), "conll")
    with pytest.raises(EbertError, match="--layout"):
        read(write(tmp_path, YAGO), "knowbert")
    with pytest.raises(EbertError, match="there is no file"):
        read(tmp_path / "none")
    assert recognise("\n\n-DOCSTART- (1)") == "aida"


TOKENS = st.lists(
    st.sampled_from(["Adams", "😀", "שלום", "مرحبا", "é", "NATO", "'s", ",", "ÀÉ"]), min_size=1, max_size=6
)


@given(st.lists(st.tuples(TOKENS, st.booleans()), min_size=1, max_size=8), st.booleans())
def test_mentions_keep_their_words(parts, knowbert):
    """Whatever the tokens are, a mention has the words it had in the file, at its place in the text."""
    if knowbert:
        file = ["DOCSTART_1"]
        for tokens, marked in parts:
            file += [*(["MMSTART_1\tX"] if marked else []), *tokens, *(["MMEND"] if marked else [])]
    else:
        file = ["-DOCSTART- (1)"]
        for tokens, marked in parts:
            file += [f"{t}\t{'I' if n else 'B'}\t-\tX" if marked else t for n, t in enumerate(tokens)]
    reading = Reading("test")
    (read_knowbert if knowbert else read_yago)("".join(f"{line}\n" for line in file), "test", reading)
    [document] = reading.documents
    assert document.text.split() == [token for tokens, _ in parts for token in tokens]
    assert found(reading) == [[(" ".join(tokens), "X") for tokens, marked in parts if marked]]


@given(st.text(max_size=30), st.integers(-3, 40), st.integers(-3, 40))
def test_any_label_is_sound_or_dropped(text, start, end):
    reading = Reading("test")
    reading.add("1", text, [Label(start, end, ("X",))])
    [document] = reading.documents
    assert len(document.labels) + reading.dropped.total() == 1
    for label in document.labels:
        assert text[label.start : label.end].strip() == text[label.start : label.end] != ""
