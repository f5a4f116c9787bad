"""Calls a function in this process and prints as JSON what it raised and by how many bytes the memory grew at most.

    echo '["argument", ...]' | python growing.py module:function

An argument that begins with a slash is a path. An iterator that the function returns is read to its end. The process
is not allowed more than MOST bytes and SECONDS of CPU time, so that a bomb that goes off harms nobody.
"""

import importlib
import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    """Call a function in a process of its own; give the message of its EbertError and the growth in MiB."""
    command, given = [sys.executable, __file__, function], json.dumps(arguments, default=str)
    done = subprocess.run(command, input=given, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{function}: exit code {done.returncode}\n{done.stderr[-2000:]}"
    message, bytes_ = json.loads(done.stdout.splitlines()[-1])
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


def main(name: str, arguments: list[Any]) -> None:
    from ebert.errors import EbertError

    module, _, path = name.partition(":")
    function: Any = importlib.import_module(module)
    for part in path.split("."):
        function = getattr(function, part)
    resource.setrlimit(resource.RLIMIT_AS, (MOST + peak("VmSize"),) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    message, before = "", peak()
    try:
        result = function(*(Path(one) if isinstance(one, str) and one[:1] == "/" else one for one in arguments))
        if isinstance(result, Iterator):
            for _ in result:
                pass
    except SystemExit:  # of a command that went well
        pass
    except EbertError as error:
        message = str(error)
    sys.stdout.write(json.dumps([message, peak() - before]))


if __name__ == "__main__":
    main(sys.argv[1], json.load(sys.stdin))
