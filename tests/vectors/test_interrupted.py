"""A full disk and Ctrl-C: whatever was there before is there afterwards, and nothing else."""

import contextlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ebert import EbertError, Vectors
from ebert.vectors.formats.exporter import export_text
from ebert.vectors.formats.importer import import_vectors

ROWS, DIMENSION = 4000, 64

# Files larger than the limit cannot be written, as on a full disk. The words and entities go to different files, so a
# limit between their sizes decides which one it is; the names alone fill the catalogue.
SCRIPT = """
import resource, sys
import numpy as np
from ebert import Vectors
from ebert.vectors.formats.exporter import export_text
from ebert.vectors.formats.importer import import_vectors
what, path, other, limit = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
vectors = Vectors.open(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
try:
    if what == "save":
        vectors.save(other, overwrite=True)
    elif what == "save in place":
        vectors.save(path, overwrite=True)
    elif what == "import":
        import_vectors([sys.argv[5]], other, overwrite=True)
    elif what == "export":
        export_text(vectors, other)
    elif what == "add":
        for i in range(5000):
            vectors.add(f"Added {i}", np.ones(vectors.dimension))
except OSError as error:
    print("OSError:", error)
else:
    print("no error")
"""


def tree(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def open_files(folder):
    """Return the files in a folder that this process has open, where the system tells."""
    files = []
    for number in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):
            files.append(number.readlink())
    return [file for file in files if folder in file.parents]


@pytest.fixture
def big(make):
    rng = np.random.default_rng(0)
    with make(
        "big",
        words=[f"word{i}" for i in range(ROWS)],
        word_vectors=rng.standard_normal((ROWS, DIMENSION)),
        word_counts=None,
        entities=[f"Title {i}" for i in range(ROWS)],
        entity_vectors=rng.standard_normal((ROWS, DIMENSION)),
        redirects=[],
        wikidata=[],
    ) as vectors:
        return vectors.path


def run(*arguments):
    return subprocess.run([sys.executable, "-c", SCRIPT, *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("what", "limit"), [("save", 0), ("save", 100_000), ("import", 600_000), ("save in place", 1000)]
)
def test_a_full_disk_leaves_the_old_store(big, make, tmp_path, what, limit):
    make("old").close()
    with Vectors.open(big) as vectors:
        export_text(vectors, tmp_path / "v.txt")
        vectors.add("New", np.ones(DIMENSION))
    before = tree(tmp_path)
    done = run(what, big, tmp_path / "old", limit, tmp_path / "v.txt")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("OSError: ")
    assert ("big" if what == "save in place" else "old") in done.stdout  # it says where
    after = tree(tmp_path)
    assert after.keys() == before.keys()
    assert all(after[name] == before[name] for name in before)
    with Vectors.open(tmp_path / "old") as old:
        assert old.find("Paris") is not None


def test_a_full_disk_when_only_the_catalogue_does_not_fit(make, tmp_path):
    titles = [f"A rather long title so that names need more room than vectors {i}" for i in range(ROWS)]
    options = {"words": [], "word_vectors": None, "redirects": [], "wikidata": [], "word_counts": None}
    with make("long", entities=titles, entity_vectors=np.ones((ROWS, 1)), **options) as vectors:
        limit = (vectors.path / "entities.safetensors").stat().st_size + 1000
        assert limit < (vectors.path / "catalogue.sqlite").stat().st_size
        path = vectors.path
    before = tree(tmp_path)
    done = run("save", path, tmp_path / "new", limit)
    assert done.stdout.startswith("OSError: cannot write ")
    assert tree(tmp_path) == before


def test_a_full_disk_while_adding_keeps_what_was_added(store, tmp_path):
    store.add("Before", np.ones(6))
    done = run("add", store.path, "-", 20_000)
    assert done.stdout.startswith("OSError: cannot add to ")
    added = [title for title, _ in store.added()]
    assert added == ["Before"] + [f"Added {i}" for i in range(len(added) - 1)]
    assert len(added) > 50
    store.add("After", np.ones(6))
    assert store["After"].tolist() == store["Added 49"].tolist() == [1] * 6


def test_a_full_disk_while_exporting_leaves_the_old_file(big, tmp_path):
    (tmp_path / "v.txt").write_text("old")
    done = run("export", big, tmp_path / "v.txt", 100_000)
    assert done.stdout.startswith("OSError: ")
    assert (tmp_path / "v.txt").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big", "v.txt"]


@pytest.mark.parametrize(("after", "exists"), [(1, False), (3, True)])
def test_ctrl_c_during_an_import_leaves_nothing_behind(big, make, tmp_path, after, exists):
    export_text(Vectors.open(big), tmp_path / "v.txt")
    if exists:
        make("out").close()
    before = tree(tmp_path)
    calls = 0

    def interrupt(amount):
        nonlocal calls
        calls += 1
        if calls == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        import_vectors([tmp_path / "v.txt"], tmp_path / "out", overwrite=True, advance=interrupt)
    assert not open_files(tmp_path), caught  # while the traceback still holds on to everything
    assert tree(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["big", "v.txt", *["out"] * exists])
    import_vectors([tmp_path / "v.txt"], tmp_path / "out", overwrite=True).close()


def test_a_bad_line_leaves_nothing_behind(tmp_path):
    (tmp_path / "v.txt").write_text("".join(f"w{i}\t1 2\n" for i in range(5000)) + "bad\tx y\n")
    with pytest.raises(EbertError, match="line 5001"):
        import_vectors([tmp_path / "v.txt"], tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["v.txt"]


def test_a_swap_that_the_power_cut_short_is_put_right_on_opening(store):
    aside = store.path.with_name(f".{store.path.name}.old")
    store.path.rename(aside)  # where the old store is for a moment
    with Vectors.open(store.path) as again:
        assert again.find("Paris") is not None
