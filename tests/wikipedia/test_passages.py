"""Passages of a page: which sentences are kept, and where they mention whom."""

import gzip
import json
import time

import pytest
from dump_files import Page, xml

from ebert.wikipedia.build import build_corpus
from ebert.wikipedia.passages import FILE, passages, sentences
from ebert.wikipedia.wikitext import Anchor, Plain, to_plain

MARAIS = """'''Jean-Alfred Marais''' was a [[France|French]] actor. He starred in ''Orphée'' by J. Cocteau.
For long Marais lived in [[Cannes]]. This sentence names nobody at all.

== Later ==
In 1963 he was awarded by [[Charles de Gaulle|de Gaulle]] himself. No link is in this sentence.
[[A]] ; [[B]] ; a row of a table with a link, which is no sentence."""


def shown(found):
    """Write passages with their mentions in brackets."""
    lines = []
    for one in found:
        text = one["text"]
        for mention in reversed(one["mentions"]):
            start, end = mention["start"], mention["end"]
            text = f"{text[:start]}[{mention['entity']}|{text[start:end]}]{text[end:]}"
        lines.append(text)
    return lines


def test_openings_name_their_subject_and_later_sentences_have_links():
    assert shown(passages("Jean Marais", to_plain(MARAIS.replace("\nFor", " For")))) == [
        "[Jean Marais|Jean-Alfred Marais] was a [France|French] actor.",
        "[Jean Marais|He] starred in Orphée by J. Cocteau.",
        "For long [Jean Marais|Marais] lived in [Cannes|Cannes].",
        "In 1963 he was awarded by [Charles de Gaulle|de Gaulle] himself.",
    ]


@pytest.mark.parametrize(
    ("title", "text", "subject"),
    [
        ("Denton, Texas", "The city of Denton lies in Texas, to the north.", "Denton"),
        ("Arrival (film)", "Arrival is a film about linguists and visitors.", "Arrival"),
        ("Bill Redmond", "William Thomas Redmond is a former politician.", "William Thomas Redmond"),
        ("Bill Redmond", "After a long day in the desert (where it was hot) Redmond was hungry.", None),
        ("Jean Marais", "An actor, of whom no word of this says the name.", None),
    ],
)
def test_the_subject_of_a_first_sentence(title, text, subject):
    found = list(passages(title, Plain(text, [], len(text))))
    assert [one["text"][m["start"] : m["end"]] for one in found for m in one["mentions"]] == (
        [subject] if subject else []
    )


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One is here. Two is there.", ["One is here.", "Two is there."]),
        ("He met J. F. Kennedy there. She left.", ["He met J. F. Kennedy there.", "She left."]),
        ('He said "No." Then he left.', ['He said "No."', "Then he left."]),
        ("Über allem. Élan vital.", ["Über allem.", "Élan vital."]),
        ("It cost 3.50 in all. then nothing", ["It cost 3.50 in all. then nothing"]),
        ("  \n ", []),
    ],
)
def test_sentences(text, parts):
    assert [text[start:end] for start, end in sentences(text, 0, len(text))] == parts


def test_a_corpus_keeps_passages_unless_told_otherwise(tmp_path):
    dump = tmp_path / "dump.xml"
    dump.write_bytes(
        xml([Page("Jean Marais", MARAIS), Page("Cannes", "'''Cannes''' is a city in [[France]] by the sea.")])
    )
    kept = build_corpus([dump], tmp_path / "kept", threads=1)
    again = build_corpus([dump], tmp_path / "again", threads=1)
    without = build_corpus([dump], tmp_path / "without", threads=1, passages=False)
    rows = [json.loads(line) for line in gzip.decompress((kept.path / FILE).read_bytes()).splitlines()]
    assert {row["page"] for row in rows} == {"Jean Marais", "Cannes"}
    assert (kept.path / FILE).read_bytes() == (again.path / FILE).read_bytes()
    assert kept.info.passages
    assert not without.info.passages
    assert gzip.decompress((without.path / FILE).read_bytes()) == b""


def test_a_page_of_many_links_takes_time_in_proportion():
    def seconds(count):
        text = "A link stands here, and a few words of text behind it. " * count
        anchors = [Anchor(55 * i + 2, 55 * i + 6, "Link") for i in range(count)]
        began = time.perf_counter()
        list(passages("No such title", Plain(text, anchors, 0)))
        return time.perf_counter() - began

    few, many = min(seconds(500) for _ in range(3)), min(seconds(5000) for _ in range(3))
    assert many < 40 * few
