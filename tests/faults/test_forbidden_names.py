"""Names that nobody can read as they are: control characters, marks of no width, letters that look like others."""

import sys
from pathlib import Path

import numpy as np
import pytest

from ebert import EbertError, Vectors
from ebert.text import letters, titles
from ebert.vectors.formats.importer import import_vectors
from ebert.vectors.train.options import preset
from ebert.vectors.train.run import train

sys.path.append(str(Path(__file__).parents[1]))
from corpora import pages, write_corpus

CYRILLIC_A = "\u0430"
FALSE_DENMARK = f"Denm{CYRILLIC_A}rk"
NOTE = "mixes Latin and Cyrillic letters"
# Characters that nobody sees within a Latin word; marks of writing direction are left out of titles, as ever.
UNSEEN = [
    "\0", "\x01", "\x08", "\x1b", "\x7f", "\x80", "\x9f", "\xad", "\u034f", "\u061c", "\u180e", "\u200b", "\u200c",
    "\u200d", "\u2060", "\u2061", "\u2066", "\u2069", "\u206a", "\u3164", "\ufe0f", "\ufeff", "\uffa0", "\ufffa",
    "\U000e0001", "\U000e0041", "\U000e0100",
]  # fmt: skip
FINE = [
    "می‌خواهم",  # Persian, a non-joiner
    "PDF‌ها",
    "क्‍ष",  # Hindi, a joiner
    "ശ്രീ‍",
    "ක්‍ෂ",
    "👨‍👩‍👧‍👦",
    "👩🏽‍⚕️",
    "❤️‍🔥",
    "🏴󠁧󠁢󠁳󠁣󠁴󠁿",
    "1️⃣",
    "葛󠄀城市",
    "☎️ Telephone",
    "Beyoncé",
    "Ελλάδα",
    "Москва",
    "Αθήνα and Moscow",
    "T-64 БВ tank",
    "日本 (Japan)",
    "µTorrent",
    "10 Ω",
    "x² + y²",
    "Ænima",
    "𝔘nicode",
]


@pytest.fixture
def store(tmp_path):
    with Vectors.from_arrays(
        entities=["Denmark", "Denmark (band)", "Den", "Sweden"], entity_vectors=np.eye(4), path=tmp_path / "store",
        entity_counts=[900, 10, 5, 800],
    ) as vectors:  # fmt: skip
        yield vectors


@pytest.mark.parametrize("mark", UNSEEN, ids=lambda mark: f"U+{ord(mark):04X}")
@pytest.mark.parametrize("place", ["Den{}mark", "{}Denmark", "Denmark{}", "Den {}mark"])
def test_what_nobody_sees_is_in_no_name_that_is_added(store, mark, place):
    name = place.format(mark)
    if titles.clean(name) != name:
        return  # blanks at the ends, which are left out
    code = f"U\\+{ord(mark):04X}"
    for given in ({"title": name}, {"title": "New", "aliases": [name]}, {"title": "New", "id": name}):
        with pytest.raises(EbertError, match=f"an entity cannot be called .*: {code} .*is invisible; leave it out"):
            store.add(vector=np.ones(4), **given)
        report = store.add_many([{"vector": [1, 1, 1, 1], **given}, {"title": "Good", "vector": [1, 1, 1, 1]}])
        assert [(bad.number, code.replace("\\", "") in bad.reason) for bad in report.bad[:1]] == [(1, True)]
    assert "New" not in store
    assert "Good" in store


@pytest.mark.parametrize("name", ["Den\u200emark", "\u202eDenmark\u202c", "Den\tmark\n"])
def test_marks_of_direction_and_blanks_never_come_into_a_title(store, name):
    added = store.add(name + " 2", np.ones(4))
    assert added.title in ("Denmark 2", "Den mark 2")
    with pytest.raises(EbertError, match="nobody sees"):
        store.add("New", np.ones(4), id=name)


@pytest.mark.parametrize("name", [name for name in FINE if name != "ശ്രീ‍"])
def test_names_of_all_scripts_can_be_added(store, name):
    assert store.add(name, np.ones(4), aliases=[f"{name} 2"], id=f"id of {name}").title == titles.clean(name)
    assert store.find(name).oddity == letters.oddity(titles.clean(name))
    assert letters.unseen(titles.clean(name)) is None


def test_a_joiner_at_the_edge_joins_nothing(store):
    with pytest.raises(EbertError, match=r"U\+200D \(zero width joiner\)"):
        store.add("ശ്രീ‍", np.ones(4))


def test_an_import_counts_and_drops_them(tmp_path):
    lines = ["a\t1 2", "ENTITY/Den\u200bmark\t1 2", "ENTITY/Denmark\t3 4", "ENTITY/Sw\0eden\t5 6", "ENTITY/Norway\t7 8"]
    (tmp_path / "file.txt").write_text("\n".join(lines) + "\n")
    with import_vectors([tmp_path / "file.txt"], tmp_path / "store", format="text") as store:
        assert [name for names, _ in store.chunks("entities") for name in names] == ["Denmark", "Norway"]
        np.testing.assert_array_equal(store["Norway"], [7, 8])
        assert store.info.made["dropped"] == {"unseen": 2, "examples": [r"'Den\u200bmark'", r"'Sw\x00eden'"]}


def test_arrays_name_them_and_their_redirects_are_dropped():
    with pytest.raises(EbertError, match=r"an entity cannot be called 'Den\\u200bmark': U\+200B in it is invisible"):
        Vectors.from_arrays(entities=["Sweden", "Den\u200bmark"], entity_vectors=np.eye(2))
    redirects = [("Dan\0mark", "Denmark"), ("Danmark", "Denmark")]
    with Vectors.from_arrays(entities=["Denmark"], entity_vectors=np.ones((1, 2)), redirects=redirects) as store:
        assert store.aliases(store.find("Denmark")) == ["Danmark"]
        assert store.info.made["dropped"]["redirects"] == 1


def test_training_leaves_them_out_and_surfaces_mean_what_they_mean(tmp_path):
    hidden = "Fr\u200bance"
    linked = [("Page", [["the", "word", (["Fr"], hidden), "and", (["Tokyo"], "Tokyo"), "here"]])] * 6
    corpus = write_corpus(tmp_path / "corpus", [*pages(10), *linked])
    assert hidden in corpus.entities
    options = preset("default", dim=8, epochs=1, min_word_count=1, min_entity_count=1)
    train(corpus, tmp_path / "store", options, keep=[hidden])
    with Vectors.open(tmp_path / "store") as store:
        assert hidden not in store
        assert store.info.made["dropped"]["unseen"] == 1
        for city in ("Paris", "Tokyo", "Rome"):
            assert [one.entity.title for one in store.candidates(city)] == [city]


# Letters that look like others


@pytest.mark.parametrize(
    ("name", "scripts"),
    [
        (FALSE_DENMARK, "Latin and Cyrillic"),
        ("Ρaris", "Latin and Greek"),
        ("Мοscow", "Latin and Cyrillic"),
        ("Παрис", "Cyrillic and Greek"),
        ("Jean Mаrais", "Latin and Cyrillic"),
        ("Dеnm4rk2", "Latin and Cyrillic"),
    ],
)
def test_words_of_two_scripts_are_told(name, scripts):
    assert letters.mixed(name) in (scripts, "Latin and Cyrillic and Greek")
    assert letters.remark(name).startswith(" (mixes ")


@pytest.mark.parametrize("name", FINE)
def test_names_in_one_script_a_word_are_not(name):
    assert letters.mixed(name) is None


@pytest.mark.parametrize("typed", ["D", "den", "Denm", "Denmark", "denmark", "Dénmark"])
def test_a_look_alike_is_never_completed_before_the_real_one(store, typed):
    for number in range(10):  # more than are shown
        store.add(f"{FALSE_DENMARK} {number}" if number else FALSE_DENMARK, np.ones(4))
    found = store.complete(typed, 8)
    names = [entity.title for entity in found]
    assert "Denmark" in names
    odd = [entity.oddity for entity in found]
    assert odd == sorted(odd, key=lambda one: one is not None)
    assert set(odd) <= {None, NOTE}


@pytest.mark.parametrize("typed", ["Denmrk", "Denmarkk", "denmark", "Den mark", "Denmark country"])
def test_nor_suggested_before_it(store, typed):
    store.add(FALSE_DENMARK, np.ones(4))
    names = store.suggest(typed)
    assert names.index("Denmark") < (names.index(FALSE_DENMARK) if FALSE_DENMARK in names else len(names))


def test_an_alias_does_not_help_it(store):
    store.add(FALSE_DENMARK, np.ones(4), aliases=["Denm"])
    assert store.complete("Denm")[0].title == "Denmark"


def test_whoever_types_it_finds_it(store):
    store.add(FALSE_DENMARK, np.ones(4))
    assert store.complete(FALSE_DENMARK)[0].title == FALSE_DENMARK
    assert store.suggest(FALSE_DENMARK + "s")[0] == FALSE_DENMARK


def test_an_unknown_name_is_told_of_look_alikes_as_such(store):
    store.add(FALSE_DENMARK, np.ones(4))
    with pytest.raises(EbertError, match=rf"'Denmark'.*'{FALSE_DENMARK}' \({NOTE}\)"):
        store["Denmaark"]


def test_the_command_line_says_so(store, ebert, tmp_path):
    (tmp_path / "vector").write_text("1 2 3 4")
    done = ebert("vectors", "add", store.path, FALSE_DENMARK, "--vector", tmp_path / "vector")
    assert f"added {FALSE_DENMARK} ({NOTE});" in done.out
    done = ebert("vectors", "add", store.path, FALSE_DENMARK, "--vector", tmp_path / "vector", "--replace", "--json")
    assert done.json["oddity"] == NOTE
    assert NOTE in ebert("vectors", "find", store.path, FALSE_DENMARK).out
    assert f"{FALSE_DENMARK} ({NOTE})" in ebert("vectors", "find", store.path, "Denmaark").out
    rows = "".join(
        f'{{"title": "{title}", "vector": [1, 2, 3, 4]}}\n' for title in ("Nоrway", "Norway", "Nor\u200bway")
    )
    (tmp_path / "rows.jsonl").write_text(rows)
    done = ebert("vectors", "add-many", store.path, tmp_path / "rows.jsonl")
    assert "titles that mix letters of two scripts in a word, and may look like others: 1" in done.out
    assert "nobody sees U+200B (zero width space)" in done.err
    assert ebert("vectors", "add", store.path, "a\x1b[31mb", "--vector", tmp_path / "vector").code == 2


def test_any_name_is_refused_or_found_as_it_is_shown(store, attack):
    """Of what nobody sees, only joiners beside Persian letters are ever in a title."""
    rng = np.random.default_rng(4)
    pools = UNSEEN, [*"Denmark", CYRILLIC_A, "ی", "\u200e", " ", "é", "e\u0301"]
    shown: set[str] = set()
    for number in attack("names with unseen characters", short=300, long=5000):
        name = "".join(rng.choice(pools[rng.random() < 0.8]) for _ in range(rng.integers(1, 8)))
        try:
            title = store.add(name, np.ones(4), replace=True).title
        except EbertError:
            continue
        seen = "".join(one for one in title if not letters._UNSEEN.match(one))
        joiners = title.count("\u200c") + title.count("\u200d")
        attack.check(len(title) - len(seen) == (joiners if "ی" in title else 0), f"try {number}: {title!r}")
        attack.check(store.find(name).title == title, f"try {number}: {name!r} is {title!r}")
        shown.add(seen)
    assert len(shown) > 50
