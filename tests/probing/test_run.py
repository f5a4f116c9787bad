"""Runs: what a folder holds, going on after a kill, and what is noticed in between."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace

import pytest
from small_lama import rows, write_lama

from ebert import AlignmentOptions, EBert, EbertError
from ebert.model.int8 import quantize
from ebert.probing.lama import read_lama
from ebert.probing.metrics import metrics
from ebert.probing.options import ProbeOptions
from ebert.probing.questions import read_questions
from ebert.probing.run import probe

ALL = ProbeOptions(modes=("bert", "concat", "replace"), filters=("all", "string-match", "uhn"), budget=16)
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}  # what is this small is slower on several
RESULTS = ("predictions.jsonl", "metrics.json", "names.jsonl", "questions.jsonl", "skipped.jsonl")


def run(model, data, out, options=ALL, **rest):
    return probe(model, data, out, options=options, name_model=lambda: model, **rest)


def contents(folder):
    return {name: (folder / name).read_bytes() for name in RESULTS if (folder / name).exists()}


class Stop(Exception):
    """What ends a run in the middle."""


def stopping_after(count):
    """A watch that stops the run after so many sequences."""
    from contextlib import contextmanager

    @contextmanager
    def watch(what, *, total=None, unit=""):
        done = 0

        def advance(amount):
            nonlocal done
            done += amount
            if what == "ask" and done >= count:
                raise Stop

        yield advance

    return watch


def test_a_run_folder(small, lama, tmp_path):
    out = tmp_path / "run"
    scores = run(small, read_lama(lama), out, command="ebert probe lama")
    assert sorted(file.name for file in out.iterdir()) == sorted([".lock", "run.json", *RESULTS])
    assert json.loads((out / "metrics.json").read_text()) == scores
    told = json.loads((out / "run.json").read_text())
    assert told["complete"] is True
    assert (told["questions"], told["covered"], told["covered_by"]) == (8, 4, {"title": 4})
    assert told["candidates"] == 8
    assert told["candidates not used"] == 1
    predictions = rows(out / "predictions.jsonl")
    assert [row["id"] for row in predictions][:3] == ["P36/a1", "P36/a2", "P36/a3"]
    first, third = predictions[0], predictions[2]
    assert (first["covered"], first["count"], first["dropped"]) == (True, 50, None)
    assert (third["covered"], third["count"]) == (False, None)
    assert third["modes"]["bert"] == third["modes"]["concat"] == third["modes"]["replace"]
    assert first["modes"]["bert"] != first["modes"]["concat"] != first["modes"]["replace"]
    assert len(first["modes"]["bert"]["top"]) == 8  # of ten, as there are no more candidates
    assert predictions[5]["dropped"] == "string-match"  # France is in Paris France
    assert scores["modes"] == metrics(predictions, ALL.modes, ALL.filters)
    assert scores["modes"]["bert"]["string-match"]["questions"] == 7
    checked = {row["id"]: row for row in rows(out / "names.jsonl")}
    assert set(checked) == {"P103/b1", "P103/b2", "place_of_birth/d1", "place_of_birth/d2"}
    dropped = {row["id"] for row in predictions if row["dropped"] == "name"}
    assert dropped == {name for name, row in checked.items() if row["dropped"]}
    asked = rows(out / "questions.jsonl")
    assert asked[0] == {
        "id": "P36/a1", "relation": "P36", "text": "The capital of France is [MASK] .", "subject": "France",
        "answers": ["Paris"], "entity": "France",
    }  # fmt: skip


def test_hits_are_counted_from_ranks(small, lama, tmp_path):
    scores = run(small, read_lama(lama, relations=["P36"]), tmp_path / "run")["modes"]["bert"]["all"]
    ranks = [row["modes"]["bert"]["rank"] for row in rows(tmp_path / "run" / "predictions.jsonl")]
    for k in (1, 2, 8, 100):
        assert scores["relations"]["P36"][f"hits@{k}"] == pytest.approx(100 * sum(r <= k for r in ranks) / 3, abs=1e-3)
    assert scores["macro"]["mrr"] == pytest.approx(100 * sum(1 / r for r in ranks) / 3, abs=1e-3)


def test_a_run_that_was_stopped_anywhere_ends_with_the_same_files(small, lama, tmp_path):
    whole = tmp_path / "whole"
    run(small, read_lama(lama), whole)
    chance = random.Random(0)
    for attempt, count in enumerate([1, 3, 6, 9, 12]):
        out = tmp_path / f"part{attempt}"
        with pytest.raises(Stop):
            run(small, read_lama(lama), out, watch=stopping_after(count))
        assert json.loads((out / "run.json").read_text())["complete"] is False
        assert not (out / "metrics.json").exists()
        for name in ("asked.journal", "guessed.journal"):  # a kill may leave half a line
            journal = (out / name).read_bytes()
            (out / name).write_bytes(journal[: chance.randrange(len(journal) + 1)])
        run(small, read_lama(lama), out)
        assert contents(out) == contents(whole)
        assert not (out / "asked.journal").exists()


def test_a_run_goes_on_and_does_not_begin_anew(small, lama, tmp_path):
    with pytest.raises(Stop):
        run(small, read_lama(lama), tmp_path / "run", watch=stopping_after(6))
    before = (tmp_path / "run" / "asked.journal").read_bytes()
    with pytest.raises(Stop):
        run(small, read_lama(lama), tmp_path / "run", watch=stopping_after(9))
    after = (tmp_path / "run" / "asked.journal").read_bytes()
    assert after.startswith(before)
    assert len(after) > len(before)


def test_kill_9_in_the_middle(small_model, tmp_path):
    """A real process, killed while it asks; hundreds of batches of one question give time for that."""
    data = tmp_path / "own.jsonl"
    words = ["Paris", "Rome", "Lima", "France", "Italy"]
    data.write_text("".join(
        json.dumps({"text": "is " * (n % 40) + f"[[France]] {words[n % 5]} [MASK]", "answers": [words[n % 3]]}) + "\n"
        for n in range(600)
    ))  # fmt: skip

    out = tmp_path / "killed"
    command = [sys.executable, "-m", "ebert", "probe", "questions", data, "--model", small_model, "--budget", "1"]
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen([*command, "--out", out], env=ONE_THREAD, stderr=nowhere, stdout=nowhere)
    journal = out / "asked.journal"
    while process.poll() is None and not (journal.exists() and journal.stat().st_size > 9_000):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = len(journal.read_bytes().splitlines())
    assert 0 < done < 3 * 600
    options = ProbeOptions(modes=("bert", "concat", "replace"), budget=1)
    model = EBert.from_pretrained(small_model)
    for folder in (out, tmp_path / "whole"):
        probe(model, read_questions(data), folder, options=options)
    for name in ("predictions.jsonl", "metrics.json"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_complete_run_is_not_asked_again(small, lama, tmp_path):
    scores = run(small, read_lama(lama), tmp_path / "run")
    before = (tmp_path / "run" / "run.json").stat().st_mtime_ns
    assert run(small, read_lama(lama), tmp_path / "run", watch=stopping_after(0)) == scores
    assert (tmp_path / "run" / "run.json").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ProbeOptions(modes=("bert",), filters=ALL.filters, budget=16), "mode was bert,concat,replace, is bert"),
        (ProbeOptions(modes=ALL.modes, filters=("all",), budget=16), "filter was all,string-match,uhn, is all"),
        (ProbeOptions(modes=ALL.modes, filters=ALL.filters, budget=16, limit=1), "limit was not given, is 1"),
        (ProbeOptions(modes=ALL.modes, filters=ALL.filters), "budget was 16, is 1024"),
    ],
)
def test_other_options_are_refused(small, lama, tmp_path, options, message):
    run(small, read_lama(lama), tmp_path / "run")
    before = contents(tmp_path / "run")
    with pytest.raises(EbertError, match=message):
        run(small, read_lama(lama), tmp_path / "run", options)
    assert contents(tmp_path / "run") == before
    run(small, read_lama(lama), tmp_path / "run", options, overwrite=True)
    now = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (now["modes"], now["filters"], now["limit"]) == (list(options.modes), list(options.filters), options.limit)


def test_other_data_are_refused(small, lama, tmp_path):
    run(small, read_lama(lama), tmp_path / "run")
    with (lama / "TREx" / "P36.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(EbertError, match=r"data TREx/P36\.jsonl has changed"):
        run(small, read_lama(lama), tmp_path / "run")


def test_another_encoder_is_refused_even_if_its_wordpieces_are_the_same(small, small_folder, lama, tmp_path):
    options = ProbeOptions(filters=("all",))
    run(EBert.plain(small_folder), read_lama(lama), tmp_path / "run", options)
    changed = EBert.plain(small_folder)
    changed.encoder.bert.encoder.layer[1].output.dense.bias.data[0] += 1
    with pytest.raises(EbertError, match="encoder weights has changed"):
        run(changed, read_lama(lama), tmp_path / "run", options)


def test_another_encoder_to_ask_about_names_is_refused(small, lower_casing, lama, tmp_path):
    run(small, read_lama(lama), tmp_path / "run")
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert told["name-bert"]["name"] == small.name
    with pytest.raises(EbertError, match="name-bert name"):
        probe(small, read_lama(lama), tmp_path / "run", options=ALL, name_model=lambda: lower_casing)
    without = ProbeOptions(modes=("bert",), filters=("all", "uhn"))  # no names are asked about capitals
    for out, asked in (("one", small), ("other", lower_casing)):
        probe(small, read_lama(lama, relations=["P36"]), tmp_path / out, options=without, name_model=lambda a=asked: a)
    assert contents(tmp_path / "one") == contents(tmp_path / "other")


def test_every_weight_of_an_8_bit_encoder_counts(small_folder, lama, tmp_path):
    options = ProbeOptions(filters=("all",), precision="int8")
    run(quantize(EBert.plain(small_folder)), read_lama(lama), tmp_path / "run", options)
    for part in ("weight", "bias"):
        changed = EBert.plain(small_folder)
        getattr(changed.encoder.bert.encoder.layer[1].output.dense, part).data[0] += 1
        with pytest.raises(EbertError, match="encoder weights has changed"):
            run(quantize(changed), read_lama(lama), tmp_path / "run", options)


def test_scores_that_are_no_numbers_are_refused(small_folder, lama, tmp_path):
    broken = EBert.plain(small_folder)
    broken.encoder.bert.encoder.layer[1].output.dense.bias.data[0] = float("nan")
    with pytest.raises(EbertError, match="not finite"):
        run(broken, read_lama(lama), tmp_path / "run", ProbeOptions(filters=("all",)))


def test_what_a_kill_leaves_at_the_very_beginning_is_no_obstacle(small, lama, tmp_path):
    out = tmp_path / "run"
    run(small, read_lama(lama), out)
    expected = contents(out)
    (out / "run.json").rename(out / ".run.json.x1y2z3a4")  # half written
    run(small, read_lama(lama), out)
    assert contents(out) == expected
    assert not (out / ".run.json.x1y2z3a4").exists()


def test_other_vectors_are_refused(small, small_folder, store, lama, tmp_path):
    run(small, read_lama(lama), tmp_path / "run")
    changed = EBert.fit(small_folder, store, options=AlignmentOptions(length=3.0))
    with pytest.raises(EbertError, match="model has changed"):
        run(changed, read_lama(lama), tmp_path / "run")


def test_folders_that_are_no_runs_stay_as_they_are(small, lama, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("x")
    for overwrite in (False, True):
        with pytest.raises(EbertError, match="contains something else"):
            run(small, read_lama(lama), tmp_path / "thesis", overwrite=overwrite)
    assert [file.name for file in (tmp_path / "thesis").iterdir()] == ["thesis.tex"]
    with pytest.raises(EbertError, match="is a file"):
        run(small, read_lama(lama), tmp_path / "thesis" / "thesis.tex")


def test_two_processes_do_not_share_a_run(small, lama, tmp_path):
    from contextlib import contextmanager

    @contextmanager
    def watch(what, *, total=None, unit=""):
        if what == "ask":
            with pytest.raises(EbertError, match="another process works on"):
                run(small, read_lama(lama), tmp_path / "run")
        yield lambda amount: None

    run(small, read_lama(lama), tmp_path / "run", watch=watch)


def test_answers_outside_the_vocabulary_are_listed(small, lama, tmp_path):
    with (lama / "TREx" / "P36.jsonl").open("a") as file:
        file.write(json.dumps({"uuid": "a4", "sub_label": "Ecuador", "obj_label": "Quito"}) + "\n")
    run(small, read_lama(lama), tmp_path / "run")
    assert rows(tmp_path / "run" / "skipped.jsonl") == [
        {"where": "TREx/P36.jsonl:4", "reason": "its answer is not a candidate of this encoder", "id": "P36/a4"}
    ]
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert told["not asked"] == {"its answer is not a candidate of this encoder": 1}


def test_texts_that_are_too_long_are_listed(small, tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text(
        "".join(json.dumps({"text": text, "answers": ["Rome"]}) + "\n" for text in ("a [MASK]", "a " * 70 + "[MASK]"))
    )
    probe(small, read_questions(path), tmp_path / "run")
    skipped = rows(tmp_path / "run" / "skipped.jsonl")
    assert [row["where"] for row in skipped] == ["own.jsonl:2"]
    assert "takes 64" in skipped[0]["reason"]
    only_with_entities = {"text": "a " * 60 + "[[France]] [MASK]", "answers": ["Rome"]}  # two more pieces than 64
    path.write_text(
        "".join(json.dumps(row) + "\n" for row in (only_with_entities, {"text": "a [MASK]", "answers": ["a"]}))
    )
    for mode, count in (("bert", 2), ("concat", 1)):
        probe(small, read_questions(path), tmp_path / mode, options=ProbeOptions(modes=(mode,)))
        assert len(rows(tmp_path / mode / "predictions.jsonl")) == count
    path.write_text(json.dumps({"text": "a " * 70 + "[MASK]", "answers": ["Rome"]}))
    with pytest.raises(EbertError, match="no question can be asked"):
        probe(small, read_questions(path), tmp_path / "other")


def test_a_limit_takes_the_same_questions_and_marks_the_result(small, lama, tmp_path):
    options = ProbeOptions(filters=("all",), limit=2)
    scores = run(small, read_lama(lama), tmp_path / "run", options)
    assert scores["limit"] == 2
    kept = [row["id"] for row in rows(tmp_path / "run" / "predictions.jsonl")]
    assert len(kept) == 2 + 2 + 1 + 2
    run(small, read_lama(write_lama(tmp_path / "again")), tmp_path / "other", options)
    assert [row["id"] for row in rows(tmp_path / "other" / "predictions.jsonl")] == kept


def test_modes_with_entities_need_vectors(small_folder, lama, tmp_path):
    with pytest.raises(EbertError, match="need entity vectors"):
        run(EBert.plain(small_folder), read_lama(lama), tmp_path / "run")


@pytest.mark.parametrize("wrong", [{"modes": ("ernie",)}, {"filters": ("x",)}, {"limit": 0}, {"modes": ()}])
def test_wrong_options(wrong):
    with pytest.raises(EbertError):
        ProbeOptions(**wrong)


def test_every_sequence_is_tokenized_once(small, lama, tmp_path, monkeypatch):
    """Once in each mode if the subject has a vector, once in all modes if it has none."""
    counts: Counter[str] = Counter()
    kind = type(small.tokenizer)
    call = kind.__call__

    def counting(self, text, *args, **rest):
        counts.update([text] if isinstance(text, str) else text)
        return call(self, text, *args, **rest)

    monkeypatch.setattr(kind, "__call__", counting)
    run(small, read_lama(lama, relations=["P36"]), tmp_path / "run", replace(ALL, filters=("all",)))
    asked = Counter(text for text in counts.elements() if text.startswith("The capital of"))
    assert asked.total() == 3 + 3 + 1  # France and Italy have a vector, Peru has none
