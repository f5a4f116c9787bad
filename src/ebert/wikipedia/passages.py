"""Sentences of a page that mention an entity: an alignment learns from them (`ebert.model.learning`).

Two kinds: sentences of the page's opening that name its subject, by its title, its last word or a pronoun, and
sentences further on that have links. Both are kept as Wikipedia writes them, with case and punctuation, which the words
of a corpus do not have.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

from ebert.wikipedia.wikitext import Anchor, Plain

FILE = "passages.jsonl.gz"  # in the folder of a corpus

SHORTEST, LONGEST = 30, 400  # letters of a sentence
OPENING = 1500  # letters of the first paragraph that are looked at
OPENING_SENTENCES, LINKED_SENTENCES = 6, 8  # of a page at most
CROWDED = 0.5  # share of a sentence's letters that are links, in a list or a row of a table
EARLY = 120  # letters before the subject in the first sentence at most
_SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)]*\s+(?=[\"'“‘(]*[^\W\d_a-z])")
_ABBREVIATION = re.compile(r"\b(?:\w|Dr|Mr|Mrs|Ms|St|Jr|Sr|[A-Z]\.[A-Z]|[Nn]o|vs|ca|etc) ?\.\s*$")
_PRONOUN = re.compile(r"(?:He|She|It|They)\b")  # of English; other languages have the two other ways
_QUALIFIER = re.compile(r"\s*(?:\([^()]*\)|,.*)$")  # "(film)", ", Texas"

Span = tuple[int, int]


def passages(title: str, plain: Plain) -> Iterator[dict[str, Any]]:
    """Yield sentences of a page as JSON objects: the page, the text and its mentions."""
    start = len(plain.text) - len(plain.text.lstrip())
    end = plain.text.find("\n", start)
    end = len(plain.text) if end < 0 else end
    yield from _opening(title, plain, start, end)
    yield from islice(_linked(title, plain, end), LINKED_SENTENCES)


def _opening(title: str, plain: Plain, start: int, end: int) -> Iterator[dict[str, Any]]:
    """Yield the sentences of the first paragraph that name the subject of the page."""
    name = _QUALIFIER.sub("", title)
    spans = sentences(plain.text, start, min(end, start + OPENING))
    for number, (begin, stop) in enumerate(islice(spans, OPENING_SENTENCES)):
        links = _links(plain, begin, stop)
        own = next((link[:2] for link in links if link[2] == title), None)
        own = own or find_subject(plain.text[begin:stop], name, first=number == 0)
        if own and SHORTEST <= stop - begin <= LONGEST:
            others = [link for link in links if link[1] <= own[0] or link[0] >= own[1]]
            yield _passage(title, plain.text[begin:stop], [*others, (*own, title)])


def _linked(title: str, plain: Plain, start: int) -> Iterator[dict[str, Any]]:
    """Yield the sentences after the first paragraph that have links and are not lists."""
    while start < len(plain.text):
        end = plain.text.find("\n", start + 1)
        end = len(plain.text) if end < 0 else end
        if " ; " not in plain.text[start:end]:
            for begin, stop in sentences(plain.text, start, end):
                links = _links(plain, begin, stop)
                linked = sum(last - first for first, last, _ in links)
                if links and linked < CROWDED * (stop - begin) and SHORTEST <= stop - begin <= LONGEST:
                    yield _passage(title, plain.text[begin:stop], links)
        start = end


def find_subject(sentence: str, name: str, *, first: bool) -> Span | None:
    """Return where a sentence names the subject of its page, or None.

    >>> find_subject("William Redmond (born 1955) is a politician.", "Bill Redmond", first=True)
    (0, 15)
    >>> find_subject("He was born in Chicago.", "Bill Redmond", first=False)
    (0, 2)
    """
    start, last = sentence.find(name), name.split()[-1:]
    if start >= 0 and (start < EARLY or not first):
        return start, start + len(name)
    if not first and (pronoun := _PRONOUN.match(sentence)):
        return pronoun.span()
    if not last or last[0] == name:
        return None
    word = re.search(rf"\b{re.escape(last[0])}\b", sentence[: EARLY if first else None])
    if word and first:  # the whole name: "William Redmond" for Bill Redmond
        return (0, word.end()) if re.fullmatch(r"[\w.\-' ]+", sentence[: word.end()]) else None
    return word.span() if word else None


def sentences(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the spans of sentences, without the space around them; abbreviations do not end a sentence."""
    cuts = [match.end() for match in _SENTENCE.finditer(text, start, end)]
    begin = start
    for cut, after in pairwise([*cuts, end, end]):
        if cut < after and _ABBREVIATION.search(text, max(begin, cut - 8), cut):
            continue
        piece = text[begin:cut]
        first, last = begin + len(piece) - len(piece.lstrip()), begin + len(piece.rstrip())
        if first < last:
            yield first, last
        begin = cut


def _links(plain: Plain, start: int, end: int) -> list[tuple[int, int, str]]:
    """Return the links that lie in a stretch of the text, counted from its start."""
    first, last = (bisect_left(plain.anchors, place, key=_start) for place in (start, end))
    inside = (anchor for anchor in plain.anchors[first:last] if anchor.start < anchor.end <= end)
    return [(anchor.start - start, anchor.end - start, anchor.title) for anchor in inside]


def _start(anchor: Anchor) -> int:
    return anchor.start


def _passage(title: str, text: str, mentions: list[tuple[int, int, str]]) -> dict[str, Any]:
    rows = [{"start": start, "end": end, "entity": entity} for start, end, entity in sorted(mentions)]
    return {"page": title, "text": text, "mentions": rows}


def to_lines(title: str, plain: Plain) -> str:
    """Return the passages of a page as JSON lines."""
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in passages(title, plain))
