"""Look up very many titles and surfaces in memory; `Vectors` would ask the catalogue several times for each."""

import re
from collections.abc import Callable

from ebert.text import titles
from ebert.vectors.store import Vectors

_PLAIN = re.compile(r"[!\"$-.0-~]+(?: [!\"$-.0-~]+)*")  # ASCII without sections, addresses and doubled blanks


class TitleRows:
    """Finds the rows of titles and redirects that a store was made with, in the spellings that `Vectors.find` takes."""

    def __init__(self, vectors: Vectors) -> None:
        self._rows: dict[str, int] = {}
        for title, row in vectors.titles():  # titles go before redirects
            self._rows.setdefault(title, row)

    def __call__(self, title: str) -> int:
        """Return the row of a title, or -1."""
        plain = title.replace("_", " ")
        row = self._rows.get(plain)
        if row is not None:
            return row
        # For most missing titles, the only other spelling has the first letter in the other case.
        forms = [plain[0].swapcase() + plain[1:]] if _PLAIN.fullmatch(plain) else titles.spellings(title)
        return next((self._rows[form] for form in forms if form in self._rows), -1)


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
