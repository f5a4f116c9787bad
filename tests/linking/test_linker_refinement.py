"""The refinement schedule k = ceil(j(m+n)/J) - m, on the paper's example by hand."""

import linking_tiny as tiny
import pytest

from ebert.linking.document import Choice, Document, Span
from ebert.linking.refine import Verdict, choose, quota, refine
from ebert.linking.sequences import Chunk, Placed

TEXT = tiny.TEXT


@pytest.mark.parametrize(
    ("round_", "linked", "more", "k"),
    [
        (1, 0, 5, 2),  # ceil(5/3) = 2
        (2, 2, 3, 2),  # ceil(10/3) - 2 = 2
        (3, 4, 1, 1),  # ceil(15/3) - 4 = 1
        (1, 0, 6, 2),  # 6/3
        (1, 0, 1, 1),  # ceil(1/3)
        (2, 2, 1, 0),  # ceil(6/3) - 2 = 0
        (3, 2, 4, 4),  # the last round takes all: m + n - m
        (1, 0, 0, 0),
        (2, 3, 0, -1),  # fewer than before: nothing is taken back
    ],
)
def test_k_of_three_rounds(round_, linked, more, k):
    assert quota(round_, 3, linked, more) == k


def verdict(placed: Placed, null: float, best: int = 0) -> Verdict:
    count = len(placed.span.choices)
    rest = [(1 - null) * (0.9 if number == best else 0.1 / max(1, count - 1)) for number in range(count)]
    return Verdict(placed, (0.0, *rest), (null, *rest))


def test_the_papers_example_round_by_round():
    # Six spans; p(null) as given below. In round 1 "injured" is rejected, so n = 5 and k = ceil(5/3) = 2: the surest
    # are Adams (0.05) and World Cup (0.10); Cup (0.12) overlaps the latter and is gone. In round 2, m = 2; Platt and
    # England are open with an entity, n = 2, k = ceil(2*4/3) - 2 = 1: Platt (0.2, surer now). In round 3, m = 3, and
    # England is rejected: n = 0, k = 3 - 3 = 0.
    linker = tiny.linker(strategy="paper")
    (chunk,) = linker.chunks([Document("1", TEXT)])
    rounds = [
        {"Adams": 0.05, "Platt": 0.3, "injured": 0.9, "England": 0.25, "World Cup": 0.1, "Cup": 0.12},
        {"Platt": 0.2, "injured": 0.95, "England": 0.3},
        {"injured": 0.95, "England": 0.7},
    ]
    asked = []

    def judge(states):
        (state,) = states
        nulls = rounds[len(asked)]
        surfaces = {TEXT[p.span.start : p.span.end]: p for p in state.open}
        asked.append((set(surfaces), dict(state.titles)))
        return [[verdict(placed, nulls[surface], best=1 if surface == "Adams" else 0)
                 for surface, placed in surfaces.items()]]  # fmt: skip

    *_, (state,) = refine([chunk], judge, rounds=3)
    assert [open_ for open_, _ in asked] == [set(one) for one in rounds]
    assert set(asked[1][1].values()) == {"Tony Adams (footballer)", "FIFA World Cup"}
    found = {TEXT[p.span.start : p.span.end]: title for p, title in state.titles.items()}
    assert found == {
        "Adams": "Tony Adams (footballer)", "World Cup": "FIFA World Cup", "Platt": "Platt (Florida)",
    }  # fmt: skip


def test_one_round_is_no_refinement():
    linker = tiny.linker(strategy="paper", rounds=1)
    (chunk,) = linker.chunks([Document("1", TEXT)])
    *_, (state,) = refine([chunk], lambda states: [[verdict(p, 0.1) for p in states[0].open]], rounds=1)
    assert len(state.decoded) == 5  # all but Cup or World Cup, which overlap


def test_the_surest_go_first_and_do_not_overlap():
    def placed(first, stop):
        return Placed(Span(first, stop, (Choice("X", 1.0),)), first, stop)

    spans = [
        verdict(placed(0, 3), 0.2),
        verdict(placed(2, 4), 0.1),
        verdict(placed(4, 5), 0.3),
        verdict(placed(0, 1), 0.25),
    ]
    chosen = choose(spans, 3)
    assert [(j.placed.first, j.placed.stop) for j in chosen] == [(2, 4), (0, 1), (4, 5)]
    assert len(choose(spans, 1)) == 1
    assert choose(spans, 0) == choose(spans, -1) == []


def test_of_spans_that_are_equally_sure_the_first_and_the_longer_one_is_linked():
    def placed(first, stop):
        return Placed(Span(first, stop, (Choice("X", 1.0),)), first, stop)

    spans = [verdict(placed(*place), 0.1) for place in [(1, 5), (0, 1), (0, 2), (0, 3)]]
    assert [(j.placed.first, j.placed.stop) for j in choose(spans, 1)] == [(0, 3)]


def test_given_mentions_are_always_linked():
    chunk = Chunk(0, (1, 2), (Placed(Span(0, 1, (Choice("X", 1.0),)), 0, 1),))
    *_, (state,) = refine([chunk], lambda states: [[verdict(p, 0.99) for p in states[0].open]], rounds=3, always=True)
    assert list(state.titles.values()) == ["X"]


@pytest.mark.parametrize("strategy", ["paper", "packed"])
def test_decoded_entities_change_what_is_seen_later(strategy):
    linker = tiny.linker(strategy=strategy)
    one = {m.text: m.probability for m in linker.link(TEXT, rounds=1).mentions}
    three = {m.text: m.probability for m in linker.link(TEXT, rounds=3).mentions}
    assert len(one) >= 3
    changed = [text for text in one.keys() & three.keys() if one[text] != pytest.approx(three[text], abs=1e-6)]
    same = [text for text in one.keys() & three.keys() if one[text] == pytest.approx(three[text], abs=1e-6)]
    assert changed
    assert same  # those of the first round
