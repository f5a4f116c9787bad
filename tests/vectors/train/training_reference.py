"""The passes of training once more, one dot product at a time: slow, plain, and with the same random numbers."""

import numpy as np

ROWS, BUFFER, SLICE = 16, 4096, 8
MASK = (1 << 64) - 1


class Random:
    def __init__(self, state):
        self.value = int(state[0])

    def bits(self):
        x = self.value
        x ^= x << 13 & MASK
        x ^= x >> 7
        x ^= x << 17 & MASK
        self.value = x
        return x

    def kept(self, threshold):
        return self.bits() >> 32 <= threshold

    def reach(self, window):
        return (self.bits() >> 33) % window + 1

    def draw(self, prob, alias):
        bits = self.bits()
        column = ((bits >> 32) * len(prob)) >> 32
        return column if (bits & 0xFFFFFF) / 16777216 < prob[column] else int(alias[column])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(examples, negatives, inputs, outputs, *, negative, rate):
    """Train one block: examples are (input row, output rows); all vectors are those from before the block."""
    before_in, before_out = inputs.copy(), outputs.copy()
    for row, positives in examples:
        for positive in positives:
            slope = rate * (1 - sigmoid(before_in[row] @ before_out[positive]))
            inputs[row] += slope * before_out[positive]
            outputs[positive] += slope * before_in[row]
        for drawn in negatives:
            weight = rate * len(positives) * negative / len(negatives)
            slope = -weight * sigmoid(before_in[row] @ before_out[drawn])
            inputs[row] += slope * before_out[drawn]
            outputs[drawn] += slope * before_in[row]


def rows(examples, negatives, inputs, outputs, *, negative, rate, learn):
    """Train one block of entities: the negatives for all at once, then the positives one example after the other."""
    before_in, before_out = inputs.copy(), outputs.copy()
    changes = []
    for row, positives in examples:
        change = np.zeros_like(before_in[row])
        for drawn in negatives:
            weight = rate * len(positives) * negative / len(negatives)
            slope = -weight * sigmoid(before_in[row] @ before_out[drawn])
            change += slope * before_out[drawn]
            outputs[drawn] += learn * slope * before_in[row]
        changes.append(change)
    for (row, positives), change in zip(examples, changes, strict=True):
        for positive in positives:
            slope = rate * (1 - sigmoid(before_in[row] @ outputs[positive]))
            change += slope * outputs[positive]
            outputs[positive] += learn * slope * before_in[row]
        inputs[row] += change


def words(paragraphs, keep, table, inputs, outputs, *, window, negative, shared, rate, state):
    """Let each word predict those around it; `paragraphs` are lists of words, BUFFER words at most."""
    random = Random(state)
    ids, reaches = [], []
    for paragraph in paragraphs:
        begin = len(ids)
        ids += [word for word in paragraph if keep[word] > 0 and random.kept(keep[word])]
        for i in range(begin, len(ids)):
            reach = random.reach(window)
            reaches.append([j for j in range(max(begin, i - reach), min(len(ids), i + reach + 1)) if j != i])
    for block in range(0, len(ids), ROWS):
        examples = [(ids[i], [ids[j] for j in reaches[i]]) for i in range(block, min(block + ROWS, len(ids)))]
        step(examples, [random.draw(*table) for _ in range(shared)], inputs, outputs, negative=negative, rate=rate)


def anchors(paragraphs, links, keep, table, inputs, outputs, *, window, negative, shared, rate, state, learn=True):
    """Let entities predict the words around their links: (paragraph, start, length, entity)."""
    random = Random(state)
    examples = []

    def train():
        drawn = [random.draw(*table) for _ in range(shared)]
        rows(examples, drawn, inputs, outputs, negative=negative, rate=rate, learn=learn)
        examples.clear()

    for number, start, length, entity in links:
        if entity < 0:
            continue
        reach, text = random.reach(window), paragraphs[number]
        around = [
            text[i]
            for i in range(max(0, start - reach), min(len(text), start + length + reach))
            if not start <= i < start + length and keep[text[i]] > 0 and random.kept(keep[text[i]])
        ]
        if around:
            examples.append((entity, around))
        if len(examples) == ROWS:
            train()
    if examples:
        train()


def openings(pages, keep, table, inputs, outputs, *, negative, shared, rate, state, learn=True):
    """Let entities predict the words of openings: (entity, words), a slice of each page at a time."""
    random = Random(state)
    for group in range(0, len(pages), ROWS):
        left = [(entity, list(text)) for entity, text in pages[group : group + ROWS]]
        while any(text for _, text in left):
            examples = []
            for entity, text in left:
                positives = []
                while text and len(positives) < SLICE:
                    word = text.pop(0)
                    if keep[word] > 0 and random.kept(keep[word]):
                        positives.append(word)
                if positives:
                    examples.append((entity, positives))
            if examples:
                drawn = [random.draw(*table) for _ in range(shared)]
                rows(examples, drawn, inputs, outputs, negative=negative, rate=rate, learn=learn)


def links(pages, table, inputs, outputs, *, negative, shared, rate, state):
    """Let pages and what they link to predict each other: (page, targets)."""
    random = Random(state)
    for page, targets in pages:
        wanted = [target for target in targets if target >= 0 and target != page]
        for start in range(0, len(wanted), ROWS):
            some = wanted[start : start + ROWS]
            drawn = [random.draw(*table) for _ in range(shared)]
            examples = [(page, some), *((target, [page]) for target in some)]
            step(examples, drawn, inputs, outputs, negative=negative, rate=rate)
