"""The commands of docs/howto/bulk.md are run as they are written, one after the other, in one folder."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

sys.path.append(str(Path(__file__).parents[1] / "wikipedia"))
from dump_files import many_pages, multistream

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "bulk.md"
BLOCKS = re.findall(r"^```(bash|python)\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The reader's folder, with a dump in it."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "enwiki-latest-pages-articles-multistream.xml.bz2").write_bytes(multistream(many_pages(40), 10))
    return folder


def do(kind, block, place, **more):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", **more}
    if kind == "python":
        (place / "block.py").write_text(block)
        command = [sys.executable, "block.py"]
    else:
        command = ["bash", "-euc", block]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)


@pytest.mark.real
def test_every_command_works_as_written(place):
    for kind, block in BLOCKS:
        if ("ray" in block and sys.version_info >= (3, 15)) or "$HEAD" in block:
            continue  # Ray has no wheels for it yet; the other one has a cluster of its own in tests/ray
        done = do(kind, block, place)
        assert done.returncode == 0, f"{block}\n{done.stderr}"
    rows = pq.read_table(place / "linked" / "rows").to_pylist()
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert "Albert Einstein" in [mention["entity"] for mention in rows[0]["mentions"]]
    vectors = pq.read_table(place / "entity-vectors" / "rows").to_pylist()
    assert [len(row["entities"]) for row in vectors] == [len(row["mentions"]) for row in rows]
    assert {len(one["vector"]) for row in vectors for one in row["entities"]} == {768}
    assert json.loads((place / "answers" / "metrics.json").read_text())["modes"]["concat"]["all"]["questions"] == 2
    assert json.loads((place / "sure" / "manifest.json").read_text())["rows"] == 3
    if sys.version_info < (3, 15):
        assert pq.read_table(place / "linked-by-ray" / "rows").to_pylist() == rows
        assert (place / "enwiki" / "corpus.json").exists()


def test_the_page_has_what_the_command_line_has():
    text = PAGE.read_text("utf-8")
    assert len(BLOCKS) >= 7
    from ebert.cli import bulk

    every = {option.opts[0] for option in bulk.link.params if option.opts[0].startswith("--")}
    assert every - {"--linker", "--json", "--vectors", "--device"} <= set(re.findall(r"--[a-z-]+", text))
