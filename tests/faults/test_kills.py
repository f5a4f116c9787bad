"""Every kind of long job is killed, at its fsyncs and at random moments; the same command goes on and ends alike."""

import os
import random
import shutil

import kill_jobs
import pytest
from kill_jobs import JOBS, contents

LONG = os.environ.get("EBERT_FAULTS") == "long"
COMPILED = ("corpus build", "vectors train")  # jobs of which a part is compiled by Numba
SOON = 2  # seconds of the processor, of which one goes into loading what is compiled


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """What jobs read, made once, with what an undisturbed run makes of it."""
    made = {}

    def make(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("given")
            JOBS[name].prepare(folder)
            # The first one may have to compile, which takes long.
            for attempt in ("first", "undisturbed") if name in COMPILED else ("undisturbed",):
                ended = kill_jobs.run(name, folder, folder / attempt)
                assert ended.code == 0, ended.said
            made[name] = folder, ended, contents(folder / "undisturbed" / JOBS[name].result)
        return made[name]

    return make


def goes_on(name, given, folder, expected):
    """Run a job that was killed to its end, and give what is wrong then."""
    job = JOBS[name]
    whole = job.whole is not None and (folder / job.result / job.whole).exists()
    ended = kill_jobs.run(name, given, folder)
    if ended.code and not (whole and ended.code == 2 and "exists" in ended.said):  # it was killed behind its end
        return f"it ends with {ended.code}: {ended.said[-500:]}"
    found = contents(folder / job.result)
    different = sorted(file for file in {*found, *expected} if found.get(file) != expected.get(file))
    if different:
        return f"it makes something else: {different}"
    left = [path.name for path in folder.rglob(".*") if path.suffix != ".lock" and path.name != ".lock"]
    return f"left behind: {left}" if left and not whole else ""


@pytest.mark.parametrize("name", JOBS)
def test_a_job_that_is_killed_at_an_fsync_goes_on(name, given, attack, tmp_path):
    inputs, ended, expected = given(name)
    assert ended.synced or name == "vectors add-many"  # where SQLite does it, which is not seen here
    early = [number for number, second in enumerate(ended.synced, 1) if second < ended.synced[0] + SOON]
    chosen = early if LONG else sorted({*early[:1], *early[len(early) // 2 :][:1], *early[-1:]})
    for number in attack(f"kill {name} at an fsync", short=len(chosen), long=len(chosen)):
        folder = tmp_path / str(number)
        killed = kill_jobs.run(name, inputs, folder, fsync=chosen[number])
        # Checkpoints are written by the clock, so that there may be fewer than in the run before.
        assert killed.code == -9 or (name == "vectors train" and not killed.code), killed.said
        wrong = goes_on(name, inputs, folder, expected)
        attack.check(not wrong, f"fsync {chosen[number]}: {wrong}")
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", JOBS)
def test_a_job_that_is_killed_at_any_moment_goes_on(name, given, attack, tmp_path):
    """Some are killed again and again, each time when they have gone on for a while."""
    inputs, ended, expected = given(name)
    moments = random.Random(0)
    for number in attack(f"kill {name} at a random moment", short=2, long=200):
        folder, moment = tmp_path / "work", max(0.001, moments.random() * ended.used)
        killed = kill_jobs.run(name, inputs, folder, moment=moment)
        attack.check(killed.code <= 0 or "exists" in killed.said, f"killed at {moment:.3f} s: {killed.said[-500:]}")
        if number % 2:  # the short version kills it twice and ends with this
            wrong = goes_on(name, inputs, folder, expected)
            attack.check(not wrong, f"killed at {moment:.3f} s: {wrong}")
            shutil.rmtree(folder)
