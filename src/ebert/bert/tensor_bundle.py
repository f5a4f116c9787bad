"""Reads a TensorFlow tensor bundle (the `variables/` of a SavedModel) without TensorFlow, and converts Google's BERT.

By hand, because TensorFlow would be a 500 MB dependency for what these lines do. A bundle is an index and data files:

- `variables.index` is a LevelDB table. Its 48-byte footer points at an index block, which points at data blocks; a
  block is a row of entries whose keys leave out what they share with the key before, and ends in a checksum.
  Key: a variable's name; value: a `BundleEntryProto` (type, shape, where its bytes are). The empty key has the header.
- `variables.data-00000-of-00001` holds the numbers, memory-mapped here, so that reading one variable touches only it.

The checksums of the index are checked. Those of the variables are not: CRC-32C of 400 MB takes minutes in Python, and
the archives that our bundles come in have checksums of their own, which unpacking them checks.

The variables become the tensors of transformers' `BertForMaskedLM` plus its pooler. The names are rewritten by rule, so
a rule that is wrong must not go unnoticed: every variable has to give exactly one tensor, and the tensors have to be,
name by name and shape by shape, those that transformers itself makes for the same configuration. Numbers that are not
finite are refused.
"""

import math
import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebert._io.progress import Advance, silent
from ebert.errors import EbertError

if TYPE_CHECKING:
    from transformers import BertConfig

FOOTER = 48
MAGIC = 0xDB4775248B80FB57
TRAILER = 5  # after each block: a byte for the compression, four for the checksum
FLOAT = 1  # DataType.DT_FLOAT

# Applied in this order to a variable's name, of which transformers' name is then the parts joined by dots.
RULES = (
    (r"^module/", ""),
    (r"/layer_(\d+)/", r"/layer/\1/"),
    (r"/(word|position|token_type)_embeddings$", r"/\1_embeddings/weight"),
    (r"/kernel$", "/weight"),
    (r"/gamma$", "/weight"),
    (r"/beta$", "/bias"),
    (r"^cls/predictions/output_bias$", "cls/predictions/bias"),
    (r"/", "."),
)


class BundleEntry(NamedTuple):
    """Where a variable is and what it looks like."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int


@dataclass(frozen=True)
class Bundle:
    """The variables of a bundle: `entries` has their names, `read` returns one."""

    prefix: Path
    entries: Mapping[str, BundleEntry]
    shards: tuple[NDArray[np.uint8], ...]

    @classmethod
    def open(cls, prefix: Path) -> "Bundle":
        """Open `<prefix>.index` and its data files."""
        index = prefix.with_name(f"{prefix.name}.index")
        if not index.is_file():
            raise EbertError(f"{index} is missing")
        try:
            count, entries = _read_index(index.read_bytes())
        except (ValueError, TypeError, IndexError, struct.error) as error:
            raise EbertError(f"{index} is not a readable TensorFlow index: {error}") from None
        files = [prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{count:05d}") for shard in range(count)]
        if missing := next((file for file in files if not file.is_file()), None):
            raise EbertError(f"{missing} is missing")
        # A file of no bytes cannot be mapped.
        shards = (np.memmap(file, np.uint8, "r") if file.stat().st_size else np.empty(0, np.uint8) for file in files)
        bundle = cls(prefix, entries, tuple(shards))
        for name, entry in entries.items():
            if entry.shard >= count or entry.offset + entry.size > len(bundle.shards[entry.shard]):
                raise EbertError(f"{files[min(entry.shard, count - 1)]} is too short: it should hold {name}")
        return bundle

    def read(self, name: str) -> NDArray[np.float32]:
        """Return a variable as a view of the memory-mapped file; its pages are read when its numbers are."""
        entry = self.entries[name]
        if entry.dtype != FLOAT:
            raise EbertError(f"{self.prefix}: {name} is of TensorFlow's type {entry.dtype}; only float32 (1) is read")
        if entry.size != 4 * math.prod(entry.shape):
            raise EbertError(f"{self.prefix}: {name} has {entry.size} bytes, which shape {entry.shape} cannot have")
        data = self.shards[entry.shard][entry.offset : entry.offset + entry.size]
        return data.view(np.dtype("<f4")).reshape(entry.shape)

    def shape(self, name: str, rank: int) -> tuple[int, ...]:
        """Return the shape of a variable, which must have `rank` dimensions."""
        if name not in self.entries:
            raise EbertError(f"the checkpoint is not a BERT as expected: it has no variable {name}")
        shape = self.entries[name].shape
        if len(shape) != rank:
            raise EbertError(f"{name} has shape {shape}, but should have {rank} dimensions")
        return shape


def _read_index(data: bytes) -> tuple[int, dict[str, BundleEntry]]:
    """Return the number of data files and the entries; a `ValueError` says what is wrong with the index."""
    if len(data) < FOOTER:
        raise ValueError(f"it has {len(data)} bytes, fewer than its footer")
    footer = data[-FOOTER:]
    (magic,) = struct.unpack("<Q", footer[-8:])
    if magic != MAGIC:
        raise ValueError(f"it ends in {magic:#x} instead of {MAGIC:#x}")
    # The first handle is of the meta index, which TensorFlow leaves empty.
    (_, _, offset, size), _ = _varints(footer, 0, 4)
    count, entries = 0, {}
    for _, handle in _block(data, offset, size):
        for key, proto in _block(data, *_varints(handle, 0, 2)[0]):
            if key:
                entries[key.decode()] = _entry(key.decode(), proto)
            else:
                count = _shards(proto)
    if not count:
        raise ValueError("it has no header")
    return count, entries


def _block(data: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Read the keys and values of the block at `offset`."""
    if offset + size + TRAILER > len(data) - FOOTER or size < 4:
        raise ValueError(f"the block at {offset} of {size} bytes lies outside the file")
    content, compression = data[offset : offset + size], data[offset + size]
    (checksum,) = struct.unpack("<I", data[offset + size + 1 : offset + size + TRAILER])
    if checksum != masked_crc32c(data[offset : offset + size + 1]):
        raise ValueError(f"the checksum of the block at {offset} is wrong")
    if compression:
        raise ValueError(f"the block at {offset} is compressed (type {compression}), which is not supported")
    # After the entries come the restart points (for binary search, not needed to read everything) and their number.
    (restarts,) = struct.unpack("<I", content[-4:])
    at, end, key = 0, size - 4 - 4 * restarts, b""
    while at < end:
        (shared, rest, length), at = _varints(content, at, 3)
        if shared > len(key) or at + rest + length > end:
            raise ValueError(f"an entry of the block at {offset} runs over its end")
        key = key[:shared] + content[at : at + rest]
        yield key, content[at + rest : at + rest + length]
        at += rest + length


def _entry(name: str, proto: bytes) -> BundleEntry:
    """Parse a BundleEntryProto: dtype 1, shape 2, shard_id 3, offset 4, size 5, crc32c 6, slices 7."""
    found: dict[int, Any] = dict(_fields(proto))
    if 7 in found:
        raise ValueError(f"{name} is stored in slices, which is not supported")
    # A TensorShapeProto has dimensions in field 2, each a message whose field 1 is the size.
    dimensions: list[Any] = [part for number, part in _fields(found.get(2, b"")) if number == 2]
    shape = tuple(int(dict(_fields(part)).get(1, 0)) for part in dimensions)
    dtype, shard, offset, size = (int(found.get(number, 0)) for number in (1, 3, 4, 5))
    return BundleEntry(dtype, shape, shard, offset, size)


def _shards(proto: bytes) -> int:
    """Parse a BundleHeaderProto: num_shards 1, endianness 2 (0 is little), version 3."""
    header = dict(_fields(proto))
    if header.get(2):
        raise ValueError("its numbers are big-endian, which is not supported")
    count = header.get(1)
    if not isinstance(count, int) or not 0 < count < 100_000:
        raise ValueError(f"its header has {count!r} data files")
    return count


def _fields(proto: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Read the fields of a protocol buffer: numbers as int, strings and nested messages as bytes."""
    at = 0
    while at < len(proto):
        (tag,), at = _varints(proto, at, 1)
        kind = tag & 7
        if kind == 0:
            (number,), at = _varints(proto, at, 1)
            yield tag >> 3, number
            continue
        if kind == 2:
            (length,), at = _varints(proto, at, 1)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of unknown kind {kind}")
        if at + length > len(proto):
            raise ValueError("a field runs over the end of its message")
        part = proto[at : at + length]
        yield tag >> 3, part if kind == 2 else int.from_bytes(part, "little")
        at += length


def _varints(data: bytes, at: int, count: int) -> tuple[list[int], int]:
    """Read numbers stored seven bits a byte, lowest first; return them and where they end."""
    numbers = []
    for _ in range(count):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift > 63:
                raise ValueError("a number that does not end")
        numbers.append(value)
    return numbers, at


def masked_crc32c(data: bytes) -> int:
    """Compute the checksum that LevelDB keeps: CRC-32C, rotated and shifted."""
    table = list(range(256))
    for _ in range(8):
        table = [value >> 1 ^ (0x82F63B78 if value & 1 else 0) for value in table]
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def config_of(bundle: Bundle, *, heads: int, pad: int = 0) -> "BertConfig":
    """Return the configuration that the shapes of the variables show.

    No tensor shows the number of heads; the rest is the same for all of Google's BERTs.
    """
    from transformers import BertConfig

    layers = {match[1] for match in map(re.compile(r"/layer_(\d+)/").search, bundle.entries) if match}
    vocabulary, hidden = bundle.shape("module/bert/embeddings/word_embeddings", 2)
    positions, _ = bundle.shape("module/bert/embeddings/position_embeddings", 2)
    types, _ = bundle.shape("module/bert/embeddings/token_type_embeddings", 2)
    (intermediate,) = bundle.shape("module/bert/encoder/layer_0/intermediate/dense/bias", 1)
    if hidden % heads:
        raise EbertError(f"a hidden size of {hidden} cannot be split into {heads} heads")
    return BertConfig(
        architectures=["BertForMaskedLM"], vocab_size=vocabulary, hidden_size=hidden, num_hidden_layers=len(layers),
        num_attention_heads=heads, intermediate_size=intermediate, max_position_embeddings=positions,
        type_vocab_size=types, hidden_act="gelu", layer_norm_eps=1e-12, pad_token_id=pad, dtype="float32",
    )  # fmt: skip


def expected_tensors(config: "BertConfig") -> dict[str, tuple[int, ...]]:
    """Ask transformers for the names and shapes that a masked language model with a pooler has."""
    import torch
    import transformers

    library: Any = transformers  # which has no types for these
    with torch.device("meta"):  # shapes without numbers
        masked = library.BertForMaskedLM(config).state_dict()
        encoder = library.BertModel(config, add_pooling_layer=True).state_dict()
    # The decoder is tied to the word embeddings and the bias: it has no variables of its own.
    tied = set(library.BertForMaskedLM._tied_weights_keys)
    shapes = {name: tuple(value.shape) for name, value in masked.items() if name not in tied}
    return shapes | {f"bert.{name}": tuple(value.shape) for name, value in encoder.items()}


def tensor_name(variable: str) -> str:
    """Return transformers' name of a variable."""
    for pattern, replacement in RULES:
        variable = re.sub(pattern, replacement, variable)
    return variable


def convert(
    bundle: Bundle, expected: Mapping[str, tuple[int, ...]], *, advance: Advance = silent
) -> dict[str, NDArray[np.float32]]:
    """Convert every variable; raise `EbertError` unless that gives exactly the `expected` tensors, all finite."""
    names = {variable: tensor_name(variable) for variable in bundle.entries}
    uses = Counter(names.values())
    problems = {
        "no use for the variables": [variable for variable, name in names.items() if name not in expected],
        "no variables for the tensors": expected.keys() - uses.keys(),
    }
    if told := [f"{what} {', '.join(sorted(which))}" for what, which in problems.items() if which]:
        raise EbertError(f"the checkpoint is not a BERT as expected: {'; '.join(told)}")
    if twice := sorted(variable for variable, name in names.items() if uses[name] > 1):
        raise EbertError(f"several variables of the checkpoint are the same tensor: {', '.join(twice)}")
    tensors = {}
    for variable, name in names.items():
        value = bundle.read(variable)
        if variable.endswith("/kernel"):
            value = value.T  # TensorFlow multiplies x @ kernel, torch x @ weight.T
        if value.shape != expected[name]:
            raise EbertError(f"{variable} has shape {value.shape}, but {name} needs {expected[name]}")
        if not np.isfinite(value).all():
            raise EbertError(f"{variable} has {np.count_nonzero(~np.isfinite(value))} numbers that are not finite")
        tensors[name] = np.ascontiguousarray(value)
        advance(1)
    return tensors
