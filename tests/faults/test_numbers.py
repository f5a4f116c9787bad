"""Numbers that are none, or too large, or too small: refused on the way in, and never an answer."""

import json
import struct
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest

from ebert import Alignment, AlignmentOptions, EBert, EbertError, Vectors
from ebert.vectors import log, nearest
from ebert.vectors.formats.exporter import export_text
from ebert.vectors.formats.importer import import_vectors
from ebert.vectors.train import checkpoint, data, trainer
from ebert.vectors.train.options import preset
from ebert.vectors.train.run import train

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("vectors", "vectors/formats", "model")]
import architectures
import described
import test_wikipedia2vec as wikipedia2vec

NOT_NUMBERS = [np.nan, np.inf, -np.inf]
ROWS, DIMENSION = 60, 8
HEADER = 256  # bytes before the data of a matrix that we wrote


def cosines(matrix, query):
    matrix, query = np.asarray(matrix, np.float64), np.asarray(query, np.float64)
    return matrix @ query / np.maximum(np.linalg.norm(matrix, axis=1), 1e-300) / np.linalg.norm(query)


def normal(*shape):
    return np.random.default_rng(5).standard_normal(shape)


# Cosines


@pytest.mark.parametrize("scale", [1e-42, 1e-38, 1e-30, 1e-19, 1e-10, 1, 1e10, 1e19, 1e30, 1e38])
@pytest.mark.parametrize("query_scale", [1e-30, 1, 1e30])
def test_a_cosine_is_one_whatever_the_lengths(scale, query_scale):
    matrix = (normal(ROWS, DIMENSION) * scale).astype(np.float32)
    query = (normal(1, DIMENSION) * query_scale).astype(np.float32)
    expected = cosines(matrix, query[0])
    rows, scores = nearest.nearest(matrix, query, ROWS)
    np.testing.assert_allclose(scores[0], expected[rows[0]], atol=1e-6)
    np.testing.assert_allclose(scores[0], np.sort(expected)[::-1], atol=1e-6)


@pytest.mark.parametrize("scale", [1e-7, 1e-5, 1, 1e4])
def test_a_cosine_of_half_precision_too(scale):
    matrix = (normal(ROWS, DIMENSION) * scale).astype(np.float16)
    rows, scores = nearest.nearest(matrix, np.ones((1, DIMENSION), np.float32), ROWS)
    np.testing.assert_allclose(scores[0], cosines(matrix, np.ones(DIMENSION))[rows[0]], atol=1e-6)


def test_long_and_short_rows_side_by_side_are_compared_rightly(attack):
    rng = np.random.default_rng(9)
    for number in attack("cosines of rows of all lengths", short=20, long=2000):
        scales = 10.0 ** rng.uniform(-37, 37, (ROWS, 1))
        matrix = (rng.standard_normal((ROWS, DIMENSION)) * scales).astype(np.float32)
        query = (rng.standard_normal((2, DIMENSION)) * 10.0 ** rng.uniform(-37, 37)).astype(np.float32)
        rows, scores = nearest.nearest(matrix, query, 7)
        for one, found, score in zip(query, rows, scores, strict=True):
            expected = cosines(matrix, one)
            right = np.allclose(score, np.sort(expected)[::-1][:7], atol=1e-5) and np.abs(score).max() <= 1
            attack.check(right and np.allclose(score, expected[found], atol=1e-5), f"try {number}: {score}")


def test_no_cosine_is_above_one():
    matrix = normal(1000, 7).astype(np.float32)
    _, scores = nearest.nearest(matrix, matrix, 1)
    assert scores.max() == 1


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1, 1e20, 1e30])
def test_carried_vectors_have_the_length_that_was_asked_for(scale):
    vectors = (normal(5, DIMENSION) * scale).astype(np.float32)
    with Vectors.from_arrays(words=["a"], word_vectors=np.ones((1, DIMENSION))) as store:
        options = AlignmentOptions(method="none", length=2.5)
        carried = Alignment.fit(store, {}, np.zeros((1, DIMENSION)), options).project(vectors)
    np.testing.assert_allclose(np.linalg.norm(carried, axis=1), 2.5, rtol=1e-5)
    np.testing.assert_allclose(carried[0] / 2.5, vectors[0] / np.linalg.norm(vectors[0].astype(float)), rtol=1e-5)


# The way in


def as_text(path, matrix):
    lines = ["a", "ENTITY/Bad One", "ENTITY/c"]
    text = "".join(f"{name}\t{' '.join(map(str, row))}\n" for name, row in zip(lines, matrix, strict=True))
    return path.with_suffix(".txt").write_text(text), path.with_suffix(".txt")


def as_binary(path, matrix):
    names = [b"a", b"ENTITY/Bad_One", b"ENTITY/c"]
    rows = b"".join(name + b" " + row.tobytes() for name, row in zip(names, matrix, strict=True))
    return path.with_suffix(".bin").write_bytes(b"3 %d\n" % matrix.shape[1] + rows), path.with_suffix(".bin")


def as_numpy(path, matrix):
    path.with_suffix(".txt").write_text("a\nENTITY/Bad One\nENTITY/c\n")
    return np.save(path.with_suffix(".npy"), matrix), path.with_suffix(".npy")


@pytest.mark.parametrize("write", [as_text, as_binary, as_numpy])
@pytest.mark.parametrize("bad", NOT_NUMBERS)
def test_an_import_names_what_has_no_numbers(tmp_path, write, bad):
    matrix = normal(3, 4).astype(np.float32)
    matrix[1, 2] = bad
    with pytest.raises(EbertError, match=r"Bad[ _]One'"):
        import_vectors([write(tmp_path / "file", matrix)[1]], tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("write", [as_text, as_binary, as_numpy])
def test_an_import_names_what_is_too_large_for_half_precision(tmp_path, write):
    matrix = normal(3, 4).astype(np.float32)
    matrix[1, 2] = 70_000
    with pytest.raises(EbertError, match="'Bad One' has a value that is too large for float16"):
        import_vectors([write(tmp_path / "file", matrix)[1]], tmp_path / "store", dtype="float16")


@pytest.mark.parametrize("bad", NOT_NUMBERS)
@pytest.mark.parametrize(("part", "row"), [("syn0", 5), ("syn0", 0), ("syn1", 0)])
def test_an_import_of_wikipedia2vec_names_it_too(tmp_path, bad, part, row):
    model = wikipedia2vec.layout(syn1=normal(8, 5).astype(np.float32))
    model[part] = model[part].copy()
    model[part][row, 1] = bad
    words, entities, *_ = wikipedia2vec.parts()
    name = words.restore_key(row) if row < len(words) else entities.restore_key(row - len(words))
    joblib.dump(model, tmp_path / "model.pkl")
    with pytest.raises(EbertError, match=f"{name!r} has a value that is not a number or infinite"):
        import_vectors([tmp_path / "model.pkl"], tmp_path / "store")


@pytest.mark.parametrize("bad", [*NOT_NUMBERS, 1e39])
def test_arrays_and_additions_name_it(bad):
    matrix = normal(2, 4)
    matrix[1, 2] = bad
    for kind in ("word", "entity"):
        names = {"word": "words", "entity": "entities"}[kind]
        with pytest.raises(EbertError, match="'Bad One' has a value that is"):
            Vectors.from_arrays(**{names: ["a", "Bad One"], f"{kind}_vectors": matrix})
    with pytest.raises(EbertError, match="'Bad One' has a value that is"):
        Vectors.from_arrays(words=["a", "Bad One"], word_vectors=normal(2, 4), word_outputs=matrix)
    with Vectors.from_arrays(entities=["a"], entity_vectors=matrix[:1]) as store:
        with pytest.raises(EbertError, match="'Bad One' has a value that is"):
            store.add("Bad One", matrix[1])
        report = store.add_many([{"title": "Bad One", "vector": matrix[1].tolist()}, {"title": "b", "vector": [1] * 4}])
        assert [(row.number, row.title) for row in report.bad] == [(1, "Bad One")]
        assert "Bad One" not in store


def damage(store: Vectors, name: str, rows, bad: float, column: int = 0) -> None:
    """Write a value into rows of a matrix of a store, as a flipped bit of an exponent would."""
    path = store.path / f"{name}.safetensors"
    dtype = np.dtype("<f2" if store.info.dtype == "float16" else "<f4")
    with path.open("r+b") as file:
        for row in rows:
            file.seek(HEADER + (row * store.dimension + column) * dtype.itemsize)
            file.write(np.array(bad, dtype).tobytes())


@pytest.mark.parametrize("bad", [*NOT_NUMBERS, 3e38])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_description_never_gives_what_is_no_number(tmp_path, bad, dtype):
    if dtype == "float16" and np.isfinite(bad):
        return  # it has no such number
    with described.make_store(tmp_path / "store", dtype=dtype) as store:
        damage(store, "outputs", range(len(described.WORDS)), bad)
    text = "a river of Copenhagen"
    with Vectors.open(tmp_path / "store") as store:
        with pytest.raises(EbertError, match="'a river of Copenhagen' gives a vector with values that are"):
            store.imagine(text)
        with pytest.raises(EbertError, match="gives a vector with values that are"):
            store.add("New", description=text)
        report = store.add_many([{"title": "New", "description": text}])
        assert [row.title for row in report.bad] == ["New"]
        assert "New" not in store


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, -1, 1e300])
def test_a_store_that_says_it_was_trained_in_no_possible_way_is_taken_for_an_ordinary_one(tmp_path, value):
    with described.make_store(tmp_path / "store") as store:
        expected = store.imagine("a river of Copenhagen")
    info = json.loads((tmp_path / "store" / "store.json").read_text())
    info["made"]["options"] = dict.fromkeys(["negative", "sample", "word_power", "rate", "epochs", "finish"], value)
    (tmp_path / "store" / "store.json").write_text(json.dumps(info))
    with Vectors.open(tmp_path / "store") as store:
        np.testing.assert_array_equal(store.imagine("a river of Copenhagen"), expected)


# Training


def test_training_that_runs_away_names_what_and_keeps_the_last_good_checkpoint(world, tmp_path):
    out = tmp_path / "store"
    chosen = preset("default", dim=20, epochs=30, rate=100.0, min_word_count=2, min_entity_count=1)
    work = data.prepare(world, chosen)
    good = trainer.initial(work, chosen)
    checkpoint.save(checkpoint.folder_of(out), checkpoint.identity(world, chosen, []), good)
    with pytest.raises(EbertError, match=r"the vector of (the word )?'.+' has a value that is .*lower rate \(--rate\)"):
        train(world, out, chosen, resume=True, checkpoint_seconds=1e-4)
    assert not out.exists()
    kept = checkpoint.load(checkpoint.folder_of(out), checkpoint.identity(world, chosen, []), good)
    for name in trainer.MATRICES:
        assert np.isfinite(getattr(kept, name)).all()


@pytest.mark.parametrize(("matrix", "row"), [("words_in", 3), ("words_out", 0), ("entities_in", 2)])
def test_a_checkpoint_with_something_else_than_numbers_is_not_gone_on_with(world, tmp_path, matrix, row):
    out = tmp_path / "store"
    chosen = preset("default", dim=20, epochs=1, min_word_count=2, min_entity_count=1)
    work = data.prepare(world, chosen)
    state = trainer.initial(work, chosen)
    getattr(state, matrix)[row, 5] = np.inf
    checkpoint.save(checkpoint.folder_of(out), checkpoint.identity(world, chosen, []), state)
    name = world.words[row] if matrix.startswith("words") else world.entities[work.entities[row]]
    with pytest.raises(EbertError, match=f"the vector of .*{name!r} has a value"):
        train(world, out, chosen, resume=True)


# A damaged store


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_flipped_bits_never_come_out_of_nearest(tmp_path, attack, dtype):
    titles = [f"E{number}" for number in range(ROWS)]
    matrix = normal(ROWS, DIMENSION)
    rng = np.random.default_rng(2)
    Vectors.from_arrays(
        words=titles, word_vectors=matrix, entities=titles, entity_vectors=matrix, dtype=dtype, path=tmp_path / "store"
    ).close()
    wholes = {name: (tmp_path / "store" / f"{name}.safetensors").read_bytes() for name in ("words", "entities")}
    for number in attack(f"flipped bits in vectors ({dtype})", short=10, long=500):
        for name, whole in wholes.items():
            content = bytearray(whole)
            for place in rng.integers(HEADER, len(content), 60):
                content[place] ^= 1 << rng.integers(8)
            (tmp_path / "store" / f"{name}.safetensors").write_bytes(content)
        with Vectors.open(tmp_path / "store") as store:
            good = np.isfinite(store.entity_matrix).all(axis=1)
            found = store.nearest(matrix[0], top=500, kind="both")
            names = {n.name for n in found if n.kind == "entity"}
            attack.check(names == {title for title, one in zip(titles, good, strict=True) if one}, f"{number}: {names}")
            attack.check(all(-1 <= n.similarity <= 1 for n in found), f"{number}: {found}")


@pytest.mark.parametrize("bad", NOT_NUMBERS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_damaged_entity_is_named_and_its_neighbours_are_not_harmed(tmp_path, bad, dtype):
    titles = ["Good", "Bad One", "Better"]
    options = {"words": titles, "word_vectors": normal(3, 4), "entities": titles, "entity_vectors": normal(3, 4)}
    with Vectors.from_arrays(**options, dtype=dtype, path=tmp_path / "store") as store:
        damage(store, "entities", [1], bad)
        damage(store, "words", [1], bad)
    named = "the vector of 'Bad One' has a value that is infinite or not a number: the store is damaged; restore"
    with Vectors.open(tmp_path / "store") as store:
        for ask in (
            lambda: store["Bad One"],
            lambda: store.word_vector("Bad One"),
            lambda: store.nearest("Bad One"),
            lambda: store.nearest("Bad One", word=True),
            lambda: store.take([store.find("Good"), store.find("Bad One")]),
            lambda: export_text(store, tmp_path / "text"),
        ):
            with pytest.raises(EbertError, match=named):
                ask()
        with pytest.raises(EbertError, match="'Bad One' has a value"):
            store.save(tmp_path / "copy")
        assert [n.name for n in store.nearest("Good")] == ["Better"]
        assert {n.name for n in store.nearest("Good", kind="words")} == {"Good", "Better"}
        assert store.take([store.find("Good")]).shape == (1, 4)
        assert [entity.title for entity in store.complete("b")] == ["Bad One", "Better"]
        store.add("Bad One", normal(4), replace=True)  # a way to mend it
        assert {n.name for n in store.nearest("Good")} == {"Bad One", "Better"}


def test_a_damaged_addition_is_named_and_no_answer(tmp_path):
    with Vectors.from_arrays(entities=["Good"], entity_vectors=normal(1, 4), path=tmp_path / "store") as store:
        frame = log.pack([log.Addition("Bad One", 1)], np.full((1, 4), np.nan, np.float32))
        (store.path / store.info.added).write_bytes(log.MAGIC + frame)
    with Vectors.open(tmp_path / "store") as store:
        with pytest.raises(EbertError, match="'Bad One' has a value that is infinite or not a number"):
            store["Bad One"]
        assert store.nearest("Good") == []


@pytest.mark.parametrize("bad", NOT_NUMBERS)
def test_a_damaged_vector_never_reaches_the_encoder(tmp_path, bad):
    encoder = architectures.ARCHITECTURES["bert"].save(tmp_path / "bert")
    text = "The native language of [[Jean Marais]] is [MASK] ."
    store = architectures.store(tmp_path / "store")
    row = store.find("Jean Marais").row
    damage(store, "entities", [row], bad)
    model = EBert.fit(str(encoder), Vectors.open(tmp_path / "store"))
    for mode in ("concat", "replace"):
        with pytest.raises(EbertError, match="the vector of 'Jean Marais' has a value that is infinite or not"):
            model.fill(text, mode=mode)
    with pytest.raises(EbertError, match="'Jean Marais'"):
        model.encode(text)
    assert np.isfinite([one.probability for one in model.fill("The capital is [[Paris]] [MASK] .").masks[0]]).all()


def test_damaged_words_and_damaged_weights_make_no_alignment(tmp_path):
    store = architectures.store(tmp_path / "store")
    pieces = {word: row for names, _ in store.chunks("words") for row, word in enumerate(names)}
    table = normal(len(pieces), 6)
    fitted = Alignment.fit(store, pieces, table)
    fitted.save(tmp_path / "alignment.safetensors")
    content = bytearray((tmp_path / "alignment.safetensors").read_bytes())
    content[-4:] = struct.pack("<f", np.nan)
    (tmp_path / "alignment.safetensors").write_bytes(content)
    with pytest.raises(EbertError, match=r"alignment\.safetensors is damaged .*infinite or not numbers"):
        Alignment.load(tmp_path / "alignment.safetensors")
    with pytest.raises(EbertError, match="too large to be projected, or has values that are not numbers"):
        fitted.project(np.full((1, store.dimension), 3e38, np.float32))
    table[0] = np.nan
    with pytest.raises(EbertError, match="no alignment can be fitted to"):
        Alignment.fit(store, pieces, table, AlignmentOptions(held_out=0))
