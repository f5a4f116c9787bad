"""Run a service until it is stopped: the socket, the signals, the loading of the model."""

import contextlib
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from ebert.errors import EbertError
from ebert.serve.app import make_app
from ebert.serve.middleware import impatient_protocol
from ebert.serve.options import TOKEN, ServeOptions
from ebert.serve.service import Service

if TYPE_CHECKING:
    from ebert.serve.work import Loaded

BACKLOG = 256  # connections that the system holds until they are accepted
HEAD = 32 * 1024  # bytes of the head of a request


def given_token() -> tuple[str, bool]:
    """Return the token of the environment, or a new one, and whether it is new."""
    token = os.environ.get(TOKEN)
    return (token, False) if token is not None else (secrets.token_urlsafe(24), True)


def listen(options: ServeOptions) -> socket.socket:
    """Open the socket, or say why that is not possible."""
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        why = f"{options.host!r} is not an address of this machine ({error})"
        raise EbertError(f"{why}; choose another --host") from None
    family, kind, protocol, _, address = found[0]
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(BACKLOG)  # now, as two can bind the same port, but only one can listen
    except OSError as error:
        opened.close()
        why = f"cannot listen on {options.host} port {options.port} ({error.strerror})"
        raise EbertError(f"{why}; choose another --port (0: any free one) or --host") from None
    return opened


def url_of(options: ServeOptions, opened: socket.socket, *, token: bool) -> str:
    """Return the address to open in a browser. What is after # stays in the browser and is in no log."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(options.host, options.host)  # noqa: S104
    host = f"[{host}]" if ":" in host else host
    return f"http://{host}:{opened.getsockname()[1]}/" + (f"#token={options.token}" if token else "")


class Server:
    """A service on a socket. While the model loads, the service already answers that it is not ready."""

    def __init__(
        self,
        options: ServeOptions,
        opened: socket.socket,
        load: "Callable[[], Loaded]",
        *,
        ready: Callable[[], None] | None = None,
    ) -> None:
        self.service = Service(options)
        self._opened, self._load, self._ready = opened, load, ready
        self._failure: BaseException | None = None
        thread = threading.Thread(target=self._loading, name="ebert-loading", daemon=True)
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # others can cause warnings at will
        limits = options.limits
        self._server = _UvicornServer(
            uvicorn.Config(
                make_app(self.service, begin=thread.start),
                lifespan="on",
                ws="none",
                http=impatient_protocol(limits.client_seconds, 2 * limits.connections),
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=max(1, round(limits.client_seconds)),
                h11_max_incomplete_event_size=HEAD,
                backlog=BACKLOG,
                timeout_graceful_shutdown=round(limits.seconds + limits.client_seconds) + 1,
            ),
            self.service,
        )

    def run(self) -> None:
        """Serve until a signal comes, or `stop`."""
        self._server.run(sockets=[self._opened])
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Finish accepted requests and stop; can be called from any thread."""
        self.service.stopping = True
        self._server.should_exit = True

    def _loading(self) -> None:
        try:
            from ebert.serve.work import Working

            self.service.start(Working(self._load(), self.service.options, self.service.metrics))
            if self._ready is not None:
                self._ready()
        except BaseException as error:
            self._failure = error  # for whoever called `run`
            self.stop()


class _UvicornServer(uvicorn.Server):
    """Shuts down in order at Ctrl-C and SIGTERM, and says so first."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        with super().capture_signals():
            yield
            self._captured_signals.clear()  # they asked for an end in order, and nothing more

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.stopping = True
        super().handle_exit(sig, frame)
