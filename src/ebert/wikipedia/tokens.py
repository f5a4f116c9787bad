"""Words of running text, split as BERT splits them before it makes wordpieces, without the punctuation marks.

Blanks, punctuation and CJK characters end a word, each CJK character is a word of its own, and control characters are
removed, which joins their two sides. So every word here is what BERT's wordpiece tokeniser sees.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise

from ebert.errors import EbertError

CJK = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF), (0x2F800, 0x2FA1F),
)  # fmt: skip
_ASCII_MARKS = "!-/:-@\\[-`{-~"  # among them $ + < = > ^ ` | ~, which Unicode does not call punctuation
_BLANKS = " \t\n\r"
_INITIALS = re.compile(r"(?<!\S)([^\W\d_]) (?=\w(?!\S))")  # a letter before another one or a digit
_EMPTIED = re.compile(r"^ +| +(?= |$)", re.MULTILINE)
# Beyond these two planes are only letters (most of them CJK), tags and private characters.
_SCANNED = 0x20000
_FAR_REMOVED = "\U000e0001\U000e0020-\U000e007f\U000f0000-\U000ffffd\U00100000-\U0010fffd"


@dataclass(frozen=True)
class Tokeniser:
    """Finds the words of a text. One for another language is an entry in `TOKENISERS` below.

    `alone` are ranges of characters that are words of their own. `cut` divides a run of letters into words, for
    languages that put no blanks between them; without it the compiled scanner of `ebert.wikipedia.names` is used.
    """

    name: str
    alone: tuple[tuple[int, int], ...] = CJK
    cut: Callable[[str], Sequence[str]] | None = None  # its results, joined, are what it was given

    def words(self, text: str, *, lowercase: bool = False) -> list[str]:
        """Return the words of a text."""
        if lowercase:
            text = lower(text)
        word, removed = _patterns(self.alone, text.isascii())
        words = word.findall(text)
        if self.cut:
            words = [piece for run in words for piece in self.cut(run)]
        if removed.search(text):
            return [kept for one in words if (kept := removed.sub("", one))]
        return words

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the words of a text begin and end. A removed character may be inside a span."""
        word, removed = _patterns(self.alone, text.isascii())
        spans = [match.span() for match in word.finditer(text)]
        if self.cut:
            lengths = [(start, [0, *map(len, self.cut(text[start:end]))]) for start, end in spans]
            ends = [[start + length for length in accumulate(parts)] for start, parts in lengths]
            spans = [span for places in ends for span in pairwise(places)]
        if removed.search(text):
            return [(start, end) for start, end in spans if removed.sub("", text[start:end])]
        return spans


WordsOf = Callable[[str], list[str]]  # a tokeniser that also knows whether words are in lower case
DEFAULT = "bert"  # of corpora and stores that do not name one
TOKENISERS = {one.name: one for one in (Tokeniser(DEFAULT),)}


def tokeniser(name: str = DEFAULT) -> Tokeniser:
    """Return a tokeniser by its name, as a corpus and a store record it."""
    if name not in TOKENISERS:
        raise EbertError(f"there is no tokeniser {name!r}; this version of ebert has {', '.join(TOKENISERS)}")
    return TOKENISERS[name]


def words_of(text: str, *, lowercase: bool = False, by: str = DEFAULT) -> list[str]:
    """Return the words of a text, by the tokeniser of that name.

    >>> words_of("Jean Marais' film (1946), \\u4e2d\\u56fd.")
    ['Jean', 'Marais', 'film', '1946', '中', '国']
    """
    return tokeniser(by).words(text, lowercase=lowercase)


def spans_of(text: str, *, by: str = DEFAULT) -> list[tuple[int, int]]:
    """Return where the words of a text begin and end, by the tokeniser of that name."""
    return tokeniser(by).spans(text)


def lower(text: str) -> str:
    """Take the accents off and lower the case, as uncased models do."""
    if text.isascii():
        return text.lower()
    bare = _accents().sub("", unicodedata.normalize("NFD", text))
    return bare.replace("Σ", "σ").lower()  # at the end of a word too, where Python would write ς


def surface_key(surface: str) -> str:
    """Return what all spellings of a surface have in common: no accents, no capitals, initials in one word.

    It is empty if the surface has no letters. Surfaces in lines of their own give keys in lines of their own.

    >>> surface_key("Zürich"), surface_key("U S Navy"), surface_key("US navy")
    ('zurich', 'us navy', 'us navy')
    """
    key = lower(surface)
    if not surface.isascii():
        key = _EMPTIED.sub("", key)  # what a word of nothing but accents leaves
    return _INITIALS.sub(r"\1", key)


def are_initials(one: str, other: str) -> bool:
    """Return whether two words that follow each other are one word in a key, as the "U" and the "S" of "U.S."."""
    return len(one) == len(other) == 1 and one.isalnum() and not one.isdecimal() and other.isalnum()


@cache
def _accents() -> re.Pattern[str]:
    return re.compile(f"[{in_category('Mn')}\U000e0100-\U000e01ef]+")


@cache
def _patterns(alone: tuple[tuple[int, int], ...], ascii_only: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns for a word, with removed characters in it, and for a removed character.

    For plain English a small set of characters does, which is faster.
    """
    if ascii_only:
        ends = f"{_BLANKS}{_ASCII_MARKS}"
        return re.compile(f"[^{ends}]+"), re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]")
    single = "".join(f"{chr(first)}-{chr(last)}" for first, last in alone)
    return re.compile(f"[^{word_ends()}{single}]+|[{single}]"), re.compile(f"[{removed()}]")


def word_ends() -> str:
    """Return the characters that end a word and are not part of one, as the inside of a regular expression's set."""
    return f"{_BLANKS}{in_category('Z')}{_ASCII_MARKS}{in_category('P')}"


def removed() -> str:
    """Return the characters that are removed from words. Unassigned ones stay: later Unicode may make them letters."""
    return "".join(map(in_category, ("Cc", "Cf", "Co", "Cs"))) + "\ufffd" + _FAR_REMOVED


@cache
def in_category(category: str) -> str:
    """Return the characters of a general category, except tabs and line ends, as the inside of a set."""
    ranges: list[list[int]] = []
    for code in range(_SCANNED):
        letter = chr(code)
        if unicodedata.category(letter).startswith(category) and letter not in _BLANKS:
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)
