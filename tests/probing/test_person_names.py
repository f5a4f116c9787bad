"""The person-name filter, with the examples of the paper's Table 2 and the real BERT."""

import pytest

from ebert.probing import filters
from ebert.probing.questions import Question


def question(relation, subject, answer):
    return Question(f"{relation}/{subject}", relation, f"{subject} [MASK]", (answer,), subject)


def check(asked, guesses, **how):
    return filters.check_names([asked], guesses, **how)[asked.id]


def test_what_is_asked_depends_on_the_relation():
    asked = [question("P19", "Anna Rossi", "Rome"), question("P1412", "Anna  Bo", "x"), question("P36", "Peru", "Lima")]
    keys = filters.all_name_parts(asked)
    assert keys == [("Anna", "city"), ("Anna", "language"), ("Bo", "language"), ("Rossi", "city")]
    assert filters.name_question(keys[0]) == "Anna is a common name in the following city: [MASK]."
    assert {filters.KINDS[r] for r in ("P20", "place_of_birth", "place_of_death")} == {"city"}
    assert (filters.KINDS["P27"], filters.KINDS["P103"]) == ("country", "language")


def test_any_part_of_the_name_drops_a_question():
    guesses = {
        ("Anna", "language"): ["English", "Dutch", "Danish"],
        ("Rossi", "language"): ["Latin", "Italian", "Greek"],
    }
    found = check(question("P103", "Anna Rossi", "Italian"), guesses)
    assert (found.parts, found.dropped) == ((None, 2), True)
    found = check(question("P103", "Anna Rossi", "italian"), guesses)
    assert (found.parts, found.dropped) == ((None, None), False)
    assert check(question("P36", "Peru", "Lima"), guesses).parts == ()


def test_an_encoder_without_capitals_guesses_in_small_letters():
    guesses = {("Anna", "language"): ["dutch"], ("Rossi", "language"): ["latin", "greek", "italian"]}
    asked = question("P103", "Anna Rossi", "Italian")
    assert not check(asked, guesses).dropped
    assert check(asked, guesses, lower=True).parts == (None, 3)


@pytest.mark.real
@pytest.mark.parametrize(
    ("relation", "subject", "answer", "parts"),
    [
        ("P1412", "Fulvio Tomizza", "Italian", (1, 1)),
        ("P103", "Tommy Nilsson", "Swedish", (None, 1)),
        ("P27", "Harumi Inoue", "Japan", (1, None)),
        ("P103", "Daniel Ceccaldi", "French", (None, None)),
    ],
)
def test_names_of_the_paper(bert, relation, subject, answer, parts):
    asked = question(relation, subject, answer)
    assert check(asked, next(filters.guess_names(bert, filters.name_parts(asked)))).parts == parts
