"""Differences between columns: by hand, and their intervals against a plain bootstrap over questions."""

import numpy as np
import pytest
from fake_runs import make_run

from ebert._bootstrap import Interval
from ebert.report.comparison import baseline, common, compare, pairs
from ebert.report.runs import Column, read_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [
        read_run(make_run(folder / "one", size=60, seed=1)),
        read_run(make_run(folder / "two", size=60, seed=2, skill=0.3)),
    ]


def right(run, mode):
    return run.outcomes.rank[mode] == 1


def test_the_difference_is_that_of_the_means(runs):
    run = runs[0]
    found = compare(Column(run, "concat"), Column(run, "bert"), "uhn")
    kept = run.outcomes.dropped == 0
    net = right(run, "concat").astype(float) - right(run, "bert")
    means = {
        name: 100 * net[kept & (run.outcomes.relation == number)].mean()
        for number, name in enumerate(run.outcomes.relations)
        if (kept & (run.outcomes.relation == number)).any()
    }
    assert found.questions == kept.sum()
    assert found.macro.value == pytest.approx(np.mean(list(means.values())), abs=1e-4)
    assert found.micro.value == pytest.approx(100 * net[kept].mean(), abs=1e-4)
    assert {name: change.value for name, change in found.relations.items()} == pytest.approx(means, abs=1e-4)
    assert sum(found.gained.values()) == (kept & (net == 1)).sum()
    assert sum(found.lost.values()) == (kept & (net == -1)).sum()
    assert found.right == (right(run, "concat")[kept].sum(), right(run, "bert")[kept].sum())


def test_covered_only_and_among(runs):
    run = runs[0]
    one, other = Column(run, "concat"), Column(run, "bert")
    covered = compare(one, other, covered_only=True)
    assert covered.questions == run.outcomes.covered.sum()
    assert covered == compare(one, other, among=run.outcomes.covered)
    # Without a vector every mode is plain BERT: a difference of zero, and no doubt about it.
    rest = compare(one, other, among=~run.outcomes.covered)
    assert rest.macro == Interval(0, 0, 0)
    assert compare(one, other, among=np.zeros(len(run.ids), dtype=bool)) is None


def test_covered_only_means_covered_in_both(tmp_path):
    more, less = (read_run(make_run(tmp_path / str(share), size=20, covered=share)) for share in (0.9, 0.3))
    both = (more.outcomes.covered & less.outcomes.covered).sum()
    assert 0 < both < less.outcomes.covered.sum() < more.outcomes.covered.sum()
    for one, other in ((more, less), (less, more)):
        found = compare(Column(one, "concat"), Column(other, "concat"), covered_only=True, resamples=10)
        assert found.questions == both


def test_intervals_are_those_of_resampled_questions(runs):
    run = runs[0]
    found = compare(Column(run, "replace"), Column(run, "bert"), resamples=4000)
    net = right(run, "replace").astype(float) - right(run, "bert")
    groups = [net[run.outcomes.relation == number] for number in range(len(run.outcomes.relations))]
    rng = np.random.default_rng(99)
    drawn = [np.mean([group[rng.integers(0, len(group), len(group))].mean() for group in groups]) for _ in range(4000)]
    low, high = 100 * np.percentile(drawn, [2.5, 97.5])
    assert found.macro.low == pytest.approx(low, abs=0.3)
    assert found.macro.high == pytest.approx(high, abs=0.3)
    assert high - low > 3  # so that 0.3 is little
    assert found.macro.low < found.macro.value < found.macro.high


def test_intervals_are_always_the_same(runs):
    one, other = Column(runs[0], "concat"), Column(runs[1], "concat")
    assert compare(one, other) == compare(one, other)


def test_a_pairing_narrows_the_interval(runs):
    """Two modes of one run are right on much the same questions: the paired interval must use that."""
    found = compare(Column(runs[0], "concat"), Column(runs[0], "bert"))
    asked = 60
    each = [
        right(runs[0], mode)[runs[0].outcomes.relation == number].var() / asked
        for mode in ("concat", "bert")
        for number in range(len(runs[0].outcomes.relations))
    ]
    unpaired = 100 * 2 * 1.96 * np.sqrt(sum(each)) / len(runs[0].outcomes.relations)
    assert found.macro.high - found.macro.low < 0.9 * unpaired


def test_only_common_questions_are_compared(runs, tmp_path):
    fewer = read_run(make_run(tmp_path / "fewer", size=20, seed=5))
    here, there = common(runs[0], fewer)
    assert [runs[0].ids[place] for place in here] == [fewer.ids[place] for place in there]
    assert len(here) == len(fewer.ids)
    found = compare(Column(runs[0], "concat"), Column(fewer, "concat"))
    assert found.questions == len(fewer.ids)


def test_clear():
    assert Interval(1, 0.1, 2).clear
    assert Interval(-1, -2, -0.1).clear
    assert not Interval(1, 0, 2).clear


def names(found):
    return {(f"{a.run.name} {a.mode}", f"{b.run.name} {b.mode}") for a, b in found}


def test_pairs(runs, tmp_path):
    assert names(pairs(runs[:1])) == {
        ("one concat", "one bert"), ("one replace", "one bert"), ("one replace", "one concat"),
    }  # fmt: skip
    both = names(pairs(runs))
    assert {("two bert", "one bert"), ("two concat", "one concat"), ("two replace", "one replace")} <= both
    assert ("two concat", "one bert") not in both  # it has a plain BERT of its own
    alone = read_run(make_run(tmp_path / "alone", size=60, modes=["concat"]))
    plain = read_run(make_run(tmp_path / "plain", size=60, modes=["bert"]))
    assert names(pairs([plain, alone])) == {("alone concat", "plain bert")}
    assert names(pairs([alone, plain])) == {("alone concat", "plain bert")}
    other = read_run(make_run(tmp_path / "other", size=60, modes=["replace"]))
    assert names(pairs([alone, other])) == {("other replace", "alone concat")}


def test_plain_bert_of_the_same_encoder_comes_first(runs, tmp_path):
    alone = read_run(make_run(tmp_path / "alone", size=3, modes=["concat"], encoder="roberta"))
    plain = read_run(make_run(tmp_path / "plain", size=3, modes=["bert"], encoder="roberta"))
    assert baseline(Column(alone, "concat"), [*runs, alone, plain]).run is plain
    assert baseline(Column(alone, "concat"), [*runs, alone]).run is runs[0]
    assert baseline(Column(alone, "concat"), [alone]) is None
    assert baseline(Column(plain, "bert"), [plain]) is None
    assert baseline(Column(runs[1], "concat"), runs).run is runs[1]
