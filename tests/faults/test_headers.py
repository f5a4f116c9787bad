"""Headers and descriptions that no program writes: whatever they say, an error that names the file."""

import copy
import json
import random
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from ebert import EBert, EbertError, Vectors
from ebert.linking.linker import Linker
from ebert.model.alignment import Alignment
from ebert.model.options import AlignmentOptions
from ebert.relations.classifier import RelationClassifier
from ebert.report.runs import read_run
from ebert.vectors.matrix import open_matrix

sys.path.append(str(Path(__file__).parents[1] / "linking"))
import fake_runs
import linking_tiny as tiny

DIGITS = b"9" * 5000


def header(**changes):
    tensor = {"dtype": "F32", "shape": [4, 6], "data_offsets": [0, 96]} | changes
    return json.dumps({"vectors": tensor}).encode()


@pytest.mark.parametrize(
    "start",
    [
        header(shape=[float("inf"), 6]),
        header(shape=[float("nan"), 6]),
        header(shape=[4.0, 6.0]),
        header(shape=[4, True], data_offsets=[0, 16]),
        header(shape=["4", "6"]),
        header(shape="46"),
        header(shape=[4, -6]),
        header(shape=[10**400, 6], data_offsets=[0, 24 * 10**400]),
        header(shape=[0, 10**400], data_offsets=[0, 0]),
        header(shape=[[4], [6]]),
        header(shape=[4, 6, 1]),
        header(data_offsets=[0, float("inf")]),
        header(data_offsets=[False, 96]),
        header(data_offsets=[0, 96.0]),
        header(dtype=["F32"]),
        header(dtype=None),
        header().replace(b"96", DIGITS),
        header().replace(b"[4, 6]", b"[" * 100_000 + b"]" * 100_000),
        b'{"vectors": {"dtype": "F32", "shape": [2, 12], "shape": [4, 6], "data_offsets": [0, 96]}}',
        header()[:-1] + b', "vectors": null}',
    ],
)
def test_a_matrix_with_a_header_that_no_program_writes(tmp_path, start):
    path = tmp_path / "words.safetensors"
    path.write_bytes(struct.pack("<Q", len(start)) + start + bytes(96))
    with pytest.raises(EbertError, match=r"words\.safetensors is not a matrix of vectors: restore it"):
        open_matrix(path)


@pytest.mark.parametrize("length", [0, 1, 97, 1 << 31, 1 << 63, (1 << 64) - 1])
def test_a_header_that_says_it_is_longer_than_it_is(tmp_path, length):
    path = tmp_path / "words.safetensors"
    path.write_bytes(struct.pack("<Q", length) + header() + bytes(96))
    with pytest.raises(EbertError, match=r"is (truncated|not a matrix)"):
        open_matrix(path)


def test_a_header_as_long_as_a_book_is_not_read(tmp_path):
    path = tmp_path / "words.safetensors"
    start = header().ljust(1 << 21)
    path.write_bytes(struct.pack("<Q", len(start)) + start + bytes(96))
    with pytest.raises(EbertError, match="is not a matrix"):
        open_matrix(path)


def test_a_mutated_header_gives_an_error_or_the_right_matrix(tmp_path, attack):
    """Whatever is read has the size that the file has, and is what the bytes say."""
    rng = np.random.default_rng(11)
    data = rng.standard_normal((4, 6)).astype("<f4").tobytes()
    tokens = [b"Infinity", b"-1", b"1e9", b"true", b"null", b"[]", b"{}", b'"F16"', b"0", b"4", b"24", DIGITS, b","]
    path = tmp_path / "words.safetensors"
    for number in attack("mutated headers of matrices", short=300, long=30_000):
        start = bytearray(header())
        for _ in range(rng.integers(1, 4)):
            place = int(rng.integers(len(start)))
            if rng.random() < 0.5:
                start[place] = int(rng.integers(256))
            else:
                start[place : place + int(rng.integers(0, 6))] = tokens[rng.integers(len(tokens))]
        path.write_bytes(struct.pack("<Q", len(start)) + bytes(start) + data)
        try:
            matrix = open_matrix(path)
        except EbertError as error:
            attack.check(str(path) in str(error), f"try {number}: {error}")
        else:
            same = matrix.ndim == 2 and matrix.nbytes == len(data) and matrix.tobytes() == data
            attack.check(same, f"try {number}: {bytes(start)!r} gave {matrix.shape} {matrix.dtype}")


# Descriptions of stores, models, linkers, classifiers, alignments and runs

HOSTILE = [
    float("inf"), float("nan"), -1, 0, 10**400, 0.5, True, None, "", "x y", "\0", "../..", "/", "\ud800", [], [[]], {},
    {"x": 1},
]  # fmt: skip
TEXTS = [b"", b"[]", b"null", b"\xff\xfe", b"{", b"[" * 100_000, b'{"format": ' + DIGITS + b"}", b"\0" * 50]


def places(value, path=()):
    """Go through the ways to every value inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield (*path, key)
        yield from places(one, (*path, key))


def mutants(value):
    """Go through what comes of a value if one value inside it is another, or gone."""
    for *way, last in places(value):
        for hostile in [*HOSTILE, KeyError]:
            changed = copy.deepcopy(value)
            inner = changed
            for key in way:
                inner = inner[key]
            if hostile is KeyError:
                del inner[last]
            else:
                inner[last] = hostile
            yield f"{way} {last}: {hostile!r:.40}", json.dumps(changed).encode()


def assail(attack, name, path, use):
    """Read a folder with each mutant of one of its files in turn: it works, or there is an error for people."""
    whole = path.read_bytes()
    wrong = [*((repr(text[:40]), text) for text in TEXTS), *mutants(json.loads(whole))]
    random.Random(3).shuffle(wrong)
    for number in attack(f"mutated {name}", short=min(len(wrong), 150), long=len(wrong)):
        what, text = wrong[number]
        path.write_bytes(text)
        try:
            use()
        except EbertError:
            continue
        except Exception as error:
            attack.check(False, f"{what} gave {type(error).__name__}: {error}")
    path.write_bytes(whole)
    use()


def test_descriptions_of_stores(tmp_path, attack):
    made = {"options": {"rate": 0.1, "epochs": 2}, "corpus": {"lowercase": False}}
    words = {"words": ["river", "of"], "word_vectors": np.eye(2), "word_outputs": np.eye(2)}
    Vectors.from_arrays(**words, entities=["A"], entity_vectors=np.ones((1, 2)), path=tmp_path / "s").close()
    info = json.loads((tmp_path / "s" / "store.json").read_text())
    (tmp_path / "s" / "store.json").write_text(json.dumps(info | {"made": info["made"] | made}))

    def use():
        with Vectors.open(tmp_path / "s") as store:
            store.describe()
            store.nearest("A", kind="both")
            store.candidates("A")
            store.imagine("river")

    assail(attack, "store.json", tmp_path / "s" / "store.json", use)


def test_descriptions_of_models(tmp_path, attack):
    tiny.model(tmp_path / "store").save_pretrained(tmp_path / "model", include_vectors=False, include_encoder=True)
    assail(
        attack,
        "ebert.json",
        tmp_path / "model" / "ebert.json",
        lambda: EBert.from_pretrained(tmp_path / "model").fill("Adams and [MASK]"),
    )


def test_descriptions_of_linkers(tmp_path, attack):
    linker = tiny.linker(tmp_path / "store", generator=None)
    linker.save_pretrained(tmp_path / "linker")
    assail(
        attack,
        "linker.json",
        tmp_path / "linker" / "linker.json",
        lambda: Linker.from_pretrained(tmp_path / "linker")(tiny.TEXT),
    )


def test_descriptions_of_classifiers(tmp_path, attack):
    model = tiny.model(tmp_path / "store")
    RelationClassifier.fresh(model, mode="concat", labels=["a", "b"]).save_pretrained(tmp_path / "classifier")
    assail(
        attack,
        "relations.json",
        tmp_path / "classifier" / "relations.json",
        lambda: RelationClassifier.from_pretrained(tmp_path / "classifier")("[[England|Adams]] and [[Cup]] are both"),
    )


def test_descriptions_of_runs(tmp_path, attack):
    fake_runs.make_run(tmp_path / "run", size=2, relations={"P17": (0.3, 0.6, 0.04)})

    def use():
        run = read_run(tmp_path / "run")
        return run.label, run.encoder

    assail(attack, "run.json", tmp_path / "run" / "run.json", use)


def test_descriptions_of_alignments(tmp_path, attack):
    from safetensors import safe_open
    from safetensors.numpy import save_file

    path = tmp_path / "alignment.safetensors"
    store = Vectors.from_arrays(words=["a", "b"], word_vectors=np.eye(2))
    fits = {
        "W": Alignment.fit(store, {"a": 0, "b": 1}, np.eye(2), AlignmentOptions(held_out=0.5, intercept=True)),
        "none": Alignment.fit(store, {}, np.eye(2), AlignmentOptions(method="none", length=1.0)),
    }
    for name, fitted in fits.items():
        fitted.save(path)
        with safe_open(str(path), framework="np") as file:
            facts = json.loads(file.metadata()["ebert"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        (tmp_path / "facts.json").write_text(json.dumps(facts))

        def use(tensors=tensors):
            note = (tmp_path / "facts.json").read_bytes().decode("latin-1")
            save_file(tensors, path, metadata={"ebert": note})
            read = Alignment.load(path)
            read.project(np.ones((1, 2), np.float32))
            f"{read.report.pairs:,} {read.report.r2 or 0:.1f} {read.report.top1 or 0:.1f}"

        assail(attack, f"facts of alignments ({name})", tmp_path / "facts.json", use)


def test_weights_that_do_not_belong_to_an_alignment(tmp_path):
    from safetensors.numpy import load_file, save_file

    path = tmp_path / "alignment.safetensors"
    store = Vectors.from_arrays(words=["a", "b"], word_vectors=np.eye(2))
    Alignment.fit(store, {"a": 0, "b": 1}, np.eye(2), AlignmentOptions(held_out=0)).save(path)
    from safetensors import safe_open

    with safe_open(str(path), framework="np") as file:
        note = file.metadata()
    weight = load_file(path)["weight"]
    for tensors in (
        {},
        {"weight": weight.astype(np.float64)},
        {"weight": weight.astype(np.int32)},
        {"weight": weight[:1]},
        {"weight": weight[0]},
        {"weight": weight, "other": weight},
        {"weight": np.full_like(weight, np.inf)},
    ):
        save_file(tensors, path, metadata=note)
        with pytest.raises(EbertError, match=r"alignment\.safetensors is damaged"):
            Alignment.load(path)
