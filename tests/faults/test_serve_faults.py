"""Hostile and hasty clients of a service that is a process of its own: long texts, clients that leave, junk."""

import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

sys.path.append(str(Path(__file__).parents[1] / "serve"))
from serve_world import TOKEN, nif, post, read_all, write_model

from ebert import Linker
from ebert.linking.document import Document

SENTENCE = "Adams and Platt are both injured and will miss England's opening World Cup qualifier. "
ROUNDS = 10
LONG = SENTENCE * 400
LONGER = SENTENCE * 1000
FIFTH = SENTENCE * 80  # of the first
SHORT = {"text": SENTENCE, "rounds": 2, "threshold": 0}
TOGETHER = 20  # requests of the mixed attack at a time
SLOW = 5  # clients that never finish their requests while the attack lasts
JSON = {"Content-Type": "application/json"}
GROWTH = 64 * 2**20  # bytes


class Server:
    """`ebert serve` with the tiny model."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ebert", "serve", str(folder), "--port", "0", "--json", *options],
            env={**os.environ, "EBERT_TOKEN": TOKEN, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.port = json.loads(self._process.stdout.readline())["port"]
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=None
        )
        while self.client.get("/ready").status_code != 200:
            assert self._process.poll() is None
            time.sleep(0.05)

    def stop(self) -> int:
        self.client.close()
        self._process.terminate()
        self._process.communicate()
        return self._process.returncode

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port))

    def raw(self, *parts: bytes) -> bytes:
        with self.connect() as connection:
            for part in parts:
                connection.sendall(part)
            return read_all(connection)

    def metric(self, name: str) -> float:
        lines = self.client.get("/metrics").text.splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))

    @property
    def cpu(self) -> float:
        """Seconds of CPU that the process has used."""
        return self.metric("process_cpu_seconds_total")

    def idle(self) -> float:
        """Wait until the process does nothing any more; return the seconds of CPU that it has used."""
        before, now = -1.0, self.cpu
        while now - before > 0.1:
            time.sleep(1)
            before, now = now, self.cpu
        return now

    def cost(self, text: str) -> float:
        """Link a text and return the seconds of CPU that it took."""
        start = self.cpu
        answer = self.client.post("/api/link", json=long_one(text))
        assert answer.status_code == 200, answer.text
        return self.cpu - start


def long_one(text: str = LONG) -> dict:
    return {"text": text, "rounds": ROUNDS, "threshold": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_model(tmp_path_factory.mktemp("serve"))


@pytest.fixture(scope="module")
def server(folder) -> Iterator[Server]:
    """A service that takes texts which keep it busy for long, in many small batches."""
    one = Server(folder, "--seconds", "3600", "--characters", "200000", "--cost", "1800000", "--budget", "64")
    yield one
    assert one.stop() == 0


def found(answer: httpx.Response) -> list[tuple[int, str, float]]:
    assert answer.status_code == 200, answer.text
    return [(one["start"], one["entity"], round(one["probability"], 2)) for one in answer.json()["mentions"]]


def expected(linker: Linker, text: str, rounds: int) -> list[tuple[int, str, float]]:
    (linked,) = linker.link([Document("1", text)], threshold=0, rounds=rounds)
    return [(one.start, one.entity, round(one.probability, 2)) for one in linked.mentions]


def begin(server: Server, connection: socket.socket, text: str = LONG) -> None:
    """Send a long request, and wait until it is worked on."""
    start = server.cpu
    connection.sendall(post("/api/link", long_one(text)))
    while server.cpu < start + 0.5:
        time.sleep(0.05)


# Long texts


def test_short_requests_are_answered_while_a_long_one_runs(server, folder, attack):
    linker = Linker.from_pretrained(folder)
    short, long = expected(linker, SENTENCE, 2), expected(linker, LONG, ROUNDS)
    assert len(long) > 400
    with server.connect() as connection:
        begin(server, connection)
        connection.setblocking(False)
        for number in attack("short request behind a long one", short=10, long=50):
            attack.check(found(server.client.post("/api/link", json=SHORT)) == short, f"try {number}: another answer")
            with pytest.raises(BlockingIOError):  # nothing has come yet
                connection.recv(1)
        connection.setblocking(True)
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    assert [(m["start"], m["entity"], round(m["probability"], 2)) for m in json.loads(body)["mentions"]] == long


def test_the_work_of_a_client_that_left_is_stopped(server, attack):
    fifth = server.cost(FIFTH)
    for number in attack("client leaves a long request", short=1, long=20):
        with server.connect() as connection:
            begin(server, connection)
        start = server.cpu
        used = server.idle() - start
        attack.check(used < fifth, f"try {number}: {used:.1f} s of CPU for nobody, {fifth:.1f} s are a fifth of it")


def test_the_work_of_a_request_that_timed_out_is_stopped(server, folder, attack):
    tenth, seconds = server.cost(FIFTH), 2
    hasty = Server(folder, "--seconds", str(seconds), "--characters", "200000", "--cost", "1800000", "--budget", "64")
    for number in attack("long request times out", short=1, long=20):
        start = hasty.cpu
        late = hasty.client.post("/api/link", json=long_one(LONGER))
        attack.check(late.status_code == 504, f"try {number}: {late.status_code} instead of 504")
        behind = hasty.client.post("/api/link", json=SHORT)
        attack.check(behind.status_code == 200, f"try {number}: {behind.status_code} for the one behind it")
        used = hasty.idle() - start
        attack.check(used < seconds + tenth, f"try {number}: {used:.1f} s of CPU, {tenth:.1f} s are a tenth of it")
    assert hasty.stop() == 0


# Everything at once


def headers(path: str, length: int, more: bytes = b"") -> bytes:
    kind = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % path.encode()
    return kind + b"Content-Length: %d\r\n%s\r\n" % (length, more)


def near(got, wanted) -> bool:
    """Return whether two answers are the same, but for rounding: another batch adds up in another order."""
    if isinstance(wanted, float):
        return abs(got - wanted) < 0.01
    if isinstance(wanted, list):
        return len(got) == len(wanted) and all(map(near, got, wanted))
    if isinstance(wanted, dict):
        return got.keys() == wanted.keys() and all(near(got[key], wanted[key]) for key in wanted)
    return bool(got == wanted)


class Mixed:
    """Requests of many kinds, each with what must come of it."""

    def __init__(self, server: Server) -> None:
        self._server, self._client = server, server.client
        self._alone = [self._asked(number).json() for number in range(10)]

    def __call__(self, number: int) -> str | None:
        """Send a request; return what is wrong with the answer."""
        kinds = [
            self._sound, self._sound, self._found, self._suggested, self._added, self._nif,
            self._refused, self._refused, self._junk, self._left, self._dribbled, self._piped,
        ]  # fmt: skip
        chance = random.Random(number)
        kind = chance.choice(kinds)
        try:
            good = kind(number, chance)
        except (httpx.HTTPError, OSError, ValueError, KeyError, IndexError) as error:
            return f"{kind.__name__} {number}: {error!r}"
        return None if good else f"{kind.__name__} {number}: another answer than it should be"

    def _asked(self, number: int) -> httpx.Response:
        """Fill or link a text; the texts come again after ten."""
        words = " ".join(SENTENCE.split()[number % 10 :]).removesuffix(".")
        if number % 10 < 5:
            return self._client.post("/api/fill", json={"text": f"[[England]] and {words} [MASK]", "top": 3})
        return self._client.post("/api/link", json={"text": f"England and {words}", "threshold": 0, "rounds": 2})

    def _sound(self, number: int, _: random.Random) -> bool:
        answer = self._asked(number)
        return answer.status_code == 200 and near(answer.json(), self._alone[number % 10])

    def _found(self, number: int, chance: random.Random) -> bool:
        path = chance.choice(["/api/entity", "/api/nearest", "/api/explore"])
        name = chance.choice(["England", "London", "NATO", f"Nobody {number}"])
        answer = self._client.get(path, params={"name": name})
        if name.startswith("Nobody"):
            return answer.status_code == 404 and name in answer.json()["error"]
        value = answer.json()
        return answer.status_code == 200 and name in (value.get("title"), value.get("name"), *value.get("entity", []),
                                                      value.get("entity", {}).get("title"))  # fmt: skip

    def _suggested(self, _: int, chance: random.Random) -> bool:
        typed, title = chance.choice([("lond", "London"), ("cai", "Cairo"), ("nat", "NATO")])
        value = self._client.get("/api/entities", params={"q": typed, "count": 3}).json()
        return value["entities"][0]["title"] == title

    def _added(self, number: int, _: random.Random) -> bool:
        new = {"title": f"Zorblax {number}", "description": "both are injured"}
        first = self._client.post("/api/entities", json=new)
        again = self._client.post("/api/entities", json=new)
        known = self._client.get("/api/entity", params={"name": new["title"]})
        found = (first.status_code, again.status_code, known.status_code)
        return found == (201, 409, 200) and first.json()["entity"] == known.json()

    def _nif(self, number: int, _: random.Random) -> bool:
        text = f"England and {number} of London"
        answer = self._client.post("/nif", content=nif(text, [(0, 7)], name=f"http://example.org/{number}"))
        named = f"http://example.org/{number}#char=0,7" in answer.text
        return answer.status_code == 200 and named and "/England" in answer.text

    def _refused(self, number: int, chance: random.Random) -> bool:
        """What is wrong with a request is said, with the right status and in words."""
        send, text = self._client.post, f"{number} [MASK]"
        status, answer = chance.choice([
            (400, lambda: send("/api/fill", content=b'{"text": ' + b"[" * number, headers=JSON)),
            (400, lambda: send("/api/link", content=b"\xff\xfe", headers=JSON)),
            (401, lambda: send("/api/entities", json={}, headers={"Authorization": "Bearer nonsense"})),
            (403, lambda: send("/api/fill", json={"text": text}, headers={"Origin": "http://evil.example"})),
            (403, lambda: self._client.get("/api/model", headers={"Host": "evil.example"})),
            (404, lambda: self._client.get(f"/nothing/{number}")),
            (405, lambda: self._client.delete("/api/fill")),
            (413, lambda: send("/api/fill", json={"text": "x" * 200_001})),
            (413, lambda: send("/api/link", json={"text": "England " * 24_000, "rounds": 10})),
            (413, lambda: send("/api/link", json={"text": "x" * 300_000})),
            (413, lambda: send("/nif", content=nif("x " * 100_001))),
            (422, lambda: send("/api/fill", json={"text": number})),
            (422, lambda: send("/api/fill", json={"text": "no mask"})),
            (422, lambda: send("/api/fill", json={"text": text, "top": "3"})),
            (422, lambda: send("/api/fill", json={"text": text, "more": 1})),
            (422, lambda: send("/api/fill", content=b"{}", headers={"Content-Type": "text/plain"})),
            (422, lambda: send("/api/link", json={"text": text, "rounds": 0})),
            (422, lambda: send("/api/link", json={"text": text, "threshold": 2})),
            (422, lambda: send("/api/entities", json={"title": f"Bad {number}", "description": "xyzzy"})),
            (422, lambda: send("/nif", content=b"")),
            (422, lambda: self._client.get("/api/nearest", params={"name": "England", "count": 101})),
            (422, lambda: self._client.get("/api/entities")),
        ])  # fmt: skip
        found = answer()
        return found.status_code == status and bool(found.json()["error"])

    def _junk(self, _: int, chance: random.Random) -> bool:
        """What is not HTTP, or two things at once, is refused, and nothing after it is read."""
        both = headers("/api/fill", 5, b"Transfer-Encoding: chunked\r\n") + b"0\r\n\r\n"
        junk = chance.choice([chance.randbytes(100), b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", both])
        answer = self._server.raw(junk + b"\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return answer.startswith(b"HTTP/1.1 400") and answer.count(b"HTTP/1.1 ") == 1

    def _left(self, number: int, chance: random.Random) -> bool:
        """A client that leaves in the middle, or without taking its answer; there is nothing to see of it here."""
        whole = post(chance.choice(["/api/fill", "/api/link"]), {"text": f"{SENTENCE * 20} {number} [MASK]"})
        with self._server.connect() as connection:
            connection.sendall(whole[: chance.choice([0, 10, len(whole) // 2, len(whole)])])
        return True

    def _dribbled(self, number: int, _: random.Random) -> bool:
        """A slow client gets its answer too, if it is not too slow."""
        whole = post("/api/fill", {"text": f"England {number} [MASK]", "modes": ["bert"]})
        with self._server.connect() as connection:
            for start in range(0, len(whole), 40):
                connection.sendall(whole[start : start + 40])
                time.sleep(0.01)
            answer = read_all(connection)
        return answer.startswith(b"HTTP/1.1 200") and json.loads(answer.partition(b"\r\n\r\n")[2])["text"] == (
            f"England {number} [MASK]"
        )

    def _piped(self, number: int, _: random.Random) -> bool:
        """Requests that are sent at once on one connection are answered one after the other, in their order."""
        bodies = [json.dumps({"text": f"{number}-{part} [MASK]", "modes": ["bert"]}).encode() for part in range(3)]
        sent = b"".join(headers("/api/fill", len(body)) + body for body in bodies)
        answer = self._server.raw(sent + b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        texts = [answer.find(f'"text":"{number}-{part} [MASK]"'.encode()) for part in range(3)]
        return answer.count(b"HTTP/1.1 200") == 4 and -1 < texts[0] < texts[1] < texts[2]


def never_done(server: Server) -> bytes:
    """Send half a request and wait for what comes of it."""
    return server.raw(headers("/api/fill", 1000) + b'{"text": ')


def test_mixed_requests_get_the_answers_that_they_should(server, attack):
    mixed = Mixed(server)
    wrong: list[str | None] = []
    memory = []
    with ThreadPoolExecutor(TOGETHER) as pool, ThreadPoolExecutor(SLOW) as others:
        slow = [others.submit(never_done, server) for _ in range(SLOW)]
        for number in attack("mixed requests", short=160, long=10_000):
            if number == len(wrong):
                wrong += pool.map(mixed, range(number, number + TOGETHER))
                memory.append(server.metric("process_resident_memory_bytes"))
            attack.check(wrong[number] is None, str(wrong[number]))
        assert all(one.result().startswith(b"HTTP/1.1 408") for one in slow)
    assert server.client.get("/health").json() == {"status": "ok"}
    assert server.metric('ebert_waiting{lane="link"}') == server.metric('ebert_waiting{lane="fill"}') == 0
    assert memory[-1] < memory[len(memory) // 4] + GROWTH, [round(one / 2**20) for one in memory]
