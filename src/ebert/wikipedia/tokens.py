"""Words of running text, split as BERT splits them before it makes wordpieces, without the punctuation marks.

Blanks, punctuation and CJK characters end a word, each CJK character is a word of its own, and control characters
vanish, joining what stood on their two sides. So every word here is what BERT's wordpiece tokeniser gets to see.
"""

import re
import unicodedata
from functools import cache
from typing import NamedTuple

CJK = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF), (0x2F800, 0x2FA1F),
)  # fmt: skip
_ASCII_MARKS = "!-/:-@\\[-`{-~"  # among them $ + < = > ^ ` | ~, which Unicode does not call punctuation
_BLANKS = " \t\n\r"
# Beyond these two planes are only letters (most of them CJK), tags and private characters.
_SCANNED = 0x20000
_FAR_REMOVED = "\U000e0001\U000e0020-\U000e007f\U000f0000-\U000ffffd\U00100000-\U0010fffd"


class _Patterns(NamedTuple):
    word: re.Pattern[str]  # with removed characters in it
    removed: re.Pattern[str]


def words_of(text: str, *, lowercase: bool = False) -> list[str]:
    """Give the words of a text.

    >>> words_of("Jean Marais' film (1946), \\u4e2d\\u56fd.")
    ['Jean', 'Marais', 'film', '1946', '中', '国']
    """
    if lowercase:
        text = lower(text)
    patterns = _patterns(text.isascii())
    words = patterns.word.findall(text)
    if patterns.removed.search(text):
        return [kept for word in words if (kept := patterns.removed.sub("", word))]
    return words


def spans_of(text: str) -> list[tuple[int, int]]:
    """Give where the words of a text begin and end. A removed character may be inside a span."""
    patterns = _patterns(text.isascii())
    spans = [match.span() for match in patterns.word.finditer(text)]
    if patterns.removed.search(text):
        return [(start, end) for start, end in spans if patterns.removed.sub("", text[start:end])]
    return spans


def lower(text: str) -> str:
    """Take the accents off and lower the case, as uncased models do."""
    if text.isascii():
        return text.lower()
    bare = _accents().sub("", unicodedata.normalize("NFD", text))
    return bare.replace("Σ", "σ").lower()  # at the end of a word too, where Python would write ς


@cache
def _accents() -> re.Pattern[str]:
    return re.compile(f"[{in_category('Mn')}\U000e0100-\U000e01ef]+")


@cache
def _patterns(ascii_only: bool) -> _Patterns:
    """Compile the patterns: for plain English a small set of characters does, which is faster."""
    if ascii_only:
        ends = f"{_BLANKS}{_ASCII_MARKS}"
        return _Patterns(re.compile(f"[^{ends}]+"), re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]"))
    cjk = "".join(f"{chr(first)}-{chr(last)}" for first, last in CJK)
    return _Patterns(re.compile(f"[^{word_ends()}{cjk}]+|[{cjk}]"), re.compile(f"[{removed()}]"))


def word_ends() -> str:
    """Give the characters that end a word and are none, as the inside of a set in a regular expression."""
    return f"{_BLANKS}{in_category('Z')}{_ASCII_MARKS}{in_category('P')}"


def removed() -> str:
    """Give the characters that vanish from words. Unassigned ones stay: a later Unicode may make them letters."""
    return "".join(map(in_category, ("Cc", "Cf", "Co", "Cs"))) + "\ufffd" + _FAR_REMOVED


@cache
def in_category(category: str) -> str:
    """Give the characters of a general category but tabs and line ends, as the inside of a set."""
    ranges: list[list[int]] = []
    for code in range(_SCANNED):
        letter = chr(code)
        if unicodedata.category(letter).startswith(category) and letter not in _BLANKS:
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)
