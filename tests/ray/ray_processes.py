"""The processes of a cluster, found by a mark in their environment."""

import os
import select
from contextlib import suppress
from pathlib import Path

PATIENCE = 60  # seconds that a process of a cluster may take to go


def marked(mark):
    """Return the processes with a mark in their environment, this one left out."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            if mark.encode() in (place / "environ").read_bytes() and int(place.name) != os.getpid():
                found.append(int(place.name))
    return found


def still_there(mark):
    """Return the processes with a mark that do not end by themselves.

    Ray's agents look for their head for a minute after a kill, and then go, too; that is not waited for.
    """
    left = []
    for pid in marked(mark):
        with suppress(OSError):
            if b"Agent" in Path(f"/proc/{pid}/cmdline").read_bytes():
                continue
            handle = os.pidfd_open(pid)
            if not select.select([handle], [], [], PATIENCE)[0]:
                left.append((pid, Path(f"/proc/{pid}/cmdline").read_bytes()[:200]))
            os.close(handle)
    return left
