"""The page about spaCy says what is true: its Python, its config and its commands are run as they stand there."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest
import spacy

from ebert.spacy import EXTENSIONS, PipeOptions

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "spacy.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def blocks(kind):
    return [text for name, text in BLOCKS if name == kind]


def test_every_block_is_of_a_kind_that_is_tested():
    assert {kind for kind, _ in BLOCKS} == {"bash", "ini", "python", "text"}


@pytest.mark.real
def test_the_python_prints_what_the_page_shows(tmp_path):
    code = "".join(blocks("python"))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "".join(blocks("text")), done.stderr


@pytest.mark.real
def test_the_commands_run(tmp_path):
    """`pip install` would change the installation that is tested; that there is such an extra is what it says."""
    (tmp_path / "config.cfg").write_text("".join(blocks("ini")), "utf-8")
    scripts = Path(sys.executable).parent
    for line in "".join(blocks("bash")).splitlines():
        if line.startswith("pip install"):
            assert line == "pip install 'ebert[spacy]'"
            assert "spacy" in metadata("ebert").get_all("Provides-Extra")
            continue
        environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    pipe = spacy.load(tmp_path / "linking-pipeline").get_pipe("ebert_linker")
    assert (pipe.options.linker, pipe.options.label) == ("starter", "WIKIPEDIA")


def test_the_tables_name_everything():
    rows = dict(re.findall(r"^\| `(\w+)` \|([^|]*)\|", PAGE.partition("## Settings")[2], re.MULTILINE))
    defaults = {field.name: field.default for field in dataclasses.fields(PipeOptions)}
    shown = {name: json.loads(value.strip(" `") or "null") for name, value in rows.items()}
    assert shown == defaults
    assert tuple(re.findall(r"^\| `_\.(\w+)` \|", PAGE, re.MULTILINE)) == EXTENSIONS
