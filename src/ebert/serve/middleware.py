"""What every request passes before anything else sees it: who may ask, how much, and how slowly."""

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from uvicorn.protocols.http.h11_impl import H11Protocol

from ebert.serve.metrics import Metrics
from ebert.serve.options import Limits, ServeOptions, is_loopback
from ebert.serve.schemas import Problem, encode

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOG = logging.getLogger("ebert.serve")
OPEN = frozenset({"/", "/health", "/ready"})  # with the files of the page: for everybody, wherever the service listens
READING = frozenset({"GET", "HEAD"})
GONE = 499  # what it is counted as if the client went away before there was an answer
BUSY = 1.0  # seconds after which to try again if too many requests are open
SECURITY = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]


class GuardMiddleware:
    """Checks every request before the application sees it."""

    def __init__(
        self,
        app: App,
        *,
        options: ServeOptions,
        metrics: Metrics,
        changing: frozenset[tuple[str, str]],
        json: frozenset[str],
        files: frozenset[str],
        endpoints: frozenset[str],
    ) -> None:
        self._app, self._options, self._metrics = app, options, metrics
        self._changing, self._json, self._free, self._endpoints = changing, json, OPEN | files, endpoints | files
        self._bearer = f"Bearer {options.token}".encode()
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(scope, send, self._count)
        self._running += 1
        try:
            problem = self._problem(scope)
            body = await self._body(scope, receive)  # first, as some clients read no answer before all is sent
            if problem is None:
                await self._through(scope, body, receive, answer)
            else:
                await self._refuse(problem, answer)
        except Problem as unread:  # what else the client sends is not wanted
            await self._refuse(unread, answer, close=True)
        finally:
            self._running -= 1
            answer.end()

    def _count(self, path: str, status: int, seconds: float) -> None:
        self._metrics.answered(path if path in self._endpoints else "other", status, seconds)

    def _problem(self, scope: Scope) -> Problem | None:
        """Find what is wrong with a request: it is from elsewhere, has no token, or is one too many."""
        headers = dict(scope["headers"])
        host, origin = headers.get(b"host", b""), headers.get(b"origin")
        if self._options.loopback and not _is_here(host, self._options.host):
            # A page from elsewhere whose name was made to mean this machine would be of the same origin.
            why = "this service answers on this machine only: open it as http://127.0.0.1 or http://localhost"
            return Problem(403, why, reason="foreign host")
        reading = scope["method"] in READING
        if origin is not None and not reading and _netloc(origin) != host.lower():
            why = "a page of another origin cannot use this service; open the service's own page"
            return Problem(403, why, reason="foreign origin")
        changing = (scope["method"], scope["path"]) in self._changing
        private = not self._options.loopback and not (reading and scope["path"] in self._free)
        if (changing or private) and not hmac.compare_digest(headers.get(b"authorization", b""), self._bearer):
            why = (
                "this needs the token of the service: send the header 'Authorization: Bearer TOKEN' "
                "(it is in the URL that 'ebert serve' printed, or what EBERT_TOKEN was set to)"
            )
            return Problem(401, why, reason="no token")
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if scope["method"] == "POST" and scope["path"] in self._json and kind != b"application/json":
            # A form of another page could send anything else without asking the browser.
            return Problem(422, "send JSON, and say so with the header 'Content-Type: application/json'")
        if self._running > self._options.limits.connections and scope["path"] not in OPEN:
            return Problem(503, "too many requests are open; try again in a second", retry_after=BUSY, reason="full")
        return None

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body, so much and no longer; what the client declares is believed only when it is too much."""
        limits, headers = self._options.limits, dict(scope["headers"])
        if b"content-length" in headers and b"transfer-encoding" in headers:
            # A proxy that believes the other one sees another end of this request, and other requests behind it.
            why = "the request has both a Content-Length and a Transfer-Encoding; send one of them"
            raise Problem(400, why, reason="two lengths")
        if scope["method"] in READING:
            return b""
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > limits.body):
            raise _too_long(limits)
        body = bytearray()
        try:
            async with asyncio.timeout(limits.client_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Problem(400, "the client went away", reason="client went away")
                    body += message.get("body", b"")
                    if len(body) > limits.body:
                        raise _too_long(limits)
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            why = f"the request was not complete after {limits.client_seconds:g} s"
            raise Problem(408, why, reason="slow client") from None

    async def _through(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Let the application answer, and stop it when the client goes away: nobody waits for the answer."""
        answer = asyncio.ensure_future(self._app(scope, _once(body), send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                self._metrics.refused("client went away")
            elif (error := answer.exception()) is not None:  # the client was told already
                LOG.error("an answer failed", exc_info=error)
        finally:
            for task in (answer, gone):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(answer, gone, return_exceptions=True)

    async def _refuse(self, problem: Problem, send: Send, *, close: bool = False) -> None:
        if problem.reason:
            self._metrics.refused(problem.reason)
        body = encode({"error": problem.error})
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
        headers += [(b"connection", b"close")] if close else []
        await send({"type": "http.response.start", "status": problem.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class _Answer:
    """An answer on its way: gets the headers that all answers have, and is counted before its last byte is sent."""

    def __init__(self, scope: Scope, send: Send, count: Callable[[str, int, float], None]) -> None:
        self._path, self._send, self._count = scope["path"], send, count
        self._start = time.perf_counter()
        self._status = GONE
        self._counted = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            own = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(pair for pair in SECURITY if pair[0] not in own)]
        elif not message.get("more_body", False):
            self.end()
        await self._send(message)

    def end(self) -> None:
        if not self._counted:
            self._counted = True
            self._count(self._path, self._status, time.perf_counter() - self._start)


def _too_long(limits: Limits) -> Problem:
    why = f"the request has more than {limits.body:,} bytes, which is more than this service takes; send less at a time"
    return Problem(413, why, reason="body too long")


def _is_here(host: bytes, bound: str) -> bool:
    """Return whether a Host header names this machine; the port may be another one, forwarded here."""
    try:
        name = urlsplit(f"//{host.decode('latin-1')}").hostname
    except ValueError:
        return False
    return name is not None and (is_loopback(name) or name == bound.lower())


def _netloc(origin: bytes) -> bytes:
    """Return the host and port of an origin; a proxy may have taken https off, so that the scheme says nothing."""
    return origin.lower().partition(b"://")[2]


def _once(body: bytes) -> Receive:
    done = False

    async def receive() -> Message:
        nonlocal done
        if done:
            return {"type": "http.disconnect"}
        done = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def impatient_protocol(seconds: float, connections: int) -> type[asyncio.Protocol]:
    """Return a protocol that allows so many seconds for the head of a request, and for the answer to be taken.

    One connection too many is told so before it says anything, and closed.
    """

    class Impatient(H11Protocol):
        _waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()
            if len(self.connections) > connections:
                transport.write(TOO_MANY)
                transport.close()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()  # the head is complete; the body has its own limit
            elif self._waiting is None:
                self._wait()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.transport.get_write_buffer_size():
                self._stop_waiting()
                self._wait()

        def _wait(self) -> None:
            self._waiting = self.loop.call_later(seconds, self._cut)

        def _stop_waiting(self) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None

        def _cut(self) -> None:
            """End the connection, whatever was not sent: `close` would wait for the client to take it."""
            self._waiting = None
            idle = self.cycle is None or self.cycle.response_complete
            if idle or self.transport.get_write_buffer_size():
                self.transport.abort()

    return Impatient
