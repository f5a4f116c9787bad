"""Vectors in text: Wikipedia2Vec's own format, word2vec's, GloVe's, and what is wrong with them."""

import bz2
import gzip
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ebert import EbertError, Vectors
from ebert.text.titles import usable
from ebert.vectors.formats.exporter import export_text
from ebert.vectors.formats.importer import detect, import_vectors
from ebert.vectors.formats.text import parse_numbers


@pytest.fixture
def load(tmp_path):
    """Import files given as bytes, by name."""
    number = iter(range(10_000))

    def loaded(*contents, name="vectors.txt", **options):
        folder = tmp_path / f"in{next(number)}"
        folder.mkdir()
        paths = []
        for index, content in enumerate(contents):
            paths.append(folder / f"{index}{name}")
            paths[-1].write_bytes(content)
        return import_vectors(paths, folder / "store", **options)

    return loaded


TAB = b"""the\t0.100 -0.200 0.300
ENTITY/Jean Marais\t1.000 2.000 -3.000
New York\t0.001 0.002 0.003
ENTITY/New York\t-0.500 0.250 0.125
"""
WORD2VEC = b"""4 3
the 0.100 -0.200 0.300
ENTITY/Jean_Marais 1.000 2.000 -3.000
New_York 0.001 0.002 0.003
ENTITY/New_York -0.500 0.250 0.125
"""
GLOVE = WORD2VEC[4:]


@pytest.mark.parametrize(("content", "york"), [(TAB, "New York"), (WORD2VEC, "New_York"), (GLOVE, "New_York")])
def test_the_three_text_formats_of_wikipedia2vec(load, content, york):
    with load(content) as store:
        assert (store.info.words, len(store), store.dimension) == (2, 2, 3)
        np.testing.assert_array_equal(store.word_vector("the"), np.float32([0.1, -0.2, 0.3]))
        np.testing.assert_array_equal(store.word_vector(york), np.float32([0.001, 0.002, 0.003]))
        np.testing.assert_array_equal(store["Jean Marais"], np.float32([1, 2, -3]))
        np.testing.assert_array_equal(store["New York"], np.float32([-0.5, 0.25, 0.125]))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: b"\n\n" + text.replace(b"\n", b"\n\n"),
        lambda text: b" \n" + text.replace(b"\n", b"\n \t \n"),
        lambda text: text.rstrip(b"\n"),
        lambda text: text.replace(b"\n", b" \n"),  # as word2vec itself ends its lines
        lambda text: text.replace(b" 0", b"  0"),
        lambda text: text.replace(b"0.100", b"1e-1").replace(b"2.000", b"2").replace(b"0.300", b".3"),
        lambda text: text.replace(b"1.000", b"+1.0"),
    ],
)
@pytest.mark.parametrize("content", [TAB, WORD2VEC])
def test_line_ends_blanks_and_numerals_may_vary(load, content, change):
    with load(change(content)) as store:
        assert (store.info.words, len(store)) == (2, 2)
        np.testing.assert_array_equal(store.word_vector("the"), np.float32([0.1, -0.2, 0.3]))
        np.testing.assert_array_equal(store["Jean Marais"], np.float32([1, 2, -3]))


def test_a_name_may_have_blanks_where_blanks_part_the_numbers(load):
    with load(b". . . 0.123 0.456\nat name@domain.com 1 2\nversion 4.0 3 4\nx 5 6\n1 7 8\ny 5 6\nz 5 6\n") as store:
        for name, value in ((". . .", 0.123), ("at name@domain.com", 1), ("version 4.0", 3), ("1", 7)):
            assert store.word_vector(name)[0] == np.float32(value)


def test_a_name_may_end_in_a_number_where_a_tab_parts_it(load):
    with load(b"ENTITY/Pi 3.14159\t1 2\nversion 0.125\t3 4\n") as store:
        assert store["Pi 3.14159"].tolist() == [1, 2]
        assert store.word_vector("version 0.125").tolist() == [3, 4]


def test_a_first_line_with_a_tab_is_not_a_header(load):
    with load(b"7\t5\n8\t6\n") as store:
        assert store.word_vector("7").tolist() == [5]
    with load(b"\x0c\t0 0\n") as store:
        assert store.word_vector("\x0c").tolist() == [0, 0]


def test_a_number_may_be_a_name(load):
    with load(b"1 0.5 0.5\n2 0.5 0.25\n1990 1 1\n") as store:
        assert store.word_vector("1990").tolist() == [1, 1]
        assert store.word_vector("1").tolist() == [0.5, 0.5]


def test_names_outside_the_basic_plane_and_of_other_scripts(load):
    names = ["𝔘𝔫𝔦", "日本", "été", "\u3000", "\u0085", "😀 x"]
    with load("".join(f"{name}\t1 {i}\nENTITY/{i}{name}E\t2 {i}\n" for i, name in enumerate(names)).encode()) as store:
        for i, name in enumerate(names):
            assert store.word_vector(name).tolist() == [1, i]
            assert store[f"{i}{name}E"].tolist() == [2, i]


@pytest.mark.parametrize(("name", "pack"), [("v.txt.gz", gzip.compress), ("v.txt.bz2", bz2.compress)])
def test_compressed_text(load, name, pack):
    with load(pack(TAB), name=name) as store:
        assert store["Jean Marais"].tolist() == [1, 2, -3]


@pytest.mark.parametrize(
    ("name", "pack", "damage"),
    [
        ("v.txt.gz", gzip.compress, "cut"),
        ("v.txt.gz", gzip.compress, "flipped"),
        ("v.txt.gz", gzip.compress, "not compressed"),
        ("v.txt.bz2", bz2.compress, "flipped"),
        ("v.txt.bz2", bz2.compress, "empty"),
    ],
)
def test_damaged_compressed_text(load, name, pack, damage):
    packed = pack("".join(f"w{i}\t{i}.5 1.5\n" for i in range(20_000)).encode())
    middle = len(packed) // 2
    content = {
        "cut": packed[:-20],
        "flipped": packed[:middle] + bytes(255 - byte for byte in packed[middle : middle + 50]) + packed[middle + 50 :],
        "not compressed": TAB,
        "empty": b"",
    }[damage]
    with pytest.raises(EbertError, match=r"0v\.txt\.(gz|bz2)"):
        load(content, name=name)


def test_several_files_make_one_store(load):
    with load(b"a\t1 2\n", b"1 2\nENTITY/A 3 4\n", b"b 5 6\n") as store:
        assert store.word_vector("b").tolist() == [5, 6]
        assert store["A"].tolist() == [3, 4]
        assert len(store.info.made["imported"]) == 3


def test_files_of_different_dimension_do_not_make_one_store(load, tmp_path):
    with pytest.raises(EbertError, match=r"1vectors.txt has vectors of dimension 3, the file before it of 2"):
        load(b"a\t1 2\n", b"b\t1 2 3\n")
    assert not (tmp_path / "in0" / "store").exists()


def test_repeated_names_are_counted_and_the_first_is_kept(load):
    with load(b"a\t1 1\nb\t2 2\na\t3 3\nENTITY/A B\t4 4\nENTITY/A_B\t5 5\n", b"a\t6 6\n\t7 7\n") as store:
        assert store.word_vector("a").tolist() == [1, 1]
        assert store["A B"].tolist() == [4, 4]
        assert store.info.made["dropped"] == {"duplicates": 3, "empty": 1, "examples": ["a", "A B", "a", ""]}


@pytest.mark.parametrize(("kind", "words", "entities"), [("prefix", 1, 1), ("words", 2, 0), ("entities", 0, 2)])
def test_what_a_name_is_may_be_said(load, kind, words, entities):
    with load(b"a\t1 1\nENTITY/B\t2 2\n", kind=kind) as store:
        assert (store.info.words, len(store)) == (words, entities)
    with pytest.raises(EbertError, match="unknown kind 'x'"):
        load(b"a\t1 1\n", kind="x")
    with pytest.raises(EbertError, match="unknown format 'x'"):
        load(b"a\t1 1\n", format="x")


GOOD = b"".join(b"w%d\t0.250 0.500\n" % i for i in range(3000))
SPACED = GOOD.replace(b"\t", b" ")


@pytest.mark.parametrize(
    ("bad_at", "good", "header", "blank", "bad"),
    [
        (1, GOOD, b"", 0, b"bad\t0.250\n"),
        (57, GOOD, b"", 0, b"bad\t0.250\n"),  # among the lines that are read ahead
        (1024, GOOD, b"", 0, b"bad\t0.250 0.5x0\n"),  # the last one of a batch
        (1025, GOOD, b"", 0, b"bad\t0.250\n"),
        (3000, GOOD, b"3001 2\n", 5, b"bad\t0.250\n"),
        (2, SPACED, b"", 5, b"bad 0.250\n"),
        (1025, SPACED, b"3001 2\n", 0, b"bad\t0.250 0.5x0\n"),
    ],
)
def test_a_bad_line_is_named_by_its_number(load, bad_at, good, header, blank, bad):
    lines = good.splitlines(keepends=True)
    content = header + b"\n" * blank + b"".join([*lines[: bad_at - 1], bad, *lines[bad_at - 1 :]])
    number = bad_at + blank + bool(header)
    with pytest.raises(EbertError, match=rf"vectors.txt, line {number}: "):
        load(content)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"bad\t1 2 3\n", "3 numbers where 2 are expected"),
        (b"bad 0.1234 0.5 0.5\n", "more than 2 numbers"),
        (b"bad\t1 x\n", "b'x' is not a number"),
        (b"bad\t1 nan\n", "b'nan' is not a number"),
        (b"bad\t1e300 1\n", "b'1e300' is not a number"),
        (b"bad\t1 1_0\n", "b'1_0' is not a number"),
        (b"bad\t1 1,5\n", "b'1,5' is not a number"),
        ("bad\t1 ٣\n".encode(), "is not a number"),
        (b"bad\t\n", "0 numbers where 2 are expected"),
        (b"bad\n", "0 numbers where 2 are expected"),
        (b"b\xffd\t1 2\n", "not UTF-8"),
        (b"\t1\n", "1 numbers where 2 are expected"),
    ],
)
def test_what_can_be_wrong_with_a_line(load, bad, message):
    with pytest.raises(EbertError, match=rf"line 3: .*{message}"):
        load(b"a\t0.5 0.5\nb\t0.5 0.5\n" + bad + b"c\t0.5 0.5\nd\t0.5 0.5\n")


def test_numbers_of_two_bad_lines_do_not_make_up_for_each_other(load):
    with pytest.raises(EbertError, match="line 2: 1 numbers"):
        load(b"a\t0.5 0.5\nb\t0.5 \nc\t0.5 0.5\t0.5\nd\t1 2\n")


@pytest.mark.parametrize("promised", [3, 5])
def test_a_header_that_promises_another_number_of_vectors(load, promised):
    with pytest.raises(
        EbertError, match=f"has 4 vectors where its first line announces {promised}; get the file again"
    ):
        load(WORD2VEC.replace(b"4 3", b"%d 3" % promised))


def test_a_header_that_promises_another_dimension(load):
    with pytest.raises(EbertError, match="line 2: 3 numbers where 4 are expected"):
        load(WORD2VEC.replace(b"4 3", b"4 4"))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"3 4\n", b"\xef\xbb\xbf"])
def test_a_file_without_vectors(load, content):
    with pytest.raises(EbertError, match="no vectors in it"):
        load(content)


def test_a_file_of_names_only(load):
    with pytest.raises(EbertError, match="line 1: no numbers after the name"):
        load(b"just\nnames\n")


def test_a_number_too_large_for_half_precision_names_its_vector(load):
    with pytest.raises(EbertError, match="the vector of 'b' has a value that is too large for float16"):
        load(b"a\t1 2\nb\t1 70000\n", dtype="float16")


def test_one_endless_line_is_not_read_whole(load, monkeypatch):
    monkeypatch.setattr("ebert.vectors.formats.text.LINE_BYTES", 1000)
    with pytest.raises(EbertError, match="line 2: longer than 1,000 bytes"):
        load(b"a\t1 2\n" + b"x" * 5000)


@pytest.mark.parametrize(("name", "pack"), [("v.txt", bytes), ("v.txt.gz", gzip.compress), ("v.txt.bz2", bz2.compress)])
def test_progress_ends_with_the_size_of_the_files(load, name, pack):
    done = []
    content = pack(GOOD)
    load(content, content.replace(b"w", b"v") if name == "v.txt" else content, name=name, advance=done.append).close()
    assert sum(done) == 2 * len(content)
    assert all(amount >= 0 for amount in done)


def test_a_missing_file(tmp_path):
    with pytest.raises(EbertError, match="there is no file"):
        import_vectors([tmp_path / "nothing.txt"], tmp_path / "store")
    with pytest.raises(EbertError, match="there is no file"):
        import_vectors([tmp_path], tmp_path / "store")


def test_an_archive_is_not_taken_for_text(tmp_path):
    (tmp_path / "v.zip").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(EbertError, match="decompress it first"):
        detect(tmp_path / "v.zip")


# Numerals


@given(
    arrays.arrays(np.int64, st.tuples(st.integers(1, 20), st.integers(1, 8)), elements=st.integers(-99_999, 99_999)),
    st.integers(1, 6),
)
def test_numbers_of_fixed_decimals_are_read_as_python_reads_them(integers, decimals):
    texts = [[f"{value / 10**4:.{decimals}f}" for value in row] for row in integers.tolist()]
    parsed = parse_numbers([" ".join(row).encode() for row in texts], integers.shape[1])
    expected = np.array([[float(text) for text in row] for row in texts], np.float32)
    np.testing.assert_array_equal(parsed, expected)
    np.testing.assert_array_equal(np.signbit(parsed), np.signbit(expected))


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1), st.sampled_from("rg9"))
def test_any_numbers_are_read_as_python_reads_them(values, style):
    texts = [repr(value) if style == "r" else f"{value:g}" if style == "g" else f"{value:.9g}" for value in values]
    parsed = parse_numbers([" ".join(texts).encode()], len(texts))
    np.testing.assert_array_equal(parsed[0], np.array([float(text) for text in texts], np.float32))


@given(st.lists(st.text(alphabet="0123456789.-+e x", max_size=8), min_size=1, max_size=4))
def test_what_python_does_not_read_as_numbers_is_not_read(parts):
    row = " ".join(parts)
    if not row.split():
        return
    try:
        with np.errstate(over="ignore"):
            expected = np.array([float(part) for part in row.split()], np.float32)
    except ValueError:
        expected = None
    parsed = parse_numbers([row.encode()], len(row.split()))
    if expected is None or not np.isfinite(expected).all():
        assert parsed is None
    else:
        np.testing.assert_array_equal(parsed[0], expected)


# Export

NAMES = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r"), min_size=1)


@settings(deadline=None, max_examples=40)
@given(data=st.data(), dtype=st.sampled_from(["float32", "float16"]))
def test_what_is_exported_is_imported_again(tmp_path_factory, data, dtype):
    folder = tmp_path_factory.mktemp("round")
    words = data.draw(st.lists(NAMES.filter(lambda n: not n.startswith("ENTITY/")), unique=True, min_size=1))
    entities = data.draw(st.lists(NAMES.map(usable).filter(bool), unique=True))
    width = 16 if dtype == "float16" else 32
    numbers = st.floats(width=width, allow_nan=False, allow_infinity=False)
    matrix = data.draw(arrays.arrays(np.float32, (len(words) + len(entities), 2), elements=numbers))
    with Vectors.from_arrays(
        words=words, word_vectors=matrix[: len(words)],
        entities=entities, entity_vectors=matrix[len(words) :] if entities else None,
        path=folder / "a", dtype=dtype,
    ) as store:  # fmt: skip
        assert export_text(store, folder / "v.txt") == len(words) + len(entities)
        with import_vectors([folder / "v.txt"], folder / "b", dtype=dtype) as again:
            assert (again.info.words, len(again)) == (len(words), len(entities))
            for word in words:
                np.testing.assert_array_equal(again.word_vector(word), store.word_vector(word))
            for title in entities:
                np.testing.assert_array_equal(again[title], store[title])
            assert again.fingerprint == store.fingerprint


def test_export_writes_added_and_replaced_entities_once(store, tmp_path):
    store.add("New", np.full(6, 1 / 3))
    store.add("Paris", np.arange(6), replace=True)
    assert export_text(store, tmp_path / "v.txt") == 4 + 10
    lines = (tmp_path / "v.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("ENTITY/Paris\t")] == ["ENTITY/Paris\t0 1 2 3 4 5"]
    with import_vectors([tmp_path / "v.txt"], tmp_path / "again") as again:
        for name in ("New", "Paris", "AC/DC", "100% (album)"):
            np.testing.assert_array_equal(again[name], store[name])
        assert "dropped" not in again.info.made


def test_export_may_be_shorter(store, tmp_path):
    export_text(store, tmp_path / "v.txt", decimals=3)
    with import_vectors([tmp_path / "v.txt"], tmp_path / "again") as again:
        np.testing.assert_allclose(again["Paris"], store["Paris"], rtol=5e-3)


def test_a_tab_or_line_end_in_a_word_does_not_break_the_file(tmp_path):
    with Vectors.from_arrays(words=["a\tb", "c\nd", "e\rf"], word_vectors=np.eye(3)) as store:
        export_text(store, tmp_path / "v.txt")
    with import_vectors([tmp_path / "v.txt"], tmp_path / "again") as again:
        assert again.word_vector("c d").tolist() == [0, 1, 0]


# Memory

PEAK = """
import resource, sys
from ebert.vectors.formats.importer import import_vectors
import numpy, sqlite3, marisa_trie  # what is loaded anyway
import_vectors([sys.argv[2]], sys.argv[1] + "/small").close()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
import_vectors([sys.argv[3]], sys.argv[1] + "/large", dtype="float16").close()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_memory_does_not_grow_with_the_file(tmp_path):
    row = b" ".join([b"0.125"] * 1000)
    with (tmp_path / "large.txt").open("wb") as file:
        for i in range(16_000):
            file.write(b"ENTITY/Title %d\t%s\n" % (i, row))
    (tmp_path / "small.txt").write_bytes(b"".join(b"w%d\t%s\n" % (i, row) for i in range(3000)))
    size = (tmp_path / "large.txt").stat().st_size
    done = subprocess.run(
        [sys.executable, "-c", PEAK, tmp_path, tmp_path / "small.txt", tmp_path / "large.txt"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert size > 90e6
    assert int(done.stdout) < size / 5
