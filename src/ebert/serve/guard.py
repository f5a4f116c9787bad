"""What every request passes before anything else sees it: who may ask, how much, and how slowly."""

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from ebert.serve.metrics import Metrics
from ebert.serve.options import ServeOptions, is_loopback
from ebert.serve.problem import Problem

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = frozenset({"/", "/health", "/ready"})  # and the files of the page: for everybody, wherever the service listens
READING = frozenset({"GET", "HEAD"})
SECURITY = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]


class Guard:
    """Wraps the application."""

    def __init__(
        self,
        app: App,
        *,
        options: ServeOptions,
        metrics: Metrics,
        changing: frozenset[tuple[str, str]],
        files: frozenset[str],
        endpoints: frozenset[str],
    ) -> None:
        """Know which requests change something, which paths are files of the page, and which paths there are."""
        self._app, self._options, self._metrics = app, options, metrics
        self._changing, self._open = changing, OPEN | files
        self._endpoints = endpoints | files
        self._bearer = f"Bearer {options.token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in SECURITY if pair[0] not in own)]
            async with asyncio.timeout(self._options.limits.client_seconds):  # whoever does not read is cut off
                await send(message)

        try:
            try:
                self._check(scope)
                body = await self._body(scope, receive)
            except Problem as problem:
                await refuse(problem, sending)
            else:
                await self._app(scope, _replay(body, receive), sending)
        finally:
            path = scope["path"] if scope["path"] in self._endpoints else "other"
            self._metrics.answered(path, status, time.perf_counter() - start)

    def _check(self, scope: Scope) -> None:
        headers = _headers(scope)
        host, origin = headers.get(b"host", b""), headers.get(b"origin")
        if self._options.loopback and not _is_here(host, self._options.host):
            # A page from elsewhere whose name was made to mean this machine would be of the same origin.
            self._refused("foreign host")
            raise Problem(403, "this service answers on this machine only: open it as http://127.0.0.1 or localhost")
        key = (scope["method"], scope["path"])
        reading = scope["method"] in READING
        if origin is not None and not reading and _netloc(origin) != host.lower():
            self._refused("foreign origin")
            raise Problem(403, "a page of another origin cannot use this service; open the service's own page")
        everything = not self._options.loopback and not (reading and scope["path"] in self._open)
        if (everything or key in self._changing) and not self._authorised(headers):
            self._refused("no token")
            raise Problem(401, "this needs the token of the service: send the header 'Authorization: Bearer TOKEN' "
                          "(it is in the URL that 'ebert serve' printed, or EBERT_TOKEN)")  # fmt: skip

    def _authorised(self, headers: dict[bytes, bytes]) -> bool:
        return hmac.compare_digest(headers.get(b"authorization", b""), self._bearer)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body, so much and no longer; what the client declares is believed only when it is too much."""
        if scope["method"] in READING:
            return b""
        limits = self._options.limits
        length = _headers(scope).get(b"content-length", b"0")
        too_long = Problem(
            413, f"the request has more than {limits.body:,} bytes, which is more than this service takes"
        )
        if length.isdigit() and int(length[:20]) > limits.body:
            self._refused("body too long")
            raise too_long
        body = bytearray()
        try:
            async with asyncio.timeout(limits.client_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Problem(400, "the client went away")
                    body += message.get("body", b"")
                    if len(body) > limits.body:
                        self._refused("body too long")
                        raise too_long
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            self._refused("slow client")
            raise Problem(408, f"the request was not complete after {limits.client_seconds:g} s") from None

    def _refused(self, reason: str) -> None:
        self._metrics.refused(reason)


async def refuse(problem: Problem, send: Send) -> None:
    """Answer with an error, and close the connection: what else is on its way is not wanted."""
    body = encode({"error": problem.error})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def encode(value: Any) -> bytes:
    """Write JSON. Halves of surrogate pairs, which clients can send and UTF-8 cannot hold, become question marks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


def _headers(scope: Scope) -> dict[bytes, bytes]:
    return dict(scope["headers"])


def _is_here(host: bytes, bound: str) -> bool:
    """Tell whether a Host header names this machine; the port may be another one, forwarded here."""
    name = urlsplit(f"//{host.decode('latin-1')}").hostname if host else None
    return name is not None and (is_loopback(name) or name == bound.lower())


def _netloc(origin: bytes) -> bytes:
    """Give the host and port of an origin; a proxy may have taken https off, so that the scheme says nothing."""
    return origin.lower().partition(b"://")[2]


def _replay(body: bytes, receive: Receive) -> Receive:
    done = False

    async def again() -> Message:
        nonlocal done
        if done:
            return await receive()
        done = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
