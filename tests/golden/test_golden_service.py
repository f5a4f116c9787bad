"""The service, asked over HTTP: its OpenAPI schema, and what every endpoint answers."""

import contextlib
import io
import json
import os
import re
import signal
import socket
import sys
import threading
import time

import httpx
import pytest
from golden_tools import check_json, check_text, scrub, shape
from golden_world import QUESTION, TEXT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there, a signal cannot end a service in order")

TOKEN = "a-token-for-the-golden-tests"
NIF = """@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<http://example.org/1#char=0,9> a nif:Context, nif:String ; nif:isString "Platt was" ;
  nif:beginIndex "0"^^xsd:nonNegativeInteger ; nif:endIndex "9"^^xsd:nonNegativeInteger .
"""
ASKED = {
    "health": ("GET", "/health", {}),
    "ready": ("GET", "/ready", {}),
    "model": ("GET", "/api/model", {}),
    "fill": ("POST", "/api/fill", {"json": {"text": QUESTION, "top": 3}}),
    "fill-mentions": ("POST", "/api/fill", {"json": {
        "text": "Paris is [MASK] and Atlantis .", "modes": ["concat"], "top": 2, "candidates": ["French", "a"],
        "mentions": [{"start": 0, "end": 5, "entity": "Rome"}, {"start": 20, "end": 28, "entity": "Atlantis"}],
    }}),
    "link": ("POST", "/api/link", {"json": {"text": TEXT, "threshold": 0}}),
    "link-trace": ("POST", "/api/link", {"json": {"text": TEXT, "trace": True, "rounds": 2}}),
    "suggest": ("GET", "/api/entities", {"params": {"q": "eng"}}),
    "entity": ("GET", "/api/entity", {"params": {"name": "England"}}),
    "entity-missing": ("GET", "/api/entity", {"params": {"name": "Englund"}}),
    "nearest": ("GET", "/api/nearest", {"params": {"name": "England", "count": 3}}),
    "nearest-word": ("GET", "/api/nearest", {"params": {"name": "city", "kind": "word", "count": 3}}),
    "add-refused": ("POST", "/api/entities", {"json": {"title": "Zorblax", "description": "The city of Paris"}}),
    "no-mask": ("POST", "/api/fill", {"json": {"text": "no mask"}}),
    "not-json": ("POST", "/api/fill", {"content": b"{"}),
    "nothing": ("GET", "/nothing", {}),
}  # fmt: skip


# These are asked of a model with trained vectors: only the shapes of the answers are frozen.
SHAPES = {
    "explore": ("GET", "/api/explore", {"params": {"name": "Paris", "count": 4}}),
    "add": (
        "POST", "/api/entities",
        {"json": {"title": "Zorblax", "description": "The capital of Italy and Paris", "aliases": ["Zo"]}},
    ),
    "add-again": ("POST", "/api/entities", {"json": {"title": "Zorblax", "description": "The capital of Italy"}}),
    "added": ("GET", "/api/entity", {"params": {"name": "Zo"}}),
}  # fmt: skip


@pytest.fixture(scope="module")
def answers(world):
    """All answers of a service."""
    world.do("align-linking")
    return serve("linkmodel", ASKED)


def serve(model: str, asked: dict) -> dict[str, httpx.Response]:
    """Run `ebert serve MODEL`, ask it everything, and end it by a signal."""
    from ebert.cli import main

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    found: dict[str, httpx.Response] = {}
    asking = threading.Thread(target=_ask, args=(f"http://127.0.0.1:{port}", asked, found), daemon=True)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
        patch.setenv("EBERT_TOKEN", TOKEN)
        patch.setattr(sys, "argv", ["ebert", "serve", model, "--port", str(port), "--json"])
        asking.start()
        with pytest.raises(SystemExit) as stop:
            main()
    asking.join()
    assert not stop.value.code
    assert json.loads(out.getvalue()) == {"url": f"http://127.0.0.1:{port}/", "port": port}
    return found


def _ask(url: str, asked: dict, found: dict[str, httpx.Response]) -> None:
    """Wait until the service is ready, ask everything, and end it."""
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
        for _ in range(3000):
            with contextlib.suppress(httpx.TransportError):
                if client.get("/ready").status_code == 200:
                    break
            time.sleep(0.02)
        else:
            return  # the service ended, or will never be ready
        try:
            for name, (method, path, more) in asked.items():
                found[name] = client.request(method, path, **more)
            found["openapi"] = client.get("/openapi.json")
            found["nif"] = client.post("/nif", content=NIF, headers={"Content-Type": "application/x-turtle"})
            found["metrics"] = client.get("/metrics")
            found["no-token"] = httpx.post(f"{url}/api/entities", json={"title": "x", "description": "y"})
        finally:
            os.kill(os.getpid(), signal.SIGTERM)  # which uvicorn waits for


def test_openapi(answers):
    schema = answers["openapi"].json()
    schema["info"]["version"] = ""
    check_json("service/openapi.json", schema)


@pytest.mark.parametrize("name", [*ASKED, "no-token"])
def test_answer(answers, world, name):
    answer = answers[name]
    value = {"status": answer.status_code, "body": scrub(answer.json(), world.root)}
    check_json(f"service/{name}.json", value, within=1e-3)


def test_shapes(world):
    world.do("align-trained")
    found = serve("learned", SHAPES)
    value = {name: {"status": found[name].status_code, "body": shape(found[name].json())} for name in SHAPES}
    check_json("service/shapes.json", value)


def test_nif(answers):
    text = re.sub(r'taConfidence "(\d\.\d{2})\d*"', r'taConfidence "\1..."', answers["nif"].text)
    check_text("service/nif.ttl", text)


def test_metrics(answers):
    """Names, labels and types; not how many there were, nor how often it was not ready."""
    lines = answers["metrics"].text.splitlines()
    names = sorted({line.rsplit(" ", 1)[0] for line in lines if line.startswith("ebert_") and "_created" not in line})
    kinds = sorted(line for line in lines if line.startswith("# TYPE ebert_") and "_created" not in line)
    check_json(
        "service/metrics.json",
        {"types": kinds, "names": [name for name in names if "_bucket" not in name and "503" not in name]},
    )
