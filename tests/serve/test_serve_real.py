"""`ebert serve starter` as people start it: the real BERT, the starter's vectors, a process of its own."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from serve_world import nif

from ebert import EBert, get_starter

pytestmark = pytest.mark.real
QUESTION = "The native language of [[Romy Schneider]] is [MASK]."


class Process:
    """A service in a process of its own, started from the command line."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        command = [sys.executable, "-m", "ebert", "serve", *arguments, "--port", "0", "--json"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment
        )
        self.printed = json.loads(self.process.stdout.readline())
        self.url, _, self.token = self.printed["url"].partition("#token=")
        self.err: list[str] = []
        self._reader = threading.Thread(target=lambda: self.err.extend(self.process.stderr))
        self._reader.start()

    def wait(self) -> "Process":
        while self.process.poll() is None and httpx.get(f"{self.url}ready").status_code != 200:
            time.sleep(0.1)
        return self

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=None, headers={"Authorization": f"Bearer {self.token}"})

    def end(self, sign: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(sign)
        code = self.process.wait()
        self._reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code


@pytest.fixture(scope="module")
def process():
    service = Process("starter").wait()
    yield service
    assert service.end() == 0
    assert "ready; Ctrl-C ends it\n" in service.err


@pytest.fixture
def client(process):
    with process.client() as client:
        yield client


def best(answer: httpx.Response) -> dict[str, str]:
    assert answer.status_code == 200, answer.text
    return {result["mode"]: result["masks"][0][0]["token"] for result in answer.json()["results"]}


def test_the_answers_are_those_of_the_model(client):
    model = EBert.from_pretrained(get_starter())
    found = best(client.post("/api/fill", json={"text": QUESTION}))
    assert found == {mode: model.fill(QUESTION, mode=mode).best for mode in ("bert", "concat", "replace")}


def test_concurrent_clients_get_their_own_answers(client, process):
    names = ["Jean Marais", "Romy Schneider", "Franz Kafka", "Niels Bohr", "Akira Kurosawa", "Luis Buñuel"]
    asked = [{"text": f"The native language of [[{name}]] is [MASK].", "modes": ["concat"]} for name in names]
    alone = [best(client.post("/api/fill", json=one)) for one in asked]
    with ThreadPoolExecutor(12) as pool, process.client() as shared:
        answers = list(pool.map(lambda one: shared.post("/api/fill", json=one), asked * 4))
    assert [best(answer) for answer in answers] == alone * 4
    assert [answer.json()["mentions"][0]["entity"] for answer in answers] == names * 4


def test_an_entity_is_taught_and_the_starter_stays_as_it_was(client):
    store = get_starter() / "vectors"
    before = {file.name: (file.stat().st_mtime_ns, file.stat().st_size) for file in store.iterdir()}
    asked = {
        "text": "[[Zorblax Inc.|Zorblax]] is a [MASK] company.",
        "modes": ["bert", "replace"],
        "candidates": ["Danish", "French", "Italian", "Russian"],
    }
    ignorant = client.post("/api/fill", json=asked)
    assert ignorant.json()["missing"] == ["Zorblax Inc."]
    description = (
        "Zorblax Inc. is a Danish maker of wind turbines in Copenhagen, Denmark. Its factory is in Copenhagen."
    )
    new = {"title": "Zorblax Inc.", "description": description, "aliases": ["Zorblax"]}
    added = client.post("/api/entities", json=new)
    assert added.status_code == 201
    assert "Danish" in added.json()["words_used"]
    taught = client.post("/api/fill", json=asked)
    assert taught.json()["missing"] == []
    assert best(ignorant) == {"bert": "French", "replace": "French"}
    assert best(taught) == {"bert": "French", "replace": "Danish"}
    assert {file.name: (file.stat().st_mtime_ns, file.stat().st_size) for file in store.iterdir()} == before


def test_a_neighbourhood_makes_sense(client):
    found = client.get("/api/explore", params={"name": "Paris", "count": 10}).json()
    assert "France" in [one["name"] for one in found["entities"]]
    assert "Paris" in [one["name"] for one in found["words"]]
    assert {"Parisian", "Strasbourg", "Lausanne"} & {one["token"] for one in found["wordpieces"]}


def test_gerbil_gets_the_mentions_it_gave_linked(client):
    text = "Berlin is the capital of Germany ."
    answer = client.post("/nif", content=nif(text, [(0, 6), (25, 32)]), headers={"Accept": "application/x-turtle"})
    assert answer.status_code == 200
    assert "taIdentRef <http://en.wikipedia.org/wiki/Berlin>" in answer.text
    assert "taIdentRef <http://en.wikipedia.org/wiki/Germany>" in answer.text


def test_sigterm_finishes_what_was_accepted_and_ctrl_c_ends_it_too():
    service = Process("starter", EBERT_TOKEN="from-the-environment").wait()
    assert service.token == ""  # a token that somebody chose is not printed
    assert any("EBERT_TOKEN" in line for line in service.err)
    texts = [f"{QUESTION} Number {number}." for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = [
            pool.submit(httpx.post, f"{service.url}api/fill", json={"text": text}, timeout=None) for text in texts
        ]
        seen = 'ebert_requests_total{endpoint="/api/fill",status="200"}'
        while seen not in httpx.get(f"{service.url}metrics").text:  # some are answered, and the others accepted
            time.sleep(0.05)
        service.process.send_signal(signal.SIGTERM)
        results = [answer.result() for answer in answers]
    assert service.end(signal.SIGINT) == 0
    assert [one.status_code for one in results] == [200] * 8
    plain = QUESTION.replace("[[", "").replace("]]", "")
    assert [one.json()["text"] for one in results] == [f"{plain} Number {number}." for number in range(8)]


def test_a_model_that_is_not_there_is_bad_input():
    command = [sys.executable, "-m", "ebert", "serve", "no-such-model", "--port", "0", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")  # no URL is printed that nobody would answer at
    assert "error: there is no model at" in done.stderr
