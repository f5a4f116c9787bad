"""Connections to an SQLite file, one for every thread and process, so that readers never wait for each other."""

import ctypes
import os
import sqlite3
import threading
from pathlib import Path

from ebert.errors import EbertError


class Budget:
    """Ends a query that takes more steps than any could over a file of its size: crafted pages can go in circles."""

    STEP = 1_000_000  # of SQLite's machine, between two calls

    def __init__(self, size: int) -> None:
        self.whole = self.left = 20 + 100 * size // self.STEP

    def __call__(self) -> bool:
        """Return whether the query is to end."""
        self.left -= 1
        return self.left < 0


class Held:
    """Closes its connection when the thread or the store it belongs to is gone."""

    def __init__(self, connection: sqlite3.Connection, size: int = 0) -> None:
        self.connection, self.process, self.budget = connection, os.getpid(), Budget(size)
        if size:
            connection.set_progress_handler(self.budget, Budget.STEP)

    def __del__(self) -> None:
        if self.process == os.getpid():
            self.connection.close()
        else:  # SQLite forbids a forked process to touch, even to close, what its parent opened: nothing ever frees it
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.connection))


class Connections:
    """Opens an SQLite file for reading, once for every thread and process that asks."""

    def __init__(self, path: Path, *, mapped: int = 0) -> None:
        """Remember where the file is; nothing is opened yet.

        With `mapped`, so many bytes of the file are mapped into memory instead of read page by page.

        The file never changes. If it is another one when a thread comes late, the store was replaced in the meantime,
        and names of the new one would be mixed with vectors of the old one.
        """
        self._path, self._mapped = path, mapped
        self._mark = self._identify()
        self._local = threading.local()

    def get(self) -> sqlite3.Connection:
        """Return this thread's connection, for a new query."""
        held: Held | None = getattr(self._local, "held", None)
        if held is None or held.process != os.getpid():  # a new thread, or forked since
            uri = f"{self._path.as_uri()}?mode=ro&immutable=1"
            # SQLite itself lets any thread close a connection; Python's stricter check would forbid `Held` to.
            connection = sqlite3.connect(uri, uri=True, timeout=60.0, check_same_thread=False)
            held = Held(connection, size=self._mark[2] if self._mark else 0)
            # Not cell_size_check: it keeps damage from spreading, which needs a writer, and makes look-ups take twice
            # as long, since mapped pages are checked anew each time.
            held.connection.execute(f"PRAGMA mmap_size = {self._mapped}")
            held.connection.execute("PRAGMA trusted_schema = OFF")
            self.check()  # when it is open, as the store may be replaced at any moment
            self._local.held = held
        held.budget.left = held.budget.whole
        return held.connection

    def check(self) -> None:
        """Raise `EbertError` if the store is not the one that was opened."""
        if self._identify() != self._mark:
            raise EbertError(f"{self._path.parent} was moved or replaced since it was opened: open it again")

    def close(self) -> None:
        """Close the connections; whoever asks again gets a new one."""
        self._local = threading.local()

    def _identify(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size
