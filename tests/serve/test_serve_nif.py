"""The GERBIL endpoint: NIF in, NIF out, read back with the reader of NIF files."""

import pytest
from serve_world import TEXT, nif

from ebert.linking.readers.layouts import Reading
from ebert.linking.readers.nif import read_asked, read_nif, write_answer
from ebert.text.passage import Mention

WIKIPEDIA = "http://en.wikipedia.org/wiki/"


def read(text: str) -> Reading:
    reading = Reading("nif")
    read_nif(text, "the answer", reading)
    return reading


def ask(client, body, **headers):
    answer = client.post("/nif", content=body, headers={"Content-Type": "application/x-turtle", **headers})
    assert answer.status_code == 200, answer.text
    return answer


def test_mentions_are_found_where_the_linker_finds_them(client):
    linked = client.post("/api/link", json={"text": TEXT}).json()["mentions"]
    answer = ask(client, nif(TEXT), Accept="application/x-turtle")
    assert answer.headers["content-type"] == "application/x-turtle; charset=utf-8"
    (document,) = read(answer.text).documents
    assert (document.id, document.text) == ("http://example.org/1", TEXT)
    assert linked
    assert [(label.start, label.end, label.names) for label in document.labels] == [
        (one["start"], one["end"], (one["url"].replace("https://", "http://"),)) for one in linked
    ]


def test_given_mentions_are_linked_all_of_them_and_no_others(client):
    spans = [(TEXT.index(words), TEXT.index(words) + len(words)) for words in ("Platt", "England", "injured")]
    (document,) = read(ask(client, nif(TEXT, spans)).text).documents
    assert sorted(spans) == [(label.start, label.end) for label in document.labels]
    allowed = {"David_Platt_(footballer)", "Platt_(Florida)", "England", "England_national_football_team", "Injury"}
    assert {label.names[0].removeprefix(WIKIPEDIA) for label in document.labels} <= allowed


def test_mentions_in_mentions_are_linked_each(client):
    spans = [(TEXT.index(words), TEXT.index(words) + len(words)) for words in ("World Cup qualifier", "World Cup")]
    answer = ask(client, nif(TEXT, spans)).text
    for start, end in spans:
        assert f"#char={start},{end}>" in answer
    assert "wiki/Qualifier>" in answer
    assert "FIFA_World_Cup>" in answer


def test_a_mention_that_nothing_is_known_about_is_left_out(client):
    spans = [(0, 5), (TEXT.index("and"), TEXT.index("and") + 3)]
    (document,) = read(ask(client, nif(TEXT, spans)).text).documents
    assert [(label.start, label.end) for label in document.labels] == [(0, 5)]


def test_offsets_are_characters_beyond_the_first_plane_too(client):
    text = "😀🏆 England"
    (document,) = read(ask(client, nif(text, [(3, 10)])).text).documents
    assert [(label.start, label.end) for label in document.labels] == [(3, 10)]


def test_offsets_that_java_counts_go_back_as_they_came():
    asked = nif("😀🏆 England", [(3, 10)])
    for was, now in (('"3"', '"5"'), ('"10"', '"12"')):
        asked = asked.replace(was, now)
    (one,) = read_asked(asked)
    assert one.mentions == (Mention(3, 10, "?"),)
    (alone,) = read_asked(nif("😀🏆 England").replace('"10"', '"12"'))  # the end of the text alone tells
    assert len(alone.places) == 13
    assert 'nif:endIndex "12"' in write_answer([(alone, [])])


def test_parts_of_a_text_that_name_nothing_are_no_mentions():
    asked = nif(TEXT, [(0, 5), (6, 9)]).replace("#char=0,5> a nif:Phrase", "#char=0,5> a nif:Sentence")
    assert [(m.start, m.end) for m in read_asked(asked)[0].mentions] == [(6, 9)]


def test_whatever_is_in_a_text_or_an_iri_comes_back_as_it_was():
    text = 'quote " backslash \\ line \n tab \t null \x00 end'
    asked = nif("@@", name="http://example.org/a\\u003Eb").replace('"@@"', '"' + text.translate(ESCAPES) + '"')
    (one,) = read_asked(asked)
    assert one.text == text
    (again,) = read_asked(write_answer([(one, [])]))
    assert (again.iri, again.text) == (one.iri, text)
    assert ">" in again.iri


ESCAPES = {ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): "\\n", ord("\t"): "\\t", 0: "\\u0000"}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"this is not Turtle", 422, "not Turtle"),
        (b"", 422, "no text to link"),
        (b"[" * 100000, 422, "brackets"),
        ((b"( " * 5000), 422, "brackets"),
        (b"\xff\xfe\x00", 400, "UTF-8"),
        (nif("x" * 20001).encode(), 413, "20,001"),
        (nif(TEXT, [(5, 3)]).replace('"3"', '"x"').encode(), 422, "no numbers"),
        (nif(TEXT, [(0, 5), (6, 9)]).replace('"Adams"', '"Eve"').replace('"9"', '"x"').encode(), 422, "no numbers"),
        (b'<a> <b> "\\UFFFFFFFF" .', 422, "an escape stands for no character"),
    ],
)
def test_what_is_wrong_is_said(client, body, status, words):
    answer = client.post("/nif", content=body)
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_mentions_that_all_overlap_are_refused(client):
    """Each would be a text of its own."""
    asked = nif("a" * 200, [(number, 200 - number) for number in range(90)])
    answer = client.post("/nif", content=asked)
    assert answer.status_code == 422
    assert "more than 64 texts" in answer.json()["error"]


def test_many_texts_in_one_request_are_answered_each_or_refused(client):
    many = "".join(nif(f"England {number}", name=f"http://example.org/{number}") for number in range(20))
    documents = read(ask(client, many).text).documents
    assert [document.text for document in documents] == [f"England {number}" for number in range(20)]
    mixed = many + nif("a [MASK] \ue000", name="http://example.org/odd")
    assert client.post("/nif", content=mixed).status_code in (200, 422)
    too_many = "".join(nif("x", name=f"http://example.org/{number}") for number in range(65))
    assert client.post("/nif", content=too_many).status_code == 422
