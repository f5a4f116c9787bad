"""Connections to an SQLite file, one for every thread and process, so that readers never wait for each other."""

import ctypes
import os
import sqlite3
import threading
from pathlib import Path

from ebert.errors import EbertError


class _Held:
    """Closes its connection when the thread or the store it belongs to is gone."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.process = connection, os.getpid()

    def __del__(self) -> None:
        if self.process == os.getpid():
            self.connection.close()
        else:  # SQLite forbids a forked process to touch, even to close, what its parent opened: nothing ever frees it
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.connection))


class Connections:
    """Opens an SQLite file once for every thread and process that asks."""

    def __init__(self, path: Path, options: str, *, witness: Path, mapped: int = 0) -> None:
        """Remember where the file is and how to open it (the query part of an SQLite URI); nothing is opened yet.

        With `mapped`, so many bytes of the file are mapped into memory instead of read page by page.

        `witness` is a file of the store that never changes. If it is another one when a thread comes late, the store
        was replaced in the meantime, and names of the new one would be mixed with vectors of the old one.
        """
        self._path, self._options, self._witness, self._mapped = path, options, witness, mapped
        self._mark = self._identify()
        self._local = threading.local()

    def get(self) -> sqlite3.Connection:
        """Give this thread's connection."""
        held: _Held | None = getattr(self._local, "held", None)
        if held is None or held.process != os.getpid():  # a new thread, or forked since
            self.check()
            uri = f"{self._path.as_uri()}?{self._options}"
            # SQLite itself lets any thread close a connection; Python's stricter check would forbid `_Held` to.
            held = _Held(sqlite3.connect(uri, uri=True, timeout=60.0, check_same_thread=False))
            held.connection.execute(f"PRAGMA mmap_size = {self._mapped}")
            self._local.held = held
        return held.connection

    def check(self) -> None:
        """See that the store is still the one that was opened."""
        if self._identify() != self._mark:
            raise EbertError(f"{self._path.parent} was moved or replaced since it was opened: open it again")

    def close(self) -> None:
        """Close the connections; whoever asks again gets a new one."""
        self._local = threading.local()

    def _identify(self) -> tuple[int, int, int] | None:
        try:
            status = self._witness.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size
