"""Words, against the tokeniser that BERT comes with."""

import itertools
import string
import sys
import unicodedata

import numpy as np
import pytest
from dump_files import Page, xml
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertTokenizer

from ebert.errors import EbertError
from ebert.vectors.store import Vectors
from ebert.vectors.train.options import VectorTrainingOptions
from ebert.vectors.train.run import train
from ebert.wikipedia.build import build_corpus
from ebert.wikipedia.corpus import Corpus
from ebert.wikipedia.names import scan
from ebert.wikipedia.tokens import (
    TOKENISERS,
    Tokeniser,
    are_initials,
    lower,
    spans_of,
    surface_key,
    tokeniser,
    words_of,
)

OLD = unicodedata.ucd_3_2_0

TEXTS = [
    "Jean Marais' film La Belle et la Bête (1946) won — at Cannes.",
    "“Löwe & Söhne GmbH”, gegründet 1887 in Köln-Ehrenfeld; Umsatz: 3,5 Mio. €/Jahr",
    "Достоевский, Фёдор Михайлович — русский писатель. Προμηθεύς ΔΕΣΜΩΤΗΣ, ΟΔΟΣ.",
    "北京市（英語：Beijing）は中華人民共和国の首都である。한국어 위키백과는 ２００２年",
    "ارتفاع ۱۲۳ متر؛ القاهرة‎، مصر. עברית: ירושלים",
    "C++, C# and F♯; 36×24 mm; 25 °C; $100; a_b; x^2 + y^2 = z^2; it's; AT&T; e.g., U.S.A.",
    "soft\u00adhyphen zero\u200bwidth non\u00a0breaking thin\u2009space line\u2028end tab\tend\r\nnext",
    "\u0000null \ufffd\ufffd x \x85 y",
    "naïve café ＡＢＣ ﬁne Å Ω ½ ² İstanbul ΣΑΣ ΌΛΟΣ ǅ ß ẞ \u0345 e\u0301 क्षि ไทย नमस्ते\u200d",
]


def bert_splits(text, lowercase=False):
    """Split as BERT does, and leave the marks out."""
    vocabulary = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
    if lowercase not in bert_splits.made:
        made = BertTokenizer(vocab=vocabulary, do_lower_case=lowercase).backend_tokenizer
        bert_splits.made[lowercase] = made.normalizer, made.pre_tokenizer
    normalizer, splitter = bert_splits.made[lowercase]
    return [word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)) if not is_mark(word)]


bert_splits.made = {}


def is_mark(word):
    return len(word) == 1 and (word in string.punctuation or unicodedata.category(word).startswith("P"))


def settled(letter):
    """Return whether a character was in Unicode when BERT's tokeniser was made, and has not changed since."""
    return OLD.category(letter) == unicodedata.category(letter) not in ("Cn", "Cs")


# Letters of all kinds, with those that matter more often than chance would have it.
letters = st.one_of(
    st.sampled_from("aB1é \t\n.,-'$+_中\u200b\u00ad\u0301\u0000"),
    st.characters(exclude_categories=["Cn", "Cs"]).filter(settled),
)


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_real_text_is_split_as_bert_splits_it(text, lowercase):
    assert words_of(text, lowercase=lowercase) == bert_splits(text, lowercase)


@settings(deadline=None)
@given(st.text(letters, max_size=30), st.booleans())
def test_any_text_is_split_as_bert_splits_it(text, lowercase):
    assert words_of(text, lowercase=lowercase) == bert_splits(text, lowercase)


@pytest.mark.parametrize("lowercase", [False, True])
def test_every_character_is_treated_as_bert_treats_it(lowercase):
    everything = [chr(code) for code in range(sys.maxunicode + 1) if settled(chr(code))]
    assert len(everything) > 90_000
    # One line of all, each between letters, so that BERT is asked once.
    asked = "\n".join(f"a{letter}b" for letter in everything)
    assert words_of(asked, lowercase=lowercase) == bert_splits(asked, lowercase)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" .,;- ", []),
        ("don't", ["don", "t"]),
        ("Köln-Ehrenfeld", ["Köln", "Ehrenfeld"]),
        ("36×24 €5 25°C", ["36×24", "€5", "25°C"]),  # symbols are no punctuation outside ASCII
        ("a+b $5", ["a", "b", "5"]),  # and are in ASCII
        ("中国ab漢", ["中", "国", "ab", "漢"]),
        ("zero\u200bwidth", ["zerowidth"]),
        ("\u200b \u200b", []),
        ("\ud800x", ["x"]),
    ],
)
def test_examples(text, words):
    assert words_of(text) == words


def test_lower_takes_accents_off():
    assert lower("Bête ÅNGSTRÖM Σίσυφος ΟΔΟΣ") == "bete angstrom σισυφος οδοσ"
    assert words_of("Bête", lowercase=True) == ["bete"]


@settings(deadline=None)
@given(st.text(max_size=60))
def test_spans_are_those_of_the_words(text):
    spans = spans_of(text)
    assert [words_of(text[start:end]) for start, end in spans] == [[word] for word in words_of(text)]
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


@settings(deadline=None)
@given(st.text(st.one_of(letters, st.characters()), max_size=200))
def test_the_compiled_tokeniser_agrees(text):
    found = scan(text, tokeniser())
    lines = found.words.data.tobytes().decode().split("\n")[:-1]
    assert len(set(lines)) == len(lines) == len(found.words)
    assert [lines[number] for number in found.tokens] == words_of(text)
    assert list(zip(found.start.tolist(), found.end.tolist(), strict=True)) == spans_of(text)


def test_the_compiled_tokeniser_with_many_words():
    words = [f"w{number % 70_000}" for number in range(200_000)]
    found = scan(" ".join(words), tokeniser())
    assert len(found.words) == 70_000
    assert np.array_equal(found.tokens, np.arange(200_000) % 70_000)


@pytest.fixture
def pairs(monkeypatch):
    """A tokeniser that cuts runs of letters after every second one."""
    one = Tokeniser("pairs", cut=lambda run: [run[start : start + 2] for start in range(0, len(run), 2)])
    monkeypatch.setitem(TOKENISERS, one.name, one)
    return one


def test_a_tokeniser_that_cuts_runs_of_letters(pairs):
    text = "abcde f\u00adgh, 中国"
    assert words_of(text, by="pairs") == ["ab", "cd", "e", "f", "gh", "中", "国"]
    assert spans_of(text, by="pairs") == [(0, 2), (2, 4), (4, 5), (6, 8), (8, 10), (12, 13), (13, 14)]
    found = scan(text, pairs)
    assert found.words.data.tobytes().decode().split() == ["ab", "cd", "e", "f", "gh", "中", "国"]
    assert list(zip(found.start.tolist(), found.end.tolist(), strict=True)) == spans_of(text, by="pairs")


def test_the_tokeniser_is_recorded_in_corpus_and_store_and_used_for_surfaces(pairs, tmp_path):
    (tmp_path / "a.xml").write_bytes(xml([Page("Abcd", "[[Abcd|abcd]] xyz " * 20)]))
    corpus = build_corpus([tmp_path / "a.xml"], tmp_path / "corpus", threads=1, tokeniser="pairs")
    assert (corpus.info.tokeniser, corpus.surfaces) == ("pairs", ["ab cd"])
    options = VectorTrainingOptions(dim=4, epochs=1, min_word_count=1, min_entity_count=1)
    train(corpus, tmp_path / "store", options, threads=1)
    with Vectors.open(tmp_path / "store") as store:
        assert store.tokeniser == "pairs"
        assert store.words_of("abcd") == ["ab", "cd"]
        assert [meaning.entity.title for meaning in store.candidates("abcd")] == ["Abcd"]


def test_old_corpora_have_the_default_tokeniser_and_unknown_ones_are_named(tmp_path):
    (tmp_path / "a.xml").write_bytes(xml([Page("A", "text")]))
    corpus = build_corpus([tmp_path / "a.xml"], tmp_path / "corpus", threads=1)
    path = tmp_path / "corpus" / "corpus.json"
    path.write_text(path.read_text().replace('"tokeniser": "bert"', '"later": 1'))
    assert Corpus.open(corpus.path).info.tokeniser == "bert"
    with pytest.raises(EbertError, match=r"no tokeniser 'thai'; .*bert"):
        build_corpus([tmp_path / "a.xml"], tmp_path / "other", threads=1, tokeniser="thai")


@pytest.mark.parametrize(
    ("surface", "key"),
    [
        ("England", "england"),
        ("ZÜRICH", "zurich"),
        ("J R R Tolkien", "jrr tolkien"),
        ("A★Teens", "a★teens"),
        ("F 1", "f1"),
        ("5 2", "5 2"),
        ("Vitamin B 12", "vitamin b 12"),
        ("\u0301 U \u0301 S", "us"),
        ("\u0301", ""),
        ("", ""),
    ],
)
def test_the_key_of_a_surface(surface, key):
    assert surface_key(surface) == key


@given(st.lists(st.sampled_from(["U", "s", "É", "1", "\u0301", "ΣΑΣ", "İ", "²", "navy", "★", "日"])))
def test_keys_of_words_make_the_key_of_all_of_them(words):
    """So that a run of words can be looked up word by word; and a key is its own key."""
    key, last = "", ""
    for word in filter(None, map(surface_key, words)):
        key += word if not last or are_initials(last, word) else f" {word}"
        last = word
    assert surface_key(" ".join(words)) == key == surface_key(key)
    assert surface_key("\n".join([*words, " ".join(words)])).split("\n")[-1] == key
