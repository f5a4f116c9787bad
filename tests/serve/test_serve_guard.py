"""Who may ask, how much, and how slowly: tokens, origins, hosts, sizes, and clients that only seem to speak HTTP."""

import json
import subprocess
import sys
import threading

import pytest
from serve_world import TOKEN, live, post, read_all, tiny

from ebert.errors import EbertError
from ebert.serve.options import Limits, ServeOptions, is_loopback
from ebert.serve.server import given_token, listen, url_of

NEW = {"title": "Zorblax", "description": "both are injured", "replace": True}
SENTENCE = {"text": "England will miss [MASK]"}


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


# Tokens


@pytest.mark.parametrize(
    "header",
    [
        None, "", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN,
        f"bearer  {TOKEN}", "Bearer ünïcödé",
    ],
)  # fmt: skip
def test_without_the_token_nothing_is_changed(service, header):
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    with service.client(token=False) as client:
        answer = client.post("/api/entities", json={**NEW, "title": "Nobody"}, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "EBERT_TOKEN" in answer.json()["error"]
        assert client.get("/api/entity", params={"name": "Nobody"}).status_code == 404


def test_on_this_machine_reading_needs_no_token(service):
    with service.client(token=False) as client:
        for path in ("/", "/health", "/ready", "/metrics", "/openapi.json", "/api/model", "/api/entities?q=e"):
            assert client.get(path).status_code == 200, path
        assert client.post("/api/fill", json=SENTENCE).status_code == 200


def test_beyond_this_machine_everything_needs_it_but_the_page_and_health(tiny_folder):
    with live(tiny(tiny_folder), host="0.0.0.0") as service, service.client(token=False) as client:
        for path in ("/", "/page.js", "/health", "/ready"):
            assert client.get(path).status_code == 200, path
        for path in ("/metrics", "/openapi.json", "/api/model", "/api/entities?q=e", "/nothing", "/page.py"):
            assert client.get(path).status_code == 401, path
        for path in ("/api/fill", "/api/link", "/nif", "/health", "/"):
            assert client.post(path, json=SENTENCE).status_code == 401, path
        assert client.options("/api/fill").status_code == 401
        with service.client() as known:
            assert known.get("/api/model").status_code == 200
            assert known.post("/api/fill", json=SENTENCE, headers={"Host": "ebert.example"}).status_code == 200


def test_a_token_must_be_long_and_plain(monkeypatch):
    for token in ("", "short", "with blanks in between", "ünïcödé-ünïcödé-ünïcödé", "line\nbreak-line-break"):
        with pytest.raises(EbertError, match="EBERT_TOKEN"):
            ServeOptions(token=token)
    monkeypatch.setenv("EBERT_TOKEN", TOKEN)
    assert given_token() == (TOKEN, False)
    monkeypatch.delenv("EBERT_TOKEN")
    first, second = given_token(), given_token()
    assert first != second
    assert first[1]
    ServeOptions(token=first[0])


def test_the_url_has_the_token_where_no_server_or_log_sees_it():
    options = ServeOptions(port=0, token=TOKEN)
    with listen(options) as opened:
        port = opened.getsockname()[1]
        assert url_of(options, opened, token=True) == f"http://127.0.0.1:{port}/#token={TOKEN}"
        assert url_of(options, opened, token=False) == f"http://127.0.0.1:{port}/"
        everywhere = ServeOptions(host="0.0.0.0", port=0, token=TOKEN)
        assert url_of(everywhere, opened, token=False) == f"http://127.0.0.1:{port}/"
        six = ServeOptions(host="::1", port=0, token=TOKEN)
        assert url_of(six, opened, token=False) == f"http://[::1]:{port}/"
        with pytest.raises(EbertError, match=r"--port"):
            listen(ServeOptions(port=port, token=TOKEN))
    with pytest.raises(EbertError, match="not an address"):
        listen(ServeOptions(host="no such host", token=TOKEN))


def test_what_this_machine_is():
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "localhost", "LOCALHOST", "::1", "[::1]")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.1", "localhost.evil.example", "")))


# Pages from elsewhere


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost.evil", ""])
def test_a_page_of_another_origin_changes_nothing_even_with_the_token(service, origin):
    with service.client() as client:
        answer = client.post("/api/entities", json={**NEW, "title": "Evil"}, headers={"Origin": origin})
        assert answer.status_code == 403
        assert "origin" in answer.json()["error"]
        assert "access-control-allow-origin" not in answer.headers
        assert client.get("/api/entity", params={"name": "Evil"}).status_code == 404
        preflight = client.options("/api/entities", headers={"Origin": origin, "Access-Control-Request-Method": "POST"})
        assert preflight.status_code == 403
        assert not any(name.startswith("access-control") for name in preflight.headers)


def test_the_page_of_the_service_itself_can(service):
    with service.client() as client:
        answer = client.post("/api/entities", json=NEW, headers={"Origin": service.url})
        assert answer.status_code == 201


def test_a_form_of_another_page_is_not_json(service):
    with service.client() as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
            answer = client.post("/api/entities", content=json.dumps(NEW).encode(), headers={"Content-Type": kind})
            assert answer.status_code == 422, kind
            assert "application/json" in answer.json()["error"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "[", "[::1", "0.0.0.0", "", "localhost@evil"]
)
def test_a_name_that_was_made_to_mean_this_machine_is_refused(service, host):
    for request in (f"GET /api/model HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode(),
                    post("/api/fill", SENTENCE, host=host.encode())):  # fmt: skip
        assert status(service.raw(request)) in (400, 403)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:1234", "[::1]:8000", "127.0.0.2"])
def test_names_of_this_machine_are_fine(service, host):
    assert status(service.raw(post("/api/fill", SENTENCE, host=host.encode()))) == 200


# Sizes and slowness


def test_a_body_that_is_too_long_is_refused_whether_it_says_so_or_not(service):
    with service.client() as client:
        answer = client.post("/api/fill", content=b" " * 300_000, headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
        assert "262,144" in answer.json()["error"]

        def chunks():
            for _ in range(300):
                yield b" " * 1000

        # It is refused before it is all sent, so that the client may see the connection end first.
        answer = service.raw(b"POST /api/fill HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
                             b"".join(b"3e8\r\n" + chunk + b"\r\n" for chunk in chunks()), b"0\r\n\r\n")  # fmt: skip
        assert status(answer) in (413, 0)
    for length in (b"99999999999999999999999999", b"300000"):
        head = b"POST /api/fill HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + length + b"\r\n\r\n"
        assert status(service.raw(head)) in (400, 413)


@pytest.mark.parametrize("method", [b"POST", b"GET"])
def test_a_request_with_two_lengths_is_refused_and_what_follows_it_is_never_read(service, method):
    hidden = b"GET /api/model HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for lengths in (
        b"Content-Length: %d\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: %d",
    ):
        head = method + b" /api/fill HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        answer = service.raw(head + lengths % (5 + len(hidden)) + b"\r\n\r\n0\r\n\r\n" + hidden)  # ends: it is closed
        assert answer.count(b"HTTP/1.1 ") == 1
        assert status(answer) == 400
        assert b"Content-Length and a Transfer-Encoding" in answer


def test_a_head_that_is_too_long_is_refused(service):
    assert status(service.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 1_000_000)) in (400, 0)


@pytest.fixture(scope="module")
def hurried(tiny_folder):
    """A service that gives clients half a second."""
    with live(tiny(tiny_folder), limits=Limits(client_seconds=0.5)) as service:
        yield service


def test_a_client_that_sends_nothing_or_half_a_head_is_cut_off(hurried):
    assert hurried.raw(b"") == b""
    assert hurried.raw(b"POST /api/fill HTTP/1.1\r\nHost: local") == b""
    with hurried.connect() as connection:  # a byte now and then does not help
        alive = threading.Event()

        def dribble() -> None:
            try:
                for byte in b"GET /health HTTP/1.1\r\nX-Slow: " + b"x" * 100_000:
                    connection.sendall(bytes([byte]))
                    if alive.wait(0.05):
                        return
            except OSError:
                return

        thread = threading.Thread(target=dribble)
        thread.start()
        assert read_all(connection) == b""
        alive.set()
        thread.join()


def test_a_second_request_on_a_connection_has_no_more_time_than_the_first(hurried):
    with hurried.connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /heal")
        assert b"HTTP/1.1" not in read_all(connection)


def test_a_body_that_dribbles_is_cut_off(hurried):
    head = (
        b"POST /api/fill HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    )
    answer = hurried.raw(head, b'{"text": ')
    assert status(answer) == 408
    assert b"not complete" in answer


def test_a_client_that_does_not_take_its_answer_is_cut_off(hurried):
    import socket

    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect(("127.0.0.1", hurried.port))
        many = {"text": "[MASK] " * 20, "top": 100}
        for _ in range(60):  # far more than the buffers on the way hold
            try:
                connection.sendall(post("/api/fill", many).replace(b"Connection: close\r\n", b""))
            except OSError:
                break
        server = hurried.running._server
        while server.server_state.connections:  # until it lets go of the connection
            threading.Event().wait(0.05)
    with hurried.client() as client:
        assert client.get("/health").status_code == 200


def test_what_is_not_http_is_answered_or_cut_off(service):
    for junk in (b"\x00" * 1000, b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
        assert status(service.raw(junk + b"\r\n\r\n")) in (0, 400, 403)
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"
    answer = service.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + upgrade + b"\r\n")
    assert status(answer) in (200, 400)


# The command


def test_nothing_heavy_is_loaded_before_the_service_listens():
    code = (
        "import sys, ebert.serve.server\n"
        "heavy = {'torch', 'transformers', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
