"""The ways in which the words of a text may be spelt in the mention table.

News have headlines in capitals, and sentences begin with one; tweets have neither capitals nor apostrophes. A way to
spell has a rank: of all ways that the table knows, those of the best rank count, together.
"""

from collections.abc import Iterable
from typing import NamedTuple

AS_WRITTEN, LOWERED, RAISED = 0, 1, 2


class Spelling(NamedTuple):
    """A way to spell some words."""

    text: str = ""
    rank: int = AS_WRITTEN

    @property
    def bold(self) -> bool:
        """Whether capitals were made up."""
        return self.rank == RAISED


def beginnings(
    before: Iterable[Spelling], word: str, *, lowercase: bool = False, ignore_case: bool = False, headline: bool = True
) -> list[Spelling]:
    """Give the ways to spell some words and one more.

    A word in capitals may be any of "WHO", "Who" and "who", all of the same rank in a headline, which does not tell.
    Elsewhere it is what it is as written, if anything is known of that. The first word may begin with a small letter,
    and a word of one letter may be small, also if nothing is known of it as it is written.
    """
    spelt: dict[str, int] = {}
    for text, rank in before:
        first = not text
        start = f"{text} " if text else ""
        for variant, cost in _variants(word, first, lowercase, ignore_case, headline):
            spelt.setdefault(start + variant, max(rank, cost))
    return [Spelling(text, rank) for text, rank in spelt.items()]


def unspelt(words: str) -> str | None:
    """Give a name that lost the apostrophe of its genitive, as "Marleys" did: only to be tried when all else fails."""
    long = len(words) > 4 and words[0].isupper()
    return words[:-1] if long and words[-1] == "s" and words[-2:] != "ss" and not words.isupper() else None


def _variants(word: str, first: bool, lowercase: bool, ignore_case: bool, headline: bool) -> list[tuple[str, int]]:
    variants = [(word, AS_WRITTEN)]
    if lowercase:
        return variants
    if len(word) > 1 and word.isupper():
        variants += [(other, AS_WRITTEN if headline else LOWERED) for other in (_capital(word), word.lower())]
    elif (first or len(word) == 1) and word[:1].isupper():
        variants.append((word[0].lower() + word[1:], LOWERED))
    if ignore_case and word[:1].islower():
        variants.append((_capital(word), RAISED))
    return variants


def _capital(word: str) -> str:
    return word[0].upper() + word[1:].lower()
