"""Texts to try, for the page: what plain BERT guesses from a name, and what an entity changes."""

from ebert.text import Passage
from ebert.vectors.store import Vectors

NAMES = "Names that mislead"
SENSES = "One name, several things"
PAPER = "Actors of the paper"

LANGUAGE = "The native language of [[{}]] is [MASK]."

UNKNOWN = "This model does not know the entity, so all is guessed from the name: teach it, and ask again."

# Those of the first two groups are known to the starter model; a model of all of Wikipedia knows the others too.
EXAMPLES = [
    {"group": group, "text": text, "note": note}
    for group, text, note in (
        (NAMES, LANGUAGE.format("Natalia Lafourcade"), "A singer from Mexico whose surname looks French."),
        (NAMES, LANGUAGE.format("Wim Wenders"), "A German film director with a name that could be Dutch."),
        (NAMES, LANGUAGE.format("Isabelle Adjani"), "A French actress; her surname is Algerian."),
        (NAMES, LANGUAGE.format("Theodor Adorno"), "A philosopher from Frankfurt; Adorno was the name of his mother."),
        (NAMES, LANGUAGE.format("Stanley Kubrick"), "A director from New York with a surname from eastern Europe."),
        (NAMES, LANGUAGE.format("Hector Berlioz"), "A French composer. Hector is a common name in Spanish too."),
        (NAMES, LANGUAGE.format("Jean Marais"), "A French actor with a French name: here guessing works."),
        (SENSES, "[[Birmingham, Alabama|Birmingham]] is a city in [MASK].", "Not the one in England."),
        (SENSES, "[[Jaguar Cars|Jaguar]] is a [MASK].", "The maker of cars."),
        (SENSES, "[[Jaguar]] is a [MASK].", "The cat."),
        (SENSES, "[[Genesis (band)|Genesis]] is a [MASK].", "The band, not the book."),
        (SENSES, "[[Amazon River|Amazon]] is a [MASK].", "The river, not the company."),
        (PAPER, LANGUAGE.format("Daniel Ceccaldi"), "A French actor with a surname that sounds Italian."),
        (PAPER, LANGUAGE.format("Orane Demazis"), "A French actress, born in Algeria."),
        (PAPER, LANGUAGE.format("Sylvia Lopez"), "A French actress with a Spanish surname."),
        (PAPER, LANGUAGE.format("Annick Alane"), "A French actress."),
    )
]


def suited(vectors: Vectors) -> list[dict[str, str]]:
    """Give the examples whose entities a store knows, and those of the paper in any case: they show the guessing."""
    found = []
    for one in EXAMPLES:
        if all(mention.entity in vectors for mention in Passage.parse(one["text"]).mentions):
            found.append(one)
        elif one["group"] == PAPER:
            found.append({**one, "note": f"{one['note']} {UNKNOWN}"})
    return found
