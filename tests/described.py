"""A store with output vectors, for tests of descriptions: words about places and words about music."""

import numpy as np

from ebert import Vectors

TOPICS = {
    "places": ["city", "river", "Danish", "harbour", "Copenhagen"],
    "music": ["album", "band", "guitar", "singer", "song"],
    "common": ["the", "of", "is", "a"],
}
WORDS = [word for words in TOPICS.values() for word in words]
COUNTS = [1000 - 10 * row for row in range(10)] + [60_000, 50_000, 40_000, 30_000]
DIMENSION = 24


def outputs():
    """Output vectors: words of a topic point into a common direction."""
    rng = np.random.default_rng(7)
    middles = {topic: rng.normal(size=DIMENSION) * 1.5 for topic in TOPICS}
    return np.array([middles[topic] + rng.normal(size=DIMENSION) * 0.5 for topic in TOPICS for _ in TOPICS[topic]])


def make_store(path, **options):
    """Make the store; its entities have vectors that predict the words of one topic."""
    learned = outputs()
    middles = learned[:5].mean(axis=0), learned[5:10].mean(axis=0)
    rng = np.random.default_rng(8)
    given = {
        "words": WORDS,
        "word_vectors": rng.normal(size=(len(WORDS), DIMENSION)),
        "word_counts": COUNTS,
        "word_outputs": learned,
        "entities": ["Aarhus", "Odense", "Abbey Road", "Revolver (album)"],
        "entity_vectors": [middles[0], middles[0] + 0.1, middles[1], middles[1] + 0.1],
        "redirects": [("Århus", "Aarhus")],
        "wikidata": [("Aarhus", 25319)],
        "path": path,
    }
    return Vectors.from_arrays(**(given | options))
