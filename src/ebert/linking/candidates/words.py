"""The words of a text as the mention table has them, and the ways in which they may be spelt there.

The table splits words as BERT does, for which an emoji or a trade mark sign is a letter like any other and a form feed
is nothing. In tweets and in text out of PDF files names touch these all the time, so here they end a word, unless the
table knows it with them (`C♯`, `A★Teens`). What cannot be seen, such as a mark that turns the direction of writing, is
no part of a word at its edges.

News have headlines in capitals, and sentences begin with one; tweets have neither capitals nor apostrophes. A spelling
has a rank: of all spellings that the table knows, those of the best rank count, together.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from ebert.wikipedia.tokens import DEFAULT, WordsOf, in_category, removed, spans_of, words_of

# What no name runs across: a line end, a page end, a semicolon, a bar; a full stop after a word too long for an
# abbreviation. A line end in wrapped text is a blank.
_BREAK = re.compile(r"[\n\r\t\f\v\x85;|]")
_WRAP = re.compile(r" *\r?\n *")
_WRAPPED = range(40, 121)  # characters of a line that is full: in lists they are fewer, in a whole paragraph more
_STOP = re.compile(r"\.\s")
_ABBREVIATION = 4  # letters at most
# What the full stop after it belongs to: letters with full stops between them, and how names of people and firms end.
_SHORT = re.compile(r"(?<!\w)(?:[^\W\d_]\. ?)+[^\W\d_]$|(?<!\w)(?:Jr|Sr|Inc|Ltd|Co|Corp|Bros|Ph\.D)$")
_LAST = 24  # characters that tell whether it is so
_MARKS = re.compile(r"[.!?…]+")
_NOTE = re.compile(r" \([^()]*\)$")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_NEAR, _AROUND = 3, 60  # words before and after one that tell whether it is in a headline, and how far they may be

AS_WRITTEN, LOWERED, RAISED = 0, 1, 2  # ranks of spellings

Place = tuple[int, int]


def places_of(text: str, known: Callable[[str], bool], *, by: str = DEFAULT) -> list[Place]:
    """Return where words begin and end; `known` says whether the table has one that has a sign in it."""
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
    """Return the words of a surface of somebody else's table, as `word_of` returns those of a text."""
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
    """Return whether the words around a place are in capitals too, or there are none, so that capitals mean nothing."""
    before = text[max(0, start - _AROUND) : start].rpartition("\n")[2]
    after = text[end : end + _AROUND].partition("\n")[0]
    near = [*_LETTERS.findall(before)[-_NEAR:], *_LETTERS.findall(after)[:_NEAR]]
    return 2 * sum(word.isupper() for word in near) >= len(near)


def closed(text: str, start: int, end: int, title: str) -> int:
    """Return the end of a name with the mark that belongs to it: of "U.S." always, of "Yahoo!" if its title has it."""
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
    """Return the pattern of a character that vanishes from words."""
    return re.compile(f"[{removed()}]")


@cache
def controls() -> re.Pattern[str]:
    """Return the pattern of control characters but tabs and line ends, which are blanks."""
    return re.compile(f"[{in_category('Cc')}]+")


@cache
def signs() -> re.Pattern[str]:
    """Return the pattern of signs and pictures, which are part of no name as a rule."""
    return re.compile(f"[{in_category('S')}\ufe00-\ufe0f]+")  # the last say how a sign before them is drawn


class Spelling(NamedTuple):
    """A way to spell some words."""

    text: str = ""
    rank: int = AS_WRITTEN


def spell_on(
    before: Sequence[Spelling], word: str, *, lowercase: bool = False, ignore_case: bool = False, headline: bool = True
) -> list[Spelling]:
    """Return the ways to spell some words and one more.

    A word in capitals may be any of "WHO", "Who" and "who", all of the same rank in a headline, which does not tell.
    Elsewhere it is what it is as written, if anything is known of that. The first word may begin with a small letter,
    and a word of one letter may be small, also if nothing is known of it as it is written.
    """
    variants = [(word, AS_WRITTEN)]
    capital = word[:1].upper() + word[1:].lower()
    if not lowercase:
        if len(word) > 1 and word.isupper():
            variants += [(other, AS_WRITTEN if headline else LOWERED) for other in (capital, word.lower())]
        elif word[:1].isupper() and (len(word) == 1 or not any(text for text, _ in before)):
            variants.append((word[0].lower() + word[1:], LOWERED))
        if ignore_case and word[:1].islower():
            variants.append((capital, RAISED))
    spelt: dict[str, int] = {}
    for text, rank in before:
        for variant, cost in variants:
            spelt.setdefault(f"{text} {variant}" if text else variant, max(rank, cost))
    return [Spelling(text, rank) for text, rank in spelt.items()]


def without_genitive(words: str) -> str | None:
    """Return a name that lost the apostrophe of its genitive, as "Marleys" did: to be tried when all else fails."""
    long = len(words) > 4 and words[0].isupper()
    return words[:-1] if long and words[-1] == "s" and words[-2:] != "ss" and not words.isupper() else None
