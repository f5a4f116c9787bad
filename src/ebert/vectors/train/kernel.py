"""The inner loops of training, compiled: three passes over a piece of text, each a chain of small matrix products.

The objectives are those of Section 2.3 of the paper, with negative sampling. One dot product at a time leaves most of a
processor unused, so the passes work on blocks: a block has up to `rows` inputs (words or entities) and draws `shared`
negatives for all of them. The scores of the whole block are one product of two matrices, and so is each of the two
gradients. The expected contrast stays the same: an input with b positives meets each shared negative with the weight
``b * negative / shared``.

Threads update the same matrices without locks (Niu et al. 2011): if two threads meet in a row, a little of one update
is lost.

This is written by hand because no library trains words and entities in one space. It is compiled by Numba because users
need no toolchain for it. It is all in one long file because Numba's cache of compiled code notices changes in the file
of a function, but not in other files that it calls.

What the functions have in common:

- `tokens` are the word ids of the text, `paragraphs` the offsets of paragraphs into them;
- `keep`, (ids,) uint32, is how likely a word survives subsampling; 0 for words that are not trained;
- `table` is the distribution of negatives in alias form (see `data.alias_table`); `state` is that of random numbers;
- `inputs` and `outputs` are the matrices that are trained, (words or entities, dimension);
- all return the number of floating-point operations.
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
def _draw(state: Any, table: Any) -> Any:
    """Draw an index from a distribution in alias form."""
    (prob, alias), bits = table, _random(state)
    # 32 bits choose the column, 24 others decide between it and its alias
    column = np.int64(((bits >> np.uint64(32)) * np.uint64(len(prob))) >> np.uint64(32))
    share = np.float32(bits & np.uint64(0xFFFFFF)) * np.float32(1 / 16777216)
    return column if share < prob[column] else np.int64(alias[column])


@_inline
def _kept(state: Any, threshold: Any) -> Any:
    """Decide whether a word survives subsampling; nothing is drawn for one that is not trained."""
    return threshold > 0 and np.uint32(_random(state) >> np.uint64(32)) <= threshold


@_inline
def _reach(state: Any, window: int) -> Any:
    """Draw how far a window reaches."""
    return np.int64((_random(state) >> np.uint64(33)) % np.uint64(window)) + 1


@_inline
def _sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x)) to 3e-4, by a continued fraction of tanh that compilers can turn into vector code."""
    y = min(max(x * np.float32(0.5), np.float32(-4.5)), np.float32(4.5))
    q = y * y
    above = y * (np.float32(10395) + q * (np.float32(1260) + q * np.float32(21)))
    below = np.float32(10395) + q * (np.float32(4725) + q * (np.float32(210) + q))
    return np.float32(0.5) + np.float32(0.5) * above / below


@_inline
def _gather(block: Any, matrix: Any, rows: Any) -> None:
    """Copy rows of a matrix into a block."""
    for i in range(len(rows)):
        target, source = block[i], matrix[rows[i]]
        for d in range(len(target)):
            target[d] = source[d]


@_inline
def _add(target: Any, source: Any) -> None:
    for d in range(len(target)):
        target[d] += source[d]


@_inline
def _scatter(matrix: Any, rows: Any, block: Any) -> None:
    """Add the rows of a block to rows of a matrix."""
    for i in range(len(rows)):
        _add(matrix[rows[i]], block[i])


@_jit
def _contrast(scores: Any, slopes: Any, first: Any, weight: Any) -> None:
    """Turn the scores of a row's negatives, from column `first` on, into slopes."""
    for c in range(first, len(scores)):
        slopes[c] = -weight * _sigmoid(scores[c])


@_jit
def _affirm(scores: Any, slopes: Any, start: Any, stop: Any, rate: Any) -> None:
    """Turn the scores of a row's positives into slopes."""
    for c in range(start, stop):
        slopes[c] = rate * (F1 - _sigmoid(scores[c]))


@_jit
def _space(rows: int, width: int, dimension: int, shared: int) -> Any:
    """Return room for a block: inputs and their changes, outputs and theirs, scores, slopes (both flat), negatives."""
    v, o, scores = np.zeros((rows, dimension), np.float32), np.zeros((width, dimension), np.float32), rows * width
    return (
        v, np.empty_like(v), o, np.empty_like(o),
        np.empty(scores, np.float32), np.empty(scores, np.float32), np.empty(shared, np.int64),
    )  # fmt: skip


@_inline
def _draw_negatives(space: Any, first: Any, table: Any, outputs: Any, state: Any) -> None:
    """Draw the negatives of a block; their outputs are in the rows from `first` on."""
    drawn = space[6]
    for c in range(len(drawn)):
        drawn[c] = _draw(state, table)
    _gather(space[2][first:], outputs, drawn)


@_jit
def _train_block(
    ids: Any, lows: Any, highs: Any, weights: Any, begin: int, end: int, least: int, table: Any, inputs: Any,
    outputs: Any, rate: Any, space: Any, state: Any,
) -> int:  # fmt: skip
    """Let the inputs `ids[begin:end]` predict outputs among the same `ids`: i those from `lows[i]` to `highs[i]` - 1.

    `weights[i]` is what a negative counts for i. Nothing predicts itself. Scores have `least` columns or more before
    those of the negatives.
    """
    v, dv, o, do, flat_scores, flat_slopes, drawn = space
    low, high = lows[begin], highs[begin]
    for i in range(begin, end):
        low, high = min(low, lows[i]), max(high, highs[i])
    rows, near = len(v), max(high - low, least)
    width = near + len(drawn)
    _gather(v, inputs, ids[begin:end])
    _gather(o, outputs, ids[low:high])
    _draw_negatives(space, near, table, outputs, state)
    scores = flat_scores[: rows * width].reshape(rows, width)
    slopes = flat_slopes[: rows * width].reshape(rows, width)
    slopes[:] = F0
    np.dot(v, o[:width].T, scores)
    for i in range(begin, end):
        row, change = scores[i - begin], slopes[i - begin]
        _affirm(row, change, lows[i] - low, highs[i] - low, rate)
        change[i - low] = F0
        _contrast(row, change, near, weights[i])
    np.dot(slopes, o[:width], dv)
    np.dot(slopes.T, v, do[:width])
    _scatter(inputs, ids[begin:end], dv)
    _scatter(outputs, ids[low:high], do)
    _scatter(outputs, drawn, do[near:])
    return 6 * rows * width * inputs.shape[1]


@_jit
def train_words(
    tokens: Any, paragraphs: Any, first: int, last: int, keep: Any, table: Any, inputs: Any, outputs: Any,
    window: int, negative: int, shared: int, rate: Any, state: Any,
) -> int:  # fmt: skip
    """Let each word of the paragraphs `first` to `last` - 1 predict the words around it."""
    space = _space(ROWS, ROWS + 2 * window + shared, inputs.shape[1], shared)
    ids, lows, highs = np.empty(BUFFER, np.int64), np.empty(BUFFER, np.int64), np.empty(BUFFER, np.int64)
    weights = np.empty(BUFFER, np.float32)
    flops, paragraph, token = 0, first, paragraphs[first]
    while paragraph < last:
        # Subsampled words of as many paragraphs as fit; one that does not is cut, at the cost of a window.
        count = 0
        while paragraph < last and count < BUFFER:
            begin, stop = count, paragraphs[paragraph + 1]
            while token < stop and count < BUFFER:
                ids[count] = tokens[token]
                count += _kept(state, keep[tokens[token]])
                token += 1
            for i in range(begin, count):
                reach = _reach(state, window)
                lows[i], highs[i] = max(begin, i - reach), min(count, i + reach + 1)
                weights[i] = rate * np.float32((highs[i] - lows[i] - 1) * negative) / np.float32(shared)
            if token == stop:
                paragraph += 1
        for block in range(0, count, ROWS):
            end = min(count, block + ROWS)
            flops += _train_block(ids, lows, highs, weights, block, end, 0, table, inputs, outputs, rate, space, state)
    return flops


@_jit
def train_links(
    pages: Any, page_anchors: Any, targets: Any, first: int, last: int, table: Any, inputs: Any, outputs: Any,
    negative: int, shared: int, rate: Any, state: Any,
) -> int:  # fmt: skip
    """Let a page predict the pages it links to, and each of those the page: neighbours in the link graph.

    `page_anchors`, (pages + 1,), are offsets into `targets`; the outputs are those of entities.
    """
    space = _space(ROWS + 1, ROWS + 1 + shared, inputs.shape[1], shared)
    linked, lows, highs = np.empty(ROWS + 1, np.int64), np.zeros(ROWS + 1, np.int64), np.ones(ROWS + 1, np.int64)
    unit = rate * np.float32(negative) / np.float32(shared)
    weights = np.full(ROWS + 1, unit)
    lows[0], flops = 1, 0  # the page, at 0, predicts all from 1 on, and they the page
    for page in range(first, last):
        linked[0], anchor = pages[page], page_anchors[page]
        while linked[0] >= 0 and anchor < page_anchors[page + 1]:
            count = 1
            while anchor < page_anchors[page + 1] and count <= ROWS:
                linked[count] = targets[anchor]
                count += targets[anchor] >= 0 and targets[anchor] != linked[0]
                anchor += 1
            if count > 1:
                highs[0], weights[0] = count, unit * np.float32(count - 1)
                flops += _train_block(
                    linked, lows, highs, weights, 0, count, ROWS + 1, table, inputs, outputs, rate, space, state
                )
    return flops


@_jit
def _train_rows(
    entities: Any, bounds: Any, words: Any, count: int, table: Any, inputs: Any, outputs: Any,
    negative: int, rate: Any, learn: bool, space: Any, state: Any,
) -> int:  # fmt: skip
    """Let up to `ROWS` entities predict words: the i-th those from `bounds[i]` to `bounds[i + 1]` of `words`.

    Outputs change only if they are to `learn`.
    """
    if count == 0:
        return 0
    v, dv, o, do, flat_scores, flat_slopes, drawn = space
    dimension, shared = inputs.shape[1], len(drawn)
    scores, slopes = flat_scores.reshape(ROWS, shared), flat_slopes.reshape(ROWS, shared)
    slopes[:] = F0
    _gather(v, inputs, entities[:count])
    _draw_negatives(space, 0, table, outputs, state)
    np.dot(v, o.T, scores)
    for i in range(count):
        positives = bounds[i + 1] - bounds[i]
        _contrast(scores[i], slopes[i], 0, rate * np.float32(positives * negative) / np.float32(shared))
    np.dot(slopes, o, dv)
    if learn:
        np.dot(slopes.T, v, do)
        _scatter(outputs, drawn, do)
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
    tokens: Any, paragraphs: Any, first: int, last: int, starts: Any, lengths: Any, targets: Any, anchor: int,
    keep: Any, table: Any, inputs: Any, outputs: Any,
    window: int, negative: int, shared: int, rate: Any, learn: bool, state: Any,
) -> int:  # fmt: skip
    """Let the entity of each anchor predict the words on both sides of it.

    `targets`, (anchors,), are rows of `inputs`, or -1 for entities that are not trained; `anchor` is the first one of
    the first paragraph.
    """
    space = _space(ROWS, shared, inputs.shape[1], shared)
    words = np.empty(ROWS * 2 * window + 1, np.int64)
    entities, bounds = np.empty(ROWS, np.int64), np.zeros(ROWS + 1, np.int64)
    flops, paragraph, text_end = 0, first, paragraphs[last]
    while anchor < len(starts) and starts[anchor] < text_end:
        count = 0
        while count < ROWS and anchor < len(starts) and starts[anchor] < text_end:
            start, stop, entity = starts[anchor], starts[anchor] + lengths[anchor], targets[anchor]
            anchor += 1
            while paragraphs[paragraph + 1] <= start:
                paragraph += 1
            if entity >= 0:
                reach, filled = _reach(state, window), bounds[count]
                for token in range(
                    max(paragraphs[paragraph], start - reach), min(paragraphs[paragraph + 1], stop + reach)
                ):
                    words[filled] = tokens[token]
                    filled += not start <= token < stop and _kept(state, keep[tokens[token]])
                entities[count], bounds[count + 1] = entity, filled
                count += filled > bounds[count]
        flops += _train_rows(
            entities, bounds, words, count, table, inputs, outputs, negative, rate, learn, space, state
        )
    return flops


@_jit
def train_openings(
    tokens: Any, begins: Any, ends: Any, pages: Any, first: int, last: int, keep: Any, table: Any, inputs: Any,
    outputs: Any, negative: int, shared: int, rate: Any, learn: bool, state: Any,
) -> int:  # fmt: skip
    """Let the entity of each page predict the words of its opening, a slice of each of `ROWS` pages at a time.

    `begins` and `ends`, (pages,), are the tokens of openings; `pages`, (pages,), are rows of `inputs`, or -1.
    """
    space = _space(ROWS, shared, inputs.shape[1], shared)
    words = np.empty(ROWS * SLICE + 1, np.int64)
    entities, bounds = np.empty(ROWS, np.int64), np.zeros(ROWS + 1, np.int64)
    chosen, at = np.empty(ROWS, np.int64), np.empty(ROWS, np.int64)
    flops, page = 0, first
    while page < last:
        group = 0
        while page < last and group < ROWS:
            chosen[group], at[group] = page, begins[page]
            group += pages[page] >= 0 and ends[page] > begins[page]
            page += 1
        more = group > 0
        while more:
            more, count = False, 0
            for g in range(group):
                filled, end = bounds[count], ends[chosen[g]]
                while at[g] < end and filled < bounds[count] + SLICE:
                    words[filled] = tokens[at[g]]
                    filled += _kept(state, keep[tokens[at[g]]])
                    at[g] += 1
                entities[count], bounds[count + 1] = pages[chosen[g]], filled
                count += filled > bounds[count]
                more = more or at[g] < end
            flops += _train_rows(
                entities, bounds, words, count, table, inputs, outputs, negative, rate, learn, space, state
            )
    return flops
