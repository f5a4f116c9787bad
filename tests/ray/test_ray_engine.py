"""The Ray engine gives what the local one gives, to the byte; its bad rows, dead workers and errors are as theirs."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import test_bulk_docs
import torch
from bulk_jobs import CountJob, Here, fail_or_die, rows_of, shard_bytes, write
from bulk_models import write_linker, write_model
from dump_files import many_pages, multistream, write_as

from ebert.bulk.encode import EncodeJob
from ebert.bulk.link import LinkJob
from ebert.bulk.options import EngineOptions, ReadOptions
from ebert.bulk.probe import ProbeJob
from ebert.bulk.ray import RayEngine, RayTasks
from ebert.bulk.run import run
from ebert.errors import EbertError
from ebert.wikipedia import dump
from ebert.wikipedia.build import build_corpus

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("shared_cluster"),
]
READ = ReadOptions(shard_rows=5)
STORE = 100 << 20  # bytes


@pytest.fixture(autouse=True)
def one_thread():
    """Workers have one core, and so has what they are compared with."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def both(job, corpus, tmp_path, workers=2):
    """Do a job by Ray and here; give what is said of both."""
    done = [
        run(job, [corpus], tmp_path / name, read=READ, engine=engine)
        for name, engine in (("ray", RayEngine(EngineOptions(workers=workers))), ("here", Here()))
    ]
    assert shard_bytes(tmp_path / "ray") == shard_bytes(tmp_path / "here")
    assert (tmp_path / "ray" / "errors.jsonl").read_bytes() == (tmp_path / "here" / "errors.jsonl").read_bytes()
    same = ("rows", "errors", "blank", "dropped", "shards", "complete")
    assert {name: done[0][name] for name in same} == {name: done[1][name] for name in same}
    return done[0]


def test_bad_rows_are_listed_and_the_others_done(tmp_path):
    texts = ["good", "refuse", "surprise", {"id": "nothing"}, *(f"text {number}" for number in range(30)), "refuse"]
    corpus = write(tmp_path / "in.jsonl", texts)
    corpus.write_text(corpus.read_text() + "{broken\n\n")
    done = both(CountJob(), corpus, tmp_path)
    assert (done["rows"], done["errors"], done["blank"], done["engine"]) == (31, 5, 1, "ray")
    bad = [json.loads(line) for line in (tmp_path / "ray" / "errors.jsonl").read_text().splitlines()]
    assert [one["row"] for one in bad] == [1, 2, 3, 34, 35]


def test_a_worker_that_dies_is_replaced_and_a_row_that_kills_is_found(tmp_path):
    texts = [f"text {number}" for number in range(12)]
    corpus = write(tmp_path / "in.jsonl", [*texts[:3], f"once {tmp_path / 'mark'}", *texts[3:9], "kill me", *texts[9:]])
    done = run(CountJob(), [corpus], tmp_path / "ray", read=READ, engine=RayEngine(EngineOptions(workers=2)))
    assert (tmp_path / "mark").exists()
    assert (done["rows"], done["errors"]) == (13, 1)
    assert [row["row"] for row in rows_of(tmp_path / "ray")] == [number for number in range(14) if number != 10]
    bad = json.loads((tmp_path / "ray" / "errors.jsonl").read_text())
    assert bad["row"] == 10
    assert "its worker died at this row" in bad["reason"]


def test_the_pool_grows_while_there_is_work(tmp_path):
    """It begins with one worker, which waits at its first row until there is another."""
    (tmp_path / "place").mkdir()
    corpus = write(tmp_path / "in.jsonl", [f"meet {tmp_path / 'place'}" for _ in range(30)])
    done = run(CountJob(), [corpus], tmp_path / "ray", read=READ, engine=RayEngine(EngineOptions(workers=2)))
    assert (done["rows"], done["errors"]) == (30, 0)
    assert len(list((tmp_path / "place").iterdir())) == 2


def test_the_pool_grows_with_the_cluster(shared_cluster, tmp_path):
    """Nobody says how many workers there are; two wait for a third, for which a machine comes when both are there."""
    place, added = tmp_path / "place", []
    place.mkdir()
    corpus = write(tmp_path / "in.jsonl", [f"meet {place} 3" for _ in range(60)])
    with ThreadPoolExecutor(1) as thread:  # as nodes can be added by the main one only
        job = thread.submit(run, CountJob(), [corpus], tmp_path / "ray", read=READ, engine=RayEngine())
        while not job.done():
            if not added and len(list(place.iterdir())) == 2:
                added.append(shared_cluster.add_node(num_cpus=1, object_store_memory=STORE))
            time.sleep(0.1)
    for node in added:
        shared_cluster.remove_node(node)
    assert (job.result()["rows"], job.result()["errors"]) == (60, 0)
    assert len(list(place.iterdir())) == 3


def test_what_goes_wrong_in_a_worker_is_said_in_its_words(tmp_path):
    corpus = write(tmp_path / "in.jsonl", [f"text {number}" for number in range(20)])

    class Changing(RayEngine):
        def __call__(self, task, shards):
            corpus.write_text(corpus.read_text()[:-20])
            yield from super().__call__(task, shards)

    with pytest.raises(EbertError, match="has changed since the job began"):
        run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=Changing(EngineOptions(workers=1)))
    assert not json.loads((tmp_path / "out" / "manifest.json").read_text())["complete"]


def test_a_job_may_change_engines(tmp_path):
    class Half(Here):
        def __call__(self, task, shards):
            for report in super().__call__(task, shards):
                yield report
                if report.shard == 2:
                    raise KeyboardInterrupt

    corpus = write(tmp_path / "in.jsonl", [f"text {number}" for number in range(30)])
    with pytest.raises(KeyboardInterrupt):
        run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=Half())
    kept = shard_bytes(tmp_path / "out")
    assert len(kept) == 3
    run(CountJob(), [corpus], tmp_path / "out", read=READ, engine=RayEngine(EngineOptions(workers=1)))
    assert [row["row"] for row in rows_of(tmp_path / "out")] == list(range(30))
    assert shard_bytes(tmp_path / "out").items() >= kept.items()


def test_vectors_are_the_same(tmp_path):
    model = write_model(tmp_path / "made")
    texts = [f"the capital of [[France]] is {'a city ' * (number % 7)}[[Paris]]" for number in range(24)]
    done = both(EncodeJob(model=model), write(tmp_path / "in.jsonl", [*texts, "a " * 100]), tmp_path)
    assert (done["rows"], done["errors"]) == (24, 1)


def test_answers_are_the_same(tmp_path):
    model = write_model(tmp_path / "made")
    rows = [
        {"template": f"{'a city ' * (number % 5)} the capital of [X] is [Y].", "subject": subject, "answers": [answer]}
        for number in range(12)
        for subject, answer in (("France", "Paris"), ("Italy", "Rome"))
    ]
    corpus = write(tmp_path / "in.jsonl", [*rows, {"text": "no mask", "answers": ["Rome"]}])
    done = both(ProbeJob(model=model, modes=("bert", "concat")), corpus, tmp_path, workers=1)
    assert (done["rows"], done["errors"]) == (24, 1)
    assert done["modes"]["concat"]["all"]["questions"] == 24
    scores = [(tmp_path / name / "metrics.json").read_bytes() for name in ("ray", "here")]
    assert scores[0] == scores[1]


def test_links_are_the_same(tmp_path):
    linker = write_linker(tmp_path / "made")
    texts = [f"{'Adams ' * (number % 4)}and Platt will miss England and London" for number in range(23)]
    done = both(LinkJob(linker=linker), write(tmp_path / "in.jsonl", texts), tmp_path, workers=1)
    assert done["rows"] == 23
    assert all(row["mentions"] for row in rows_of(tmp_path / "ray"))


def contents(folder):
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    info = json.loads(files.pop("corpus.json"))
    return files | {key: value for key, value in info.items() if key != "seconds"}


@pytest.mark.parametrize("kind", ["multistream", "gz"])
def test_a_corpus_is_the_same_to_the_byte(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(dump, "PIECE", 3000)
    monkeypatch.setattr(dump, "RANGE", 1500)
    path = write_as(kind, tmp_path, many_pages(100))
    pieces = len(list(dump.pieces(dump.look(path))))
    assert pieces > 5
    build_corpus([path], tmp_path / "ray", run=RayTasks())
    build_corpus([path], tmp_path / "local", threads=1)
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
    assert not (tmp_path / "ray.parts").exists()


def test_a_damaged_dump_is_named_and_what_can_be_read_is_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(dump, "RANGE", 1500)
    data = bytearray(multistream(many_pages(60), 10))
    data[dump.streams_in(bytes(data))[3] + 300] ^= 0xFF
    path = tmp_path / "a.xml.bz2"
    path.write_bytes(data)
    with pytest.raises(EbertError, match="is damaged at about byte"):
        build_corpus([path], tmp_path / "ray", run=RayTasks())
    build_corpus([path], tmp_path / "ray", run=RayTasks(), keep_going=True)
    build_corpus([path], tmp_path / "local", threads=1, keep_going=True)
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")


def test_tasks_of_workers_that_die_are_done_again(tmp_path):
    tasks = [(f"{number}", "") for number in range(6)] + [("die once", str(tmp_path / "mark"))]
    found = dict(RayTasks(EngineOptions(workers=2))(fail_or_die, tasks))
    assert sorted(found.values()) == sorted(what for what, _ in tasks)
    with pytest.raises(EbertError, match="this one failed"):
        list(RayTasks()(fail_or_die, [("1", ""), ("fail", ""), ("2", "")]))
    with pytest.raises(EbertError, match=r"does not see .*nowhere; dumps and --out must be in folders"):
        list(RayTasks()(fail_or_die, [("not there", str(tmp_path / "nowhere"))]))


@pytest.mark.real
def test_the_command_of_the_docs_for_a_cluster_works_as_written(shared_cluster, tmp_path):
    first = next(block for _, block in test_bulk_docs.BLOCKS if "cat > news.jsonl" in block)
    (tmp_path / "news.jsonl").write_text(first.partition("END'\n")[2].partition("END\n")[0])
    kind, block = next(pair for pair in test_bulk_docs.BLOCKS if "$HEAD" in pair[1])
    done = test_bulk_docs.do(kind, block, tmp_path, HEAD=shared_cluster.address)
    assert done.returncode == 0, done.stderr
    assert [row["id"] for row in rows_of(tmp_path / "linked-on-a-cluster")] == ["a", "b", "c"]
