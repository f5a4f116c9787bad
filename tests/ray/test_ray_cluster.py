"""A node is killed in the middle of a job, and nothing is lost or doubled: the real BERT and the starter's entities."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from bulk_jobs import rows_of, shard_bytes, write

from ebert import Vectors, get_starter
from ebert.bulk.link import LinkJob
from ebert.bulk.local import LocalEngine
from ebert.bulk.options import EngineOptions, ReadOptions
from ebert.bulk.ray import RayEngine
from ebert.bulk.run import run

DOCUMENTS, SHARD = 240, 8
SENTENCES = ("{} is well known.", "He had heard of {} before.", "What is there to say about {}?")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


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


def documents():
    """Short texts with a name each."""
    with Vectors.open(get_starter() / "vectors") as store:
        names = [title for title, _ in store.titles() if re.fullmatch(r"[A-Z][a-z]+( [A-Z][a-z]+)?", title)]
        names = sorted(name for name in names if store.link_probability(name) > 0.1)[::7]
    return [SENTENCES[number % 3].format(name) for number, name in enumerate(names[:DOCUMENTS])]


@pytest.mark.real
def test_a_node_is_killed_and_every_row_is_there_once(cluster, tmp_path):
    import ray

    texts = documents()
    assert len(texts) == DOCUMENTS
    corpus = write(tmp_path / "in.jsonl", texts)
    job, read = LinkJob(linker=str(get_starter()), candidates=3), ReadOptions(shard_rows=SHARD)
    engine = Killing(cluster)
    done = run(job, [corpus], tmp_path / "ray", read=read, engine=engine)
    assert engine.killed
    assert len(engine.before) < DOCUMENTS // SHARD / 2, "the node was killed late"
    assert {report.worker for report in engine.after} - {engine.killed}
    assert sum(node["Alive"] for node in ray.nodes()) == 1
    local = run(job, [corpus], tmp_path / "local", read=read, engine=LocalEngine(EngineOptions(workers=2)))
    rows = rows_of(tmp_path / "ray")
    assert [row["row"] for row in rows] == list(range(DOCUMENTS))
    assert [row["text"] for row in rows] == texts
    assert sum(bool(row["mentions"]) for row in rows) >= 100
    assert rows == rows_of(tmp_path / "local")
    assert shard_bytes(tmp_path / "ray") == shard_bytes(tmp_path / "local")
    assert pq.read_table(tmp_path / "ray" / "rows").num_rows == DOCUMENTS
    same = ("rows", "errors", "blank", "dropped", "shards", "complete")
    assert {name: done[name] for name in same} == {name: local[name] for name in same}
    assert (tmp_path / "ray" / "errors.jsonl").read_bytes() == b""
