"""Names in one array: numbering, order, writing."""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ebert.wikipedia.names import NameList, Numbering

# Few letters and lengths around eight, so that many names begin alike: names are compared eight bytes at a time.
names = st.one_of(
    st.text("ab\0", max_size=20),
    st.text("aé中\U0001f600", max_size=9),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])),
)


def lines(given_names):
    return np.frombuffer("".join(f"{name}\n" for name in given_names).encode(), np.uint8)


def listed(found):
    return [found[number] for number in range(len(found))]


@settings(deadline=None)
@given(st.lists(st.lists(names)))
def test_names_are_numbered_as_a_dictionary_would(parts):
    numbering, expected = Numbering(), {}
    for part in parts:
        assert numbering.add(lines(part)).tolist() == [expected.setdefault(name, len(expected)) for name in part]
        assert len(numbering) == len(expected)
    assert listed(numbering.names) == list(expected)


@settings(deadline=None)
@given(st.lists(st.tuples(names, st.integers(0, 3)), unique_by=lambda pair: pair[0]))
def test_the_order_is_by_falling_count_and_then_by_name(pairs):
    found = NameList.of(lines(name for name, _ in pairs).tobytes())
    order = found.by_count(np.array([count for _, count in pairs], np.int64))
    assert listed(found.take(order)) == [name for name, _ in sorted(pairs, key=lambda pair: (-pair[1], pair[0]))]


def test_many_names_and_tables_that_grow(tmp_path):
    rng = random.Random(0)
    many = [f"{rng.choice('abc') * rng.randint(0, 12)}{number % 50_000}" for number in range(120_000)]
    numbering, expected = Numbering(), {}
    for start in range(0, len(many), 7000):
        part = many[start : start + 7000]
        assert numbering.add(lines(part)).tolist() == [expected.setdefault(name, len(expected)) for name in part]
    numbering.names.write(tmp_path / "names")
    assert (tmp_path / "names").read_text().split("\n")[:-1] == list(expected)
    order = numbering.names.by_count(np.zeros(len(expected), np.int64))
    assert listed(numbering.names.take(order)) == sorted(expected)


def test_no_names():
    assert listed(Numbering().names) == []
    assert Numbering().add(lines([])).tolist() == []
    empty = NameList.of(b"")
    assert len(empty.take(empty.by_count(np.zeros(0, np.int64)))) == 0
