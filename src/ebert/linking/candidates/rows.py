"""The rows of very many titles: looked up in memory, where `Vectors.find` asks the catalogue several times for each."""

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
