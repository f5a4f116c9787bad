"""A small Wikipedia of walks from city to city as a dump, and a small BERT that knows its words."""

import random
import sys
from pathlib import Path

import encoders

sys.path.append(str(Path(__file__).parent / "wikipedia"))
from dump_files import Page, multistream

PEOPLE = ["Marie Curie", "Maria Montessori", "Niels Bohr", "Albert Einstein"]
CITIES = ["Paris", "Warsaw", "Rome", "Berlin", "Vienna", "Zürich"]
COUNTRIES = ["France", "Poland", "Italy", "Germany", "Austria", "Switzerland"]
OTHERS = ["Paris, Texas", "Paris Hilton", "University of Paris"]
RARE = "Vienna Prater"
FILLER = (
    "a after and as before by city early first for from he his in it its later left long many moved near of on "
    "returned river she studied teacher that the then to town travelled was went where winter with work years ."
)
WORDS = FILLER.split()
# Words that stand in a sentence now and then, as a BERT is asked for when W is learned.
THINGS = [
    one + other
    for one in ("river", "stone", "wood", "moon", "sun", "rain")
    for other in ("gate", "hill", "field", "song", "bird", "light", "yard", "boat", "house", "tree")
]


def write_dump(path: Path, walks: int) -> None:
    """Write a dump: walks of people, and pages of few words about the others."""
    chance = random.Random(0)
    pages = [Page(title, f"'''{title}''' is a page.") for title in [*PEOPLE, *CITIES, *COUNTRIES, *OTHERS, RARE]]
    pages.append(Page("Madame Curie", "#REDIRECT [[Marie Curie]]", redirect="Marie Curie"))
    for number in range(walks):
        city, other = chance.sample(range(len(CITIES)), 2)
        far = "[[Paris, Texas|Paris]]" if number % 9 == 0 else f"[[{RARE}]]"
        filler = " ".join(chance.choices(WORDS[:-1], k=30))
        text = (
            f"In early winter [[{chance.choice(PEOPLE)}]] left [[{CITIES[city]}]] in [[{COUNTRIES[city]}]] and went "
            f"to [[{CITIES[other]}]] in [[{COUNTRIES[other]}]] , where it was long {filler} . Many years later "
            f"[[Madame Curie]] travelled by the river from {far} to the [[University of Paris]] ."
        )
        after = f"She returned to [[{CITIES[city]}]] in winter and studied near the {chance.choice(THINGS)} ."
        pages.append(Page(f"Walk {number}", f"{text}\n\n{after}"))  # short enough to learn W from
    path.write_bytes(multistream(pages, 50))


def write_bert(folder: Path) -> str:
    """Write a BERT with random weights that is wide enough for whole documents, and return its folder."""
    names = " ".join([*PEOPLE, *CITIES, *COUNTRIES, *OTHERS]).replace(",", "").split()
    letters = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789,'")
    pieces = [*encoders.SPECIAL, "/", "*", *WORDS, *THINGS, *names, *letters]
    return encoders.write_small(folder, [*pieces, *(f"##{one}" for one in letters)], longest=512, spread=0.2)
