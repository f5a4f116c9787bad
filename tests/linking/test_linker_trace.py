"""Following refinement round by round, and the same linker with another store."""

from itertools import pairwise

import linking_tiny
import pytest

from ebert import EbertError
from ebert.linking.document import Document

TEXTS = [linking_tiny.TEXT, "Adams will miss England", "and will miss", "World Cup opening"]


def test_the_last_round_is_what_linking_gives():
    linker = linking_tiny.linker(rounds=3)
    documents = [Document(str(number), text) for number, text in enumerate(TEXTS)]
    steps = list(linker.trace(documents))
    linked = list(linker.link(documents))
    assert [step[-1] for step in steps] == linked
    assert [step[0].document for step in steps] == documents
    assert any(len(step[0].mentions) < len(step[-1].mentions) for step in steps)
    for step in steps:
        for before, after in pairwise(step):
            assert set(before.mentions) <= set(after.mentions)


def test_fewer_rounds_and_a_threshold():
    linker = linking_tiny.linker(rounds=3)
    document = Document("1", linking_tiny.TEXT)
    (once,) = linker.trace([document], rounds=1)
    assert len(once) == 1
    (none,) = linker.trace([document], threshold=1.0)
    assert all(step.mentions == () for step in none)
    with pytest.raises(EbertError, match="threshold"):
        next(linker.trace([document], threshold=2))


def test_the_same_linker_with_another_store(tmp_path):
    linker = linking_tiny.linker(tmp_path / "store", rounds=2)
    linker.threshold = 0.1
    other = linker.with_vectors(linking_tiny.store(tmp_path / "store"))
    assert other.vectors is not linker.vectors
    assert (other.options, other.threshold) == (linker.options, 0.1)
    document = Document("1", linking_tiny.TEXT)
    assert list(other.link([document])) == list(linker.link([document]))
    from ebert import Vectors

    with pytest.raises(EbertError, match="other words"):
        linker.with_vectors(Vectors.from_arrays(words=["x"], word_vectors=[[0.0] * linking_tiny.WIDTH]))
