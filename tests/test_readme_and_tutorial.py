"""What the README and the tutorial tell people to type: run as written, in order, from an empty folder.

Blocks of `python` and `console` are run, with the real BERT and the real starter. What they print must be the `text`
block that follows, or the lines below a command, with numbers right to one digit. A `sh` block is for another place
(an installation, a clone) and is not run.

With EBERT_GOLDEN=write the outputs in the documents are replaced by those that are printed now, for a new starter:

    EBERT_GOLDEN=write python -m pytest tests/test_readme_and_tutorial.py && git diff README.md docs/tutorial
"""

import hashlib
import io
import math
import os
import re
import shlex
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from ebert import get_bert, get_starter

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = re.compile(r"^\$ ", re.MULTILINE)
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


def contents(folder: Path) -> dict[str, str]:
    """Hash every file of a folder that holds something."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.stat().st_size
    }


class Typing:
    """Somebody who types what a document shows; `rewritten` is the document with what is printed today."""

    def __init__(self, text: str, ebert) -> None:
        self.rewritten, self.ran, self.compared = text, 0, 0
        self.differ: list[tuple[str, str]] = []  # what is written, what is printed
        self._ebert, self._names = ebert, {}

    def type(self) -> None:
        blocks = list(BLOCK.finditer(self.rewritten))
        for number, found in reversed(list(enumerate(self._printed(blocks)))):  # from the end: offsets stay right
            if found is not None:
                start, end = blocks[number].span(2)
                self.rewritten = self.rewritten[:start] + found + self.rewritten[end:]

    def _printed(self, blocks: list[re.Match]) -> list[str | None]:
        """Return for each block what it should be, or None where nothing is printed."""
        shown: list[str | None] = [None] * len(blocks)
        for number, (language, block) in enumerate(one.groups() for one in blocks):
            if language == "python":
                with redirect_stdout(io.StringIO()) as out:
                    exec(compile(block, "a document", "exec"), self._names)
                self.ran += 1
                if number + 1 < len(blocks) and blocks[number + 1][1] == "text":
                    shown[number + 1] = self._compare(blocks[number + 1][2], out.getvalue())
            elif language == "console":
                shown[number] = "".join(map(self._command, PROMPT.split(block)[1:]))
            elif language == "sh":
                lines = block.splitlines()
                assert all(line.startswith(ELSEWHERE) for line in lines), "this can be run: make it `console`"
        return shown

    def _command(self, part: str) -> str:
        typed, written = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL).groups()
        program, *arguments = shlex.split(typed.replace("\\\n", " "))
        assert program == "ebert"
        done = self._ebert(*arguments)
        assert done.code == 0, done.err
        self.ran += 1
        return f"$ {typed}{self._compare(written, done.out) if written else ''}"

    def _compare(self, written: str, printed: str) -> str:
        self.compared += 1
        if same(printed, written):
            return written
        printed = "\n".join(line.rstrip() for line in printed.strip("\n").split("\n")) + "\n"
        self.differ.append((written, printed))
        return printed


@pytest.mark.parametrize("name", ["README.md", "docs/tutorial/first-steps.md"])
@pytest.mark.usefixtures("empty")
def test_a_document_can_be_typed_as_written(name, ebert):
    starter = contents(get_starter())
    typing = Typing((ROOT / name).read_text(encoding="utf-8"), ebert)
    typing.type()
    assert typing.ran > 3
    assert typing.compared > 3
    assert contents(get_starter()) == starter, "an example changed the starter"
    if os.environ.get("EBERT_GOLDEN") == "write":
        (ROOT / name).write_text(typing.rewritten, encoding="utf-8")
    else:
        assert typing.differ == []


def test_outputs_are_rewritten_where_they_differ(ebert):
    document = """```python
print("Spanish", 0.5)
```

```text
French 0.5
```

```console
$ ebert --version
$ ebert \\
  --version
ebert 0
```
"""
    typing = Typing(document, ebert)
    typing.type()
    assert (typing.ran, typing.compared, len(typing.differ)) == (3, 2, 2)
    assert (
        "```text\nSpanish 0.5\n```\n\n```console\n$ ebert --version\n$ ebert \\\n  --version\nebert "
        in typing.rewritten
    )
    again = Typing(typing.rewritten, ebert)
    again.type()
    assert again.differ == []
    assert again.rewritten == typing.rewritten


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
