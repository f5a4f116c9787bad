"""A service on a real port: with a tiny random BERT and a store about the paper's example, or with another model."""

import json
import socket
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np

from ebert import EBert
from ebert.model.alignment import Alignment
from ebert.model.encoder import Encoder
from ebert.model.options import AlignmentOptions
from ebert.serve.options import Limits, ServeOptions
from ebert.serve.server import Server, listen
from ebert.serve.work import Loaded, load
from ebert.vectors.store import Vectors
from ebert.vectors.writer import writing

sys.path.append(str(Path(__file__).parents[1] / "linking"))
import link_world
import linking_tiny

TOKEN = "a-token-for-the-tests"
WIDTH = linking_tiny.WIDTH
TEXT = link_world.TEXT


def write_store(path: Path, *, table=link_world.TABLE) -> Vectors:
    """A store with everything: counts, redirects, Wikidata ids, output vectors, and a mention table."""
    random = np.random.default_rng(0)
    words, entities = link_world.WORDS, link_world.ENTITIES
    rows = {title: row for row, title in enumerate(entities)}
    with writing(path, dimension=WIDTH) as writer:
        writer.add("words", words, random.normal(size=(len(words), WIDTH)), counts=link_world.COUNTS)
        writer.outputs(random.normal(size=(len(words), WIDTH)))
        writer.add("entities", entities, random.normal(size=(len(entities), WIDTH)), counts=range(len(entities)))
        writer.redirects(link_world.REDIRECTS)
        writer.wikidata(link_world.WIKIDATA)
        writer.surfaces(
            (surface, seen, sorted(((rows[title], count) for title, count in meant.items()), key=lambda pair: -pair[1]))
            for surface, (seen, meant) in table.items()
        )
        writer.finish(licence="none", made={"corpus": {"lowercase": False, "language": "en"}})
    return Vectors.open(path)


def write_model(folder: Path, *, table=link_world.TABLE) -> Path:
    """The folder of a model of a tiny BERT and such a store."""
    tiny = linking_tiny.encoder()
    tiny.module.save_pretrained(folder / "bert")
    tiny.tokenizer.save_pretrained(folder / "bert")
    store = write_store(folder / "store", table=table)
    plain = Alignment.fit(store, {}, np.zeros((1, WIDTH)), AlignmentOptions(method="none"))
    EBert(Encoder.load(folder / "bert"), store, plain).save_pretrained(
        folder / "model", include_vectors=False, include_encoder=False
    )
    return folder / "model"


class Live:
    """A service that runs in a thread of this process."""

    def __init__(self, make, *, host: str = "127.0.0.1", limits: Limits | None = None, **options) -> None:
        self.options = ServeOptions(host=host, port=0, token=TOKEN, limits=limits or Limits(), **options)
        self._opened = listen(self.options)
        self.port = self._opened.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.page = f"{self.url}/#token={TOKEN}"
        self.loaded: Loaded | None = None
        self.running = Server(self.options, self._opened, lambda: self._load(make))
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def _load(self, make) -> Loaded:
        self.loaded = make()
        return self.loaded

    def _run(self) -> None:
        try:
            self.running.run()
        except BaseException as error:
            self.failure = error

    def start(self) -> "Live":
        self._thread.start()
        return self

    def wait(self) -> "Live":
        while self._thread.is_alive():
            try:
                if httpx.get(f"{self.url}/ready").status_code == 200:
                    return self
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        raise AssertionError(f"the service ended: {self.failure!r}")

    def stop(self) -> None:
        self.running.stop()
        self.join()

    def join(self) -> None:
        self._thread.join()

    def client(self, *, token: bool = True, **more) -> httpx.Client:
        headers = {"Authorization": f"Bearer {TOKEN}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=None, **more)

    def raw(self, *parts: bytes, receive: bool = True) -> bytes:
        """Send bytes as they are and read until the service closes the connection."""
        with self.connect() as connection:
            for part in parts:
                connection.sendall(part)
            return read_all(connection) if receive else b""

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port))


@contextmanager
def live(make, **options):
    service = Live(make, **options).start().wait()
    try:
        yield service
    finally:
        service.stop()


def read_all(connection: socket.socket) -> bytes:
    """Read until the other side closes, or cuts the connection."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def post(path: str, value, *, host: bytes = b"127.0.0.1", extra: bytes = b"") -> bytes:
    """A POST request as bytes, after which the connection is closed."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    head = f"POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n".encode()
    return head + b"Host: " + host + b"\r\nConnection: close\r\n" + extra + b"\r\n" + body


def nif(text: str, spans=(), *, name: str = "http://example.org/1") -> str:
    """What GERBIL sends: a text, and mentions if these are given."""
    context = f"<{name}#char=0,{len(text)}>"
    parts = [
        "@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .\n"
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"
        f"{context} a nif:Context, nif:String ; nif:isString {json.dumps(text, ensure_ascii=False)} ;"
        f' nif:beginIndex "0"^^xsd:nonNegativeInteger ; nif:endIndex "{len(text)}"^^xsd:nonNegativeInteger .\n'
    ]
    for start, end in spans:
        parts.append(
            f"<{name}#char={start},{end}> a nif:Phrase ; nif:referenceContext {context} ;"
            f" nif:anchorOf {json.dumps(text[start:end], ensure_ascii=False)} ;"
            f' nif:beginIndex "{start}"^^xsd:nonNegativeInteger ; nif:endIndex "{end}"^^xsd:nonNegativeInteger .\n'
        )
    return "".join(parts)


class Gate:
    """Stops the encoder of a model before its next pass, until it is opened."""

    def __init__(self, loaded: Loaded) -> None:
        self._open = threading.Event()
        self.reached = threading.Event()
        self._hook = loaded.model.encoder.base_model.register_forward_pre_hook(self._pass)

    def _pass(self, *_: object) -> None:
        self.reached.set()
        self._open.wait()

    def open(self) -> None:
        self._open.set()
        self._hook.remove()


def tiny(folder: Path, **options):
    """Something that loads the tiny model."""
    return lambda: load(str(folder), **options)
