"""The compiled passes against plain ones (training_reference.py), and the distributions they draw from."""

import numpy as np
import pytest
import training_reference as reference

from ebert.vectors.train import data, kernel

WORDS, ENTITIES, DIM = 40, 25, 24
SETTINGS = {"negative": 5, "shared": 7, "rate": 0.1}  # a large rate, so that mistakes show


@pytest.fixture
def setting():
    random = np.random.default_rng(7)

    class Setting:
        inputs = random.normal(0, 0.4, (WORDS, DIM)).astype(np.float32)
        outputs = random.normal(0, 0.4, (WORDS, DIM)).astype(np.float32)
        entities = random.normal(0, 0.4, (ENTITIES, DIM)).astype(np.float32)
        entity_outputs = random.normal(0, 0.4, (ENTITIES, DIM)).astype(np.float32)
        table = data.alias_table(np.arange(1, WORDS + 1) ** 0.75)
        entity_table = data.alias_table(np.ones(ENTITIES))
        keep = np.where(np.arange(WORDS) % 7 == 0, 0, 0x60000000 + 0x2000000 * np.arange(WORDS)).astype(np.uint32)
        paragraphs = tuple(random.integers(0, WORDS, size).tolist() for size in (1, 0, 45, 2, 19, 33))
        tokens = np.concatenate(paragraphs).astype(np.int32)
        offsets = np.cumsum([0, *map(len, paragraphs)]).astype(np.int64)

    return Setting()


def close(ours, reference):
    np.testing.assert_allclose(ours, reference, atol=2e-3)


def changed(ours, before):
    """Guard against comparing two things that never moved."""
    assert np.abs(ours - before).max() > 0.05


def test_words(setting):
    s = setting
    state = data.stream(3)
    slow_in, slow_out = s.inputs.astype(float), s.outputs.astype(float)
    reference.words(s.paragraphs, s.keep, s.table, slow_in, slow_out, window=4, state=state, **SETTINGS)
    fast_in, fast_out = s.inputs.copy(), s.outputs.copy()
    flops = kernel.train_words(
        s.tokens, s.offsets, 0, len(s.paragraphs), s.keep, s.table, fast_in, fast_out, 4, 5, 7, np.float32(0.1), state
    )
    assert flops > 0
    changed(fast_in, s.inputs)
    close(fast_in, slow_in)
    close(fast_out, slow_out)
    assert (fast_in[::7] == s.inputs[::7]).all()  # words that are not trained


def test_words_of_some_paragraphs_only(setting):
    s = setting
    slow_in, slow_out = s.inputs.astype(float), s.outputs.astype(float)
    reference.words(s.paragraphs[2:4], s.keep, s.table, slow_in, slow_out, window=2, state=data.stream(5), **SETTINGS)
    kernel.train_words(
        s.tokens, s.offsets, 2, 4, s.keep, s.table, s.inputs, s.outputs, 2, 5, 7, np.float32(0.1), data.stream(5)
    )
    close(s.inputs, slow_in)


@pytest.mark.parametrize("sizes", [[kernel.BUFFER + 37], [kernel.BUFFER - 3, 10, 5], [kernel.BUFFER, 3], [3 * 4096]])
def test_paragraphs_longer_than_the_buffer_are_trained_to_their_end(setting, sizes):
    s = setting
    text = np.full(sum(sizes), 1, np.int32)
    text[-3:] = (2, 3, 4)
    keep = np.full(WORDS, 0xFFFFFFFF, np.uint32)
    offsets = np.cumsum([0, *sizes]).astype(np.int64)
    before = s.inputs.copy()
    kernel.train_words(
        text, offsets, 0, len(sizes), keep, s.table, s.inputs, s.outputs, 2, 5, 7, np.float32(0.001), data.stream(1)
    )
    assert np.isfinite(s.inputs).all()
    touched = (s.inputs != before).any(axis=1)
    assert touched[[1, 2, 3, 4]].all()
    assert not touched[5:].any()


@pytest.mark.parametrize("learn", [True, False])
def test_anchors(setting, learn):
    s = setting
    random = np.random.default_rng(2)
    links, starts, lengths, rows = [], [], [], []
    for number, paragraph in enumerate(s.paragraphs):
        for start in range(0, len(paragraph), 2):
            length, entity = int(random.integers(0, 3)), int(random.integers(-1, ENTITIES))
            length = min(length, len(paragraph) - start)
            links.append((number, start, length, entity))
            starts.append(s.offsets[number] + start)
            lengths.append(length)
            rows.append(entity)
    slow_in, slow_out = s.entities.astype(float), s.outputs.astype(float)
    reference.anchors(
        s.paragraphs, links, s.keep, s.table, slow_in, slow_out, window=3, state=data.stream(9), learn=learn, **SETTINGS
    )
    fast_in, fast_out = s.entities.copy(), s.outputs.copy()
    kernel.train_anchors(
        s.tokens, s.offsets, 0, len(s.paragraphs), np.array(starts), np.array(lengths, np.int32),
        np.array(rows, np.int32), 0, s.keep, s.table, fast_in, fast_out, 3, 5, 7, np.float32(0.1), learn,
        data.stream(9),
    )  # fmt: skip
    changed(fast_in, s.entities)
    assert learn != (fast_out == s.outputs).all()
    close(fast_in, slow_in)
    close(fast_out, slow_out)


def test_anchors_that_begin_in_the_middle(setting):
    s = setting
    starts, rows = np.array([0, 5, 50, 60]), np.array([1, 2, 3, 4], np.int32)
    before = s.entities.copy()
    paragraph = 4  # words 48..66
    s.keep[:] = 0xFFFFFFFF
    kernel.train_anchors(
        s.tokens, s.offsets, paragraph, paragraph + 1, starts, np.ones(4, np.int32), rows, 2, s.keep, s.table,
        s.entities, s.outputs, 3, 5, 7, np.float32(0.1), True, data.stream(9),
    )  # fmt: skip
    touched = np.flatnonzero((s.entities != before).any(axis=1))
    assert touched.tolist() == [3, 4]


@pytest.mark.parametrize("learn", [True, False])
def test_openings(setting, learn):
    s = setting
    starts = s.offsets[:-1]
    ends = starts + np.array([1, 0, 40, 2, 5, 33])
    rows = np.array([3, 4, 5, -1, 7, 8], np.int32)
    pages = [(int(r), s.tokens[b:e].tolist()) for r, b, e in zip(rows, starts, ends, strict=True) if r >= 0 and e > b]
    slow_in, slow_out = s.entities.astype(float), s.outputs.astype(float)
    reference.openings(pages, s.keep, s.table, slow_in, slow_out, state=data.stream(11), learn=learn, **SETTINGS)
    fast_in, fast_out = s.entities.copy(), s.outputs.copy()
    kernel.train_openings(
        s.tokens, starts, ends, rows, 0, 6, s.keep, s.table, fast_in, fast_out, 5, 7, np.float32(0.1), learn,
        data.stream(11),
    )  # fmt: skip
    changed(fast_in, s.entities)
    assert learn != (fast_out == s.outputs).all()
    close(fast_in, slow_in)
    close(fast_out, slow_out)
    assert (fast_in[[0, 1, 2, 4, 6]] == s.entities[[0, 1, 2, 4, 6]]).all()


def test_links(setting):
    s = setting
    random = np.random.default_rng(4)
    targets = [random.permutation(np.arange(-1, ENTITIES))[:size].tolist() for size in (0, 3, 20, 1)]
    targets[3] = [2, 2, 9]  # to itself, and not
    rows = np.array([0, 1, 5, 2], np.int32)
    slow_in, slow_out = s.entities.astype(float), s.entity_outputs.astype(float)
    reference.links(
        list(zip(rows.tolist(), targets, strict=True)), s.entity_table, slow_in, slow_out,
        state=data.stream(13), **SETTINGS,
    )  # fmt: skip
    fast_in, fast_out = s.entities.copy(), s.entity_outputs.copy()
    kernel.train_links(
        rows, np.cumsum([0, *map(len, targets)]), np.concatenate(targets).astype(np.int32), 0, 4, s.entity_table,
        fast_in, fast_out, 5, 7, np.float32(0.1), data.stream(13),
    )  # fmt: skip
    changed(fast_in, s.entities)
    close(fast_in, slow_in)
    close(fast_out, slow_out)


def test_links_of_pages_without_a_vector_are_left_alone(setting):
    s = setting
    before = s.entities.copy()
    flops = kernel.train_links(
        np.array([-1], np.int32), np.array([0, 2]), np.array([1, 2], np.int32), 0, 1, s.entity_table,
        s.entities, s.entity_outputs, 5, 7, np.float32(0.1), data.stream(13),
    )  # fmt: skip
    assert flops == 0
    assert (s.entities == before).all()


def test_an_alias_table_keeps_the_distribution():
    weights = np.array([5, 1, 0.01, 3, 0, 12.5])
    prob, alias = data.alias_table(weights)
    back = prob.astype(float).copy()
    for column, other in enumerate(alias):
        back[other] += 1 - prob[column]
    np.testing.assert_allclose(back / back.sum(), weights / weights.sum(), atol=1e-6)


def test_draws_follow_the_distribution():
    weights = np.array([5.0, 1.0, 3.0, 12.0])
    table = data.alias_table(weights)
    random = reference.Random(data.stream(1))
    drawn = np.bincount([random.draw(*table) for _ in range(40_000)], minlength=4) / 40_000
    np.testing.assert_allclose(drawn, weights / weights.sum(), atol=0.01)


def test_subsampling_keeps_rare_words_and_thins_frequent_ones():
    counts = np.array([9_000_000, 900_000, 99_000, 900, 100])
    kept = data.keep_thresholds(counts, sample=1e-4) / 0xFFFFFFFF
    share = counts / counts.sum()
    np.testing.assert_allclose(kept[:2], np.sqrt(1e-4 / share[:2]) + 1e-4 / share[:2], rtol=1e-6)
    assert (kept[3:] == 1).all()
    assert (data.keep_thresholds(counts, sample=0) == 0xFFFFFFFF).all()


def test_streams_differ_and_are_never_zero():
    states = {int(data.stream(seed, epoch, job)[0]) for seed in range(3) for epoch in range(20) for job in range(50)}
    assert len(states) == 3 * 20 * 50
    assert 0 not in states
    assert data.stream(1, 2)[0] != data.stream(2, 1)[0]
