"""The inner loops of training, compiled: three passes over a piece of text, each a chain of small matrix products.

The objectives are those of Section 2.3 of the paper, with negative sampling. One dot product at a time leaves most of a
processor unused, so the passes work on blocks: a block has up to `rows` inputs (words or entities) and draws `shared`
negatives for all of them. The scores of the whole block are one product of two matrices, and so is each of the two
gradients. What is contrasted stays the same in expectation: an input with b positives meets each shared negative with
the weight ``b * negative / shared``.

Threads update the same matrices without locks (Niu et al. 2011): two that meet in a row lose a little of one update.

Written by hand because no library trains words and entities in one space; compiled by Numba because it is the one
compiler that users need not install a toolchain for. All of it is in one file, long as it is, because Numba's cache of
compiled code notices changes in the file of a function, not in others that it calls.
"""

from typing import Any

import numba
import numpy as np

ROWS = 16  # inputs of a block
BUFFER = 4096  # words that are cut into blocks at a time
SLICE = 8  # positives of an entity that are trained at a time: more at once would be one large, unsteady step

_jit = numba.njit(nogil=True, fastmath=True, cache=True, boundscheck=False, error_model="numpy")
_inline = numba.njit(nogil=True, fastmath=True, inline="always", error_model="numpy")

F0, F1 = np.float32(0), np.float32(1)


@_inline
def _random(state: Any) -> Any:
    """Draw 64 bits (xorshift)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return x


@_inline
def _draw(state: Any, prob: Any, alias: Any) -> Any:
    """Draw an index from a distribution in alias form (see `sampling.alias_table`)."""
    bits = _random(state)
    # 32 bits choose the column, 24 others decide between it and its alias
    column = np.int64(((bits >> np.uint64(32)) * np.uint64(len(prob))) >> np.uint64(32))
    share = np.float32(bits & np.uint64(0xFFFFFF)) * np.float32(1 / 16777216)
    return column if share < prob[column] else np.int64(alias[column])


@_inline
def _kept(state: Any, threshold: Any) -> Any:
    """Decide whether a word survives subsampling."""
    return np.uint32(_random(state) >> np.uint64(32)) <= threshold


@_inline
def _sigmoid(x: Any) -> Any:
    """Give 1 / (1 + exp(-x)) to 3e-4, by a continued fraction of tanh that compilers can turn into vector code."""
    y = min(max(x * np.float32(0.5), np.float32(-4.5)), np.float32(4.5))
    q = y * y
    above = y * (np.float32(10395) + q * (np.float32(1260) + q * np.float32(21)))
    below = np.float32(10395) + q * (np.float32(4725) + q * (np.float32(210) + q))
    return np.float32(0.5) + np.float32(0.5) * above / below


@_inline
def _copy(target: Any, source: Any) -> None:
    for d in range(len(target)):
        target[d] = source[d]


@_inline
def _add(target: Any, source: Any) -> None:
    for d in range(len(target)):
        target[d] += source[d]


@_jit
def _contrast(scores: Any, slopes: Any, first: Any, count: Any, weight: Any) -> None:
    """Turn the scores of a row's negatives into slopes."""
    for c in range(first, first + count):
        slopes[c] = -weight * _sigmoid(scores[c])


@_jit
def _affirm(scores: Any, slopes: Any, start: Any, stop: Any, rate: Any) -> None:
    """Turn the scores of a row's positives into slopes."""
    for c in range(start, stop):
        slopes[c] = rate * (F1 - _sigmoid(scores[c]))


@_jit
def train_words(
    tokens: Any,  # word ids
    paragraphs: Any,  # offsets into tokens
    first: int,
    last: int,  # paragraphs first..last-1 are trained
    keep: Any,  # (ids,) uint32: how likely a word survives subsampling; 0 for words that are not trained
    prob: Any,
    alias: Any,  # distribution of negatives
    inputs: Any,
    outputs: Any,  # (words, dimension)
    window: int,
    negative: int,
    shared: int,
    rate: Any,
    state: Any,
) -> int:
    """Let each word predict the words around it. Gives the number of floating-point operations."""
    dimension = inputs.shape[1]
    most = ROWS + 2 * window + shared
    v, dv = np.zeros((ROWS, dimension), np.float32), np.empty((ROWS, dimension), np.float32)
    o, do = np.empty((most, dimension), np.float32), np.empty((most, dimension), np.float32)
    all_scores, all_slopes = np.empty(ROWS * most, np.float32), np.empty(ROWS * most, np.float32)
    ids, lows, highs = np.empty(BUFFER, np.int64), np.empty(BUFFER, np.int64), np.empty(BUFFER, np.int64)
    drawn = np.empty(shared, np.int64)
    flops, paragraph = 0, first
    token = paragraphs[first]
    while paragraph < last:
        # Subsampled words of as many paragraphs as fit; one that does not is cut, at the cost of a window.
        count = 0
        while paragraph < last and count < BUFFER:
            begin, stop = count, paragraphs[paragraph + 1]
            while token < stop and count < BUFFER:
                word = tokens[token]
                token += 1
                if keep[word] > 0 and _kept(state, keep[word]):
                    ids[count] = word
                    count += 1
            for i in range(begin, count):
                reach: Any = np.int64((_random(state) >> np.uint64(33)) % np.uint64(window)) + 1
                lows[i], highs[i] = max(begin, i - reach), min(count, i + reach + 1)
            if token == stop:
                paragraph += 1
        for block in range(0, count, ROWS):
            rows = min(ROWS, count - block)
            low, high = lows[block], highs[block]
            for i in range(block, block + rows):
                low, high = min(low, lows[i]), max(high, highs[i])
            near = high - low
            width = near + shared
            for i in range(rows):
                _copy(v[i], inputs[ids[block + i]])
            for c in range(near):
                _copy(o[c], outputs[ids[low + c]])
            for c in range(shared):
                drawn[c] = _draw(state, prob, alias)
                _copy(o[near + c], outputs[drawn[c]])
            scores = all_scores[: ROWS * width].reshape(ROWS, width)
            slopes = all_slopes[: ROWS * width].reshape(ROWS, width)
            slopes[:] = F0
            np.dot(v, o[:width].T, scores)
            for i in range(rows):
                start, stop = lows[block + i] - low, highs[block + i] - low
                weight = rate * np.float32((stop - start - 1) * negative) / np.float32(shared)
                _affirm(scores[i], slopes[i], start, stop, rate)
                slopes[i, block + i - low] = F0  # a word does not predict itself
                _contrast(scores[i], slopes[i], near, shared, weight)
            np.dot(slopes, o[:width], dv)
            np.dot(slopes.T, v, do[:width])
            for i in range(rows):
                _add(inputs[ids[block + i]], dv[i])
            for c in range(near):
                _add(outputs[ids[low + c]], do[c])
            for c in range(shared):
                _add(outputs[drawn[c]], do[near + c])
            flops += 6 * ROWS * width * dimension
    return flops


@_jit
def _space(dimension: int, shared: int) -> Any:
    """Give room to work in for a block: inputs, what is added to them, outputs, the same, scores, slopes, negatives."""
    return (
        np.zeros((ROWS, dimension), np.float32),
        np.empty((ROWS, dimension), np.float32),
        np.empty((shared, dimension), np.float32),
        np.empty((shared, dimension), np.float32),
        np.empty((ROWS, shared), np.float32),
        np.empty((ROWS, shared), np.float32),
        np.empty(shared, np.int64),
    )


@_jit
def _train_rows(
    entities: Any,  # (rows,) one row of `inputs` for each example
    bounds: Any,  # (rows + 1,) offsets into `words`
    words: Any,  # positives of the examples, one after the other
    count: int,
    prob: Any,
    alias: Any,
    inputs: Any,
    outputs: Any,
    negative: int,
    rate: Any,
    learn: bool,  # whether outputs change
    space: Any,
    state: Any,
) -> int:
    """Let up to `ROWS` entities predict the words given for each."""
    v, dv, o, do, scores, slopes, drawn = space
    dimension, shared = inputs.shape[1], len(drawn)
    slopes[:] = F0
    for i in range(count):
        _copy(v[i], inputs[entities[i]])
    for c in range(shared):
        drawn[c] = _draw(state, prob, alias)
        _copy(o[c], outputs[drawn[c]])
    np.dot(v, o.T, scores)
    for i in range(count):
        positives = bounds[i + 1] - bounds[i]
        _contrast(scores[i], slopes[i], 0, shared, rate * np.float32(positives * negative) / np.float32(shared))
    np.dot(slopes, o, dv)
    if learn:
        np.dot(slopes.T, v, do)
        for c in range(shared):
            _add(outputs[drawn[c]], do[c])
    for i in range(count):
        vector, change = v[i], dv[i]
        for p in range(bounds[i], bounds[i + 1]):
            output = outputs[words[p]]
            score = F0
            for d in range(dimension):
                score += vector[d] * output[d]
            slope = rate * (F1 - _sigmoid(score))
            for d in range(dimension):
                change[d] += slope * output[d]
            if learn:
                for d in range(dimension):
                    output[d] += slope * vector[d]
        _add(inputs[entities[i]], change)
    return (6 if learn else 4) * dimension * (ROWS * shared + bounds[count])


@_jit
def train_anchors(
    tokens: Any,
    paragraphs: Any,
    first: int,
    last: int,
    starts: Any,
    lengths: Any,
    targets: Any,  # (anchors,) rows of inputs, -1 for entities that are not trained
    anchor: int,  # the first anchor of the first paragraph
    keep: Any,
    prob: Any,
    alias: Any,
    inputs: Any,
    outputs: Any,
    window: int,
    negative: int,
    shared: int,
    rate: Any,
    learn: bool,
    state: Any,
) -> int:
    """Let the entity of each anchor predict the words on both sides of it."""
    space = _space(inputs.shape[1], shared)
    words = np.empty(ROWS * 2 * window, np.int64)
    entities, bounds = np.empty(ROWS, np.int64), np.zeros(ROWS + 1, np.int64)
    flops, count, total = 0, 0, len(starts)
    for paragraph in range(first, last):
        begin, end = paragraphs[paragraph], paragraphs[paragraph + 1]
        while anchor < total and starts[anchor] < end:
            entity, start, stop = targets[anchor], starts[anchor], starts[anchor] + lengths[anchor]
            anchor += 1
            if entity < 0:
                continue
            reach = np.int64((_random(state) >> np.uint64(33)) % np.uint64(window)) + 1
            filled = bounds[count]
            for token in range(max(begin, start - reach), min(end, stop + reach)):
                word = tokens[token]
                if not start <= token < stop and keep[word] > 0 and _kept(state, keep[word]):
                    words[filled] = word
                    filled += 1
            if filled == bounds[count]:
                continue
            entities[count], bounds[count + 1] = entity, filled
            count += 1
            if count == ROWS:
                flops += _train_rows(
                    entities, bounds, words, count, prob, alias, inputs, outputs, negative, rate, learn, space, state
                )
                count = 0
    if count:
        flops += _train_rows(
            entities, bounds, words, count, prob, alias, inputs, outputs, negative, rate, learn, space, state
        )
    return flops


@_jit
def train_openings(
    tokens: Any,
    begins: Any,
    ends: Any,  # (pages,) tokens of each page's opening
    pages: Any,  # (pages,) rows of inputs, -1 for entities that are not trained
    first: int,
    last: int,
    keep: Any,
    prob: Any,
    alias: Any,
    inputs: Any,
    outputs: Any,
    negative: int,
    shared: int,
    rate: Any,
    learn: bool,
    state: Any,
) -> int:
    """Let the entity of each page predict the words of its opening, a slice of each of `ROWS` pages at a time."""
    space = _space(inputs.shape[1], shared)
    words = np.empty(ROWS * SLICE, np.int64)
    entities, bounds = np.empty(ROWS, np.int64), np.zeros(ROWS + 1, np.int64)
    chosen, at = np.empty(ROWS, np.int64), np.empty(ROWS, np.int64)
    flops, page = 0, first
    while page < last:
        group = 0
        while page < last and group < ROWS:
            if pages[page] >= 0 and ends[page] > begins[page]:
                chosen[group], at[group] = page, begins[page]
                group += 1
            page += 1
        more = group > 0
        while more:
            more, count = False, 0
            for g in range(group):
                filled, end = bounds[count], ends[chosen[g]]
                while at[g] < end and filled < bounds[count] + SLICE:
                    word = tokens[at[g]]
                    at[g] += 1
                    if keep[word] > 0 and _kept(state, keep[word]):
                        words[filled] = word
                        filled += 1
                if filled > bounds[count]:
                    entities[count], bounds[count + 1] = pages[chosen[g]], filled
                    count += 1
                more = more or at[g] < end
            if count:
                flops += _train_rows(
                    entities, bounds, words, count, prob, alias, inputs, outputs, negative, rate, learn, space, state
                )
    return flops


@_jit
def train_links(
    pages: Any,  # (pages,) rows of inputs
    page_anchors: Any,  # (pages + 1,) offsets into targets
    targets: Any,
    first: int,
    last: int,
    prob: Any,
    alias: Any,
    inputs: Any,
    outputs: Any,  # (entities, dimension)
    negative: int,
    shared: int,
    rate: Any,
    state: Any,
) -> int:
    """Let a page predict the pages it links to, and each of those the page: neighbours in the link graph."""
    dimension = inputs.shape[1]
    rows, width = ROWS + 1, ROWS + 1 + shared
    v, dv = np.zeros((rows, dimension), np.float32), np.empty((rows, dimension), np.float32)
    o, do = np.zeros((width, dimension), np.float32), np.empty((width, dimension), np.float32)
    scores, slopes = np.empty((rows, width), np.float32), np.empty((rows, width), np.float32)
    drawn, linked = np.empty(shared, np.int64), np.empty(ROWS, np.int64)
    flops = 0
    for page in range(first, last):
        source = pages[page]
        if source < 0:
            continue
        anchor, end = page_anchors[page], page_anchors[page + 1]
        while anchor < end:
            count = 0
            while anchor < end and count < ROWS:
                if targets[anchor] >= 0 and targets[anchor] != source:
                    linked[count] = targets[anchor]
                    count += 1
                anchor += 1
            if count == 0:
                break
            # Row and column 0 are the page, 1..count what it links to, the columns after ROWS the negatives.
            slopes[:] = F0
            _copy(v[0], inputs[source])
            _copy(o[0], outputs[source])
            for i in range(count):
                _copy(v[i + 1], inputs[linked[i]])
                _copy(o[i + 1], outputs[linked[i]])
            for c in range(shared):
                drawn[c] = _draw(state, prob, alias)
                _copy(o[rows + c], outputs[drawn[c]])
            np.dot(v, o.T, scores)
            unit = rate * np.float32(negative) / np.float32(shared)
            _affirm(scores[0], slopes[0], 1, count + 1, rate)
            _contrast(scores[0], slopes[0], rows, shared, unit * np.float32(count))
            for i in range(1, count + 1):
                _affirm(scores[i], slopes[i], 0, 1, rate)
                _contrast(scores[i], slopes[i], rows, shared, unit)
            np.dot(slopes, o, dv)
            np.dot(slopes.T, v, do)
            _add(inputs[source], dv[0])
            _add(outputs[source], do[0])
            for i in range(count):
                _add(inputs[linked[i]], dv[i + 1])
                _add(outputs[linked[i]], do[i + 1])
            for c in range(shared):
                _add(outputs[drawn[c]], do[rows + c])
            flops += 6 * rows * width * dimension
    return flops
