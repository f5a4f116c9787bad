"""Jobs on a cluster: what the local engine gives, to the byte, with bad rows, dead workers and a killed node."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import test_bulk_docs
import torch
from bulk_jobs import CountJob, Here, fail_or_die, rows_of, shard_bytes, write
from bulk_models import link_world, write_linker
from dump_files import many_pages, multistream, write_as

from ebert.bulk.link import LinkJob
from ebert.bulk.options import EngineOptions, ReadOptions
from ebert.bulk.ray import RayEngine, RayTasks
from ebert.bulk.run import run
from ebert.errors import EbertError
from ebert.wikipedia import dump
from ebert.wikipedia.build import build_corpus

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("cluster"),
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


def check_same(one, other, folder):
    """Compare two jobs: what is said of them, their rows and their bad rows."""
    assert shard_bytes(folder / "ray") == shard_bytes(folder / "here")
    assert (folder / "ray" / "errors.jsonl").read_bytes() == (folder / "here" / "errors.jsonl").read_bytes()
    same = ("rows", "errors", "blank", "dropped", "shards", "complete")
    assert {name: one[name] for name in same} == {name: other[name] for name in same}


def test_a_job_with_bad_rows_may_change_engines(tmp_path):
    class Half(Here):
        def __call__(self, task, shards):
            for report in super().__call__(task, shards):
                yield report
                if report.shard == 2:
                    raise KeyboardInterrupt

    texts = ["good", "refuse", {"id": "nothing"}, *(f"text {number}" for number in range(20)), "surprise", "refuse"]
    corpus = write(tmp_path / "in.jsonl", texts)
    corpus.write_text(corpus.read_text() + "{broken\n\n")
    with pytest.raises(KeyboardInterrupt):
        run(CountJob(), [corpus], tmp_path / "ray", read=READ, engine=Half())
    assert len(shard_bytes(tmp_path / "ray")) == 3
    done = run(CountJob(), [corpus], tmp_path / "ray", read=READ, engine=RayEngine(EngineOptions(workers=2)))
    assert (done["rows"], done["errors"], done["blank"], done["engine"]) == (21, 5, 1, "ray")
    bad = [json.loads(line) for line in (tmp_path / "ray" / "errors.jsonl").read_text().splitlines()]
    assert [one["row"] for one in bad] == [1, 2, 23, 24, 25]
    check_same(done, run(CountJob(), [corpus], tmp_path / "here", read=READ, engine=Here()), tmp_path)


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


def test_the_pool_grows_with_the_cluster(cluster, tmp_path):
    """It begins with one worker; two wait for a third, for which a machine comes when both are there."""
    place, added = tmp_path / "place", []
    place.mkdir()
    corpus = write(tmp_path / "in.jsonl", [f"meet {place} 3" for _ in range(60)])
    with ThreadPoolExecutor(1) as thread:  # as nodes can be added by the main one only
        job = thread.submit(run, CountJob(), [corpus], tmp_path / "ray", read=READ, engine=RayEngine())
        while not job.done():
            if not added and len(list(place.iterdir())) == 2:
                added.append(cluster.add_node(num_cpus=1, object_store_memory=STORE))
            time.sleep(0.1)
    for node in added:
        cluster.remove_node(node)
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


# Dumps


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


# The docs


def test_the_commands_of_the_docs_for_a_cluster_work_as_written(cluster, ebert, tmp_path, monkeypatch):
    """Without an address they would start a cluster of their own, as in test_ray_alone.py; here they have this one."""
    monkeypatch.chdir(tmp_path)
    test_bulk_docs.prepare(tmp_path)
    first = next(block for _, block in test_bulk_docs.BLOCKS if "cat > news.jsonl" in block)
    (tmp_path / "news.jsonl").write_text(first.partition("END'\n")[2].partition("END\n")[0])
    for kind, block in test_bulk_docs.BLOCKS:
        if "--engine ray" in block:
            test_bulk_docs.do(kind, block, tmp_path, ebert, HEAD=cluster.address)
    linked = rows_of(tmp_path / "linked-by-ray")
    assert [row["id"] for row in linked] == ["a", "b", "c"]
    assert [one["entity"] for one in linked[1]["mentions"]] == ["Rome", "Italy"]
    assert rows_of(tmp_path / "linked-on-a-cluster") == linked
    assert (tmp_path / "enwiki" / "corpus.json").exists()


# The last one, as it leaves one node


class Killing:
    """The Ray engine, and a hand that kills a node as soon as it has shown that it works."""

    def __init__(self, cluster):
        self._cluster = cluster
        self._second = next(node for node in cluster.worker_nodes)
        self.before, self.after, self.killed = [], [], None
        self._engine = RayEngine(EngineOptions(workers=2, least_workers=2))

    def __call__(self, task, shards):
        raylet = self._second.all_processes["raylet"][0].process.pid
        for report in self._engine(task, shards):
            (self.after if self.killed else self.before).append(report)
            if not self.killed and parent(int(report.worker.partition(":")[2])) == raylet:
                self.killed = report.worker
                self._cluster.remove_node(self._second, allow_graceful=False)
            yield report

    def facts(self):
        return self._engine.facts()


def parent(pid):
    found = re.search(r"^PPid:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1])


def test_a_node_is_killed_and_every_row_is_there_once(cluster, tmp_path):
    import ray

    texts = [link_world.TEXT.partition(" and ")[number % 3] + f" in London {number}" for number in range(300)]
    corpus = write(tmp_path / "in.jsonl", texts)
    job, read = LinkJob(linker=write_linker(tmp_path / "made"), candidates=3), ReadOptions(shard_rows=4)
    engine = Killing(cluster)
    done = run(job, [corpus], tmp_path / "ray", read=read, engine=engine)
    assert engine.killed
    assert len(engine.before) < 75 / 2, "the node was killed late"
    assert {report.worker for report in engine.after} - {engine.killed}
    assert sum(node["Alive"] for node in ray.nodes()) == 1
    rows = rows_of(tmp_path / "ray")
    assert [row["text"] for row in rows] == texts
    assert all(row["mentions"] for row in rows)
    assert (done["rows"], done["errors"]) == (300, 0)
    check_same(done, run(job, [corpus], tmp_path / "here", read=read, engine=Here()), tmp_path)
