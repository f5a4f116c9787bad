"""Reading run folders: what is in them, how they are named, what is wrong with them."""

import json

import numpy as np
import pytest
from fake_runs import LAMA, make_run, read_json, write_json

from ebert.errors import EbertError
from ebert.report.runs import NO_COUNT, NOT_COVERED, read_run, read_runs


def test_a_run_is_read(tmp_path):
    run = read_run(make_run(tmp_path / "lama", size=10))
    assert len(run.ids) == 10 * len(LAMA)
    assert run.outcomes.relations == tuple(LAMA)
    assert run.filters == ("all", "string-match", "uhn")
    assert run.modes == ("bert", "concat", "replace")
    assert ((run.count == NOT_COVERED) == ~run.outcomes.covered).all()
    assert (run.count[run.outcomes.covered] >= 0).all()
    assert run.warning == ""


def test_a_compressed_run_is_the_same(tmp_path):
    one, other = (read_run(make_run(tmp_path / str(flag), size=5, compressed=flag)) for flag in (False, True))
    assert not (tmp_path / "True" / "predictions.jsonl").exists()
    assert one.ids == other.ids
    for mode in one.modes:
        np.testing.assert_array_equal(one.outcomes.rank[mode], other.outcomes.rank[mode])
    wanted = {one.ids[3], one.ids[7]}
    assert one.answers(wanted) == other.answers(wanted)
    assert set(one.answers(wanted)) == wanted


def test_vectors_without_counts(tmp_path):
    run = read_run(make_run(tmp_path / "lama", size=5, counts=False))
    assert (run.count[run.outcomes.covered] == NO_COUNT).all()


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({"limit": 7}, "lama (limit 7)"),
        ({"complete": False}, "lama (incomplete)"),
        ({"oracle": True}, "lama (oracle)"),
        ({"limit": 7, "complete": False}, "lama (incomplete, limit 7)"),
    ],
)
def test_runs_that_need_a_warning_carry_it_in_their_name(tmp_path, options, label):
    assert read_run(make_run(tmp_path / "lama", size=3, **options)).label == label


def test_names_are_distinct(tmp_path):
    folders = [make_run(tmp_path / name, size=2) for name in ("a/lama", "b/lama", "other")]
    assert [run.name for run in read_runs(folders)] == ["a/lama", "b/lama", "other"]
    with pytest.raises(EbertError, match="given twice"):
        read_runs([folders[0], tmp_path / "b" / ".." / "a" / "lama"])


def test_a_line_cut_off_by_a_kill(tmp_path):
    folder = make_run(tmp_path / "lama", size=3, complete=False)
    path = folder / "predictions.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    run = read_run(folder)
    assert len(run.ids) == 3 * len(LAMA) - 1
    assert run.notes == (f"line {3 * len(LAMA)} of predictions.jsonl was cut off and is left out",)
    write_json(folder / "run.json", {**read_json(folder / "run.json"), "complete": True})
    with pytest.raises(EbertError, match=f"predictions.jsonl:{3 * len(LAMA)} is damaged"):
        read_run(folder)


def change_line(path, number, text):
    lines = path.read_text().splitlines()
    lines[number - 1] = text
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "predictions.jsonl:4 is damaged"),
        ("[]", "predictions.jsonl:4 is damaged"),
        ("\xff", "predictions.jsonl:4 is damaged"),
        (json.dumps({"id": "x"}), "row 4 of the predictions is damaged"),
        ("", "predictions.jsonl:4 is damaged"),
    ],
)
def test_damaged_lines_are_named(tmp_path, text, message):
    folder = make_run(tmp_path / "lama", size=3)
    change_line(folder / "predictions.jsonl", 4, text)
    with pytest.raises(EbertError, match=message):
        read_run(folder)


def test_damaged_questions_and_names(tmp_path):
    run = read_run(make_run(tmp_path / "lama", size=3))
    change_line(run.folder / "questions.jsonl", 2, json.dumps({"id": "x", "text": "", "answers": []}))
    change_line(run.folder / "names.jsonl", 1, "{")
    with pytest.raises(EbertError, match=r"questions.jsonl:2 is damaged \(no 'subject'\)"):
        run.questions()
    with pytest.raises(EbertError, match=r"names.jsonl:1 is damaged"):
        run.names()


def test_a_question_that_is_there_twice(tmp_path):
    folder = make_run(tmp_path / "lama", size=3)
    path = folder / "predictions.jsonl"
    change_line(path, 2, path.read_text().splitlines()[0])
    with pytest.raises(EbertError, match=r"the question P17/00000 is in predictions.jsonl twice"):
        read_run(folder)


def test_a_damaged_archive(tmp_path):
    folder = make_run(tmp_path / "lama", size=3, compressed=True)
    path = folder / "predictions.jsonl.xz"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(EbertError, match=r"predictions.jsonl.xz is damaged"):
        read_run(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "training"}, "its run.json is of kind 'training'"),
        ({"format": 2}, "has format 2, this ebert reads format 1"),
        ({"modes": None}, "'modes' is None"),
        ({"modes": []}, "names no mode"),
        ({"encoder": {}}, "no encoder"),
    ],
)
def test_folders_of_another_kind(tmp_path, change, message):
    folder = make_run(tmp_path / "lama", size=2)
    write_json(folder / "run.json", {**read_json(folder / "run.json"), **change})
    with pytest.raises(EbertError, match=message):
        read_run(folder)


def test_folders_that_are_no_runs(tmp_path):
    with pytest.raises(EbertError, match="there is no run at"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(EbertError, match=r"is not a run of 'ebert probe': it has no run.json"):
        read_run(tmp_path)
    folder = make_run(tmp_path / "lama", size=2)
    (folder / "predictions.jsonl").unlink()
    with pytest.raises(EbertError, match=r"has no predictions.jsonl"):
        read_run(folder)
    # What `ebert probe` leaves when it is stopped before its first results.
    write_json(folder / "run.json", {"kind": "probe", "format": 1, "complete": False, "identity": {}})
    with pytest.raises(EbertError, match="is not finished and has nothing to report yet"):
        read_run(folder)
    with pytest.raises(EbertError, match="no run to report"):
        read_runs([])
