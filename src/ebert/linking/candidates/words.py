"""The words of a text as the mention table has them, and what their capitals tell.

The table splits words as BERT does, which treats an emoji or a trade mark sign as a letter and ignores a form feed. In
tweets and in text from PDF files names often touch such signs. So here the signs end a word, unless the table knows the
word with them (`C♯`, `A★Teens`). Invisible characters, such as a mark that turns the direction of writing, are stripped
from the edges of a word.

Headlines of news are in capitals, and tweets have neither capitals nor apostrophes: there capitals tell nothing.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache

from ebert.wikipedia.tokens import DEFAULT, WordsOf, are_initials, in_category, removed, spans_of, words_of

# What a name cannot run across: a line end, a page end, a semicolon, a bar, or a full stop after a word too long for an
# abbreviation. A line end in wrapped text is a blank.
_BREAK = re.compile(r"[\n\r\t\f\v\x85;|]")
_WRAP = re.compile(r" *\r?\n *")
_WRAPPED = range(40, 121)  # characters of a full line: lines of lists are shorter, whole paragraphs are longer
_STOP = re.compile(r"\.\s")
_ABBREVIATION = 4  # letters at most
# What keeps the full stop after it: letters with full stops between them, and endings of names of people and firms.
_SHORT = re.compile(r"(?<!\w)(?:[^\W\d_]\. ?)+[^\W\d_]$|(?<!\w)(?:Jr|Sr|Inc|Ltd|Co|Corp|Bros|Ph\.D)$")
_LAST = 24  # characters that are enough to decide this
_MARKS = re.compile(r"[.!?…]+")
_NOTE = re.compile(r" \([^()]*\)$")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_END = re.compile(r"[.!?…:\n][\"'“”‘’()\s]*$")
_BEFORE = 12  # characters before a word that are enough to tell whether it begins a sentence
_NEAR, _AROUND = 3, 60  # words before and after one that tell whether it is in a headline, and how far they may be
_CAPITALISED = 0.02  # the least share of capitals among the letters of a text that is written with capitals

Place = tuple[int, int]


def places_of(text: str, known: Callable[[str], bool], *, by: str = DEFAULT) -> list[Place]:
    """Return where words begin and end; `known` says whether the table has a word with a sign in it."""
    if not unseen().search(text) and not signs().search(text):
        return spans_of(text, by=by)
    places: list[Place] = []
    for word in spans_of(text, by=by):
        for place in _split(text, *word, controls()):
            whole = signs().search(text, *place) is None or known(word_of(text, *place))
            places += [place] if whole else _split(text, *place, signs())
    return [_without(lambda one: unseen().match(one) is not None, text, *place) for place in places]


def _split(text: str, start: int, end: int, at: re.Pattern[str]) -> list[Place]:
    edges = [start, *(edge for mark in at.finditer(text, start, end) for edge in mark.span()), end]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [(first, last) for first, last in pairs if words_of(text[first:last])]


def word_of(text: str, start: int, end: int, *, lowercase: bool = False) -> str:
    """Return the word at a place; its accents are part of their letters, as in the table."""
    word = "".join(words_of(text[start:end], lowercase=lowercase))
    return word if word.isascii() else unicodedata.normalize("NFC", word)


def known_words(surface: str, words_of: WordsOf = words_of) -> tuple[str, ...]:
    """Return the words of a surface from another table, as `word_of` returns those of a text."""
    return tuple(unicodedata.normalize("NFC", word) for word in words_of(surface))


def runs(text: str, places: list[Place]) -> list[int]:
    """Return, for each word, the first word after it that a span beginning with it cannot reach."""
    ends = [len(places)] * len(places)
    for number in range(len(places) - 2, -1, -1):
        start, end = places[number]
        gap = text[end : places[number + 1][0]]
        ends[number] = number + 1 if gap != " " and _broken(text, gap, start, end) else ends[number + 1]
    return ends


def _broken(text: str, gap: str, start: int, end: int) -> bool:
    """Return whether a name with the word from `start` to `end` cannot go on after the gap that follows it."""
    if _WRAP.fullmatch(gap):
        return end - text.rfind("\n", 0, start) - 1 not in _WRAPPED
    if _BREAK.search(gap) or (end - start > _ABBREVIATION and _STOP.match(gap)):
        return True
    return not gap.isascii() and signs().search(gap) is not None


def in_headline(text: str, start: int, end: int) -> bool:
    """Return whether capitals mean nothing at a place: the words around it are in capitals too, or there are none."""
    before = text[max(0, start - _AROUND) : start].rpartition("\n")[2]
    after = text[end : end + _AROUND].partition("\n")[0]
    near = [*_LETTERS.findall(before)[-_NEAR:], *_LETTERS.findall(after)[:_NEAR]]
    return 2 * sum(word.isupper() for word in near) >= len(near)


def begins_sentence(text: str, start: int) -> bool:
    """Return whether a sentence begins at a place, where every word has a capital."""
    before = text[max(0, start - _BEFORE) : start]
    return not before.strip() or _END.search(before) is not None


def closed(text: str, start: int, end: int, title: str) -> int:
    """Return the end of a name with its closing mark: always for "U.S.", for "Yahoo!" only if its title has it."""
    marks = _MARKS.match(text, end)
    if marks is None or text[marks.end() : marks.end() + 1].isalnum():  # "U.S" of "U.S.S.R."
        return end
    if marks[0][0] == "." and _SHORT.search(text[max(start, end - _LAST) : end]):
        return end + 1
    name = _NOTE.sub("", title)
    own = _MARKS.search(name, len(name.rstrip(".!?…")))
    last = text[start:end].rpartition(" ")[2].casefold()
    if own and marks[0].startswith(own[0]) and name[: own.start()].casefold().endswith(last):
        return end + len(own[0])
    return end


def bare(text: str, start: int, end: int) -> Place:
    """Return a place without the marks at its edges."""
    return _without(lambda one: not one.isalnum(), text, start, end)


def _without(at_edge: Callable[[str], bool], text: str, start: int, end: int) -> Place:
    """Return a place without some characters at its edges."""
    while start < end and at_edge(text[start]):
        start += 1
    while end > start and at_edge(text[end - 1]):
        end -= 1
    return start, end


@cache
def unseen() -> re.Pattern[str]:
    """Return the pattern of a character that is removed from words."""
    return re.compile(f"[{removed()}]")


@cache
def controls() -> re.Pattern[str]:
    """Return the pattern of control characters except tabs and line ends, which are blanks."""
    return re.compile(f"[{in_category('Cc')}]+")


@cache
def signs() -> re.Pattern[str]:
    """Return the pattern of signs and pictures, which as a rule are not part of a name."""
    return re.compile(f"[{in_category('S')}\ufe00-\ufe0f]+")  # the last ones say how to draw the sign before them


@lru_cache(maxsize=1)  # called for every mention of a text
def has_capitals(text: str) -> bool:
    """Return whether a text is written with capitals, so that they are informative."""
    return sum(map(str.isupper, text)) > _CAPITALISED * (sum(map(str.isalpha, text)) or 1)


def joined(text: str, one: Place, other: Place) -> bool:
    """Return whether two words of a text are written as initials: "U.S." and "U S", but not "I a"."""
    first, last = text[slice(*one)], text[slice(*other)]
    return are_initials(first, last) and ("." in text[one[1] : other[0]] or (first + last).isupper())


def without_genitive(word: str) -> tuple[str, ...]:
    """Return the possible names behind one whose genitive lost its apostrophe ("Marleys"), the likeliest first."""
    long = len(word) > 4 and word[0].isupper() and not word.isupper()
    return (f"{word[:-1]} s", word[:-1]) if long and word[-1] == "s" and word[-2:] != "ss" else ()
