"""Running a service until somebody stops it: the socket, the signals, the loading of the model."""

import contextlib
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

from ebert.errors import EbertError
from ebert.serve.app import make_app
from ebert.serve.loading import Loaded
from ebert.serve.options import TOKEN, ServeOptions
from ebert.serve.service import Service

BACKLOG = 256  # connections that the system holds until they are accepted


def given_token() -> tuple[str, bool]:
    """Give the token of the environment, or a new one, and whether it is new."""
    token = os.environ.get(TOKEN)
    return (token, False) if token is not None else (secrets.token_urlsafe(24), True)


def listen(options: ServeOptions) -> socket.socket:
    """Open the socket, or say why that is not possible."""
    try:
        infos = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise EbertError(
            f"{options.host!r} is not an address of this machine ({error}); choose another --host"
        ) from None
    family, kind, protocol, _, address = infos[0]
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
    except OSError as error:
        opened.close()
        raise EbertError(
            f"cannot listen on {options.host} port {options.port} ({error.strerror}); choose another --port (0: any)"
        ) from None
    return opened


def url_of(options: ServeOptions, opened: socket.socket, *, token: bool) -> str:
    """Give the address to open in a browser. What is after # stays in the browser and is in no log."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(options.host, options.host)  # noqa: S104
    host = f"[{host}]" if ":" in host else host
    return f"http://{host}:{opened.getsockname()[1]}/" + (f"#token={options.token}" if token else "")


class _Server(uvicorn.Server):
    """Ends in order at Ctrl-C and SIGTERM, and says so as soon as it begins to."""

    service: Service

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        with contextlib.suppress(KeyboardInterrupt), super().capture_signals():
            yield
            self._captured_signals.clear()  # ending in order is all that they ask for

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.service.stopping = True
        super().handle_exit(sig, frame)


def run(
    options: ServeOptions,
    opened: socket.socket,
    load: Callable[[], Loaded],
    *,
    ready: Callable[[Loaded], None] = lambda loaded: None,
) -> None:
    """Serve until a signal comes. The model is loaded while the service answers already, that it is not ready."""
    service = Service(options)
    failed: list[BaseException] = []

    def loading() -> None:
        try:
            loaded = load()
            service.start(loaded)
            ready(loaded)
        except BaseException as error:  # noqa: BLE001 - told to whoever called `run`
            failed.append(error)
            server.should_exit = True

    thread = threading.Thread(target=loading, name="ebert-loading", daemon=True)
    limits = options.limits
    config = uvicorn.Config(
        make_app(service, begin=thread.start), log_config=None, access_log=False, server_header=False, lifespan="on",
        http="h11", ws="none", backlog=BACKLOG, timeout_keep_alive=int(limits.client_seconds),
        limit_concurrency=limits.connections, timeout_graceful_shutdown=int(limits.seconds + limits.client_seconds),
    )  # fmt: skip
    server = _Server(config)
    server.service = service
    server.run(sockets=[opened])
    if failed:
        raise failed[0]
