"""Many clients at once: nothing is lost or mixed up, too much is refused, and an end is an end in order."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from serve_world import Gate, Live, live, post, read_all, tiny

from ebert.serve.options import Limits

ENTITIES = ["England", "London", "NATO", "Cairo", "Physics", "John Adams", "Injury", "Al-Qaeda"]
WORDS = ["and", "are", "both", "injured", "will", "miss", "opening", "World", "Cup", "qualifier"]


def sentence(number: int) -> str:
    """Texts of many lengths, each different."""
    words = " ".join(WORDS[(number + step) % len(WORDS)] for step in range(number % 7))
    return f"[[{ENTITIES[number % len(ENTITIES)]}]] {words} {number} [MASK]"


def tokens(answer: httpx.Response):
    assert answer.status_code == 200, answer.text
    value = answer.json()
    return value["text"], [
        [(one["token"], round(one["probability"], 3)) for one in result["masks"][0]] for result in value["results"]
    ]


def expected(model, text: str):
    filled = {mode: model.fill(text, mode=mode, top=3).answers for mode in ("bert", "concat", "replace")}
    plain = text.replace("[[", "").replace("]]", "", 1)
    return plain, [[(one.token, round(one.probability, 3)) for one in answers] for answers in filled.values()]


@pytest.mark.parametrize("batching", [True, False])
def test_no_answer_is_lost_or_anothers(tiny_folder, batching):
    with live(tiny(tiny_folder), batching=batching, budget=256) as service:
        wanted = {number: expected(service.loaded.model, sentence(number)) for number in range(80)}
        assert len({repr(one) for one in wanted.values()}) == 80

        def client(start: int) -> int:
            with service.client() as client:
                for number in range(start, start + 20):
                    got = tokens(client.post("/api/fill", json={"text": sentence(number % 80), "top": 3}))
                    assert got == wanted[number % 80]
            return 20

        with ThreadPoolExecutor(24) as pool:
            assert sum(pool.map(client, range(0, 240, 10))) == 480
        lines = httpx.get(f"{service.url}/metrics").text.splitlines()
        largest = next(line for line in lines if line.startswith('ebert_batch_requests_bucket{lane="fill",le="1.0"}'))
        total = next(line for line in lines if line.startswith('ebert_batch_requests_count{lane="fill"}'))
        alone, batches = (float(line.split()[-1]) for line in (largest, total))
        assert (alone < batches) if batching else (alone == batches == 480)


def test_linked_texts_are_not_mixed_up_either(service):
    texts = ["England and NATO", "Adams and Platt are both injured.", "Cairo", "London and England " * 9, "nothing"]

    def ask(text: str):
        with service.client() as client:
            found = client.post("/api/link", json={"text": text, "threshold": 0}).json()
        return found["text"], [(one["start"], one["entity"]) for one in found["mentions"]]

    alone = [ask(text) for text in texts]
    with ThreadPoolExecutor(10) as pool:
        assert list(pool.map(ask, texts * 6)) == alone * 6


def test_different_questions_in_one_batch_keep_their_own_answers(tiny_folder):
    with live(tiny(tiny_folder)) as service:
        gate = Gate(service.loaded)
        asked = [
            {"text": "England [MASK]", "top": 1, "modes": ["bert"]},
            {"text": "England [MASK] [MASK]", "top": 4, "modes": ["bert"]},
            {"text": "England [MASK]", "top": 9, "modes": ["bert"], "candidates": ["Cup", "World"]},
        ]
        with ThreadPoolExecutor(4) as pool, service.client() as client:
            first = pool.submit(client.post, "/api/fill", json={"text": "Cairo [MASK]"})
            gate.reached.wait()
            others = [pool.submit(client.post, "/api/fill", json=one) for one in asked]
            until_waiting(service, 3)
            gate.open()
            assert first.result().status_code == 200
            masks = [other.result().json()["results"][0]["masks"] for other in others]
        assert [[len(mask) for mask in one] for one in masks] == [[1], [4, 4], [2]]
        assert {one["token"] for one in masks[2][0]} == {"Cup", "World"}


def until_waiting(service: Live, jobs: int, lane: str = "filling") -> None:
    """Wait until so many jobs are in line."""
    while len(getattr(service.running.service._working, lane)) < jobs:
        threading.Event().wait(0.01)


# Too much


def test_overload_is_refused_with_a_time_to_come_back(tiny_folder):
    with live(tiny(tiny_folder), limits=Limits(waiting=3)) as service, ThreadPoolExecutor(8) as pool:
        gate = Gate(service.loaded)
        client = service.client()
        running = pool.submit(client.post, "/api/fill", json={"text": "England [MASK]"})
        gate.reached.wait()
        waiting = [pool.submit(client.post, "/api/fill", json={"text": f"{n} [MASK]"}) for n in range(3)]
        until_waiting(service, 3)
        for _ in range(20):
            refused = client.post("/api/fill", json={"text": "one too many [MASK]"})
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) >= 1
            assert "try again" in refused.json()["error"]
        assert client.get("/health").status_code == client.get("/ready").status_code == 200  # still healthy
        assert client.get("/api/entity", params={"name": "England"}).status_code == 200
        gate.open()
        assert [one.result().status_code for one in [running, *waiting]] == [200] * 4
        assert 'ebert_refused_total{reason="full"} 20.0' in client.get("/metrics").text
        client.close()


def test_an_answer_that_is_computed_is_not_refused_because_look_ups_wait(tiny_folder):
    with live(tiny(tiny_folder), limits=Limits(waiting=1)) as service, ThreadPoolExecutor(1) as pool:
        gate, held = Gate(service.loaded), threading.Event()
        running = pool.submit(httpx.post, f"{service.url}/api/fill", json={"text": "England [MASK]"}, timeout=None)
        gate.reached.wait()
        quick = service.running.service._working.quick
        for _ in range(quick.options.threads):  # all its threads are busy, and the line is full
            quick.submit(held.wait)
            while len(quick):
                threading.Event().wait(0.01)
        quick.submit(held.wait)
        gate.open()
        while len(quick) < 2:  # the answer waits to be written
            assert not running.done(), running.result().text
            threading.Event().wait(0.01)
        held.set()
        assert running.result().status_code == 200


def test_too_many_open_requests_are_refused_too(tiny_folder):
    with live(tiny(tiny_folder), limits=Limits(connections=4)) as service, ThreadPoolExecutor(8) as pool:
        gate = Gate(service.loaded)
        open_ones = []
        for number in range(4):
            asked = {"text": f"{number} [MASK]"}
            open_ones.append(pool.submit(httpx.post, f"{service.url}/api/fill", json=asked, timeout=None))
            gate.reached.wait()  # so that the first runs alone
        until_waiting(service, 3)
        answer = httpx.post(f"{service.url}/api/fill", json={"text": "[MASK]"})
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1
        assert httpx.get(f"{service.url}/health").status_code == 200
        gate.open()
        assert [one.result().status_code for one in open_ones] == [200] * 4


def test_a_connection_too_many_is_told_so_at_once(tiny_folder):
    with live(tiny(tiny_folder), limits=Limits(connections=2)) as service:
        idle = [service.connect() for _ in range(4)]
        while len(service.running._server.server_state.connections) < 4:
            threading.Event().wait(0.01)
        with service.connect() as one_more:
            answer = read_all(one_more)
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"Retry-After: 1\r\n" in answer
        for connection in idle:
            connection.close()
        while service.running._server.server_state.connections:
            threading.Event().wait(0.01)
        assert httpx.get(f"{service.url}/ready").status_code == 200


def test_an_answer_that_takes_too_long_is_given_up(tiny_folder):
    with live(tiny(tiny_folder), limits=Limits(seconds=0.3)) as service, service.client() as client:
        gate = Gate(service.loaded)
        for _ in range(2):  # the one that runs, and one that waits behind it
            answer = client.post("/api/fill", json={"text": "England [MASK]"})
            assert answer.status_code == 504
            assert "0.3 s" in answer.json()["error"]
        assert len(service.running.service._working.filling) == 0  # nobody waits for the second any more
        gate.open()
        while client.post("/api/fill", json={"text": "England [MASK]"}).status_code != 200:
            pass


def test_the_work_of_a_client_that_went_away_is_not_done(tiny_folder):
    with live(tiny(tiny_folder)) as service, ThreadPoolExecutor(1) as pool:
        gate = Gate(service.loaded)
        first = pool.submit(httpx.post, f"{service.url}/api/fill", json={"text": "England [MASK]"}, timeout=None)
        gate.reached.wait()
        with service.connect() as connection:
            connection.sendall(post("/api/fill", {"text": "never mind [MASK]"}))
            until_waiting(service, 1)
        while len(service.running.service._working.filling):
            threading.Event().wait(0.01)
        gate.open()
        assert first.result().status_code == 200
        assert 'ebert_refused_total{reason="client went away"} 1.0' in httpx.get(f"{service.url}/metrics").text


# The end


def test_an_end_in_order_finishes_what_was_accepted(tiny_folder):
    service = Live(tiny(tiny_folder)).start().wait()
    gate = Gate(service.loaded)
    with ThreadPoolExecutor(16) as pool:
        accepted = []
        for number in range(12):
            asked = {"text": sentence(number), "top": 3}
            accepted.append(pool.submit(httpx.post, f"{service.url}/api/fill", json=asked, timeout=None))
            gate.reached.wait()
        until_waiting(service, 11)
        with service.connect() as early:  # connected before the end, asks after it
            service.running.stop()
            early.sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = read_all(early)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 503")
        assert not any(one.done() for one in accepted)
        gate.open()
        results = [one.result() for one in accepted]
    service.join()
    assert service.failure is None
    assert [one.status_code for one in results] == [200] * 12
    for number, one in enumerate(results):
        assert one.json()["text"].endswith(f"{number} [MASK]")
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{service.url}/health")


def test_before_the_model_is_there_the_service_says_so(tiny_folder):
    go = threading.Event()

    def slowly():
        go.wait()
        return tiny(tiny_folder)()

    service = Live(slowly).start()
    try:
        with service.client() as client:
            assert client.get("/health").json() == {"status": "ok"}
            ready = client.get("/ready")
            assert (ready.status_code, ready.json()["ready"]) == (503, False)
            assert "loading" in ready.json()["why"]
            assert int(ready.headers["retry-after"]) >= 1
            for answer in (
                client.post("/api/fill", json={"text": "[MASK]"}),
                client.get("/api/model"),
                client.get("/api/entities", params={"q": "e"}),
                client.post("/nif", content=b""),
            ):
                assert answer.status_code == 503
                assert int(answer.headers["retry-after"]) >= 1
                assert "loading" in answer.json()["error"]
            assert client.get("/").status_code == 200
            go.set()
            service.wait()
            assert client.post("/api/fill", json={"text": "[MASK]"}).status_code == 200
    finally:
        go.set()
        service.stop()


def test_a_model_that_cannot_be_loaded_ends_the_service(tmp_path):
    service = Live(tiny(tmp_path / "nowhere")).start()
    service.join()
    assert "there is no model" in str(service.failure)


def test_a_failure_of_our_own_is_a_500_in_words_and_the_service_goes_on(tiny_folder, capfd):
    with live(tiny(tiny_folder)) as service, service.client() as client:
        broken = service.loaded.model.encoder.base_model.register_forward_pre_hook(lambda *_: 1 / 0)
        answer = client.post("/api/fill", json={"text": "England [MASK]"})
        assert answer.status_code == 500
        assert answer.json()["error"].startswith("the service failed (ZeroDivisionError)")
        broken.remove()
        assert client.post("/api/fill", json={"text": "England [MASK]"}).status_code == 200
