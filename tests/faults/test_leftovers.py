"""What killed commands leave behind: the next run and `doctor --clean` remove it, and never anything else."""

import subprocess
import sys
from pathlib import Path

import kill_jobs
import pytest

from ebert import Vectors
from ebert._io import files

# Makes a folder, says so, and waits to be told to go on.
SLOW = """
import sys
from pathlib import Path
from ebert._io import files
with files.replacing_folder(Path(sys.argv[1]), overwrite=True) as folder:
    (folder / "mine").touch()
    print("ready", flush=True)
    sys.stdin.readline()
"""


def hidden(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob(".*"))


def killed(name, tmp_path, *, times=1):
    """Leave what some kills of a job leave."""
    given = tmp_path / f"given-{name}"
    given.mkdir()
    kill_jobs.JOBS[name].prepare(given)
    for _ in range(times):
        assert kill_jobs.run(name, given, tmp_path / "work", fsync=1).code == -9
    return given


@pytest.fixture
def slow(tmp_path):
    """A process that is at work on the folder `work/slow`."""
    (tmp_path / "work").mkdir()
    command = [sys.executable, "-c", SLOW, str(tmp_path / "work" / "slow")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()
        assert process.wait() == 0


def test_the_next_run_removes_what_earlier_ones_left(tmp_path):
    given = killed("vectors import", tmp_path, times=3)
    assert len(hidden(tmp_path / "work")) == 1  # the second removed what the first left
    assert kill_jobs.run("vectors import", given, tmp_path / "work").code == 0
    assert hidden(tmp_path / "work") == []


def test_doctor_removes_what_is_ours_and_stale_and_nothing_else(tmp_path, ebert, monkeypatch, slow):
    monkeypatch.setenv("EBERT_HOME", str(tmp_path / "work" / "home"))
    for name in ("vectors import", "link candidates", "bert get"):
        killed(name, tmp_path)
    left = hidden(tmp_path / "work")
    at_work = [name for name in left if name.startswith(".slow.")]
    lock = "home/bert/.bert-base-cased.lock"
    ours = [name for name in left if name.endswith(".ebert-tmp") and "/new/" not in name and name not in at_work]
    assert (len(ours), len(at_work)) == (3, 1)
    thesis = [".thesis", ".thesis.tex.k3_x9a1z", ".notes.0123456789ab.tmp", ".mine.0123456789ab.ebert-tmp"]
    for name in thesis:
        (tmp_path / "work" / name).mkdir()
        (tmp_path / "work" / name / "thesis.tex").write_text("mine")
    (tmp_path / "elsewhere" / "new").mkdir(parents=True)
    (tmp_path / "elsewhere" / "new" / "thesis.tex").write_text("mine")
    (tmp_path / "work" / ".link.0123456789ab.ebert-tmp").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "work" / ".in.0123456789ab.ebert-tmp").mkdir()
    (tmp_path / "work" / ".in.0123456789ab.ebert-tmp" / "new").symlink_to(tmp_path / "elsewhere" / "new")
    done = ebert("doctor", "--clean", tmp_path / "work", "--json")
    assert done.code == 0
    removed = {
        Path(path).relative_to(tmp_path / "work").as_posix(): size for path, size in done.json["removed"].items()
    }
    assert sorted(removed) == sorted(ours)
    assert all(size > 0 for size in removed.values())
    assert {Path(path).name for path in done.json["in use"]} == {
        Path(at_work[0]).name, ".mine.0123456789ab.ebert-tmp", ".in.0123456789ab.ebert-tmp",
    }  # fmt: skip
    stays = [*thesis, *at_work, lock, ".link.0123456789ab.ebert-tmp", ".in.0123456789ab.ebert-tmp"]
    assert hidden(tmp_path / "work") == sorted(stays)
    assert all((tmp_path / "work" / name / "thesis.tex").read_text() == "mine" for name in thesis)
    assert (tmp_path / "elsewhere" / "new" / "thesis.tex").read_text() == "mine"
    shown = ebert("doctor", "--clean").out
    assert shown == "0 removed, 0.0 MB in all\n"


def test_what_was_left_beside_a_path_is_found(tmp_path, ebert, monkeypatch):
    monkeypatch.setenv("EBERT_HOME", str(tmp_path / "home"))
    killed("vectors import", tmp_path)
    shown = ebert("doctor", "--clean", tmp_path / "work" / "store").out
    assert shown.startswith(f"removed {tmp_path / 'work' / '.store.'}")
    assert hidden(tmp_path / "work") == []


def test_the_place_of_a_process_that_works_is_left_to_it(tmp_path, slow):
    with files.replacing_folder(tmp_path / "work" / "slow", overwrite=True) as folder:
        (folder / "other").touch()
        assert len(hidden(tmp_path / "work")) == 2
    assert [path.name for path in (tmp_path / "work" / "slow").iterdir()] == ["other"]
    assert len(hidden(tmp_path / "work")) == 1
    slow.stdin.close()
    assert slow.wait() == 0
    assert [path.name for path in (tmp_path / "work" / "slow").iterdir()] == ["mine"]
    assert hidden(tmp_path / "work") == []


@pytest.mark.parametrize(
    ("job", "result", "names"),
    [
        ("encode corpus", "out", [".manifest.json.k3_x9a1z", ".job.key.abcdefgh", "job.key", "rows/", "attempts/"]),
        ("link train", "run", [".run.json.k3_x9a1z"]),
        ("probe lama", "run", [".run.json.k3_x9a1z"]),
        ("corpus build", "corpus.parts", [".build.json.k3_x9a1z", "000-part-000000.npz"]),
    ],
)
def test_what_0_1_left_in_the_first_instant_is_no_obstacle(tmp_path, job, result, names):
    given = tmp_path / "given"
    given.mkdir()
    kill_jobs.JOBS[job].prepare(given)
    for name in names:
        path = tmp_path / "work" / result / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if name.endswith("/") else path.touch()
    ended = kill_jobs.run(job, given, tmp_path / "work")
    assert ended.code == 0, ended.said
    assert [name for name in hidden(tmp_path / "work") if not name.endswith(".lock")] == []


@pytest.mark.parametrize(("job", "result"), [("encode corpus", "out"), ("link train", "run"), ("probe lama", "run")])
@pytest.mark.parametrize("name", [".thesis", ".thesis.tex.k3_x9a1z", "rows/thesis.tex"])
def test_a_folder_with_hidden_files_of_others_is_not_taken(tmp_path, job, result, name):
    given = tmp_path / "given"
    given.mkdir()
    kill_jobs.JOBS[job].prepare(given)
    thesis = tmp_path / "work" / result / name
    thesis.parent.mkdir(parents=True)
    thesis.write_text("mine")
    ended = kill_jobs.run(job, given, tmp_path / "work")
    assert ended.code == 2
    assert "contains something else" in ended.said
    assert thesis.read_text() == "mine"


def test_a_store_behind_a_link_is_saved_in_place_and_the_link_stays(tmp_path):
    (tmp_path / "disk").mkdir()
    Vectors.from_arrays(entities=["A"], entity_vectors=[[1.0]], path=tmp_path / "disk" / "store").close()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "disk" / "store")
    with Vectors.open(link) as store:
        store.add("B", [2.0])
        store.save(link, overwrite=True).close()
    assert link.is_symlink()
    with Vectors.open(tmp_path / "disk" / "store") as saved:
        assert (saved.info.entities, saved["B"].tolist()) == (2, [2.0])
    assert hidden(tmp_path) == []
