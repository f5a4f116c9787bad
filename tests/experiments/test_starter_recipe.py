"""How the starter is made: what is taken of a store, and that turning its space changes nothing."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from ebert import Vectors
from ebert.model.alignment import Alignment, Correction
from ebert.model.options import AlignmentOptions, AlignmentReport
from ebert.vectors.catalogue import Merge
from ebert.vectors.copies import with_surfaces

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("recipe_starter", ROOT / "experiments" / "starter.py")
recipe = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(recipe)

TITLES = ["Paris", "Apple Inc.", "Rome", "Apple Inc", "Paris Hilton", "Zorblax"]


@pytest.fixture
def store(tmp_path):
    made = Vectors.from_arrays(
        words=["a", "b"], word_vectors=np.eye(2, 6), word_counts=[5, 4],
        entities=TITLES, entity_vectors=np.eye(6), entity_counts=[9, 7, 6, 3, 2, 1],
        redirects=[("Lutetia", "Paris"), ("Apple Computer", "Apple Inc")], wikidata=[("Apple Inc", 312), ("Rome", 220)],
        path=tmp_path / "made",
    )  # fmt: skip
    surfaces = [
        ("Apple", 20, [(1, 4), (3, 3)]), ("Paris", 30, [(0, 9), (4, 1)]), ("Hilton", 8, [(4, 2)]),
    ]  # fmt: skip
    return with_surfaces(made, tmp_path / "store", surfaces, made={}, merged=[Merge(3, 1, "punctuation")])


def test_the_most_linked_and_those_to_keep_are_chosen_but_none_that_was_merged(store, capsys):
    assert recipe.choose(store, 4, ["Zorblax", "Apple Computer", "Nowhere"]).tolist() == [0, 1, 2, 5]
    assert "1 of 3 names to keep are not in" in capsys.readouterr().out


def test_what_was_merged_into_an_entity_comes_with_it(store):
    names = recipe.names(store, np.array([0, 1]), np.array([0, 1, 2]), {}, 1)
    assert (names["words"], names["word_counts"]) == (["a", "b"], [5, 4])
    assert names["entities"] == ["Paris", "Apple Inc.", "Rome"]
    assert names["entity_counts"] == [9, 10, 6]
    assert sorted(names["redirects"]) == [("Apple Computer", 1), ("Apple Inc", 1), ("Lutetia", 0)]
    assert dict(names["wikidata"]) == {1: 312, 2: 220}
    assert sorted(names["surfaces"]) == [("Apple", 20, [(1, 7)]), ("Paris", 30, [(0, 9)])]


def test_an_alignment_projects_turned_vectors_as_it_did():
    random = np.random.default_rng(4)
    matrix = random.normal(size=(50, 6)).astype(np.float32) * [9, 5, 2, 1, 1, 0.1]
    layer = Correction(*(random.normal(size=size).astype(np.float32) for size in ((3, 6), 3, (8, 3))))
    weight, bias = random.normal(size=(8, 6)).astype(np.float32), random.normal(size=8).astype(np.float32)
    alignment = Alignment(weight, bias, 6, 8, AlignmentOptions(), AlignmentReport(pairs=50, r2=0.5), correction=layer)
    turn = recipe.balanced(matrix)
    assert turn.T @ turn == pytest.approx(np.eye(6), abs=1e-5)
    turned = recipe.turned(alignment, turn)
    assert turned.project(matrix @ turn) == pytest.approx(alignment.project(matrix), abs=1e-3)
    assert not np.allclose(turned.project(matrix), alignment.project(matrix), atol=0.1)


def test_groups_have_equal_shares():
    """The two largest axes are in different groups."""
    scales = np.array([8, 4, 2, 1, 1, 1, 0.5, 0.25])
    turned = np.diag(scales) @ recipe.balanced(np.diag(scales).astype(np.float32))
    shares = (turned**2).sum(axis=0).reshape(2, 4).prod(axis=1)
    assert max(shares) / min(shares) <= 4  # and 2^18 in the order of their sizes


def test_names_in_our_pages_are_taken_along():
    assert {"Jean Marais", "Natalia Lafourcade"} <= set(recipe.named())
