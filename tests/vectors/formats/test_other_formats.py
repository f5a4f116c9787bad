"""word2vec's binary format, and numpy arrays with names."""

import gzip

import numpy as np
import pytest

from ebert import EbertError
from ebert.vectors.formats import binary as formats_binary
from ebert.vectors.formats.importer import detect, import_vectors

NAMES = ["the", "New_York", "日本", "ENTITY/Jean_Marais", "😀"]
MATRIX = np.random.default_rng(2).standard_normal((5, 7)).astype(np.float32)


def binary(names=NAMES, matrix=MATRIX, end=b"\n", header=None):
    """Write what word2vec.c writes: a line end after every vector, which gensim leaves out."""
    start = header or b"%d %d\n" % matrix.shape
    rows = (
        name.encode("utf-8", "surrogateescape") + b" " + row.tobytes() + end
        for name, row in zip(names, matrix, strict=True)
    )
    return start + b"".join(rows)


@pytest.fixture
def load(tmp_path):
    def loaded(content, name="vectors.bin", **options):
        (tmp_path / name).write_bytes(content)
        return import_vectors([tmp_path / name], tmp_path / "store", overwrite=True, **options)

    return loaded


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize(("name", "pack"), [("v.bin", bytes), ("v.bin.gz", gzip.compress)])
def test_word2vec_binary(load, end, name, pack):
    with load(pack(binary(end=end)), name=name) as store:
        assert (store.info.words, len(store)) == (4, 1)
        for word, row in zip(NAMES[:3], MATRIX, strict=False):
            np.testing.assert_array_equal(store.word_vector(word), row)
        np.testing.assert_array_equal(store["Jean Marais"], MATRIX[3])


@pytest.mark.parametrize("block", [1, 50, 1000])
def test_vectors_may_lie_across_the_blocks_that_are_read(load, monkeypatch, block):
    monkeypatch.setattr(formats_binary, "BATCH_BYTES", block)
    names = [f"word{i}" for i in range(3000)]
    matrix = np.arange(9000, dtype=np.float32).reshape(3000, 3)
    with load(binary(names, matrix)) as store:
        np.testing.assert_array_equal(store.word_matrix, matrix)
        assert store.find_word("word2999") == 2999


def test_numbers_that_look_like_line_ends_and_blanks(load):
    matrix = np.frombuffer(b"\n   \n\n\n\n    " * 2, np.float32).reshape(2, 3)
    with load(binary(["a", "b"], matrix, end=b""), format="word2vec-binary") as store:
        np.testing.assert_array_equal(store.word_matrix, matrix)


@pytest.mark.parametrize("cut", [1, 2, 10, 30, 100])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_truncated_binary(load, cut, end):
    with pytest.raises(EbertError, match=r"truncated or damaged in vector \d of 5"):
        load(binary(end=end)[: -cut - len(end)], format="word2vec-binary")


def test_binary_that_goes_on_after_its_end(load):
    with pytest.raises(EbertError, match="continues after the 4 vectors"):
        load(binary(header=b"4 7\n"))


def test_binary_without_header(load):
    with pytest.raises(EbertError, match="does not begin with the two numbers"):
        load(binary(header=b"x"), format="word2vec-binary")


def test_binary_without_vectors(load):
    with pytest.raises(EbertError, match="there are no vectors in it"):
        load(b"0 7\n", format="word2vec-binary")


def test_a_name_cut_inside_a_letter_is_mended_and_counted(load):
    with load(binary(["a", "caf\udcc3"], MATRIX[:2])) as store:
        assert store.word_vector("caf\ufffd") is not None
        assert store.info.made["names with bytes that are not UTF-8"] == 1


def test_nan_in_binary_names_its_vector(load):
    matrix = MATRIX.copy()
    matrix[1, 2] = np.nan
    with pytest.raises(EbertError, match="'New_York' has a value that is not a number"):
        load(binary(matrix=matrix))


def test_formats_are_told_apart(tmp_path):
    for name, content, expected in (
        ("a.txt", b"3 2\na 1 2\n", "text"),
        ("b.vec", b"a\t1 2\n", "text"),
        ("f.vec", b"PK 0.1 0.2\nBZh 0.1 0.2\n", "text"),
        ("g.vec", b"x^ 0.1 0.2\n", "text"),
        ("c.bin", binary(), "word2vec-binary"),
        ("d.pkl", b"\x80\x04N.", "wikipedia2vec"),
    ):
        (tmp_path / name).write_bytes(content)
        assert detect(tmp_path / name) == expected
    np.save(tmp_path / "e.npy", MATRIX)
    assert detect(tmp_path / "e.npy") == "numpy"


# numpy


@pytest.fixture
def load_numpy(tmp_path):
    def loaded(matrix, names, names_file=None, **options):
        np.save(tmp_path / "v.npy", matrix)
        file = tmp_path / (names_file or "v.txt")
        file.write_bytes(names)
        given = file if names_file else None
        return import_vectors([tmp_path / "v.npy"], tmp_path / "store", overwrite=True, names=given, **options)

    return loaded


LINES = "\n".join(NAMES).encode()


@pytest.mark.parametrize("names", [LINES, LINES + b"\n", LINES.replace(b"\n", b"\r\n")])
@pytest.mark.parametrize("names_file", [None, "elsewhere.names"])
@pytest.mark.parametrize("change", [np.float32, np.float64, np.asfortranarray, lambda m: m.astype(">f4")])
def test_numpy_arrays_with_names(load_numpy, names, names_file, change):
    with load_numpy(change(MATRIX), names, names_file) as store:
        np.testing.assert_array_equal(store.word_vector("日本"), MATRIX[2])
        np.testing.assert_array_equal(store["Jean Marais"], MATRIX[3])


@pytest.mark.parametrize("rows", [1, 1023, 1024, 1025, 2048, 2500])
@pytest.mark.parametrize("difference", [-1, 0, 1, 3])
def test_as_many_names_as_rows(load_numpy, rows, difference):
    names = b"".join(b"n%d\n" % i for i in range(rows + difference))
    if difference:
        with pytest.raises(EbertError, match=f"has {rows + difference:,} names for the {rows:,} vectors"):
            load_numpy(np.zeros((rows, 2)), names)
    else:
        with load_numpy(np.zeros((rows, 2)), names) as store:
            assert store.info.words == rows


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros(5), r"has shape \(5,\)"),
        (np.zeros((5, 2), complex), "complex128"),
        (np.full((5, 2), "x"), "<U1"),
        (np.full((5, 2), {}, object), "not a numpy array of numbers"),
        (np.zeros((0, 2)), "names for the 0 vectors|no vectors"),
    ],
)
def test_arrays_that_are_no_vectors(load_numpy, matrix, message):
    with pytest.raises(EbertError, match=message):
        load_numpy(matrix, LINES)


def test_numpy_without_names(tmp_path):
    np.save(tmp_path / "v.npy", MATRIX)
    with pytest.raises(EbertError, match=r"needs a file with the names of its rows, one per line: .*v\.txt"):
        import_vectors([tmp_path / "v.npy"], tmp_path / "store")


def test_names_that_are_not_utf8(load_numpy):
    with pytest.raises(EbertError, match=r"v\.txt is not UTF-8"):
        load_numpy(MATRIX, LINES[:-2])


def test_truncated_and_foreign_numpy_files(tmp_path):
    np.save(tmp_path / "v.npy", MATRIX)
    (tmp_path / "v.txt").write_bytes(LINES)
    whole = (tmp_path / "v.npy").read_bytes()
    for content in (whole[:-8], whole[:40], b"", b"not numpy at all"):
        (tmp_path / "v.npy").write_bytes(content)
        with pytest.raises(EbertError, match=r"v\.npy is not a numpy array of numbers, or is truncated"):
            import_vectors([tmp_path / "v.npy"], tmp_path / "store")
    np.savez(tmp_path / "v.npz", MATRIX)
    with pytest.raises(EbertError, match="is an archive"):
        import_vectors([tmp_path / "v.npz"], tmp_path / "store", format="numpy")
