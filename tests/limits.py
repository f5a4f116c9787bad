"""A disk that is full, for a while."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def full_disk(most: int = 100) -> Iterator[None]:
    """Let no file of this process grow beyond so many bytes.

    Nothing is compiled to disk meanwhile: Python 3.11 keeps a file that was cut, and then fails to import it.
    """
    import resource

    limits, before = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
