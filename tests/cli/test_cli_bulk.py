"""``ebert link corpus``, ``encode corpus`` and ``probe corpus`` as the shell runs them."""

import json
import sys

import pyarrow.parquet as pq
import pytest


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "in.jsonl"
    rows = [{"text": "the city of [[Paris]]"}, {"id": "b", "text": "Jean spoke French ."}, {"text": "[[broken"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_encode_prints_counts_and_bad_rows(ebert, model, corpus, tmp_path):
    arguments = ("encode", "corpus", corpus, "--model", model, "--workers", 1, "--out", tmp_path / "out")
    done = ebert(*arguments)
    assert done.code == 0, done.err
    assert done.out.split()[:4] == ["rows", "2", "errors", "1"]
    assert "in.jsonl:3: markup opens '[['" in done.err
    rows = pq.read_table(tmp_path / "out" / "rows").to_pylist()
    assert [row["id"] for row in rows] == ["in.jsonl:1", "b"]
    assert len(rows[0]["vector"]) == 16
    again = ebert(*arguments, "--json").json
    assert (again["rows"], again["errors"], again["shards"], again["complete"]) == (2, 1, 1, True)
    other = ebert(*arguments, "--pool", "first")
    assert other.code == 2
    assert "options pool was mean, is first" in other.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["link", "corpus", "nowhere", "--linker", "starter"], "there is no file or folder nowhere"),
        (["link", "corpus", "CORPUS", "--linker", "nowhere"], "there is no linker at nowhere"),
        (["encode", "corpus", "CORPUS"], "--model or --bert"),
        (["encode", "corpus", "CORPUS", "--model", "MODEL", "--address", "here:1"], "give --engine ray with it"),
        (["probe", "corpus", "CORPUS", "--bert", "x", "--mode", "concat"], "needs entity vectors"),
        (["encode", "corpus", "CORPUS", "--model", "MODEL", "--workers", "1", "--least-workers", "2"], "at least 2"),
    ],
)
def test_bad_input(ebert, model, corpus, tmp_path, arguments, message):
    words = {"CORPUS": corpus, "MODEL": model}
    done = ebert(*(words.get(word, word) for word in arguments), "--out", tmp_path / "out")
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("missing", "extra", "more"), [("pyarrow.parquet", "ebert[bulk]", []), ("ray", "ebert[ray]", ["--engine", "ray"])]
)
def test_a_missing_extra_is_named(ebert, model, corpus, tmp_path, monkeypatch, missing, extra, more):
    monkeypatch.setitem(sys.modules, missing, None)
    done = ebert("encode", "corpus", corpus, "--model", model, "--out", tmp_path / "out", *more)
    assert done.code == 2
    assert f"pip install '{extra}'" in done.err


def test_a_corpus_on_a_cluster_needs_ray(ebert, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    done = ebert("corpus", "build", "dump.xml", "--engine", "ray", "--out", tmp_path / "corpus")
    assert done.code == 2
    assert "pip install 'ebert[ray]'" in done.err
    done = ebert("corpus", "build", "dump.xml", "--address", "here:1", "--out", tmp_path / "corpus")
    assert "give --engine ray with it" in done.err
