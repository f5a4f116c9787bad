"""HTTP as uvicorn speaks it, with no patience for clients that only seem to speak it.

uvicorn waits for ever for the head of a request, and for a client to take its answer: both are how a handful of
clients can hold all connections of a service.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def hurried(seconds: float, connections: int) -> type[asyncio.Protocol]:
    """Give a protocol that allows so many seconds for the head of a request, and for the answer to be taken.

    One connection too many is told so before it says anything, and closed.
    """

    class Hurried(H11Protocol):
        _waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()
            if len(self.connections) > connections:
                transport.write(BUSY)
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

    return Hurried
