"""How ready a linker is to link is chosen on the dev set, by decoding the same scores again."""

import math

import linking_tiny as tiny
import pytest

from ebert.linking.document import Choice, Document, Span
from ebert.linking.linker import Linker
from ebert.linking.refine import Verdict
from ebert.linking.sequences import Placed
from ebert.linking.train import SHIFTS, tune
from ebert.text.passage import Mention


def test_a_shift_by_hand():
    # Scores 1 and 0, that is e and 1: 0.731059 and 0.268941. With a shift of -2 they are 1/e and 1.
    placed = Placed(Span(0, 5, (Choice("A", 1.0),)), 1, 2)
    moved = Verdict(placed, (1.0, 0.0), (0.731059, 0.268941)).shifted(-2.0)
    assert moved.scores == (-1.0, 0.0)
    assert moved.probabilities == pytest.approx((0.268941, 0.731059), abs=1e-6)


def documents():
    start = tiny.TEXT.index("England")
    return [Document("1", tiny.TEXT, (Mention(start, start + 7, "England"),))]


def spans(document):
    at = tiny.TEXT.index
    return [Span(at(word), at(word) + len(word), (Choice(word, 1.0),), known) for word, known in SURE.items()]


SURE = {"England": 0.4, "Cup": 0.05}


@pytest.fixture
def linker(monkeypatch) -> Linker:
    """Reads nothing: its scores are the links' own odds."""
    made = tiny.linker(generator=spans)
    monkeypatch.setattr(
        made.module, "answers", lambda inputs, rows, columns: made.module.null.new_zeros(len(rows), tiny.WIDTH)
    )
    return made


def test_the_shift_with_the_best_f1_is_found(linker):
    # The odds that England is no link are 3:2, those of Cup 19:1; between ln(2/3) = -0.41 and ln(1/19) = -2.94 only
    # England is linked, which is right. The smallest such shift is -0.5.
    assert not linker(tiny.TEXT)
    found = tune(linker, documents())
    assert found.shift == -0.5
    assert found.counts.f1 == 1.0
    assert max(SHIFTS) > 0 > math.log(1 / 19) > min(SHIFTS)  # Cup could have been linked
    assert tune(linker, documents(), shift=False).counts.f1 == 0.0


def test_a_linker_keeps_its_shift(linker):
    linker.null_shift = -0.5
    assert [mention.text for mention in linker(tiny.TEXT)] == ["England"]
    (judged,) = linker.link(documents())
    assert judged.mentions[0].null == pytest.approx(1.5 * math.exp(-0.5) / (1 + 1.5 * math.exp(-0.5)))


def test_it_is_saved(tmp_path):
    made = tiny.linker(tmp_path / "store")
    made.null_shift = -1.25
    made.save_pretrained(tmp_path / "linker")
    assert Linker.from_pretrained(tmp_path / "linker").null_shift == -1.25
    assert made.with_vectors(tiny.store(tmp_path / "store")).null_shift == -1.25
