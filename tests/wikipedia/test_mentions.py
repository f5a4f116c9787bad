"""The mention table, against counting by hand and against counting the slow way."""

import random
from collections import Counter, defaultdict

import numpy as np
import pytest
from dump_files import Page, xml

from ebert.wikipedia import mentions
from ebert.wikipedia.build import build_corpus
from ebert.wikipedia.mentions import Trie


@pytest.fixture
def build(tmp_path):
    def make(pages, **options):
        (tmp_path / "a.xml").write_bytes(xml(pages))
        return build_corpus([tmp_path / "a.xml"], tmp_path / "corpus", threads=1, **options)

    return make


def table(corpus):
    """Return the table as a dictionary: surface to occurrences and (entity, count) pairs."""
    found = {}
    for number, surface in enumerate(corpus.surfaces):
        first, last = corpus.surface_mentions[number : number + 2]
        pairs = zip(corpus.mention_entity[first:last], corpus.mention_count[first:last].tolist(), strict=True)
        occurrences = int(corpus.surface_occurrences[number])
        found[surface] = occurrences, [(corpus.entities[entity], count) for entity, count in pairs]
    return found


def slow_table(corpus):
    """Count all surfaces by looking at every stretch of words of every paragraph."""
    linked = defaultdict(Counter)
    for start, length, entity in zip(corpus.anchor_start, corpus.anchor_length, corpus.anchor_entity, strict=True):
        if 0 < length <= mentions.LONGEST:
            linked[tuple(corpus.tokens[start : start + length].tolist())][int(entity)] += 1
    occurrences = Counter()
    for begin, end in zip(corpus.paragraphs[:-1], corpus.paragraphs[1:], strict=True):
        tokens = corpus.tokens[begin:end].tolist()
        for start in range(len(tokens)):
            for size in range(1, mentions.LONGEST + 1):
                if start + size <= len(tokens):
                    occurrences[tuple(tokens[start : start + size])] += 1
    return {
        " ".join(corpus.words[number] for number in words): (
            occurrences[words],
            [(corpus.entities[entity], count) for entity, count in sorted(meant.items(), key=lambda x: (-x[1], x[0]))],
        )
        for words, meant in linked.items()
    }


def test_by_hand(build):
    corpus = build([
        Page("A", "[[New York City|New York]] and [[New York (state)|New York]] and New York."
                  " [[Redirected|New York]]\n\nYork [[York]] New\n\nYork New [[New York City]]"),
        Page("Redirected", "#REDIRECT [[New York City]]", redirect="New York City"),
        Page("Marks", "[[Marks|!?]] [[Marks|...]]"),
    ])  # fmt: skip
    assert table(corpus) == {
        # unlinked ones count, and the one inside "New York City"; not one across the end of a paragraph
        "New York": (5, [("New York City", 2), ("New York (state)", 1)]),
        "New York City": (1, [("New York City", 1)]),
        "York": (8, [("York", 1)]),
    }
    assert corpus.surfaces == ["New York", "New York City", "York"]  # by links, then by name


def test_nested_and_overlapping_surfaces_all_count(build):
    corpus = build([Page("P", "[[A|a]] [[AB|a b]] [[BC|b c]] [[ABC|a b c]] [[AA|a a]]\n\na a a b c a b c a")])
    expected = slow_table(corpus)
    assert table(corpus) == expected
    assert expected["a a"][0] == 4  # the linked one, one across two links, two in "a a a"


def test_nothing_is_linked_more_often_than_it_occurs(build):
    corpus = build([Page("P", "[[A|1]]2[[B|3]]")])
    assert table(corpus) == {"123": (2, [("A", 1), ("B", 1)])}


def test_long_surfaces_are_left_out(build):
    words = [f"w{number}" for number in range(mentions.LONGEST + 1)]
    corpus = build([Page("P", f"[[A|{' '.join(words)}]] [[B|{' '.join(words[:-1])}]]")])
    assert corpus.surfaces == [" ".join(words[:-1])]
    assert corpus.surface_occurrences.tolist() == [2]
    assert corpus.entity_counts.tolist() == [1, 1, 0]


@pytest.mark.parametrize("seed", range(2))
def test_random_text_is_counted_as_the_slow_way_counts(build, monkeypatch, seed):
    monkeypatch.setattr(mentions, "TALLIED", 100)
    monkeypatch.setattr(mentions, "LINKS", 7)
    monkeypatch.setattr(mentions, "SCANNED", 30)
    rng = random.Random(seed)
    pages = []
    for number in range(30):
        paragraphs = []
        for _ in range(rng.randint(1, 4)):
            words = rng.choices("abcdef", k=rng.randint(1, 30))
            for _ in range(rng.randint(0, 3)):
                start = rng.randrange(len(words))
                end = min(len(words), start + rng.randint(1, 4))
                if not any("[" in word for word in words[start:end]):
                    words[start:end] = [f"[[E{rng.randint(0, 5)}|{' '.join(words[start:end])}]]"]
            paragraphs.append(" ".join(words))
        pages.append(Page(f"P{number}", "\n\n".join(paragraphs)))
    corpus = build(pages)
    assert table(corpus) == slow_table(corpus)
    counts = [sum(count for _, count in meant) for _, meant in table(corpus).values()]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == corpus.info.links == int(corpus.entity_counts.sum())


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_count_alike(threads, monkeypatch):
    monkeypatch.setattr(mentions, "SCANNED", 50)
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 5, 3000).astype(np.int32)
    paragraphs = np.unique(np.concatenate([[0, 3000], rng.integers(0, 3000, 40)]))
    starts = paragraphs[:-1].astype(np.int64)
    lengths = np.minimum(np.diff(paragraphs), 3).astype(np.int32)
    trie = Trie(5)
    trie.insert(tokens, starts, lengths, 10)
    done = []
    counts = trie.count(tokens, paragraphs, threads, done.append)
    assert sum(done) == 3000
    one = trie.count(tokens, paragraphs, 1)
    assert np.array_equal(counts, one)
    monkeypatch.setattr(mentions, "COUNTERS", 1)  # too many surfaces for counters of more than one thread
    assert np.array_equal(trie.count(tokens, paragraphs, threads), one)


def test_many_surfaces():
    """More than the tables have room for at first."""
    tokens = np.arange(30_000, dtype=np.int32) * 7 % 5003
    starts, lengths = np.arange(0, 29_000, 3), (np.arange(0, 29_000, 3) % 4).astype(np.int32)
    trie = Trie(5003)
    surfaces = trie.insert(tokens, starts, lengths, 10)
    expected: dict[tuple[int, ...], int] = {}
    for start, length, surface in zip(starts.tolist(), lengths.tolist(), surfaces.tolist(), strict=True):
        words = tuple(tokens[start : start + length].tolist())
        assert surface == (expected.setdefault(words, len(expected)) if words else -1)
    assert len(trie) == len(expected) > 5000
    counts = trie.count(tokens, np.array([0, len(tokens)]), 1)
    occurrences = Counter(tuple(tokens[n : n + size].tolist()) for n in range(len(tokens)) for size in (1, 2, 3))
    assert counts.tolist() == [occurrences[words] for words in expected]
