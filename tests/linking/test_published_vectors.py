"""docs/howto/link.md leads from published vectors to a linker; its commands run as written, on files of that format.

The files have the names that the page gives them, and a small encoder is called as the real one, and goes before it.
"""

import bz2
import random
import re
import shlex
from pathlib import Path

import pytest
import walks
from walks import CITIES, COUNTRIES, OTHERS, PEOPLE, RARE, WORDS

from ebert import Linker
from ebert.text.passage import Passage
from ebert.vectors.store import Vectors

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "link.md"
HEADING = "## From published vectors to millions of entities\n"
DIMENSION = 12
WALKS = 470  # pages: the held-out documents are chosen first, from 400


def commands() -> list[list[str]]:
    """Return the commands of the section, in order."""
    section = PAGE.read_text("utf-8").partition(HEADING)[2].partition("\n## ")[0]
    blocks = re.findall(r"^```bash\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.replace("\\\n", " ").splitlines()]


def write_vectors(path: Path) -> None:
    """Write words and entities as the published text has them: a header, lower case, underscores for blanks."""
    chance = random.Random(0)
    names = [*WORDS, *(f"ENTITY/{title.replace(' ', '_')}" for title in [*PEOPLE, *CITIES, *COUNTRIES, *OTHERS])]
    rows = [" ".join([name, *(f"{chance.gauss(0, 0.4):.4f}" for _ in range(DIMENSION))]) for name in names]
    path.write_bytes(bz2.compress("\n".join([f"{len(names)} {DIMENSION}", *rows, ""]).encode()))


def write_table(path: Path) -> None:
    """Write names as KnowBert's table has them."""
    lines = [f"{title}\t50\t1,1.0,{title.replace(' ', '_')}" for title in [*PEOPLE, *CITIES[1:], *COUNTRIES]]
    lines += ["Paris\t100\t2,0.8,Paris\t3,0.2,Paris,_Texas", f"{RARE}\t3\t4,1.0,{RARE.replace(' ', '_')}"]
    path.write_text("\n".join(lines) + "\n", "utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The reader's folder with what was downloaded, under the names that the commands have."""
    monkeypatch.chdir(tmp_path)
    writers = {"txt.bz2": write_vectors, "xml.bz2": lambda path: walks.write_dump(path, WALKS), "e_m.txt": write_table}
    given = {word for command in commands() for word in command if word.endswith(tuple(writers))}
    assert len(given) == len(writers)
    for name in given:
        next(write for ending, write in writers.items() if name.endswith(ending))(tmp_path / name)
    (encoder,) = {command[command.index("--bert") + 1] for command in commands() if "--bert" in command}
    walks.write_bert(tmp_path / encoder)
    return tmp_path


def test_every_command_leads_to_the_next(ebert, folder):
    printed = {}
    for program, *arguments in commands():
        assert program == "ebert"
        done = ebert(*arguments)
        assert done.code == 0, f"{arguments}\n{done.err}"
        printed[" ".join(arguments[:2])] = done.out
    linked = Passage.parse(printed["link run"].strip())
    assert linked.text == "Marie Curie left Warsaw and studied in Paris."
    assert {"Marie Curie", "Warsaw"} <= {mention.entity for mention in linked.mentions}
    imported = Vectors.open("enwiki-2018")
    assert (imported.dimension, imported.find("Paris, Texas").title) == (DIMENSION, "Paris, Texas")
    assert imported.describe()["dtype"] == "float16"
    first, second = (Vectors.open(name).candidates("Paris") for name in ("first-table", "enwiki-2018-table"))
    assert [one.entity.title for one in first] == [one.entity.title for one in second] == ["Paris", "Paris, Texas"]
    assert sum(one.count for one in first) > sum(one.count for one in second)  # without the documents
    assert Vectors.open("first-table").candidates(RARE) == []  # newer than the vectors
    table = Vectors.open("knowbert-table").candidates("Paris")
    assert [one.count for one in table] == [80, 20]
    for name in ("enwiki-2018-linker", "knowbert-linker"):
        linker = Linker.from_pretrained(name)
        assert linker.options.adapter
        assert len(linker("He left Warsaw in Poland.").mentions) == 2
