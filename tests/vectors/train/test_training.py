"""Training as a whole: what is learned, what has vectors, what is written, reproducible and resumable."""

import _thread
import errno
import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
from corpora import CITIES, FOOD, pages, write_corpus

from ebert.errors import EbertError
from ebert.vectors.store import Vectors
from ebert.vectors.train import checkpoint, data, run, trainer
from ebert.vectors.train.options import VectorTrainingOptions, preset

train = partial(run.train, threads=1)

SMALL = {"dim": 20, "epochs": 30, "rate": 0.05, "sample": 1e-2, "min_word_count": 2, "min_entity_count": 1}


def same(one, other):
    for kind in ("word_matrix", "entity_matrix", "word_outputs"):
        if not np.array_equal(getattr(one, kind), getattr(other, kind)):
            return False
    return True


def test_words_and_entities_learn_what_goes_together(world, tmp_path):
    train(world, tmp_path / "store", preset("default", **SMALL))
    with Vectors.open(tmp_path / "store") as vectors:
        right = 0
        for country, city in CITIES.items():
            nearest = [n.name for n in vectors.nearest(country, top=vectors.info.words, kind="words")]
            others = set(CITIES.values()) - {city}
            right += all(nearest.index(city) < nearest.index(other) for other in others)
            foods = [
                nearest.index(FOOD[country]) < nearest.index(food) for food in FOOD.values() if food != FOOD[country]
            ]
            right += all(foods)
        assert right >= 9  # of 10; by chance it would be 2


def test_pages_without_any_link_learn_from_their_opening(tmp_path):
    given = [*pages(30), ("Lyon", [["Lyon", "is", "a", "city", "where", "cheese", "is", "eaten", "in", "France"]])]
    corpus = write_corpus(tmp_path / "corpus", given)
    train(corpus, tmp_path / "store", preset("default", **SMALL))
    with Vectors.open(tmp_path / "store") as vectors:
        vector = vectors["Lyon"]
        near = {word: float(vector @ vectors.word_vector(word)) for word in FOOD.values()}
        assert max(near, key=near.get) == "cheese"
    train(corpus, tmp_path / "without", preset("default", **SMALL, openings=False))
    with Vectors.open(tmp_path / "without") as vectors:
        assert "Lyon" not in vectors
        assert "France" in vectors


def test_who_has_a_vector(world):
    counts = dict(zip(world.entities, world.entity_counts.tolist(), strict=True))
    assert counts["France"] == 60
    assert counts["Paris"] == 30

    def chosen(keep=(), **options):
        work = data.prepare(world, preset("default", **options), keep=keep)
        return {world.entities[number] for number in work.entities}, work

    assert chosen(min_entity_count=31, openings=False)[0] == set(CITIES)
    assert chosen(min_entity_count=30, openings=False)[0] == set(CITIES) | set(CITIES.values())
    assert len(chosen(min_entity_count=31)[0]) == 5 + 150  # every page opens with enough words
    assert chosen(min_entity_count=31, min_opening=12)[0] == set(CITIES)  # openings have 11
    assert chosen(min_entity_count=31, min_opening=0)[0] == set(CITIES)
    kept, work = chosen(min_entity_count=31, openings=False, keep=["paris_3", "Gallia", "Rome", "Atlantis"])
    assert kept == {*CITIES, "Paris 3", "Rome"}
    assert work.missing == ["Atlantis"]
    words = chosen(min_word_count=30)[1].words
    assert world.words[words - 1] != world.words[words]
    assert world.word_counts[words - 1] >= 30 > world.word_counts[words]


def test_jobs_cover_every_page_once(world, monkeypatch):
    monkeypatch.setattr(data, "JOB", 500)
    jobs = data.prepare(world, VectorTrainingOptions()).jobs
    assert jobs[0] == 0
    assert jobs[-1] == len(world.page_entity)
    assert (np.diff(jobs) > 0).all()
    assert len(jobs) > 5


def test_a_run_gets_on_however_often_it_saves(world):
    """A machine under load may take longer to start a thread than the time between two checkpoints."""
    options = preset("default", **{**SMALL, "epochs": 3})
    work = data.prepare(world, options)
    done = [0]

    def save(state):
        assert state.done > done[-1]
        done.append(state.done)

    trainer.Trainer(work, options, trainer.initial(work, options)).run(save=save, every=0.0)
    assert len(done) > 1


def test_nothing_to_train(world):
    with pytest.raises(EbertError, match="--min-word-count"):
        data.prepare(world, preset("default", min_word_count=10**6))


def test_the_store_has_what_the_corpus_knows(world, tmp_path):
    report = train(world, tmp_path / "store", preset("default", **{**SMALL, "epochs": 1}), threads=2)
    assert report["words"] == len(world.tokens)
    assert report["words_per_second"] > 0
    assert report["gflops"] > 0
    assert not (tmp_path / "store.training").exists()
    with Vectors.open(tmp_path / "store") as vectors:
        assert vectors.find("Gallia").title == "France"
        assert vectors.find("Q142").title == "France"
        assert vectors.find("France").count == 60
        assert vectors.word_count("capital") == 150
        assert vectors.word_outputs.shape == vectors.word_matrix.shape
        assert np.abs(vectors.word_outputs).max() > 0
        assert [(c.entity.title, c.count) for c in vectors.candidates("Paris")] == [("Paris", 30)]
        info = vectors.info
        assert info.licence == "CC BY-SA 4.0"
        assert info.made["options"]["dim"] == 20
        assert info.made["corpus"]["dumps"] == [{"name": "by-hand.xml", "size": 1}]


def test_the_public_method_takes_the_options_of_the_command(world, tmp_path):
    with Vectors.train(world.path, tmp_path / "store", preset="paper", dim=8, epochs=1, keep=["Paris 3"]) as vectors:
        assert (vectors.path, vectors.dimension) == (tmp_path / "store", 8)
        assert "Paris 3" in vectors
        assert vectors.info.made["options"]["openings"] is False
    with pytest.raises(EbertError, match="unknown option dims"):
        Vectors.train(world, tmp_path / "other", dims=3)


def test_the_same_seed_gives_the_same_vectors_and_another_does_not(world, tmp_path):
    options = {**SMALL, "epochs": 2}
    stores = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(world, tmp_path / name, preset("default", **options, seed=seed))
        stores.append(Vectors.open(tmp_path / name))
    assert same(stores[0], stores[1])
    assert not same(stores[0], stores[2])
    for store in stores:
        store.close()


def test_a_run_that_was_stopped_goes_on_to_the_same_vectors(world, tmp_path, monkeypatch):
    monkeypatch.setattr(data, "JOB", 500)
    options = preset("default", **{**SMALL, "epochs": 3, "finish": 2})
    train(world, tmp_path / "whole", options)
    jobs = []
    real = trainer.Trainer._job

    def interrupted(self, *given):
        jobs.append(given)
        if len(jobs) in (7, 20, 26):
            _thread.interrupt_main()  # as Ctrl-C does
        return real(self, *given)

    monkeypatch.setattr(trainer.Trainer, "_job", interrupted)
    stops = 0
    while True:
        try:
            train(world, tmp_path / "pieces", options, resume=True, checkpoint_seconds=0.001)
            break
        except KeyboardInterrupt:
            stops += 1
            assert (tmp_path / "pieces.training" / checkpoint.INFO).exists()
            assert not (tmp_path / "pieces").exists()
    assert stops == 3
    with Vectors.open(tmp_path / "whole") as whole, Vectors.open(tmp_path / "pieces") as pieces:
        assert same(whole, pieces)


def test_killed_and_resumed(world, tmp_path):
    """A real kill -9: what the last checkpoint had is not trained again, and the result is that of an unbroken run."""
    options = {**SMALL, "epochs": 200}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    command = [sys.executable, "-m", "ebert", "vectors", "train", str(world.path), "--threads", "1", *flags]
    killed = subprocess.Popen(
        [*command, "--out", str(tmp_path / "pieces"), "--checkpoint", "0.05"], stderr=subprocess.DEVNULL
    )
    try:
        while not (tmp_path / "pieces.training" / checkpoint.INFO).exists() and killed.poll() is None:
            time.sleep(0.01)
    finally:
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
    assert not (tmp_path / "pieces").exists()
    whole = train(world, tmp_path / "whole", **options)
    pieces = train(world, tmp_path / "pieces", **options, resume=True)
    assert (whole["resumed"], pieces["resumed"]) == (False, True)
    assert pieces["words"] < whole["words"]
    with Vectors.open(tmp_path / "whole") as one, Vectors.open(tmp_path / "pieces") as other:
        assert same(one, other)


def stopped(world, out, **options):
    """Leave a checkpoint behind."""
    chosen = preset("default", **{**SMALL, "epochs": 2, **options})
    work = data.prepare(world, chosen)
    state = trainer.initial(work, chosen)
    checkpoint.save(checkpoint.folder_of(out), checkpoint.identity(world, chosen, []), state)
    return chosen


def test_a_checkpoint_of_another_run_is_refused(world, tmp_path):
    out = tmp_path / "store"
    chosen = stopped(world, out)
    with pytest.raises(EbertError, match="--resume"):
        train(world, out, chosen)
    with pytest.raises(EbertError, match="options dim was 20, is 8"):
        train(world, out, preset("default", **{**SMALL, "epochs": 2, "dim": 8}), resume=True)
    with pytest.raises(EbertError, match="keep was not given"):
        train(world, out, chosen, resume=True, keep=["Paris 3"])
    other = write_corpus(tmp_path / "other", pages(29))
    with pytest.raises(EbertError, match="corpus has changed"):
        train(other, out, chosen, resume=True)
    train(world, out, preset("default", **{**SMALL, "epochs": 1, "dim": 8}), overwrite=True)
    assert Vectors.open(out).dimension == 8


@pytest.mark.parametrize("how", ["cut", "shape", "json"])
def test_a_damaged_checkpoint(world, tmp_path, how):
    out = tmp_path / "store"
    chosen = stopped(world, out)
    folder = checkpoint.folder_of(out)
    if how == "cut":
        path = folder / "words_in.npy"
        path.write_bytes(path.read_bytes()[:-100])
    elif how == "shape":
        np.save(folder / "entities_in.npy", np.zeros((3, 20), np.float32))
    else:
        (folder / checkpoint.INFO).write_text("{")
    with pytest.raises(EbertError, match=r"damaged|shape"):
        train(world, out, chosen, resume=True)
    assert folder.exists()


def test_an_existing_store_is_not_touched(world, tmp_path):
    out = tmp_path / "store"
    train(world, out, preset("default", **{**SMALL, "epochs": 1}))
    before = (out / "store.json").read_bytes()
    with pytest.raises(EbertError, match="--overwrite"):
        train(world, out, preset("default", **SMALL))
    assert (out / "store.json").read_bytes() == before


def test_an_error_in_a_thread_is_not_lost(world, tmp_path, monkeypatch):
    def broken(*_):
        raise RuntimeError("as if memory were full")

    monkeypatch.setattr(trainer.Trainer, "_job", broken)
    with pytest.raises(RuntimeError, match="as if memory"):
        train(world, tmp_path / "store", preset("default", **SMALL), threads=2)
    assert not (tmp_path / "store").exists()


def test_a_full_disk_at_the_end_does_not_cost_the_training(world, tmp_path, monkeypatch):
    chosen = preset("default", **{**SMALL, "epochs": 2})
    train(world, tmp_path / "whole", chosen)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(run, "write", full)
        with pytest.raises(OSError, match="No space left"):
            train(world, tmp_path / "store", chosen)
    report = train(world, tmp_path / "store", chosen, resume=True)
    assert report["words"] == 0  # nothing was trained again
    with Vectors.open(tmp_path / "whole") as one, Vectors.open(tmp_path / "store") as other:
        assert same(one, other)


def test_how_much_is_left(world, monkeypatch):
    monkeypatch.setattr(data, "JOB", 500)
    chosen = preset("default", **{**SMALL, "epochs": 2, "finish": 1})
    work = data.prepare(world, chosen)
    training = trainer.Trainer(work, chosen, trainer.initial(work, chosen))
    assert training.words_left() == 3 * len(world.tokens)
    left = []
    while training.state.done < training.total:
        training.state.done += 1
        left.append(training.words_left())
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0
    assert left[training.jobs - 1] == 2 * len(world.tokens)


def test_numbers_that_run_away_are_noticed(world, tmp_path):
    with pytest.raises(EbertError, match="--rate"):
        train(world, tmp_path / "store", preset("default", **{**SMALL, "rate": 1e30}))
    assert not (tmp_path / "store").exists()


def test_repeats_train_entities_more_often(world):
    def moved(**options):
        chosen = preset("default", **{**SMALL, "epochs": 1, **options})
        work = data.prepare(world, chosen)
        state = trainer.initial(work, chosen)
        trainer.Trainer(work, chosen, state).run()
        return float(np.linalg.norm(state.entities_in, axis=1).mean())

    assert moved(repeats=8) > 1.2 * moved(repeats=1)


def test_the_finish_moves_entities_alone(world):
    chosen = preset("default", **{**SMALL, "epochs": 1, "finish": 2})
    work = data.prepare(world, chosen)
    state = trainer.initial(work, chosen)
    training = trainer.Trainer(work, chosen, state)
    state.done = training.jobs  # the epoch is behind
    before = {name: getattr(state, name).copy() for name in trainer.MATRICES}
    state.words_out[:] = before["words_out"] = np.random.default_rng(0).normal(size=state.words_out.shape)
    before["words_out"] = state.words_out.copy()
    speed = training.run()
    changed = {name for name in trainer.MATRICES if not np.array_equal(before[name], getattr(state, name))}
    assert changed == {"entities_in"}
    assert speed.words == 0
    assert speed.finish_seconds > 0


def test_the_learning_rate_falls_to_its_end(world):
    chosen = preset("default", **{**SMALL, "epochs": 4})
    training = trainer.Trainer(data.prepare(world, chosen), chosen, None)
    rates = [float(training._rate(number)) for number in range(training.total)]
    assert rates[0] == pytest.approx(0.05)
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(max(0.05 / training.total, chosen.min_rate), rel=1e-3)


def test_the_learning_rate_falls_once_more_in_the_finish(world):
    chosen = preset("default", **{**SMALL, "epochs": 4, "finish": 2})
    training = trainer.Trainer(data.prepare(world, chosen), chosen, None)
    rates = [float(training._rate(number)) for number in range(4 * training.jobs, training.total)]
    assert rates[0] == pytest.approx(0.05)
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.05


@pytest.mark.parametrize(
    "wrong",
    [{"dim": 0}, {"dim": 10**6}, {"rate": float("nan")}, {"min_rate": 1.0}, {"sample": -1}],
)  # fmt: skip
def test_options_that_cannot_be(wrong):
    with pytest.raises(EbertError, match=next(iter(wrong))):
        VectorTrainingOptions(**wrong)


def test_presets():
    paper = preset("paper")
    assert (paper.dim, paper.min_entity_count, paper.openings, paper.repeats) == (768, 5, False, 1)
    assert preset("paper", dim=100).dim == 100
    with pytest.raises(EbertError, match="unknown preset"):
        preset("newspaper")
    with pytest.raises(EbertError, match="unknown option"):
        preset("paper", dims=3)


def test_surfaces_without_a_vector_are_left_out(world):
    work = data.prepare(world, preset("default", min_entity_count=31, openings=False))
    assert {surface for surface, _, _ in run._surfaces(work)} == set(CITIES)
