"""Calls a function in a process of its own: what it raised, and by how many bytes the memory grew at most.

An iterator that the function returns is read to its end. The process is not allowed more than MOST bytes and SECONDS
of CPU time, so that a bomb that goes off harms nobody.
"""

import importlib
import re
import resource
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import forked

MOST = 2 << 30
SECONDS = 120


def peak(what: str = "VmHWM") -> int:
    """Bytes that this process had in memory at most. Linux counts what was there before `exec` in ru_maxrss."""
    found = re.search(rf"{what}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) << 10


def forget_peak() -> None:
    """Begin to count anew."""
    Path("/proc/self/clear_refs").write_text("5")


def grow(function: str, *arguments: Any) -> tuple[str, int]:
    """Call a function in a process of its own; return the message of its EbertError and the growth in MiB."""
    here, there = forked.CONTEXT.Pipe(duplex=False)
    process = forked.start(_measure, there, function, arguments)
    there.close()  # the other process has its own
    try:
        wrong, message, bytes_ = here.recv()
    except EOFError:  # it was killed
        wrong, message, bytes_ = "no answer", "", 0
    process.join()
    assert not wrong, f"{function}: exit code {process.exitcode}\n{wrong[-2000:]}"
    return message, bytes_ >> 20


# Functions that take something that JSON does not have


def plan(path: Path) -> None:
    """Cut a file into shards for bulk work."""
    from ebert.bulk.inputs import make_plan
    from ebert.bulk.options import ReadOptions

    make_plan([path], ReadOptions(), lambda *_: None)


def read(path: Path) -> None:
    """Read the rows of a table."""
    from ebert.bulk.inputs import Shard, Slice, Source
    from ebert.bulk.options import ReadOptions
    from ebert.bulk.rows import RowReader
    from ebert.errors import EbertError

    source = Source(path, path.name, "parquet", path.stat().st_size)
    reader = RowReader(ReadOptions(), [])
    for row in reader(Shard(0, (Slice(source, 0, 100, 0, 0, 100),))).bad[:1]:
        raise EbertError(row.reason)


def sql(path: Path, column: str) -> Iterator[Any]:
    """Read a column of the table `page`."""
    from ebert.wikipedia.wikidata import rows

    return rows(path, "page", [column], bad=lambda _: None)


def _measure(answer: Connection, name: str, arguments: tuple[Any, ...]) -> None:
    """Call a function and send what is wrong, the message of its error and the growth in bytes."""
    from ebert.errors import EbertError

    wrong = message = ""
    module, _, path = name.partition(":")
    function: Any = importlib.import_module(module)
    for part in path.split("."):
        function = getattr(function, part)
    resource.setrlimit(resource.RLIMIT_AS, (MOST + peak("VmSize"),) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    before = peak()
    try:
        result = function(*arguments)
        if isinstance(result, Iterator):
            for _ in result:
                pass
    except SystemExit:  # of a command that went well
        pass
    except EbertError as error:
        message = str(error)
    except BaseException:
        wrong = traceback.format_exc()
    answer.send((wrong, message, peak() - before))
