"""Comparing with what is frozen in tests/golden/data, and running commands as the shell does.

Nothing here knows a module of ebert but its command line.
"""

import contextlib
import difflib
import hashlib
import io
import json
import math
import os
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).parent / "data"
WRITING = os.environ.get("EBERT_GOLDEN") == "write"
# Only the type of these is frozen: times, versions, hashes of what depends on the processor, place or library.
VOLATILE = {
    "seconds", "loop_seconds", "finish_seconds", "seconds of the last start", "words_per_second", "gflops", "machine",
    "ebert", "version", "saved_here", "alignment_sha256", "weights_sha256", "catalogue.sqlite", "weights",
}  # fmt: skip
# Files of floats that went through BLAS or torch: names, types and shapes are frozen, and numbers within a tolerance.
HASHED = ("model", "alignment", "vectors")  # in the identity of a run
HITS = ("hits@1", "hits@2", "hits@10", "hits@100")
BY_LOOKS = (".svg", ".html", ".png")


class Done(NamedTuple):
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return the value, or the list of values, that it printed."""
        values = [json.loads(line) for line in self.out.splitlines()]
        return values[0] if len(values) == 1 else values


def run(*arguments: object, stdin: str | None = None, code: int = 0) -> Done:
    """Run `ebert ARGUMENTS` in this process, and require its exit code."""
    from ebert.cli import main

    out, err = io.StringIO(), io.StringIO()
    before = sys.argv, sys.stdin
    sys.argv = ["ebert", *map(str, arguments)]
    sys.stdin = io.StringIO(stdin or "")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        done = Done(int(stop.code or 0), out.getvalue(), err.getvalue())
    finally:
        sys.argv, sys.stdin = before
    assert done.code == code, f"ebert {' '.join(map(str, arguments))} ended with {done.code}:\n{done.err}"
    return done


def shape(value: Any) -> Any:
    """Return the keys and types of a JSON value, recursively; a list is as its first element."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return "null" if value is None else type(value).__name__


def scrub(value: Any, root: Path | None = None, *, hashes: bool = True) -> Any:
    """Return a JSON value without times, versions and places of this machine; `hashes`: with those of files."""
    if isinstance(value, dict):
        if "hits@1" in value:  # of the hundred hits@k of a probing, some are enough
            value = {key: part for key, part in value.items() if not key.startswith("hits@") or key in HITS}
        return {
            key: f"<{shape(part)}>" if _volatile(key, part, hashes=hashes) else scrub(part, root, hashes=hashes)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [scrub(part, root, hashes=hashes) for part in value]
    if isinstance(value, str) and root is not None:
        value = value.replace(str(root.resolve()), "<root>").replace(str(root), "<root>")
        return re.sub(r"/\S+/ebert-store-\w+", "<temporary store>", value)
    return value


def _volatile(key: str, part: Any, *, hashes: bool) -> bool:
    if key in VOLATILE or (key in ("sha256", "words_sha256") and not hashes):
        return True
    return key in HASHED and isinstance(part, str) and re.fullmatch("[0-9a-f]{64}", part) is not None


def differences(frozen: Any, now: Any, *, within: float, where: str = "") -> list[str]:
    """Return what differs between two JSON values; floats may differ by `within`, relatively or absolutely."""
    here = where or "the value"
    if isinstance(frozen, bool) or isinstance(now, bool):
        return [] if frozen is now else [f"{here}: {frozen!r} became {now!r}"]
    if isinstance(frozen, float) and isinstance(now, int | float):
        near = math.isclose(frozen, now, rel_tol=within, abs_tol=within) or (math.isnan(frozen) and math.isnan(now))
        return [] if near else [f"{here}: {frozen!r} became {now!r}"]
    if type(frozen) is not type(now):
        return [f"{here}: {frozen!r} became {now!r}"]
    if isinstance(frozen, dict):
        found = [f"{where}/{key}: lost" for key in frozen.keys() - now.keys()]
        found += [f"{where}/{key}: new" for key in now.keys() - frozen.keys()]
        for key in frozen.keys() & now.keys():
            found += differences(frozen[key], now[key], within=within, where=f"{where}/{key}")
        return sorted(found)
    if isinstance(frozen, list):
        if len(frozen) != len(now):
            return [f"{here}: {len(frozen)} elements became {len(now)}"]
        pairs = enumerate(zip(frozen, now, strict=True))
        return [text for i, (a, b) in pairs for text in differences(a, b, within=within, where=f"{where}/{i}")]
    return [] if frozen == now else [f"{here}: {frozen!r} became {now!r}"]


def check_text(name: str, text: str) -> None:
    """Compare a text with what is frozen under this name."""
    path = DATA / name
    if WRITING:
        _write(path, text)
    frozen = path.read_text("utf-8")
    if frozen != text:
        lines = difflib.unified_diff(frozen.splitlines(), text.splitlines(), "frozen", "now", lineterm="", n=1)
        raise AssertionError(f"{path} differs:\n" + "\n".join(list(lines)[:60]))


def check_json(name: str, value: Any, *, within: float = 1e-4) -> None:
    """Compare a JSON value with what is frozen under this name."""
    path = DATA / name
    if WRITING:
        _write(path, _pretty(_rounded(value)) + "\n")
    found = differences(json.loads(path.read_text("utf-8")), json.loads(json.dumps(value)), within=within)
    if found:
        raise AssertionError(f"{path} differs:\n" + "\n".join(found[:60]))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _pretty(value: Any, indent: str = "") -> str:
    """Write JSON with what fits on a line on one line."""
    short = json.dumps(value, ensure_ascii=False)
    if len(short) + len(indent) <= 118 or not isinstance(value, dict | list):
        return short
    inner = indent + " "
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {_pretty(one, inner)}" for key, one in value.items()]
    else:
        parts = [f"{inner}{_pretty(one, inner)}" for one in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(parts) + f"\n{indent}{closing}"


def _rounded(value: Any) -> Any:
    """Return a value with seven digits of each float, so that writing again changes little."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def folder(path: Path, root: Path, *, inexact: tuple[str, ...] = (), hashes: bool = True) -> dict[str, Any]:
    """Describe the files of a folder: JSON by its content, SQLite by its schema and rows, tensors by their numbers.

    All others by their hashes, but plots and pages by being there, and hidden files not at all. Of files matching
    `inexact` only names are described, and of tensors shapes. `hashes`: whether JSON may hold hashes of files.
    """
    found = {}
    for file in sorted(path.rglob("*")):
        name = re.sub(r"-[0-9a-f]{8,}", "-<hex>", file.relative_to(path).as_posix())
        if file.is_file() and not file.name.startswith("."):
            found[name] = _file(file, root, inexact=any(map(file.match, inexact)), hashes=hashes)
    return found


def _file(file: Path, root: Path, *, inexact: bool, hashes: bool) -> Any:
    if file.suffix == ".safetensors":
        return tensors(file, numbers=not inexact)
    if file.suffix == ".npy":
        return array(file, numbers=not inexact)
    if file.suffix in BY_LOOKS or inexact:
        return "a file"
    if file.suffix == ".json" and file.name != "tokenizer.json":
        return scrub(json.loads(file.read_text("utf-8")), root, hashes=hashes)
    if file.suffix == ".jsonl":
        return [scrub(json.loads(line), root, hashes=hashes) for line in file.read_text("utf-8").splitlines()]
    if file.suffix == ".sqlite":
        return sqlite(file)
    return f"sha256 {hashlib.sha256(file.read_bytes()).hexdigest()}"


def tensors(file: Path, *, numbers: bool = True) -> dict[str, Any]:
    """Describe a file of tensors: types, shapes, and the first, last and mean numbers."""
    import numpy as np

    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + size])
    kinds = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I8": "<i1", "U8": "<u1", "F64": "<f8"}
    described = {}
    for name, about in sorted(head.items()):
        if name == "__metadata__":
            described[name] = sorted(about)
            continue
        start, stop = about["data_offsets"]
        described[name] = {"dtype": about["dtype"], "shape": about["shape"]}
        if numbers and about["dtype"] in kinds:
            data = np.frombuffer(content[8 + size + start : 8 + size + stop], kinds[about["dtype"]])
            described[name]["numbers"] = _numbers(data)
    return described


def array(file: Path, *, numbers: bool = True) -> dict[str, Any]:
    """Describe a file of numpy; integers by their hash."""
    import numpy as np

    data = np.load(file)
    about: dict[str, Any] = {"dtype": str(data.dtype), "shape": list(data.shape)}
    if data.dtype.kind in "iub":
        about["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    elif numbers:
        about["numbers"] = _numbers(data)
    return about


def _numbers(data: Any) -> list[float]:
    flat = data.reshape(-1).astype("float64")
    return [*map(float, flat[:3]), *map(float, flat[-3:]), float(abs(flat).mean())] if flat.size else []


def sqlite(file: Path) -> dict[str, Any]:
    """Describe a database: what makes its tables, and their rows."""
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as opened:
        schema = dict(opened.execute("select name, sql from sqlite_master where sql is not null order by name"))
        tables = opened.execute("select name, sql from sqlite_master where type = 'table' order by name").fetchall()
        indexes = tuple(name for name, sql in tables if "VIRTUAL" in sql)  # whose own tables are SQLite's affair
        names = [name for name, _ in tables if not name.startswith(indexes or "sqlite_")]
        rows = {name: sorted(map(_row, opened.execute(f"select * from {name}"))) for name in names}
    schema = {name: sql for name, sql in schema.items() if name in indexes or not name.startswith(indexes or "-")}
    return {"schema": {name: re.sub(r"\s+", " ", sql) for name, sql in schema.items()}, "rows": rows}


def _row(row: tuple[Any, ...]) -> str:
    return " | ".join(cell.hex() if isinstance(cell, bytes) else str(cell) for cell in row)
