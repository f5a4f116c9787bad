"""A small store that most tests share the shape of."""

import numpy as np
import pytest

from ebert import Vectors

TITLES = ["Jean Marais", "Paris", "Paris (mythology)", "AC/DC", "100% (album)", "C Sharp", "IPhone", "Beyoncé", "ß"]
WORDS = ["paris", "french", "Paris", "New York"]
DIMENSION = 6


@pytest.fixture
def make(tmp_path):
    """Make a store of the titles above, in a folder."""

    def made(name="store", **options):
        rng = np.random.default_rng(1)
        given = {
            "words": WORDS,
            "word_vectors": rng.standard_normal((len(WORDS), DIMENSION)),
            "word_counts": [10, 20, 30, None],
            "entities": TITLES,
            "entity_vectors": rng.standard_normal((len(TITLES), DIMENSION)),
            "redirects": [("Marais, Jean", "Jean Marais"), ("Paname", "Paris"), ("Beyonce", "Beyoncé")],
            "wikidata": [("Jean Marais", 168359), ("Paris", 90)],
            "path": tmp_path / name,
        }
        return Vectors.from_arrays(**(given | options))

    return made


@pytest.fixture
def store(make):
    with make() as vectors:
        yield vectors
