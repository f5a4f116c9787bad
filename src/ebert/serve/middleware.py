"""What every request passes before anything else sees it: who may ask, how much, and how slowly."""

import asyncio
import hmac
import logging
import time
from collections.abc import Collection
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ebert.serve.metrics import Metrics
from ebert.serve.options import Limits, ServeOptions, is_loopback
from ebert.serve.schemas import Json, Problem

LOG = logging.getLogger("ebert.serve")
OPEN = frozenset({"/", "/health", "/ready"})  # with the files of the page: for everybody, wherever the service listens
READING = frozenset({"GET", "HEAD"})
CHANGING = frozenset({("POST", "/api/entities")})
TURTLE = frozenset({"/nif"})  # where a body is not JSON
GONE = 499  # what it is counted as if the client went away before there was an answer
BUSY = 1.0  # seconds after which to try again if too many requests are open
SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class GuardMiddleware:
    """Checks every request before the application sees it."""

    def __init__(
        self, app: ASGIApp, options: ServeOptions, metrics: Metrics, *, files: Collection[str], paths: Collection[str]
    ) -> None:
        self._app, self._options, self._metrics = app, options, metrics
        self._free, self._paths = OPEN.union(files), frozenset(paths)
        self._bearer = f"Bearer {options.token}".encode()
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        endpoint = scope["path"] if scope["path"] in self._paths else "other"
        answer = _Answer(endpoint, send, self._metrics)
        self._running += 1
        try:
            problem = self._problem(scope)
            body = await self._body(scope, receive)  # first, as some clients read no answer before all is sent
            if problem is not None:
                raise problem
            await self._through(scope, body, receive, answer)
        except Problem as refusal:
            if refusal is not problem:
                refusal.headers["Connection"] = "close"  # what else the client sends is not wanted
            if refusal.reason:
                self._metrics.refused(refusal.reason)
            await Json({"error": refusal.error}, refusal.status, refusal.headers)(scope, receive, answer)
        finally:
            self._running -= 1
            answer.end()

    def _problem(self, scope: Scope) -> Problem | None:
        """Find what is wrong with a request: it is from elsewhere, has no token, or is one too many."""
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._options.loopback and not _is_here(host, self._options.host):
            # A page from elsewhere whose name was made to mean this machine would be of the same origin.
            why = "this service answers on this machine only: open it as http://127.0.0.1 or http://localhost"
            return Problem(403, why, reason="foreign host")
        reading = scope["method"] in READING
        # A proxy may have taken https off, so that the scheme of the origin says nothing.
        if origin is not None and not reading and origin.lower().partition("://")[2] != host.lower():
            why = "a page of another origin cannot use this service; open the service's own page"
            return Problem(403, why, reason="foreign origin")
        changing = (scope["method"], scope["path"]) in CHANGING
        private = not self._options.loopback and not (reading and scope["path"] in self._free)
        given = headers.get("authorization", "").encode("latin-1")
        if (changing or private) and not hmac.compare_digest(given, self._bearer):
            why = (
                "this needs the token of the service: send the header 'Authorization: Bearer TOKEN' "
                "(it is in the URL that 'ebert serve' printed, or what EBERT_TOKEN was set to)"
            )
            return Problem(401, why, reason="no token")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and scope["path"] in self._paths - TURTLE and kind != "application/json":
            # A form of another page could send anything else without asking the browser.
            return Problem(422, "send JSON, with the header 'Content-Type: application/json'")
        if self._running > self._options.limits.connections and scope["path"] not in OPEN:
            return Problem(503, "too many requests are open; try again in a second", retry_after=BUSY, reason="full")
        return None

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body, so much and no longer; what the client declares is believed only when it is too much."""
        limits, headers = self._options.limits, Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            # A proxy that believes the other one sees another end of this request, and other requests behind it.
            why = "the request has both a Content-Length and a Transfer-Encoding; send one of them"
            raise Problem(400, why, reason="two lengths")
        if scope["method"] in READING:
            return b""
        declared = headers.get("content-length", "")
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


class _Answer:
    """An answer on its way: gets the headers that all answers have, and is counted before its last byte is sent."""

    def __init__(self, endpoint: str, send: Send, metrics: Metrics) -> None:
        self._endpoint, self._send, self._metrics = endpoint, send, metrics
        self._start, self._status, self._counted = time.perf_counter(), GONE, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, headers = message["status"], MutableHeaders(scope=message)
            for name, value in SECURITY.items():
                headers.setdefault(name, value)
        elif not message.get("more_body", False):
            self.end()
        await self._send(message)

    def end(self) -> None:
        if not self._counted:
            self._counted = True
            self._metrics.answered(self._endpoint, self._status, time.perf_counter() - self._start)


def _too_long(limits: Limits) -> Problem:
    why = f"the request has more than {limits.body:,} bytes, which is more than this service takes; send less at a time"
    return Problem(413, why, reason="body too long")


def _is_here(host: str, bound: str) -> bool:
    """Return whether a Host header names this machine; the port may be another one, forwarded here."""
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    return name is not None and (is_loopback(name) or name == bound.lower())


def _once(body: bytes) -> Receive:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

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
