"""Wikitext to running text with anchors: what a reader of the page sees in its paragraphs, and where the links are.

Templates, tables, references, files and headings are not part of it; lists are, an entry a paragraph. A line is a
paragraph: what MediaWiki would join to one paragraph is two here, if somebody broke the line in between.
"""

import re
from typing import NamedTuple

from ebert.wikipedia.frames import CLOSE, HEADING, OPEN
from ebert.wikipedia.reader import Reader
from ebert.wikipedia.site import ENGLISH, Site, decode

_BLANKS = re.compile("  +")
_LOOSE = re.compile(rf"{OPEN}[\s{CLOSE}]|{CLOSE}(?<=\s{CLOSE})")  # an anchor with blanks at its edges, or with nothing


class Anchor(NamedTuple):
    """A link in the text: the characters `start` to `end` name the page `title`."""

    start: int
    end: int
    title: str


class Plain(NamedTuple):
    """The running text of a page, a paragraph a line; `text[:opening]` is what stands before the first heading."""

    text: str
    anchors: list[Anchor]
    opening: int


def to_plain(source: str, site: Site = ENGLISH) -> Plain:
    """Give the running text of a page and the links in it. Broken markup is read as well as can be; nothing raises.

    >>> to_plain("'''Jean Marais''' was a [[France|French]] [[actor]]s.{{citation needed}}").text
    'Jean Marais was a French actors.'
    """
    for mark in (OPEN, CLOSE, HEADING, "\r"):
        if mark in source:
            source = source.replace(mark, " ")
    reader = Reader(source, site)
    reader.read()
    return _finish("".join(reader.written.pieces), reader.written.titles)


def _finish(text: str, titles: list[str]) -> Plain:
    """Tidy the blanks and take the marks out."""
    if "&" in text:
        text = decode(text)
    for blank in ("\t", "\xa0"):
        if blank in text:
            text = text.replace(blank, " ")
    if _LOOSE.search(text):
        text, titles = _tighten(text, titles)
    if "  " in text:
        text = _BLANKS.sub(" ", text)
    before, _, after = text.partition(HEADING)
    opening = _lines(before)
    text = "\n".join(filter(None, (opening, _lines(after))))
    parts = text.replace(CLOSE, OPEN).split(OPEN)  # between anchors, in an anchor, between anchors, ...
    anchors = []
    position = 0
    for before, surface, title in zip(parts[:-1:2], parts[1::2], titles, strict=True):
        start = position + len(before)
        position = start + len(surface)
        anchors.append(Anchor(start, position, title))
    return Plain("".join(parts), anchors, len(opening) - 2 * opening.count(OPEN))


def _tighten(text: str, titles: list[str]) -> tuple[str, list[str]]:
    """Put the blanks at the edges of anchors outside, and forget anchors that have no words, as [[Paris|&nbsp;]]."""
    before, *anchors = text.split(OPEN)
    pieces, filled = [before], []
    for anchor, title in zip(anchors, titles, strict=True):
        words, _, after = anchor.partition(CLOSE)
        left, right = words[:1].isspace(), words[-1:].isspace()
        if words := words.strip():
            pieces += [" " * left, OPEN, words, CLOSE]
            filled.append(title)
        pieces += [" " * right, after]
    return "".join(pieces), filled


def _lines(text: str) -> str:
    return "\n".join(filter(None, map(str.strip, text.split("\n"))))
