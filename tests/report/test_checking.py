"""The check that recomputes the metrics finds every change in metrics.json, and no other."""

import copy
import lzma

import pytest
from fake_runs import make_run, read_json, write_json

from ebert.errors import EbertError
from ebert.report.runs import read_run, recompute, verified


@pytest.fixture
def folder(tmp_path):
    return make_run(tmp_path / "lama", size=8)


def test_a_run_agrees_with_itself(folder):
    scores, said = recompute(read_run(folder))
    assert said == []
    assert scores == read_json(folder / "metrics.json")["modes"]


def test_a_shipped_run_has_compressed_metrics(folder):
    path = folder / "metrics.json"
    compressed = folder / "metrics.json.xz"
    compressed.write_bytes(lzma.compress(path.read_bytes()))
    path.unlink()
    assert recompute(read_run(folder))[1] == []
    compressed.write_bytes(lzma.compress(b'{"modes": {}}'))
    assert recompute(read_run(folder))[1] != []
    compressed.write_bytes(b"xx")
    with pytest.raises(EbertError, match=r"metrics\.json\.xz is damaged"):
        recompute(read_run(folder))


def paths(value, at=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*at, key))
    else:
        yield at


def changed(value, path, to):
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to(inner[path[-1]])
    return value


def test_every_number_counts(folder):
    run = read_run(folder)
    written = read_json(folder / "metrics.json")
    every = list(paths(written))
    assert len(every) > 10_000
    for path in every[:: len(every) // 15]:
        write_json(folder / "metrics.json", changed(written, path, lambda old: old + 1))
        _, said = recompute(run)
        assert len(said) == 1
        assert said[0].startswith(", ".join(path[1:]) + ": metrics.json has ")


def test_the_last_decimal_may_differ(folder):
    run = read_run(folder)
    written = read_json(folder / "metrics.json")
    path = ("modes", "bert", "all", "macro", "mrr")
    write_json(folder / "metrics.json", changed(written, path, lambda old: old + 0.0001))
    assert recompute(run)[1] == []
    write_json(folder / "metrics.json", changed(written, path, lambda old: old + 0.0003))
    assert len(recompute(run)[1]) == 1


def test_what_is_missing_or_too_much(folder):
    run = read_run(folder)
    written = read_json(folder / "metrics.json")
    del written["modes"]["concat"]["uhn"]["relations"]["P103"]
    written["modes"]["other"] = {}
    write_json(folder / "metrics.json", written)
    assert recompute(run)[1] == [
        "concat, uhn, relations, P103: missing in metrics.json",
        "other: in metrics.json, but the predictions give no such score",
    ]
    with pytest.raises(EbertError, match=r"metrics.json does not agree with the predictions beside it(.|\n)*P103"):
        verified(run)


def test_the_counts_of_run_json(folder):
    write_json(folder / "run.json", {**read_json(folder / "run.json"), "covered": 3})
    run = read_run(folder)
    covered = run.outcomes.covered.sum()
    assert recompute(run)[1] == [f"covered: run.json has 3, the predictions give {covered}"]


def test_the_limit(tmp_path):
    run = read_run(make_run(tmp_path / "lama", size=3, limit=3))
    assert recompute(run)[1] == []
    written = read_json(run.folder / "metrics.json")
    del written["limit"]
    write_json(run.folder / "metrics.json", written)
    assert recompute(run)[1] == ["limit: metrics.json has None, run.json 3"]


def test_metrics_that_are_not_there(tmp_path, folder):
    assert recompute(read_run(make_run(tmp_path / "begun", size=3, complete=False)))[1] == []
    (folder / "metrics.json").unlink()
    with pytest.raises(EbertError, match=r"it has no metrics.json"):
        verified(read_run(folder))
