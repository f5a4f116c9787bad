"""Jobs that are killed, stopped, run out of disk or lose workers go on, and end with the same bytes."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from bulk_jobs import CountJob, Here, damaged_ends, rows_of, shard_bytes, write

from ebert.bulk.job import each
from ebert.bulk.local import LocalEngine
from ebert.bulk.options import EngineOptions, ReadOptions
from ebert.bulk.rows import Row
from ebert.bulk.run import run
from ebert.bulk.worker import MOST
from ebert.errors import EbertError


def processes(workers=2):
    return LocalEngine(EngineOptions(workers=workers))


@pytest.fixture
def corpus(tmp_path):
    return write(tmp_path / "in.jsonl", ["x" * number for number in range(100)])


READ = ReadOptions(shard_rows=7)
EXPECTED = [{"row": number, "id": str(number), "letters": number} for number in range(100)]


@pytest.mark.parametrize("engine", [Here, processes])
def test_every_row_once_and_a_manifest(corpus, tmp_path, engine):
    done = run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=engine())
    assert rows_of(tmp_path / "out") == EXPECTED
    assert (done["rows"], done["errors"], done["blank"], done["complete"]) == (100, 0, 0, True)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["identity"]["inputs"]["in.jsonl"]["rows"] == 100
    assert manifest["identity"]["options"] == {
        "text": "text", "id": None, "lines": False, "shard-rows": 7, "factor": 1,
    }  # fmt: skip
    assert manifest["identity"]["model"] == {"weights": "of this job"}
    assert sum(shard["rows"] for shard in manifest["shards"]) == 100
    assert [shard["file"] for shard in manifest["shards"]][:2] == ["rows/000000.parquet", "rows/000001.parquet"]
    assert manifest["dropped"] == {"rows": 100}
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"manifest.json", "errors.jsonl", "rows", "job.key", ".lock"}


SCRIPT = """
import contextlib, os, resource, signal, sys
sys.path.insert(0, sys.argv[1])
from bulk_jobs import CountJob, Here
from ebert.bulk.local import LocalEngine
from ebert.bulk.options import EngineOptions, ReadOptions
from ebert.bulk.run import run
path, out, workers, times, number, limit = sys.argv[2:]
signal.signal(signal.SIGINT, signal.default_int_handler)
left = int(times)
@contextlib.contextmanager
def watch(what, *, total=None, unit=""):
    def advance(amount):
        global left
        left -= amount > 0
        if left == 0:
            os.kill(os.getpid(), int(number))
    yield advance
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
if __name__ == "__main__":
    try:
        run(CountJob(), [path], out, read=ReadOptions(shard_rows=7),
            engine=LocalEngine(EngineOptions(workers=int(workers))) if int(workers) else Here(), watch=watch)
    except KeyboardInterrupt:
        sys.exit("interrupted")
    except OSError as error:
        sys.exit(f"OSError: {error}")
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)

    def begin(corpus, out, *, workers=1, times=0, number=0, limit=0):
        here = str(Path(__file__).parent)
        command = [sys.executable, path, here, corpus, out, workers, times, int(number), limit]
        return subprocess.run([*map(str, command)], capture_output=True, text=True)

    return begin


@pytest.mark.parametrize(
    ("number", "workers", "times"), [(signal.SIGKILL, 2, 4), (signal.SIGINT, 1, 1), (signal.SIGKILL, 0, 15)]
)
def test_a_job_that_was_stopped_goes_on(corpus, tmp_path, script, number, workers, times):
    done = script(corpus, tmp_path / "out", workers=workers, times=times, number=number)
    assert done.returncode == (-9 if number == signal.SIGKILL else 1)
    assert done.stderr.strip() == ("" if number == signal.SIGKILL else "interrupted")
    before = shard_bytes(tmp_path / "out")
    kept = {name for name in before if not name.startswith(".")}
    assert times <= len(kept) <= 15
    assert not json.loads((tmp_path / "out" / "manifest.json").read_text())["complete"] or times == 15
    stamps = {name: (tmp_path / "out" / "rows" / name).stat().st_mtime_ns for name in kept}
    engine = Here()
    run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=engine)
    assert rows_of(tmp_path / "out") == EXPECTED
    assert len(engine.done) == 15 - len(kept)
    assert all((tmp_path / "out" / "rows" / name).stat().st_mtime_ns == stamp for name, stamp in stamps.items())
    run(CountJob(), [corpus], tmp_path / "fresh", read=READ, engine=Here())
    assert shard_bytes(tmp_path / "out") == shard_bytes(tmp_path / "fresh")


def test_a_full_disk_says_how_to_go_on(corpus, tmp_path, script):
    done = script(corpus, tmp_path / "out", limit=1200)  # the manifest and the key fit, shards do not
    assert done.returncode == 1
    assert "what is done is kept: run the same command again" in done.stderr
    assert "Traceback" not in done.stderr
    assert not [name for name in shard_bytes(tmp_path / "out") if name.startswith(".")]
    run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=Here())
    assert rows_of(tmp_path / "out") == EXPECTED


def test_a_complete_job_is_not_done_again(corpus, tmp_path):
    run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=Here())
    engine = Here()
    done = run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=engine)
    assert engine.done == []
    assert (done["rows"], done["complete"]) == (100, True)


def test_shards_that_are_lost_or_damaged_are_done_again(corpus, tmp_path):
    run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=Here())
    rows = tmp_path / "out" / "rows"
    (rows / "000003.parquet").unlink()
    (rows / "000005.parquet").write_bytes((rows / "000005.parquet").read_bytes()[:100])
    run(CountJob(factor=2), [corpus], tmp_path / "other", read=READ, engine=Here())
    (rows / "000007.parquet").write_bytes((tmp_path / "other" / "rows" / "000007.parquet").read_bytes())
    for number, spoiled in zip((9, 10, 11), damaged_ends((rows / "000009.parquet").read_bytes()), strict=True):
        (rows / f"{number:06d}.parquet").write_bytes(spoiled)
    engine = Here()
    run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=engine)
    assert engine.done == [3, 5, 7, 9, 10, 11]
    assert rows_of(tmp_path / "out") == EXPECTED


def test_other_inputs_options_or_models_are_refused_in_words(corpus, tmp_path):
    out = tmp_path / "out"
    run(CountJob(), [corpus], out, read=READ, engine=Here())
    with pytest.raises(EbertError, match=r"options factor was 1, is 2\. Choose another --out, or replace it"):
        run(CountJob(factor=2), [corpus], out, read=READ, engine=Here())
    with pytest.raises(EbertError, match="options shard-rows was 7, is 8"):
        run(CountJob(), [corpus], out, read=ReadOptions(shard_rows=8), engine=Here())
    with pytest.raises(EbertError, match="model weights was of this job, is others"):
        run(CountJob(weights="others"), [corpus], out, read=READ, engine=Here())
    corpus.write_text(corpus.read_text().replace("xxx", "xyx", 1))
    with pytest.raises(EbertError, match=r"inputs in\.jsonl sha256 has changed"):
        run(CountJob(), [corpus], out, read=READ, engine=Here())
    assert rows_of(out) == EXPECTED
    run(CountJob(factor=2), [corpus], out, read=READ, engine=Here(), overwrite=True)
    assert [row["letters"] for row in rows_of(out)] == [2 * number for number in range(100)]


def test_beginning_anew_costs_nothing_but_what_a_job_wrote(corpus, tmp_path):
    out = tmp_path / "out"
    run(CountJob(), [corpus], out, read=ReadOptions(shard_rows=5), engine=Here())
    own = [out / "notes.txt", out / ".hidden", out / "more" / "a.txt", out / "rows" / "own.parquet.bak",
           out / "rows" / ".keep"]  # fmt: skip
    for path in own:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    left = [out / "metrics.json", out / ".errors.jsonl.k3_x9a1z", out / "rows" / ".000002.parquet.k3_x9a1z"]
    for path in left:
        path.write_text("of a job")
    run(CountJob(factor=2), [corpus], out, read=READ, engine=Here(), overwrite=True)
    assert [path.read_text() for path in own] == ["mine"] * 5
    assert not any(path.exists() for path in left)
    assert len(list((out / "rows").glob("*.parquet"))) == 15


def test_a_folder_of_something_else_is_left_alone(corpus, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("x")
    with pytest.raises(EbertError, match="contains something else"):
        run(CountJob(), [corpus], tmp_path / "thesis", engine=Here(), overwrite=True)
    (tmp_path / "thesis" / "manifest.json").write_text("{}")
    with pytest.raises(EbertError, match="contains something else"):
        run(CountJob(), [corpus], tmp_path / "thesis", engine=Here(), overwrite=True)
    with pytest.raises(EbertError, match="is a file"):
        run(CountJob(), [corpus], corpus, engine=Here())
    with pytest.raises(EbertError, match="not a folder"):
        run(CountJob(), [corpus], corpus / "out", engine=Here())


def test_two_at_once_do_not_mix(corpus, tmp_path):
    class Nosy(Here):
        def __call__(self, task, shards):
            with pytest.raises(EbertError, match="another process works on"):
                run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=Here())
            yield from super().__call__(task, shards)

    run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=Nosy())
    assert rows_of(tmp_path / "out") == EXPECTED


def test_what_a_job_wrote_is_not_read_as_rows_by_mistake(corpus, tmp_path):
    run(CountJob(), [corpus], tmp_path / "out", engine=Here())
    with pytest.raises(EbertError, match=r"its rows are in .*out/rows: give that"):
        run(CountJob(), [tmp_path / "out"], tmp_path / "next", engine=Here())


def test_what_is_written_is_not_what_is_read(corpus, tmp_path):
    with pytest.raises(EbertError, match="which is read; choose a place outside"):
        run(CountJob(), [tmp_path], tmp_path / "out", engine=Here())


def test_bad_rows_go_to_a_list_and_the_others_are_done(tmp_path):
    texts = ["good", "refuse", "surprise", {"id": "nothing"}, {"text": "half \ud800"}, "good too"]
    corpus = write(tmp_path / "in.jsonl", texts)
    corpus.write_text(corpus.read_text() + "{broken\n\n")
    done = run(CountJob(), [corpus], tmp_path / "out", engine=Here())
    assert [row["id"] for row in rows_of(tmp_path / "out")] == ["0", "5"]
    bad = [json.loads(line) for line in (tmp_path / "out" / "errors.jsonl").read_text().splitlines()]
    assert [(one["row"], one["id"], one["where"]) for one in bad] == [
        (1, "1", "in.jsonl:2"), (2, "2", "in.jsonl:3"), (3, "nothing", "in.jsonl:4"), (4, "in.jsonl:5", "in.jsonl:5"),
        (6, "in.jsonl:7", "in.jsonl:7"),
    ]  # fmt: skip
    assert [one["reason"].partition(" (")[0] for one in bad] == [
        "refused", "KeyError: 'surprise'", "it has no text",
        "its 'text' has half a surrogate pair and is not text", "it is not JSON",
    ]  # fmt: skip
    assert (done["rows"], done["errors"], done["blank"]) == (2, 5, 1)


def test_what_is_made_of_each_row_may_fail_in_any_way():
    rows = [Row(number, str(number), f"in:{number + 1}", {"text": "x"}) for number in range(4)]

    def make(row, kinds):
        if kind := kinds.get(row.number):
            raise kind("why")
        return row.number

    bad = []
    good = each(rows, lambda row: make(row, {1: OverflowError, 2: EbertError}), bad)
    assert [(row.number, made) for row, made in good] == [(0, 0), (3, 3)]
    assert [(one.row, one.reason) for one in bad] == [(1, "OverflowError: why"), (2, "why")]
    for kind in (OSError, MemoryError):  # not the row's fault
        with pytest.raises(kind):
            each(rows, lambda row, kind=kind: make(row, {1: kind}), [])
    with pytest.raises(KeyError):  # nor if all of them have it
        each(rows, lambda row: make(row, dict.fromkeys(range(4), KeyError)), bad)
    assert len(bad) == 2


def test_rows_that_all_fail_by_surprise_are_not_to_blame(tmp_path):
    corpus = write(tmp_path / "in.jsonl", ["surprise"] * 3)
    with pytest.raises(RuntimeError, match="KeyError: 'surprise'"):
        run(CountJob(), [corpus], tmp_path / "out", engine=Here())


def test_nothing_but_bad_rows_is_an_error(tmp_path):
    corpus = write(tmp_path / "in.jsonl", ["refuse"] * 3)
    with pytest.raises(EbertError, match=r"no row could be processed; .*errors\.jsonl says why"):
        run(CountJob(), [corpus], tmp_path / "out", engine=Here())
    assert len((tmp_path / "out" / "errors.jsonl").read_text().splitlines()) == 3


def test_a_worker_that_dies_is_replaced_and_a_row_that_kills_is_left_out(tmp_path):
    """One dies once, and others three times at the same row, as when other programs take the memory; then all is well.

    At one row every worker dies, and that one is found.
    """
    texts = [f"text {number}" for number in range(40)]
    texts[3], texts[10], texts[16] = f"once {tmp_path / 'once'}", f"thrice {tmp_path / 'thrice'}", "kill me"
    corpus = write(tmp_path / "in.jsonl", texts)
    done = run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=processes())
    assert ((tmp_path / "once").read_text(), (tmp_path / "thrice").read_text()) == ("x", "xxx")
    assert (done["rows"], done["errors"]) == (39, 1)
    bad = json.loads((tmp_path / "out" / "errors.jsonl").read_text())
    assert bad["row"] == 16
    assert "its worker died at this row" in bad["reason"]
    assert not (tmp_path / "out" / "attempts").exists()
    write(corpus, [*texts[:16], {"id": "16"}, *texts[17:]])
    run(CountJob(), [corpus], tmp_path / "again", read=READ, engine=Here())
    assert rows_of(tmp_path / "out") == rows_of(tmp_path / "again")


def test_where_every_row_kills_its_worker_the_job_ends_in_words(tmp_path):
    class Late(LocalEngine):
        def __call__(self, task, shards):
            notes = task.folder / "attempts" / "000000"
            if not notes.exists():  # most of the deaths have been before
                notes.write_text("begun\n" * (MOST - 1))
            yield from super().__call__(task, shards)

    corpus = write(tmp_path / "in.jsonl", ["kill"] * 30)
    with pytest.raises(EbertError, match="workers died 18 times in shard 000000"):
        run(CountJob(), [corpus], tmp_path / "out", engine=Late(EngineOptions(workers=1)))


def test_a_worker_with_another_model_or_another_disk_is_refused(corpus, tmp_path):
    class Elsewhere(Here):
        def __init__(self, change):
            super().__init__()
            self.change = change

        def __call__(self, task, shards):
            yield from super().__call__(self.change(task), shards)

    other = Elsewhere(lambda task: replace(task, job=CountJob(weights="stale")))
    with pytest.raises(EbertError, match="is not the one that the job started with"):
        run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=other)
    other = Elsewhere(lambda task: replace(task, folder=tmp_path / "not shared"))
    with pytest.raises(EbertError, match="must be in a folder that all machines share"):
        run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=other)


def test_missing_columns_are_named_before_the_work(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"body": ["x"], "title": ["y"]}), tmp_path / "a.parquet")
    with pytest.raises(EbertError, match=r"has no column 'text'; it has body, title \(--text-column"):
        run(CountJob(), [tmp_path / "a.parquet"], tmp_path / "out", engine=Here())
    with pytest.raises(EbertError, match="has no column 'key'"):
        run(
            CountJob(),
            [tmp_path / "a.parquet"],
            tmp_path / "out",
            read=ReadOptions(text_column="body", id_column="key"),
        )
    assert not (tmp_path / "out").exists()


def test_workers_take_a_share_of_the_cores():
    from ebert.bulk import local

    assert local.how_many(EngineOptions()) <= local.cores()
    assert local.how_many(EngineOptions(workers=50)) == 50
    assert os.cpu_count() >= local.cores() >= 1
