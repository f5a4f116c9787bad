"""The news set of `examples/linking`: what its README says of it is true, and the starter's linker is good at it."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from ebert.linking.candidates.generator import generator_of
from ebert.linking.evaluate import judge
from ebert.linking.linker import Linker
from ebert.linking.options import CandidateOptions
from ebert.linking.prior import tune
from ebert.linking.readers.layouts import read
from ebert.linking.resolve import TitleResolver

FOLDER = Path(__file__).parents[2] / "examples" / "linking"
KINDS = {"politics": 7, "business": 7, "sport": 6, "science": 6, "tweet": 8, "blog": 6}
FLOOR = 87.0  # micro F1 of the starter, in percent; it has 88.6
NO_WORD = re.compile(r"\W|_")


def test_the_set_is_what_its_readme_says():
    reading = read(FOLDER / "news.jsonl")
    assert (reading.layout, len(reading.documents), reading.dropped.total()) == ("jsonl", 40, 0)
    assert Counter(document.id.partition("-")[0] for document in reading.documents) == KINDS
    assert len({document.id for document in reading.documents}) == 40
    labels = [label for document in reading.documents for label in document.labels]
    titles = {label.names[0] for label in labels}
    assert f"{len(labels)} labels, {len(titles)} titles" in (FOLDER / "README.md").read_text("utf-8")
    for document in reading.documents:
        low, high = (10, 30) if document.id.startswith("tweet") else (60, 110)
        assert low <= len(document.text.split()) <= high, document.id


def test_labels_are_whole_words_and_every_file_offset_is_kept():
    lines = (FOLDER / "news.jsonl").read_text("utf-8").splitlines()
    for line, document in zip(lines, read(FOLDER / "news.jsonl").documents, strict=True):
        text = document.text
        places = [(mention["start"], mention["end"]) for mention in json.loads(line)["mentions"]]
        assert places == [(label.start, label.end) for label in document.labels]  # none was moved, cut or left out
        for start, end in places:
            surface, around = text[start:end], (text[start - 1 : start], text[end : end + 1])
            assert surface.strip() == surface != ""
            assert all(not sign or NO_WORD.match(sign) for sign in around), (document.id, surface)
            assert not surface.endswith(("'s", "’s")), (document.id, surface)


def test_a_name_that_is_labelled_once_is_labelled_everywhere_in_its_text():
    """Words that are an ordinary noun elsewhere in the text are written in lower case there."""
    for document in read(FOLDER / "news.jsonl").documents:
        spans = [(label.start, label.end) for label in document.labels]
        for label in document.labels:
            surface = document.text[label.start : label.end]
            for found in re.finditer(rf"\b{re.escape(surface)}(?!\w)", document.text):
                inside = any(start <= found.start() and found.end() <= end for start, end in spans)
                assert inside, (document.id, surface, found.start())


@pytest.fixture(scope="module")
def starter():
    """The starter's linker, the set for its store, and the linker's figures."""
    linker = Linker.from_pretrained("starter")
    resolver = TitleResolver(linker.vectors)
    documents = resolver.documents(read(FOLDER / "news.jsonl").documents).documents
    return linker, resolver, documents, 100 * judge(linker, documents, resolver).counts.f1


@pytest.mark.real
def test_the_starter_links_news(starter):
    assert starter[-1] >= FLOOR


@pytest.mark.real
def test_the_starter_is_better_than_the_best_prior(starter):
    """The prior's threshold is the best on this set, with names in lower case or without, whichever is better."""
    linker, resolver, documents, f1 = starter
    cases = [generator_of(CandidateOptions(ignore_case=ignored), linker.vectors) for ignored in (False, True)]
    assert f1 > max(tune(generator, documents, same=resolver.same).f1 for generator in cases)
