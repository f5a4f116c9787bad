"""A small world for linking: a store with a mention table, written by hand, about the paper's own example."""

import numpy as np

from ebert.vectors.store import Vectors
from ebert.vectors.writer import writing

TEXT = "Adams and Platt are both injured and will miss England's opening World Cup qualifier."

ENTITIES = [
    "Tony Adams (footballer)", "John Adams", "Adams County, Mississippi", "David Platt (footballer)", "Platt (Florida)",
    "England", "England national football team", "1998 FIFA World Cup", "FIFA World Cup", "Qualifier", "Al-Qaeda",
    "University of London", "London", "NATO", "Nirvana (band)", "Physics", "McDonald's", "Anglo-Saxons", "Cairo",
    "Injury",
]  # fmt: skip
WORDS = ["and", "are", "both", "injured", "of", "the", "opening", "qualifier", "will", "miss", "physics"]
COUNTS = [3_000_000, 900, 80, 30, 2_000_000, 5_000_000, 60, 50, 70, 60, 100]
# surface: how often its words stand in the text; what they mean how often
TABLE = {
    "Adams": (100, {"Tony Adams (footballer)": 6, "John Adams": 3, "Adams County, Mississippi": 1}),
    "Platt": (20, {"David Platt (footballer)": 3, "Platt (Florida)": 1}),
    "England": (1000, {"England": 240, "England national football team": 60}),
    "World Cup": (200, {"FIFA World Cup": 60, "1998 FIFA World Cup": 40}),
    "World Cup qualifier": (10, {"Qualifier": 1}),
    "opening": (1000, {"Qualifier": 1}),
    "al Qaeda": (50, {"Al-Qaeda": 20}),
    "University of London": (30, {"University of London": 15}),
    "London": (400, {"London": 100}),
    "NATO": (90, {"NATO": 45}),
    "Nirvana": (10, {"Nirvana (band)": 5}),
    "physics": (100, {"Physics": 20}),
    "McDonald s": (10, {"McDonald's": 8}),
    "Anglo Saxon": (10, {"Anglo-Saxons": 5}),
    "Cairo": (40, {"Cairo": 10}),
    "injured": (1000, {"Injury": 10}),
}


REDIRECTS = [("Tony Alexander Adams", "Tony Adams (footballer)")]
WIKIDATA = [("England", 21), ("London", 84)]


def write_store(path, *, table=TABLE, entities=ENTITIES, redirects=REDIRECTS, wikidata=WIKIDATA, lowercase=False):
    """Write the store and open it."""
    random = np.random.default_rng(0)
    rows = {title: row for row, title in enumerate(entities)}
    with writing(path, dimension=4) as writer:
        writer.add("words", WORDS, random.normal(size=(len(WORDS), 4)), counts=COUNTS)
        writer.add("entities", entities, random.normal(size=(len(entities), 4)), counts=[9] * len(entities))
        writer.redirects(redirects)
        writer.wikidata(wikidata)
        writer.surfaces(
            (surface, occurrences, sorted(((rows[t], n) for t, n in meant.items()), key=lambda pair: -pair[1]))
            for surface, (occurrences, meant) in table.items()
        )
        writer.finish(licence="none", made={"lowercase": lowercase})
    return Vectors.open(path)
