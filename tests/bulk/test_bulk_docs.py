"""The commands of docs/howto/bulk.md are run as they are written, one after the other, in one folder.

A folder with a small model is called as the starter, and goes before it. Commands for a cluster are run in tests/ray.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
from bulk_models import write_linker

sys.path.append(str(Path(__file__).parents[1] / "wikipedia"))
from dump_files import many_pages, multistream

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "bulk.md"
BLOCKS = re.findall(r"^```(bash|python)\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def prepare(place):
    """Make the reader's folder, with a model and a dump in it."""
    write_linker(place, "starter")
    (place / "enwiki-latest-pages-articles-multistream.xml.bz2").write_bytes(multistream(many_pages(40), 10))


def do(kind, block, place, ebert, **more):
    """Run a block: our commands in this process, where they need nothing of the shell, and all else by it."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", **more}
    if kind == "python":
        (place / "block.py").write_text(block)
        block = "python block.py"
    lines = block.splitlines(keepends=True)
    ours = [line for line in lines if line.startswith("ebert ") and "$" not in line]
    rest = "".join(line for line in lines if line not in ours)
    done = subprocess.run(["bash", "-euc", rest], cwd=place, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{block}\n{done.stderr}"
    for line in ours:
        code, _, err = ebert(*shlex.split(line)[1:])
        assert code == 0, f"{block}\n{err}"


def test_every_command_works_as_written(ebert, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    for kind, block in BLOCKS:
        if "--engine ray" not in block:
            do(kind, block, tmp_path, ebert)
    rows = pq.read_table(tmp_path / "linked" / "rows").to_pylist()
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert [mention["entity"] for mention in rows[1]["mentions"]] == ["Rome", "Italy"]
    vectors = pq.read_table(tmp_path / "entity-vectors" / "rows").to_pylist()
    assert [len(row["entities"]) for row in vectors] == [len(row["mentions"]) for row in rows]
    assert {len(one["vector"]) for row in vectors for one in row["entities"]} == {16}
    assert json.loads((tmp_path / "answers" / "metrics.json").read_text())["modes"]["concat"]["all"]["questions"] == 2
    assert json.loads((tmp_path / "sure" / "manifest.json").read_text())["rows"] == 3


def test_the_page_has_what_the_command_line_has():
    text = PAGE.read_text("utf-8")
    assert len(BLOCKS) >= 7
    from ebert.cli import bulk

    every = {option.opts[0] for option in bulk.link.params if option.opts[0].startswith("--")}
    assert every - {"--linker", "--json", "--vectors", "--device"} <= set(re.findall(r"--[a-z-]+", text))
