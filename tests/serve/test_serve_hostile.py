"""Hostile input: whatever comes is answered or cut off, never with a 500, and the service stays healthy."""

import json
import sys

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from serve_world import TOKEN, post

from ebert.serve.app import make_api
from ebert.serve.options import ServeOptions
from ebert.serve.service import Service

BEARER = {"Authorization": f"Bearer {TOKEN}"}
JSON = {"Content-Type": "application/json"}


API = make_api(Service(ServeOptions(token=TOKEN))).openapi()
schema = schemathesis.openapi.from_dict(API)


@schemathesis.serializer("text/turtle", "application/x-turtle")
def turtle(_context, value):
    """Send as text what the schema makes up."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@schema.parametrize()
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_request_that_the_schema_can_think_of_is_a_failure(case, service):
    checks = [not_a_server_error, response_schema_conformance, content_type_conformance, status_code_conformance]
    case.call_and_validate(base_url=service.url, headers=BEARER, checks=checks)


def test_the_schema_is_the_one_that_is_served(client):
    assert client.get("/openapi.json").json() == json.loads(json.dumps(API))


def asked(**more):
    return json.dumps({"text": "England will miss [MASK]", **more}).encode()


HOSTILE = {
    "deep lists": b"[" * 100_000,
    "deep lists, closed": b"[" * 50_000 + b"]" * 50_000,
    "deep objects": b'{"text":' * 20_000,
    "deep values": b'{"text": "[MASK]", "candidates": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "null bytes": asked(text="\x00 [MASK] \x00"),
    "null bytes outside": b"\x00" * 100,
    "a very long word": asked(text="a" * 100_000 + " [MASK]"),
    "a long word": asked(text="a" * 19_000 + " [MASK]"),
    "many masks": asked(text="[MASK]" * 3_000),
    "invalid UTF-8": b'{"text": "\xff\xfe [MASK]"}',
    "UTF-16": '{"text": "England [MASK]"}'.encode("utf-16"),
    "half a surrogate pair": rb'{"text": "\ud800 [MASK]"}',
    "half a surrogate pair as a field": rb'{"text": "[MASK]", "\ud800": 1}',
    "half a surrogate pair as a candidate": rb'{"text": "[MASK]", "candidates": ["\udfff"]}',
    "half a surrogate pair as an entity": rb'{"text":"a [MASK]","mentions":[{"start":0,"end":1,"entity":"\udfff"}]}',
    "a huge number": b'{"text": "[MASK]", "top": ' + b"9" * 4000 + b"}",
    "a huge exponent": b'{"text": "[MASK]", "top": 1e999}',
    "not a number": b'{"text": "[MASK]", "top": NaN}',
    "the wrong types": b'{"text": {"a": 1}, "top": "x", "modes": 5, "mentions": {}}',
    "a list": b"[1, 2, 3]",
    "nothing": b"",
    "null": b"null",
    "the same field twice": b'{"text": "a [MASK]", "text": "b [MASK]"}',
    "the placeholder of ebert itself": asked(text="\ue000ebert-entity\ue001 [MASK]"),
    "special pieces": asked(text="[CLS] [SEP] [PAD] [UNK] [MASK]"),
    "brackets": asked(text="[[" * 5_000),
    "marks of direction": asked(text="\u202e\u200f[MASK]\u0301" * 50),
    "a mention of everything": asked(text="a [MASK]", mentions=[{"start": 0, "end": 8, "entity": "England"}]),
    "mentions that overlap": asked(text="ab [MASK]", mentions=[{"start": 0, "end": 2, "entity": "England"}] * 2),
    "a mention far away": asked(mentions=[{"start": 10**18, "end": 10**19, "entity": "England"}]),
    "many candidates": asked(candidates=["and"] * 10_001),
    "an empty candidate": asked(candidates=[""]),
    "a path": asked(text="[[../../etc/passwd]] [[file:///etc/passwd]] [[http://127.0.0.1/]] [MASK]"),
}  # fmt: skip


# Other paths get what they may take in their own way: texts to be linked, and bytes that are read.
LINKED = ("a very long word", "a long word", "null bytes", "half a surrogate pair", "brackets", "marks of direction",
          "special pieces", "the placeholder of ebert itself", "a path", "the same field twice", "nothing")  # fmt: skip
READ = ("deep lists", "deep objects", "null bytes outside", "invalid UTF-8", "UTF-16", "nothing", "null", "a list")


@pytest.mark.parametrize(
    ("path", "what"),
    [
        *(("/api/fill", what) for what in HOSTILE),
        *(("/api/link", what) for what in LINKED),
        *(("/api/entities", what) for what in READ),
        *(("/nif", what) for what in READ),
    ],
)
def test_hostile_bodies_are_answered_in_words(client, path, what):
    answer = client.post(path, content=HOSTILE[what], headers=JSON)
    assert answer.status_code in (200, 400, 413, 422), answer.text
    if answer.status_code != 200:
        assert answer.json()["error"]
    assert client.get("/health").json() == {"status": "ok"}


BROKEN = ["%00", "%ff%fe", "%ed%a0%80", "a" * 19_000, "+"]
NAMES = [*BROKEN, "..%2f..%2fetc%2fpasswd", "%E2%80%AE", "Q" + "9" * 17, "Q0", "https://en.wikipedia.org/wiki/%25",
         "%F0%9F%98%80", "%0A"]  # fmt: skip
TYPED = [*BROKEN, "%22", "%27%3B--", "%2A", "%28", "NEAR(", "%22%22"]  # what means something in a search


@pytest.mark.parametrize(
    ("path", "name"),
    [
        *(("/api/entities?q=", name) for name in TYPED),
        *(("/api/entity?name=", name) for name in NAMES),
        *((path, name) for path in ("/api/nearest?name=", "/api/explore?name=") for name in BROKEN),
    ],
)
def test_hostile_names_are_looked_up_and_not_found(client, path, name):
    answer = client.get(path + name)
    assert answer.status_code in (200, 404, 413, 422), answer.text
    answer.json()


class Watch:
    """Sees what this process opens or looks into, in which the service runs too; a hook cannot be taken away."""

    EVENTS = ("open", "os.listdir", "os.scandir", "urllib.Request", "socket.getaddrinfo", "sqlite3.connect")

    def __init__(self) -> None:
        self.on, self.seen = False, []
        sys.addaudithook(self._look)

    def _look(self, event, arguments) -> None:
        if self.on and event in self.EVENTS:
            self.seen.append(str(arguments[0]))


@pytest.fixture(scope="module")
def watch():
    one = Watch()
    one.on = True
    yield one
    one.on = False


def test_a_name_is_never_opened(client, tmp_path, watch):
    trap = tmp_path / "trap.npy"
    trap.write_bytes(b"not an array")
    assert str(trap) in watch.seen  # it does see
    watch.seen.clear()
    for name in (str(trap), trap.as_uri(), f"../../../../..{trap}"):
        assert client.get("/api/entity", params={"name": name}).status_code == 404
        filled = client.post(
            "/api/fill", json={"text": "x [MASK]", "mentions": [{"start": 0, "end": 1, "entity": name}]}
        )
        assert filled.json()["missing"] == [name]
        added = client.post("/api/entities", json={"title": name, "description": name})
        assert added.status_code in (201, 422)
    assert not [name for name in watch.seen if "trap" in name]


def test_a_thousand_broken_requests_leave_the_service_healthy(service):
    for number in range(1000):
        service.raw(post("/api/fill", b"{" * (number % 50)), receive=False)
    with service.client() as client:
        assert client.get("/ready").status_code == 200
        assert client.post("/api/fill", json={"text": "England [MASK]"}).status_code == 200
