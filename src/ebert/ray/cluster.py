"""A Ray cluster to work on: one that runs somewhere, or a small one on this machine that goes when the work is done."""

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ebert.errors import EbertError

PATIENCE = 30.0  # seconds for a machine to answer
STORE = 256 << 20  # bytes of shared memory of a cluster of our own: only shards' names and reports go through it


def need_ray() -> Any:
    """Give Ray, or say how to get it. It sends nothing about its use to its makers."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # it warns about things that are Ray Data's own
    try:
        import ray
        import ray.data
    except ImportError:
        why = "; Ray has no wheels for this Python yet" if sys.version_info >= (3, 15) else ""
        raise EbertError(f"the engine ray needs Ray: pip install 'ebert[ray]'{why}") from None
    return ray


@contextmanager
def connected(address: str | None, *, cpus: int, store: int = STORE) -> Iterator[None]:
    """Work on the cluster at an address, else at RAY_ADDRESS, else on one of our own with so many cores.

    `store` is how many bytes of shared memory that one has. Whoever has connected to a cluster before works on it.
    """
    ray = need_ray()
    if ray.is_initialized():
        yield
        return
    place = address or os.environ.get("RAY_ADDRESS")
    if place is not None:
        _knock(place)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if place is None:
        quiet |= {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": store}
    try:
        ray.init(address=place or "local", **quiet)
    except Exception as error:  # it says so in many ways
        ray.shutdown()
        what = f"there is no Ray cluster at {place}" if place else "Ray could not be started on this machine"
        raise EbertError(f"{what}: {first_line(error)}") from None
    try:
        yield
    finally:
        ray.shutdown()


def _knock(place: str) -> None:
    """See that somebody is at an address: Ray itself goes on trying for many minutes without a word."""
    host, _, port = place.rpartition("//")[2].rpartition(":")
    if not (host and port.isdecimal()):  # 'auto' and its like
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except OSError as error:
        raise EbertError(f"there is no Ray cluster at {place} ({error}); --address is that of its head") from None


def cores() -> int:
    """Count the cores of the cluster."""
    return max(1, int(need_ray().cluster_resources().get("CPU", 1)))


def first_line(error: Exception) -> str:
    """Give what an error says in short: Ray adds pages."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
