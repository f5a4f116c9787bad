"""A dictionary of names from outside, merged into the mention table that is counted from a corpus."""

import gzip
import json
import zipfile
from collections import Counter
from dataclasses import replace

import corpora
import link_world
import numpy as np
import pytest

from ebert import Vectors
from ebert._io.files import sha256
from ebert.errors import EbertError
from ebert.linking.candidates import corenlp, dictionary
from ebert.linking.candidates import dictionary_counts as counts_of
from ebert.wikipedia.names import NameList

COPY = "for option; do case $option in -DoutputDirectory=*) out=${option#*=};; esac; done"
NAME = "stanford-corenlp-4.5.7-models-english-kbp.jar"

LINES = (
    "Adams\tJohn_Adams\t0.6\n"
    "The Gunners' captain\tTony_Adams_(footballer)\t1.0\n"
    "T. Adams\tTony_Alexander_Adams\t0.75\n"
    "met\tInjury\t1.0\n"
    "Cairo, Egypt\tcairo\t0.97561\n"
)
DIRT = (
    "http://en.wikipedia.org/wiki/Cairo\tCairo\t1.0\n"
    "Cairo - Wikipedia, the free encyclopedia\tCairo\t1.0\n"
    "Cairo (city)\tCairo\t1.0\n"
    "the capital, which ...\tCairo\t1.0\n"
    "Каир\tCairo\t1.0\n"
    "\tCairo\t1.0\n"
    "Cairo\tCairo\n"
    "Al Qahira\tCairo\t1.2\n"
    "Al Qahirah\tCairo\tnan\n"
    "El Cairo\tCairo\t0\n"
    "!!!\tCairo\t1.0\n"
    "a b c d e f g h i j k\tCairo\t1.0\n"
    "Bimbo\tTimbuktu\t1.0\n"
)


def link(words, title):
    return words.split(), title


@pytest.fixture
def store(tmp_path):
    return link_world.write_store(tmp_path / "store")


@pytest.fixture
def corpus(tmp_path):
    """A page with many links, on which Adams is a link once of twice, and "met" never."""
    links = [link("Adams", "Tony Adams (footballer)"), "met", link("Platt", "David Platt (footballer)"), "met", "Adams"]
    places = [link("London", "London"), "met", link("Cairo", "Cairo"), link("NATO", "NATO"), link("England", "England")]
    return corpora.write_corpus(tmp_path / "corpus", [("Article", [links + places + ["met"] * 20])])


def read(store, path, report=None):
    return dictionary.read(path, store, NameList.of(b"met\nAdams\n"), report or dictionary.DictionaryReport())


def make(ebert, corpus, store, path, out, *more):
    arguments = ["link", "candidates", store.path, "--corpus", corpus.path, "--dictionary", path, "--out", out]
    return ebert(*map(str, [*arguments, "--json", *more]))


def table(path):
    return Vectors.open(path)


def counts(vectors, surface):
    return {c.entity.title: c.prior for c in vectors.candidates(surface)}


@pytest.mark.parametrize("ending", ["tsv", "tsv.gz"])
def test_names_of_a_dictionary_become_candidates(ebert, corpus, store, tmp_path, ending):
    path = tmp_path / f"names.{ending}"
    path.write_bytes(gzip.compress(LINES.encode()) if ending.endswith("gz") else LINES.encode())
    made = json.loads(make(ebert, corpus, store, path, tmp_path / "out").out)
    assert (made["lines"], made["mentions"], made["titles in the store"]) == (5, 5, 4)
    found = table(tmp_path / "out")
    assert counts(found, "The Gunners captain") == {"Tony Adams (footballer)": 1}
    assert counts(found, "T Adams") == {"Tony Adams (footballer)": 1}  # by a redirect
    assert counts(found, "Cairo Egypt") == {"Cairo": 1}
    assert set(counts(found, "Adams")) == {"John Adams", "Tony Adams (footballer)"}
    assert found.info.made["mentions"]["dictionary"] == path.name


def test_what_is_never_linked_is_hardly_ever_a_link(ebert, corpus, store, tmp_path):
    """That it always is would ruin the prior: nobody links "met", which stands in the text 23 times."""
    path = tmp_path / "names.tsv"
    path.write_text(LINES, "utf-8")
    make(ebert, corpus, store, path, tmp_path / "out")
    found = table(tmp_path / "out")
    assert found.link_probability("met") < 0.05
    assert found.link_probability("met") < found.link_probability("Adams") < 1
    assert 0 < found.link_probability("T Adams") < 1  # it stands nowhere


def test_whatever_is_no_name_is_dropped_and_counted(store, tmp_path):
    path, report = tmp_path / "names.tsv", dictionary.DictionaryReport()
    path.write_text(LINES + DIRT, "utf-8")
    found = read(store, path, report)
    assert len(found.rows) == report.mentions == 5
    assert {reason: count for reason, count in report.dropped.items() if count} == {
        "addresses of web pages": 1, "headings of web pages": 1, "mentions with a note in brackets": 1,
        "mentions that are cut off": 1, dictionary.SCRIPTS: 1, dictionary.EMPTY: 1, dictionary.BROKEN: 1,
        dictionary.NO_SCORE: 3, "mentions without words": 1, "mentions of more than 10 words": 1,
        dictionary.UNKNOWN: 1,
    }  # fmt: skip
    assert report.examples == ["Timbuktu"]


@pytest.mark.parametrize("written", ["0.97561", "1", "1.0", "2.5E-4", "1e-3", ".5"])
def test_scores_are_read_as_python_reads_them(store, tmp_path, written):
    path = tmp_path / "names.tsv"
    path.write_text(f"Cairo\tCairo\t{written}\r\n", "utf-8")
    assert read(store, path).scores.tolist() == [float(written)]


def test_blocks_do_not_matter(store, tmp_path, monkeypatch):
    path = tmp_path / "names.tsv"
    path.write_text((LINES + DIRT) * 20, "utf-8")
    whole = read(store, path)
    monkeypatch.setattr(dictionary, "BLOCK", 97)
    parts = read(store, path)
    for name in ("tokens", "lengths", "rows", "scores"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))
    assert whole.words.data.tobytes() == parts.words.data.tobytes()


def damaged(path):
    path.write_bytes(gzip.compress(LINES.encode() * 999)[:-20])


def of_another_layout(path):
    path.write_bytes(gzip.compress(b'{"mention": "Adams"}\n' * 9))


def of_another_language(path):
    path.write_bytes(gzip.compress("".join(f"Name {n}\tSeite_{n}\t1.0\n" for n in range(2000)).encode()))


def empty(path):
    path.write_bytes(gzip.compress(b""))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (damaged, "truncated or damaged"), (of_another_layout, "line 1 is not 'mention TAB"),
        (of_another_language, "in another language"), (empty, "is empty"),
    ],
)  # fmt: skip
def test_a_dictionary_that_is_of_no_use(ebert, corpus, store, tmp_path, spoil, message):
    path, out = tmp_path / "names.tsv.gz", tmp_path / "out"
    path.write_bytes(gzip.compress(LINES.encode()))
    make(ebert, corpus, store, path, out)
    before = sha256(out / "catalogue.sqlite")
    spoil(path)
    found = make(ebert, corpus, store, path, out, "--overwrite")
    assert found.code == 2
    assert message in found.err
    assert sha256(out / "catalogue.sqlite") == before


def test_dictionary_without_corpus(ebert, store, tmp_path):
    found = ebert("link", "candidates", str(store.path), "--table", "x", "--dictionary", "y", "--out", "z")
    assert found.code == 2
    assert "--dictionary needs --corpus" in found.err


# Weights

OPTIONS = counts_of.MergeOptions()


def counted(occurrences, links):
    """Surfaces of one word each, which are not in the corpus as anything."""
    number = len(occurrences)
    none = np.zeros(0, np.int64)
    return counts_of.Counted(
        np.arange(number), np.ones(number, int), none, none, np.array(occurrences), np.array(links)
    )


def words(number):
    return NameList.of("".join(f"Name{n}\n" for n in range(number)).encode())


def test_the_links_behind_a_score():
    assert counts_of.behind(np.array([1.0, 0.5, 0.666667, 0.97561, 0.940908])).tolist()[:4] == [1, 2, 3, 41]
    assert counts_of.behind(np.array([0.940908]))[0] > 100


def test_surfaces_that_never_occur_are_like_those_that_occur_once():
    once = [1] * 400
    found = counts_of.link_probability(
        counted([*once, 0, 1000], [*([1] * 100 + [0] * 300), 0, 0]), np.ones(402, bool), words(402), OPTIONS
    )
    assert found[400] == pytest.approx(0.25, abs=0.02)
    assert found[401] < 0.002
    assert found[0] > found[400] > found[399]


def test_whole_numbers_keep_priors_and_probabilities():
    surface = np.array([0, 0, 1, 2])
    priors = np.array([0.9, 0.1, 1.0, 1.0])
    natural, probability = np.array([1.2, 0.6, 5000.0]), np.array([0.3, 0.8, 0.01])
    numbers, occurrences = counts_of.whole(surface, priors, natural, probability)
    assert numbers[0] / (numbers[0] + numbers[1]) == pytest.approx(0.9, abs=counts_of.NEAR)
    total = np.bincount(surface, numbers)
    assert total / occurrences == pytest.approx(probability, rel=counts_of.CLOSE)
    assert (numbers[3], occurrences[2]) == (5000, 500_000)  # no more than needed


def test_two_million_surfaces_for_one_entity(ebert, corpus, store, tmp_path):
    path = tmp_path / "names.tsv"
    path.write_text(LINES + "".join(f"Capital {n}\tCairo\t1.0\n" for n in range(30_000)), "utf-8")
    made = json.loads(make(ebert, corpus, store, path, tmp_path / "out").out)
    most = OPTIONS.surfaces
    gone = made["mentions of entities that have more than 10,000"]
    assert 20_000 <= gone <= 20_010
    assert made["surfaces"] < most + 100
    assert counts(table(tmp_path / "out"), "Cairo") == {"Cairo": 1}  # its own links stay


def test_two_thousand_entities_for_one_surface():
    pairs = np.arange(2000) | (5 << 32)
    dropped = Counter()
    both, numbers, _ = counts_of.merge(
        counted([3] * 6, [0] * 6), pairs, np.linspace(0.1, 1, 2000), words(6), dropped, OPTIONS
    )
    assert len(both) == OPTIONS.entities
    assert dropped["entities of mentions that mean more than 100"] == 1900
    assert numbers.min() > 0


# Fetching


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty EBERT_HOME and no programs but `mvn`, which copies a jar like CoreNLP's."""
    jar = tmp_path / "made.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr(corenlp.MEMBER, gzip.compress(LINES.encode()))
        archive.writestr("edu/stanford/nlp/models/kbp/english/coref-model.ser.gz", b"large")
    monkeypatch.setattr(corenlp, "JAR", replace(corenlp.JAR, sha256=sha256(jar)))
    monkeypatch.setenv("EBERT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    mvn = tmp_path / "programs" / "mvn"
    mvn.parent.mkdir()
    script = f'{COPY}\ncp "{jar}" "$out/{NAME}"; echo "$@" >> "{tmp_path}/called"'
    mvn.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
    mvn.chmod(0o755)
    return tmp_path / "home"


def test_corenlp_is_fetched_once_and_only_the_dictionary_is_kept(ebert, home, corpus, store, tmp_path):
    made = json.loads(make(ebert, corpus, store, "corenlp", tmp_path / "out").out)
    assert made["dictionary"] == "edu.stanford.nlp:stanford-corenlp:4.5.7:models-english-kbp"
    assert counts(table(tmp_path / "out"), "T Adams") == {"Tony Adams (footballer)": 1}
    folder = home / "dictionaries" / "corenlp"
    assert {path.name for path in folder.iterdir()} == {"wikidict.tab.gz", "dictionary.json"}
    assert "General Public License" in json.loads((folder / "dictionary.json").read_text("utf-8"))["licence"]
    assert corenlp.get_dictionary() == folder / "wikidict.tab.gz"
    called = (tmp_path / "called").read_text().splitlines()
    assert len(called) == 1
    assert "-Dartifact=edu.stanford.nlp:stanford-corenlp:4.5.7:jar:models-english-kbp" in called[0]


def test_a_damaged_dictionary_in_the_cache_is_fetched_again(home, capfd):
    path = corenlp.get_dictionary()
    path.write_bytes(path.read_bytes()[:-1])
    assert gzip.decompress(corenlp.get_dictionary().read_bytes()) == LINES.encode()
    assert "fetched again" in capfd.readouterr().err


def test_another_jar_is_refused(home, monkeypatch):
    monkeypatch.setattr(corenlp, "JAR", replace(corenlp.JAR, sha256="0" * 64))
    with pytest.raises(EbertError, match="instead of 0000"):
        corenlp.get_dictionary()
    assert not (home / "dictionaries" / "corenlp").exists()


def test_without_mvn_the_error_says_what_to_do(ebert, home, corpus, store, tmp_path):
    (tmp_path / "programs" / "mvn").unlink()
    found = make(ebert, corpus, store, "corenlp", tmp_path / "out")
    assert found.code == 2
    assert "apt-get install maven" in found.err
    assert str(home / "maven" / NAME) in found.err
    assert "--dictionary FILE" in found.err
