"""Very many titles and surfaces looked up in memory, where `Vectors` asks the catalogue several times for each."""

from collections.abc import Callable

from ebert.text import titles
from ebert.vectors.store import Vectors


class TitleRows:
    """Finds the rows of titles and redirects that a store was made with, in the spellings that `Vectors.find` takes."""

    def __init__(self, vectors: Vectors) -> None:
        self._rows: dict[str, int] = {}
        for title, row in vectors.titles():  # titles go before redirects
            self._rows.setdefault(title, row)

    def __call__(self, title: str) -> int:
        """Return the row of a title, or -1."""
        row = self._rows.get(title.replace("_", " "))
        if row is None:
            row = next((self._rows[form] for form in titles.spellings(title) if form in self._rows), -1)
        return row


def occurrences_of(vectors: Vectors) -> Callable[[str], int]:
    """Return a function that says how often some words stand in the text that a store was made from."""
    query = "SELECT surface, occurrences FROM surfaces WHERE surface > ? ORDER BY surface"
    known = dict(vectors.catalogue.pages(query, ""))

    def occurrences(surface: str) -> int:
        found = known.get(surface)
        if found is None:  # nobody linked it; of single words the count is known
            found = 0 if " " in surface else vectors.word_count(surface) or 0
        return found

    return occurrences
