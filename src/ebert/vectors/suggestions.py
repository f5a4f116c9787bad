"""The titles closest to one that is not there: cheap searches for candidates, then a comparison letter by letter."""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from ebert.text import letters
from ebert.vectors.catalogue import Names

CANDIDATES = 400  # looked at for each way of missing a title
WORDS, LETTERS = 8, 100  # of a title that are searched for
CLOSE = 0.4  # the least likeness of a title worth showing

_WORD = re.compile(r"[^\W_]+")


def candidates(names: Names, title: str, most: int = CANDIDATES) -> list[str]:
    """Give titles that share words or a beginning with `title`, in no order; `most` of each kind."""
    found: dict[str, None] = {}
    for match in _searches(words(title)):
        found.update(dict.fromkeys(names.search(match, most)))
    for length in range(min(len(title), LETTERS), 1, -1):  # a slip of the pen later on in the title
        titles = names.beginning(title[:length], most)
        found.update(dict.fromkeys(titles))
        if len(titles) == most:
            break
    return list(found)


def words(title: str) -> list[str]:
    """Give the words of a title, those that are searched for."""
    return _WORD.findall(title)[:WORDS]


def closest(wanted: str, titles: Iterable[str], count: int) -> list[str]:
    """Return the titles most like the wanted one, the most alike first.

    Last come those that look like others (`letters.oddity`), unless the wanted one does so too.
    """
    odd = letters.oddity(wanted) is not None
    compare = difflib.SequenceMatcher(b=wanted.casefold(), autojunk=False)

    def likeness(title: str) -> float:
        compare.set_seq1(title.casefold())
        return compare.ratio() if compare.quick_ratio() > CLOSE else 0.0

    scores = {title: score for title in titles if (score := likeness(title)) > CLOSE}
    order = sorted(scores, key=lambda title: (not odd and letters.oddity(title) is not None, -scores[title], title))
    return order[:count]


def _searches(words: Sequence[str]) -> Iterator[str]:
    """Give queries for the ways in which a few words are written wrongly. Quoted, a word is never an operator."""
    quoted = [f'"{word}"' for word in words]
    if words:
        yield " ".join(quoted)  # all are right: their order, case, accents or punctuation are not
    if len(words) > 1:
        for index in range(len(words)):  # all but one
            yield " ".join(quoted[:index] + quoted[index + 1 :])
    # All go wrong after their beginnings. Beginnings of one or two letters would match half of Wikipedia.
    if starts := [f'"{word[:3]}"*' for word in words if len(word) > 3]:
        yield " ".join(starts)
