"""The first use of the starter by several processes at once: each finds all of it, and adds to it for itself."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from ebert import Vectors
from ebert.starter import get, packing

# A process that is ready when it says so, begins when it is told to, and says which entities it finds at its end.
ADDER = """
import sys
from pathlib import Path
from ebert import Vectors
from ebert.starter import get

get.DATA, number = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
with Vectors.open(get.get_starter() / "vectors") as vectors:
    for turn in range(3):
        vectors.add(f"Zorblax {number} {turn}", vectors["Germany"])
    for title, _ in vectors.added():
        print(title, flush=True)
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Packed data like that of the starter, which takes a moment to unpack."""
    folder = tmp_path_factory.mktemp("packed")
    words, entities = 4000, 20000
    random = np.random.default_rng(3)
    sizes = {"words": words, "outputs": words, "entities": entities}
    packing.pack(
        folder,
        {part: random.normal(size=(rows, 16)) for part, rows in sizes.items()},
        {
            "words": [f"word{n}" for n in range(words)], "word_counts": [1] * words,
            "entities": ["Germany", *(f"Entity {n}" for n in range(1, entities))], "entity_counts": [1] * entities,
            "redirects": [], "wikidata": [], "surfaces": [], "licence": "none", "made": {},
        },
    )  # fmt: skip
    for name in ("ebert.json", "alignment.safetensors"):
        shutil.copyfile(get.DATA / name, folder / name)
    packing.seal(folder)
    return folder


def add_at_once(data, home, processes):
    """Let processes use the starter for the first time at once; return what they found in the end."""
    environment = os.environ | {"EBERT_HOME": str(home), "OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", ADDER, str(data), str(number)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(processes)
    ]  # fmt: skip
    for process in running:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    found = []
    for process in running:
        out, err = process.communicate()
        assert process.returncode == 0, err
        found.append(out.splitlines())
    return found


def check(attack, number, home, data, processes):
    found = add_at_once(data, home, processes)
    wanted = [[f"Zorblax {process} {turn}" for turn in range(3)] for process in range(processes)]
    attack.check(found == wanted, f"try {number}: processes that added 3 entities each found {found}")
    (store,) = home.glob("starter/*/vectors")
    attack.check(not list(store.glob("added*")), f"try {number}: the starter was changed")
    with Vectors.open(store, verify=True) as vectors:
        attack.check("Germany" in vectors, f"try {number}: the starter is not whole")
    shutil.rmtree(home)


def test_each_process_has_its_own_additions(attack, small, tmp_path):
    for number in attack("first use of a starter by 4 processes at once", short=3, long=50):
        check(attack, number, tmp_path / f"home-{number}", small, 4)


def test_the_same_with_the_starter_itself(attack, tmp_path):
    for number in attack("first use of the real starter by 3 processes at once", short=1, long=5):
        check(attack, number, tmp_path / f"home-{number}", get.DATA, 3)


def test_a_folder_that_is_not_whole_is_not_overwritten(small, tmp_path):
    """Somebody removed ebert.json: the store beside it may hold what earlier versions added."""
    home = tmp_path / "home"
    add_at_once(small, home, 1)
    (info,) = home.glob("starter/*/ebert.json")
    info.unlink()
    code = (
        f"from pathlib import Path; from ebert.starter import get; get.DATA = Path({str(small)!r}); get.get_starter()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"EBERT_HOME": str(home)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert f"{info.parent} has no ebert.json; move it away" in done.stderr
    assert (info.parent / "vectors" / "store.json").is_file()
