"""What the README and the tutorial tell people to type: run as written, in order, from an empty folder.

Blocks of `python` and `console` are run, with the real BERT and the real starter. What they print must be the `text`
block that follows, or the lines below a command, with numbers right to one digit. A `sh` block is for another place
(an installation, a clone) and is not run.
"""

import hashlib
import io
import math
import re
import shlex
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from ebert import get_bert, get_starter

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
ELSEWHERE = ("make", "pip", "ebert doctor", "ebert serve")
pytestmark = pytest.mark.real


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty folder to work in, and a home of its own that has the real BERT but no starter yet."""
    bert = get_bert("bert-base-cased")
    home = tmp_path / "home"
    (home / "bert").mkdir(parents=True)
    (home / "bert" / bert.name).symlink_to(bert)
    monkeypatch.setenv("EBERT_HOME", str(home))
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")


def same(printed: str, written: str) -> bool:
    """Whether two texts have the same words, and numbers that are the same to one digit."""
    words = [re.sub(r"\s+", " ", NUMBER.sub("#", text)).strip() for text in (printed, written)]
    numbers = [[float(number.replace(",", "")) for number in NUMBER.findall(text)] for text in (printed, written)]
    return words[0] == words[1] and all(
        abs(one - other) <= 0.5 * 10 ** math.floor(math.log10(other or 1)) for one, other in zip(*numbers, strict=True)
    )


def test_numbers_are_compared_to_one_digit():
    assert same("Spanish  87.1%\n", "Spanish 90.2%")
    assert same("20,000 entities", "20,001 entities")
    assert not same("Spanish 87%", "Spanish 78%")
    assert not same("Spanish 0.9%", "Spanish 9%")
    assert not same("Spanish 87%", "French 87%")


def commands(block: str) -> list[tuple[str, str]]:
    """Take a console block apart: each command, and what it prints if that is shown."""
    parts = re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def contents(folder: Path) -> dict[str, str]:
    """Hash every file of a folder that holds something."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.stat().st_size
    }


@pytest.mark.parametrize("name", ["README.md", "docs/tutorial/first-steps.md"])
@pytest.mark.usefixtures("empty")
def test_a_document_can_be_typed_as_written(name, ebert):
    starter = contents(get_starter())
    blocks = BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    ran = compared = 0
    for number, (language, block) in enumerate(blocks):
        if language == "python":
            with redirect_stdout(io.StringIO()) as out:
                exec(compile(block, name, "exec"), names)
            ran += 1
            follows, shown = blocks[number + 1] if number + 1 < len(blocks) else ("", "")
            if follows == "text":
                assert same(out.getvalue(), shown), out.getvalue()
                compared += 1
        elif language == "console":
            for command, shown in commands(block):
                program, *arguments = shlex.split(command)
                assert program == "ebert"
                done = ebert(*arguments)
                assert done.code == 0, done.err
                ran += 1
                if shown:
                    assert same(done.out, shown), done.out
                    compared += 1
        elif language == "sh":
            assert all(line.startswith(ELSEWHERE) for line in block.splitlines()), "this can be run: make it `console`"
    assert ran > 3
    assert compared > 3
    assert contents(get_starter()) == starter, "an example changed the starter"


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 900
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert len(links) > 20
    assert [link for link in links if not link.startswith("https:") and not (ROOT / link).exists()] == []
    assert not re.search(r"!\[[^]]*\]\(http", text), "an image from the network"


def test_the_badges_are_true():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    images = ROOT / "docs" / "images"
    assert f"licence: {project['license']}<" in (images / "badge-licence.svg").read_text()
    oldest = project["requires-python"].removeprefix(">=")
    assert f"Python: {oldest} or newer<" in (images / "badge-python.svg").read_text()
