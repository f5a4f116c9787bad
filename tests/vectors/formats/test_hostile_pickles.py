"""Pickles that try to do something. None may: the file they would make is not there afterwards."""

import codecs
import copyreg
import functools
import io
import os
import pickle
import pickletools
import struct
import subprocess
import sys

import joblib
import numpy as np
import pytest

from ebert import EbertError
from ebert.vectors.formats import pickles
from ebert.vectors.formats.importer import import_vectors


class Call:
    """Pickles to a call of a function."""

    def __init__(self, function, *arguments, state=None):
        self.reduced = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self):
        return self.reduced


@pytest.fixture
def canary(tmp_path):
    return tmp_path / "canary"


@pytest.fixture
def refused(tmp_path, canary):
    """Check that a pickle, given as bytes, is refused by the reader and by the import, and does nothing."""

    def check(content, message=None, run=True):
        path = tmp_path / "model.pkl"
        path.write_bytes(content)
        if run:  # to see that the pickle is as dangerous as it is meant to be, let Python's own reader run it elsewhere
            script = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))"
            subprocess.run([sys.executable, "-c", script, path], capture_output=True)
            assert canary.exists()
            canary.unlink()
        with pytest.raises(EbertError, match=message or r"model\.pkl"):
            pickles.load(path)
        with pytest.raises(EbertError, match=message or r"model\.pkl"):
            import_vectors([path], tmp_path / "store", format="wikipedia2vec")
        assert not canary.exists()
        assert not (tmp_path / "store").exists()

    return check


def shell(canary):
    return Call(os.system, f"touch {canary}")


@pytest.mark.parametrize("protocol", range(6))
def test_a_call_in_any_protocol(refused, canary, protocol):
    refused(pickle.dumps({"syn0": shell(canary)}, protocol), "asks for|array data")


@pytest.mark.parametrize(
    "bomb",
    [
        lambda canary: shell(canary),
        lambda canary: [{"x": (shell(canary),)}],
        lambda canary: Call(eval, f"open({str(canary)!r}, 'w')"),
        lambda canary: Call(np.ndarray.tofile, np.zeros(1), str(canary)),  # from a module whose arrays are read
        lambda canary: Call(functools.partial(os.system, f"touch {canary}")),
    ],
)
def test_a_call_of_a_function(refused, canary, bomb):
    refused(pickle.dumps(bomb(canary)), "asks for|array data")


def test_a_call_in_an_array_of_objects(refused, canary, tmp_path):
    array = np.array([Call(os.system, f"touch {canary}")], dtype=object)
    refused(pickle.dumps({"syn0": array}))
    file = io.BytesIO()
    joblib.dump({"syn0": array}, file)
    refused(file.getvalue(), "not of numbers", run=False)


def op(name):
    (found,) = [opcode for opcode in pickletools.opcodes if opcode.name == name]
    return found.code.encode("latin1")


def text(value):
    return op("BINUNICODE") + struct.pack("<I", len(value.encode())) + value.encode()


def short(value):
    return op("SHORT_BINUNICODE") + bytes([len(value.encode())]) + value.encode()


def programs(canary):
    """Return programs for the pickle machine, one for every instruction that names, calls or changes something."""
    shell = text(f"touch {canary}")
    name = b"posix\nsystem\n"
    stop = op("STOP")
    system = op("GLOBAL") + name
    yield "GLOBAL, REDUCE", b"\x80\x02" + system + shell + op("TUPLE1") + op("REDUCE") + stop
    yield (
        "STACK_GLOBAL",
        (
            b"\x80\x04"
            + short("posix")
            + short("system")
            + op("STACK_GLOBAL")
            + shell
            + op("TUPLE1")
            + op("REDUCE")
            + stop
        ),
    )
    yield "INST", op("MARK") + shell + op("INST") + name + stop
    yield "OBJ", op("MARK") + system + shell + op("OBJ") + stop
    popen = op("GLOBAL") + b"subprocess\nPopen\n"
    command = op("EMPTY_LIST") + text("touch") + op("APPEND") + text(str(canary)) + op("APPEND")
    yield "OBJ of a class", op("MARK") + popen + command + op("OBJ") + stop
    # The next ones name nothing that is forbidden, and so come further.
    encode = op("GLOBAL") + b"_codecs\nencode\n"
    array = op("GLOBAL") + b"numpy\nndarray\n"
    wrapper = op("GLOBAL") + b"joblib.numpy_pickle\nNumpyArrayWrapper\n"
    kind = op("GLOBAL") + b"numpy\ndtype\n"
    none, empty = op("NONE"), op("EMPTY_TUPLE")
    yield "a codec", encode + text("x") + text("zip") + op("TUPLE2") + op("REDUCE") + stop
    yield "a call of a class", array + empty + op("REDUCE") + stop
    yield "a call of joblib's class", wrapper + empty + op("REDUCE") + stop
    yield "a call of a number", op("BININT1") + b"\x05" + empty + op("REDUCE") + stop
    yield "a call of text", text("os.system") + shell + op("TUPLE1") + op("REDUCE") + stop
    yield "NEWOBJ", b"\x80\x02" + array + empty + op("NEWOBJ") + stop
    yield "NEWOBJ_EX", b"\x80\x04" + wrapper + empty + op("EMPTY_DICT") + op("NEWOBJ_EX") + stop
    yield "BUILD on a class", wrapper + op("EMPTY_DICT") + text("map") + encode + op("SETITEM") + op("BUILD") + stop
    yield (
        "BUILD on a function",
        encode + op("EMPTY_DICT") + text("__code__") + none + op("SETITEM") + op("BUILD") + stop,
    )
    yield (
        "BUILD on a container",
        (op("EMPTY_DICT") + op("EMPTY_DICT") + text("clear") + encode + op("SETITEM") + op("BUILD") + stop),
    )
    yield "BUILD of slots", (
        wrapper + empty + op("NEWOBJ") + none + op("EMPTY_DICT") + text("__class__") + array + op("SETITEM")
        + op("TUPLE2") + op("BUILD") + stop
    )  # fmt: skip
    yield "a type of objects", kind + text("O") + op("TUPLE1") + op("REDUCE") + stop
    yield "a type of fields", kind + text("f4,O") + op("TUPLE1") + op("REDUCE") + stop
    for extension in ("EXT1", "EXT2", "EXT4"):
        width = {"EXT1": "<B", "EXT2": "<H", "EXT4": "<i"}[extension]
        yield (
            extension,
            b"\x80\x02" + op(extension) + struct.pack(width, 240) + shell + op("TUPLE1") + op("REDUCE") + stop,
        )
    yield "PERSID", op("PERSID") + b"something\n" + stop
    yield "BINPERSID", text("something") + op("BINPERSID") + stop
    yield "NEXT_BUFFER", b"\x80\x05" + op("NEXT_BUFFER") + stop
    for module in (
        "numpy.core\nos", "numpy\nload", "numpy._core.multiarray\nfromfile", "joblib.numpy_pickle\nos",
        "builtins\ngetattr", "collections\n_sys", "_codecs\ndecode", "copyreg\n_reconstructor",
        "ebert.vectors.formats.pickles\nload",
    ):  # fmt: skip
        yield module.replace("\n", "."), op("GLOBAL") + module.encode() + b"\n" + stop
    # A dotted name walks from attribute to attribute in Python's own reader.
    yield "dotted", b"\x80\x04" + short("numpy") + short("ndarray.__init__.__globals__") + op("STACK_GLOBAL") + stop


NAMES = [name for name, _ in programs("x")]
RUNNING = NAMES[:5]


@pytest.mark.parametrize("name", NAMES)
def test_every_instruction_that_could_do_something(refused, canary, name):
    refused(dict(programs(canary))[name], run=name in RUNNING)


def test_an_extension_that_the_program_itself_registered(refused, canary):
    copyreg.add_extension("posix", "system", 240)
    try:
        content = dict(programs(canary))["EXT1"]
        refused(content, run=False)
        try:
            assert pickle.loads(content) == 0  # and now Python has it in its cache of extensions
            canary.unlink()
            refused(content, run=False)
        finally:
            copyreg.clear_extension_cache()
    finally:
        copyreg.remove_extension("posix", "system", 240)


def joblib_array(**changes):
    """Describe an array as joblib does, with changes, and let 64 bytes of data follow."""

    state = {"subclass": np.ndarray, "shape": (4, 4), "order": "C", "dtype": np.dtype("f4"), "allow_mmap": True}
    state |= {"numpy_array_alignment_bytes": None} | changes
    wrapper = op("GLOBAL") + b"joblib.numpy_pickle\nNumpyArrayWrapper\n" + op("EMPTY_TUPLE") + op("NEWOBJ")
    described = pickle.dumps(state, 2).removeprefix(b"\x80\x02").removesuffix(b".")
    return b"\x80\x02" + wrapper + described + op("BUILD") + bytes(range(64)) + b"."


def test_an_array_of_joblib_by_hand(tmp_path):
    (tmp_path / "model.pkl").write_bytes(joblib_array())
    array = pickles.load(tmp_path / "model.pkl")
    np.testing.assert_array_equal(array, np.frombuffer(bytes(range(64)), "<f4").reshape(4, 4))
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": (4, 5)},  # more than the file has
        {"shape": (2**40, 2**40)},
        {"shape": (-4, -4)},
        {"shape": (1.5, 4)},
        {"shape": None},
        {"dtype": np.dtype("O")},
        {"dtype": np.dtype([("a", "f4")])},
        {"dtype": "f4"},
    ],
)
def test_arrays_that_lie_about_themselves(refused, changes):
    refused(joblib_array(**changes), run=False)


def test_unknown_attributes_of_an_array_change_nothing(tmp_path):
    (tmp_path / "model.pkl").write_bytes(joblib_array(map=codecs.encode, build=1, __class__="joblib.Parallel"))
    assert pickles.load(tmp_path / "model.pkl").shape == (4, 4)


@pytest.mark.parametrize("protocol", range(2, 6))
@pytest.mark.parametrize("dump", [pickle.dump, joblib.dump])
def test_arrays_and_plain_containers_of_any_protocol_are_read(tmp_path, protocol, dump):
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    value = {
        "matrix": np.eye(3, dtype=np.float32), "fortran": np.asfortranarray(array), "big": array.astype(">i4"),
        "half": array.astype(np.float16), "flags": array > 2, "empty": np.zeros((0, 4)), "one": np.float32(0.5),
        "list": [1, 2.5, None, True, "été", b"bytes"], "tuple": (1, (2, 3)), "huge": 2**70,
    }  # fmt: skip
    value["again"] = value["matrix"]
    with (tmp_path / "model.pkl").open("wb") as file:
        dump(value, file, protocol=protocol)
    read = pickles.load(tmp_path / "model.pkl")
    assert read.keys() == value.keys()
    for name, expected in value.items():
        if isinstance(expected, np.ndarray):
            np.testing.assert_array_equal(read[name], expected)
            assert read[name].dtype == expected.dtype
        else:
            assert read[name] == expected


def test_a_length_that_the_file_has_not_is_not_set_aside_in_memory(refused):
    refused(b"\x80\x04" + op("BINBYTES8") + struct.pack("<Q", 2**42) + b"x", "it is truncated", run=False)
    refused(b"\x80\x04" + op("FRAME") + struct.pack("<Q", 2**42) + b"N.", "it is truncated", run=False)


@pytest.mark.parametrize("content", [b"", b"\x80\x63N.", b".", b"hello"])
def test_what_is_no_pickle(refused, content):
    refused(content, run=False)


def test_every_beginning_of_a_pickle_is_an_error(tmp_path):
    content = pickle.dumps({"a": np.arange(10), "b": [1, "x", b"y"]})
    for length in range(len(content)):
        (tmp_path / "model.pkl").write_bytes(content[:length])
        with pytest.raises(EbertError, match=r"model\.pkl"):
            pickles.load(tmp_path / "model.pkl")


@pytest.mark.parametrize("end", [b"s.", b"u."], ids=["one item", "several"])
def test_a_key_that_takes_for_ever_to_hash_is_refused(tmp_path, end):
    deep = b")q\x00" + b"".join(b"h\x00h\x00\x86q\x00" for _ in range(40))  # each level holds the one before twice
    mark = b"(" if end == b"u." else b""
    path = tmp_path / "deep.pkl"
    path.write_bytes(b"\x80\x04" + deep + b"0}" + mark + b"h\x00K\x01" + end)
    with pytest.raises(EbertError, match="strange keys"):
        pickles.load(path)
