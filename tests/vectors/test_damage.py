"""Stores that are not whole, or not ours: an error that names the file and says what to do."""

import json
import shutil
import sqlite3

import numpy as np
import pytest

from ebert import EbertError, Vectors
from ebert.vectors import layout


@pytest.fixture
def path(make):
    with make() as vectors:
        vectors.add("New", np.ones(6))
        return vectors.path


def test_no_store_there(tmp_path):
    with pytest.raises(EbertError, match=r"there is no store at .*nothing; make one with 'ebert vectors import'"):
        Vectors.open(tmp_path / "nothing")
    with pytest.raises(EbertError, match=r"is not a store of vectors: it has no store\.json"):
        Vectors.open(tmp_path)


@pytest.mark.parametrize("name", ["words.safetensors", "entities.safetensors", "catalogue.sqlite"])
def test_a_missing_file(path, name):
    (path / name).unlink()
    with pytest.raises(EbertError, match=f"{name} is missing; restore it or make the store again"):
        Vectors.open(path)
    assert not (path / name).exists()


@pytest.mark.parametrize("keep", [0, 3, 8, 255, 256, -1])
def test_a_truncated_matrix(path, keep):
    file = path / "entities.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(EbertError, match=r"entities\.safetensors is (truncated|not a matrix)"):
        Vectors.open(path)


def test_a_truncated_matrix_tells_its_sizes(path):
    name = path / "words.safetensors"
    name.write_bytes(name.read_bytes()[:-10])
    with pytest.raises(EbertError, match="truncated: 342 bytes where 352 are needed for 4 x 6; restore it"):
        Vectors.open(path)


def header(**changes):
    tensor = {"dtype": "F32", "shape": [4, 6], "data_offsets": [0, 96]} | changes
    return json.dumps({"vectors": tensor}).encode()


@pytest.mark.parametrize(
    "start",
    [
        b"[]",
        b"{}",
        b"not json",
        b"\xff\xfe",
        b'{"vectors": 5}',
        b"[" * 100_000,
        header(dtype="BF16"),
        header(shape=[4]),
        header(shape=["x", 6]),
        header(shape=[-4, -6]),
        header(data_offsets=[8, 104]),
        header(data_offsets=None),
    ],
)
def test_a_matrix_with_another_header(path, start):
    (path / "words.safetensors").write_bytes(len(start).to_bytes(8, "little") + start + bytes(96))
    with pytest.raises(EbertError, match="is not a matrix of vectors: restore it"):
        Vectors.open(path)


def test_a_matrix_that_another_program_wrote_is_read(path):
    from safetensors.numpy import save_file

    matrix = np.arange(24, dtype=np.float32).reshape(4, 6)
    save_file({"vectors": matrix}, path / "words.safetensors", metadata={"by": "somebody"})
    with Vectors.open(path) as vectors:
        np.testing.assert_array_equal(vectors.word_matrix, matrix)


@pytest.mark.parametrize("version", [3, 99])
def test_a_store_of_a_newer_version(path, version):
    info = json.loads((path / "store.json").read_text())
    (path / "store.json").write_text(json.dumps(info | {"format": version, "dimension": {"new": "meaning"}}))
    with pytest.raises(EbertError, match=f"has store format {version}; this version of ebert reads up to 2: upgrade"):
        Vectors.open(path)


def test_keys_of_a_later_version_of_the_same_format_are_no_obstacle(path):
    info = json.loads((path / "store.json").read_text())
    (path / "store.json").write_text(json.dumps(info | {"new": 1}))
    Vectors.open(path).close()


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:50],
        lambda text: "",
        lambda text: "[1]",
        lambda text: text.replace('"dimension": 6', '"dimension": "6"'),
        lambda text: text.replace('"dimension": 6,', ""),
        lambda text: text.replace('"words_sha256"', '"other"'),
        lambda text: text.replace('"format": 2', '"format": "2"'),
        lambda text: text.replace('"licence": "unknown"', '"licence": null'),
    ],
)
def test_a_damaged_description(path, change):
    text = (path / "store.json").read_text()
    assert change(text) != text
    (path / "store.json").write_text(change(text))
    with pytest.raises(EbertError, match=r"store\.json is damaged"):
        Vectors.open(path)


@pytest.mark.parametrize(("key", "value"), [("words", 3), ("entities", 10), ("dimension", 5), ("dimension", -6)])
def test_a_description_of_another_store(path, key, value):
    info = json.loads((path / "store.json").read_text())
    (path / "store.json").write_text(json.dumps(info | {key: value}))
    with pytest.raises(EbertError, match="the files are not of one store: restore them or make it again"):
        Vectors.open(path)


def test_the_catalogue_of_another_store(path, make):
    with make("other", entities=["A"], entity_vectors=np.ones((1, 6)), redirects=[], wikidata=[]) as other:
        shutil.copy(other.path / "catalogue.sqlite", path)
    with pytest.raises(EbertError, match="the files are not of one store"):
        Vectors.open(path)


@pytest.mark.parametrize("damage", ["empty", "garbage", "cut", "no tables", "no search"])
def test_a_damaged_catalogue(path, damage):
    file = path / "catalogue.sqlite"
    whole = file.read_bytes()
    file.write_bytes({"garbage": b"x" * 5000, "cut": whole[: len(whole) // 2]}.get(damage, b""))
    if damage == "no search":
        file.write_bytes(whole)
        with sqlite3.connect(file) as connection:
            connection.execute("DROP TABLE search")
        connection.close()
    with pytest.raises(EbertError, match=r"catalogue\.sqlite cannot be read .*; restore it or make the store again"):
        Vectors.open(path)


def test_a_catalogue_that_is_damaged_in_the_middle(make):
    titles = [f"Title number {i}" for i in range(5000)]
    with make(entities=titles, entity_vectors=np.ones((5000, 6)), redirects=[], wikidata=[]) as vectors:
        path = vectors.path
    file = path / "catalogue.sqlite"
    content = bytearray(file.read_bytes())
    for page in range(8, len(content) // 4096 - 1):
        content[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    file.write_bytes(content)

    def find_all():
        with Vectors.open(path) as vectors:
            return [vectors.find(title) for title in titles]

    with pytest.raises(EbertError, match=r"catalogue\.sqlite cannot be read"):
        find_all()


@pytest.mark.parametrize("name", ["added.sqlite", "log"])
@pytest.mark.parametrize("content", [b"x" * 5000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_overlay(path, name, content):
    (file,) = path.glob("added-*.log")
    if name == "added.sqlite":  # as version 0.1 had it
        file.unlink()
        file = path / name
    file.write_bytes(content)
    with Vectors.open(path) as vectors:
        with pytest.raises(EbertError, match=file.name):
            vectors.find("New")
        with pytest.raises(EbertError, match=file.name):
            vectors.add("Newer", np.ones(6))
    assert file.read_bytes() == content
    file.unlink()
    with Vectors.open(path) as vectors:
        vectors.add("Newer", np.ones(6))


@pytest.mark.parametrize("name", ["added.sqlite", "log"])
def test_an_empty_overlay_is_an_overlay_of_nothing(path, name):
    (file,) = path.glob("added-*.log")
    file.unlink()
    (file if name == "log" else path / name).write_bytes(b"")
    with Vectors.open(path) as vectors:
        assert vectors.find("New") is None
        vectors.add("New", np.ones(6))
    with Vectors.open(path) as vectors:
        assert vectors["New"].tolist() == [1] * 6


def test_the_overlay_of_another_store(path, make):
    with make("other", words=[], word_vectors=None, entity_vectors=np.ones((9, 3))) as other:
        other.add("New", np.ones(3))
        with Vectors.open(path) as vectors:
            shutil.copy(other.path / other.info.added, path / vectors.info.added)
    with Vectors.open(path) as vectors, pytest.raises(EbertError, match="dimension 3 in a store of dimension 6"):
        vectors["New"]


def test_the_description_has_hashes_of_the_big_files_which_are_looked_at_on_request(path):
    with Vectors.open(path, verify=True) as vectors:
        vectors.add("Newer", np.ones(6))
    for name in ("words.safetensors", "entities.safetensors", "catalogue.sqlite"):
        whole = (path / name).read_bytes()
        flipped = bytearray(whole)
        flipped[-1 if name != "catalogue.sqlite" else 27] ^= 1  # for SQLite, a counter that nobody reads
        (path / name).write_bytes(flipped)
        Vectors.open(path).close()  # reads as little as ever
        with pytest.raises(EbertError, match=rf"{name} of .* changed since the store was made; restore it"):
            Vectors.open(path, verify=True)
        (path / name).write_bytes(whole)
    Vectors.open(path, verify=True).close()


def test_a_store_of_version_0_1_has_nothing_to_verify(path):
    info = json.loads((path / "store.json").read_text())
    del info["sha256"]
    (path / "store.json").write_text(json.dumps(info | {"format": 1}))
    with Vectors.open(path) as vectors:
        assert vectors.info.format == layout.FORMAT  # as `layout.MIGRATIONS` made it
    with pytest.raises(EbertError, match="has no hashes to verify"):
        Vectors.open(path, verify=True)
