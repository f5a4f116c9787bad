"""What is done to rows: the same as the library does to texts, and what becomes of rows that it cannot take."""

import json
from pathlib import Path

import link_world
import numpy as np
import pytest
from bulk_jobs import Here, rows_of, write

from ebert import EBert, EbertError, Linker, Passage
from ebert.bulk.encode import EncodeJob
from ebert.bulk.link import LinkJob
from ebert.bulk.options import ReadOptions
from ebert.bulk.probe import ProbeJob
from ebert.bulk.run import run
from ebert.linking.output import as_json
from ebert.probing.questions import read_questions
from ebert.probing.run import probe

TEXTS = [link_world.TEXT, "Nothing.", "", "Adams and England", "the city of London and NATO", "x" * 500]


def do(job, texts, tmp_path, **options):
    path = write(tmp_path / "in.jsonl", texts)
    done = run(job, [path], tmp_path / "out", read=ReadOptions(shard_rows=4), engine=Here(), **options)
    bad = [json.loads(line) for line in (tmp_path / "out" / "errors.jsonl").read_text().splitlines()]
    return done, rows_of(tmp_path / "out"), bad


def test_links_are_those_of_the_linker(small_linker, tmp_path):
    done, rows, bad = do(LinkJob(linker=small_linker, rounds=2), TEXTS, tmp_path)
    assert bad == []
    linker = Linker.from_pretrained(small_linker, rounds=2)
    expected = [as_json(one) for one in linker(TEXTS)]
    assert [row["text"] for row in rows] == TEXTS
    assert [row["row"] for row in rows] == list(range(len(TEXTS)))
    shown = [[(m["start"], m["end"], m["entity"], m["url"]) for m in row["mentions"]] for row in rows]
    assert shown == [[(m["start"], m["end"], m["entity"], m["url"]) for m in one["mentions"]] for one in expected]
    assert sum(map(len, shown)) >= 3
    for row, one in zip(rows, expected, strict=True):  # other batches, so the last digits may differ
        for mine, theirs in zip(row["mentions"], one["mentions"], strict=True):
            assert mine["probability"] == pytest.approx(theirs["probability"], abs=1e-5)
            assert [c["entity"] for c in mine["candidates"]] == [c["entity"] for c in theirs["candidates"]]
    assert done["rows"] == len(TEXTS)


def test_fewer_candidates_and_surer_mentions(small_linker, tmp_path):
    _, rows, _ = do(LinkJob(linker=small_linker, candidates=1), TEXTS, tmp_path / "a")
    mentions = [mention for row in rows for mention in row["mentions"]]
    assert {len(mention["candidates"]) for mention in mentions} == {1}
    least = sorted(mention["probability"] for mention in mentions)[1]
    _, rows, _ = do(LinkJob(linker=small_linker, threshold=least + 1e-6), TEXTS, tmp_path / "b")
    assert 0 < sum(len(row["mentions"]) for row in rows) < len(mentions)


@pytest.fixture
def folders(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    return tmp_path


PASSAGES = [
    "the capital of [[France]] is [[Paris]].",
    "Rome is a city in [[Italy|the Italy]], and [[Nowhere]] too",
    "a",
]


@pytest.mark.parametrize("pool", ["mean", "first"])
def test_vectors_of_texts_are_those_of_the_model(small_model, tmp_path, pool):
    _, rows, bad = do(EncodeJob(model=small_model, pool=pool), PASSAGES, tmp_path)
    assert bad == []
    for row, one in zip(rows, EBert.from_pretrained(small_model).encode(PASSAGES), strict=True):
        inside = [place for place, (start, end) in enumerate(one.pieces.spans) if start < end]
        expected = one.states[0] if pool == "first" else one.states[inside].mean(dim=0)
        np.testing.assert_allclose(row["vector"], expected.numpy(), atol=1e-5)


def test_vectors_of_entities(small_model, tmp_path):
    done, rows, _ = do(EncodeJob(model=small_model, pool="entities", layer=1), PASSAGES, tmp_path)
    found = [[(one["entity"], one["fed"]) for one in row["entities"]] for row in rows]
    assert found == [[("France", True), ("Paris", True)], [("Italy", True), ("Nowhere", False)], []]
    assert done["dropped"] == {"mention without a vector": 1}
    one = list(EBert.from_pretrained(small_model).encode(PASSAGES, layer=1))[1]
    italy, nowhere = one.passage.mentions
    np.testing.assert_allclose(rows[1]["entities"][0]["vector"], one.entity(italy).numpy(), atol=1e-5)
    expected = one.span(nowhere.start, nowhere.end).numpy()
    np.testing.assert_allclose(rows[1]["entities"][1]["vector"], expected, atol=1e-5)


def test_mentions_in_a_column_are_those_of_the_markup(small_model, folders):
    passage = Passage.parse(PASSAGES[1])
    mentions = [{"start": m.start, "end": m.end, "entity": m.entity, "more": 1} for m in passage.mentions]
    job = EncodeJob(model=small_model, pool="entities")
    _, marked, _ = do(job, [PASSAGES[1]], folders / "a")
    _, given, bad = do(job, [{"id": "0", "text": passage.text, "mentions": mentions}], folders / "b")
    assert given == marked
    assert bad == []


def test_what_linking_wrote_can_be_encoded(small_linker, folders):
    _, linked, _ = do(LinkJob(linker=small_linker), TEXTS[:4], folders / "a")
    job = EncodeJob(model=small_linker, pool="entities", mode="replace")
    run(job, [folders / "a" / "out" / "rows"], folders / "b" / "out", engine=Here())
    encoded = rows_of(folders / "b" / "out")
    assert [row["id"] for row in encoded] == ["0", "1", "3"]  # the empty text has nothing to encode
    assert [one["entity"] for one in encoded[0]["entities"]] == [one["entity"] for one in linked[0]["mentions"]]


def test_rows_that_cannot_be_encoded(small_model, tmp_path):
    texts = [
        "a", "a city " * 100, "[[France", "",
        {"id": "4", "text": "Rome", "mentions": [{"start": 0, "end": 9, "entity": "x"}]},
        {"id": "5", "text": "Rome", "mentions": [{"from": 0}]}, "is",
        {"id": "7", "text": "Rome", "mentions": [{"start": float("inf"), "end": 4, "entity": "x"}]},
        {"id": "8", "text": "Rome", "mentions": [{"start": 0, "end": 4, "entity": "\ud800"}]},
    ]  # fmt: skip
    _, rows, bad = do(EncodeJob(model=small_model), texts, tmp_path)
    assert [row["id"] for row in rows] == ["0", "6"]
    for one, reason in zip(
        bad,
        ["takes 64: shorten or split it", "never closes it", "empty", "not a span", "cannot be read", "cannot be read",
         "half a surrogate pair"],
        strict=True,
    ):  # fmt: skip
        assert reason in one["reason"]
    assert [one["id"] for one in bad] == ["1", "2", "3", "4", "5", "7", "8"]


def test_a_shard_without_good_rows_has_the_same_columns(small_model, tmp_path):
    import pyarrow.parquet as pq

    for pool in ("mean", "entities"):
        job = EncodeJob(model=small_model, pool=pool)
        do(job, ["a", "a", "a", "a", "", "", "", ""], tmp_path, overwrite=True)
        files = sorted((tmp_path / "out" / "rows").iterdir())
        assert len(files) == 2
        first, second = map(pq.read_schema, files)
        assert first.equals(second)
        assert pq.read_table(tmp_path / "out" / "rows").num_rows == 4


QUESTIONS = [
    {"text": "the capital of [[France]] is [MASK].", "answers": ["Paris"], "relation": "capital"},
    {"template": "the capital of [X] is [Y].", "subject": "Italy", "answers": ["Rome"], "relation": "capital"},
    {"text": "Paris is a [MASK] in [[Nowhere]]", "answer": "city", "id": "own"},
    {"text": "the [MASK] is in [[Paris]]", "answers": ["NATO", "city"]},
    {"text": "Rome is [MASK] city", "answers": ["a"], "relation": "last"},
]


def test_answers_are_those_of_the_probe(small_model, tmp_path):
    modes = ("bert", "concat", "replace")
    done, rows, bad = do(ProbeJob(model=small_model, modes=modes), QUESTIONS, tmp_path)
    assert bad == []
    path = write(tmp_path / "own.jsonl", QUESTIONS)
    from ebert.probing.options import ProbeOptions

    model = EBert.from_pretrained(small_model)
    scores = probe(model, read_questions(path), tmp_path / "run", options=ProbeOptions(modes=modes))
    expected = [json.loads(line) for line in (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()]
    for row, theirs in zip(rows, expected, strict=True):
        assert {name: row[name] for name in ("relation", "covered", "count", "dropped")} == {
            name: theirs[name] for name in ("relation", "covered", "count", "dropped")
        }
        for mode in row["modes"]:
            own = theirs["modes"][mode["mode"]]
            assert mode["rank"] == own["rank"]
            assert mode["probability"] == pytest.approx(own["probability"], abs=2e-6)
            assert [answer["token"] for answer in mode["top"]] == [token for token, _ in own["top"]]
    assert [row["id"] for row in rows] == ["in.jsonl:1", "in.jsonl:2", "own", "in.jsonl:4", "in.jsonl:5"]
    shown = {mode: found["all"]["macro"]["hits@1"] for mode, found in done["modes"].items()}
    assert shown == {mode: found["all"]["macro"]["hits@1"] for mode, found in scores["modes"].items()}
    assert json.loads((tmp_path / "out" / "metrics.json").read_text())["modes"] == done["modes"]


def test_rows_that_are_no_questions(small_model, tmp_path):
    rows = [
        QUESTIONS[0], {"text": "no mask", "answers": ["Paris"]}, {"text": "[MASK]"},
        {"text": "a city " * 100 + "[MASK]", "answers": ["a"]}, {"text": "[MASK] is", "answers": ["é"]},
        {"text": "[MASK]", "answers": ["a"], "what": 1}, {"text": "[MASK]", "answers": ["\ud800"]},
        {"text": "[MASK]", "answers": ["a"], "relation": "\ud800"},
        {"template": "[X] is [Y]", "subject": "Rome", "entity": "\ud800", "answers": ["a"]},
    ]  # fmt: skip
    _, good, bad = do(ProbeJob(model=small_model, modes=("bert", "concat")), rows, tmp_path)
    assert len(good) == 1
    for one, reason in zip(
        bad,
        ["0 [MASK]", "no answers", "shorten or split", "not a candidate", "'what', which have no meaning",
         "'answers' has half", "'relation' has half", "'entity' has half"],
        strict=True,
    ):  # fmt: skip
        assert reason in one["reason"]


def test_a_question_that_breaks_the_encoder_costs_no_other(small_model, tmp_path, monkeypatch):
    from ebert.probing.ask import Asker

    ask = Asker.__call__

    def fussy(self, units):
        if any("Nowhere" in pieces.passage.text for unit in units for pieces in unit.sequences):
            raise RuntimeError("out of memory")
        return ask(self, units)

    monkeypatch.setattr(Asker, "__call__", fussy)
    _, rows, bad = do(ProbeJob(model=small_model), QUESTIONS, tmp_path)
    assert len(rows) == len(QUESTIONS) - 1
    assert [(one["id"], one["reason"]) for one in bad] == [("own", "RuntimeError: out of memory")]


def test_questions_in_parquet(small_model, folders):
    import pyarrow as pa
    import pyarrow.parquet as pq

    _, expected, _ = do(ProbeJob(model=small_model), QUESTIONS[:2], folders / "a")
    texts = dict.fromkeys(["id", "text", "template", "subject", "relation"], pa.string())
    schema = pa.schema({**texts, "answers": pa.list_(pa.string())})
    named = [{"id": f"in.jsonl:{number + 1}", **row} for number, row in enumerate(QUESTIONS[:2])]
    table = pa.Table.from_pylist(named, schema)
    pq.write_table(table, folders / "b" / "q.parquet")
    run(ProbeJob(model=small_model), [folders / "b" / "q.parquet"], folders / "b" / "out", engine=Here())
    assert rows_of(folders / "b" / "out") == expected
    with pytest.raises(EbertError, match="is text; questions are JSON lines or Parquet"):
        (folders / "q.txt").write_text("[MASK]")
        run(ProbeJob(model=small_model), [folders / "q.txt"], folders / "c", engine=Here())
    pq.write_table(pa.table({"text": ["[MASK]"]}), folders / "bare.parquet")
    with pytest.raises(EbertError, match="has no column 'answers'; it has text"):
        run(ProbeJob(model=small_model), [folders / "bare.parquet"], folders / "c", engine=Here())


def test_a_store_that_was_added_to_is_another_model(small_linker, tmp_path):
    import shutil

    store = shutil.copytree(EBert.from_pretrained(small_linker).vectors.path, tmp_path / "store")
    job = LinkJob(linker=small_linker, vectors=str(store))
    do(job, TEXTS, tmp_path)
    Linker.from_pretrained(small_linker, vectors=store).add("Zorblax", np.ones(job.load()._linker.vectors.dimension))
    with pytest.raises(EbertError, match="model vectors has changed"):
        do(job, TEXTS, tmp_path)


def test_other_names_of_what_was_added_make_another_model(small_linker, tmp_path):
    import shutil

    store = shutil.copytree(EBert.from_pretrained(small_linker).vectors.path, tmp_path / "store")
    job = LinkJob(linker=small_linker, vectors=str(store))
    vectors = Linker.from_pretrained(small_linker, vectors=store).vectors
    vector = np.ones(vectors.dimension)
    seen = [job.load().identity]
    for more in ({}, {"aliases": ["Zorb"]}, {"wikidata": 7}, {"id": "own"}):
        vectors.add("Zorblax", vector, replace=len(seen) > 1, **more)
        seen.append(job.load().identity)
    assert len({one["vectors"] for one in seen}) == 5
    assert job.load().identity == seen[-1]


def test_a_linker_that_prefers_to_link_nothing_is_another_model(small_linker, folders):
    linker = Linker.from_pretrained(small_linker)
    for name, shift in (("a", 0.0), ("b", 0.5)):
        linker.null_shift = shift
        linker.save_pretrained(folders / name / "linker")
    first, second = (LinkJob(linker=str(folders / name / "linker")).load().identity for name in ("a", "b"))
    assert {name for name in first if first[name] != second[name]} == {"null shift"}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (lambda model: EncodeJob(model=model, layer=7), "has no layer 7: 0"),
        (lambda model: EncodeJob(model=model, mode="glue"), "unknown mode 'glue'"),
        (lambda model: EncodeJob(model=model, pool="max"), "unknown pool 'max'"),
        (lambda model: EncodeJob(), "--model or --bert"),
        (lambda model: EncodeJob(bert="x", vectors="y"), "--vectors goes with --model"),
        (lambda model: EncodeJob(model=model, dtype="float7"), "unknown dtype"),
        (lambda model: LinkJob(linker="nowhere"), "there is no linker at nowhere"),
        (lambda model: ProbeJob(bert=str(Path(model).parent / "bert"), modes=("concat",)), "need entity vectors"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_before_anything_is_written(small_model, tmp_path, job, expected):
    with pytest.raises(EbertError, match=expected):
        do(job(small_model), QUESTIONS, tmp_path)
    assert not (tmp_path / "out").exists()
