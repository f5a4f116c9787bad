"""Documents to train a linker on, from the links of Wikipedia, so that nobody needs licensed text.

Wikipedia links an entity once or twice in an article. So later mentions of a surface take the entity that it was linked
to before in the same article, and a span that stays unlinked although its words often are a link is left out of the
loss, instead of being taught as nothing. Names of the article's own subject, which are never linked, are left out too.
Held-out documents have the links as Wikipedia has them: thresholds are tuned on them, and epochs chosen.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from ebert.errors import EbertError
from ebert.linking.articles import Article
from ebert.linking.document import Document, Span
from ebert.linking.generator import TableGenerator, is_date
from ebert.linking.resolve import Resolver
from ebert.text import Mention
from ebert.vectors.surfaces import surface_of
from ebert.wikipedia.tokens import words_of
from ebert.wikipedia.wikitext import Anchor

SHORT = 12  # words of a line that is no prose: a heading, an entry of a list
CROWDED = 0.5  # share of a line's letters that are links, in a row of a table
_SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)]*\s+(?=[\"'“‘(]*[A-Z0-9])")


@dataclass(frozen=True, slots=True)
class WikipediaOptions:
    """How articles become documents."""

    words: int = 300  # of a document, about: whole paragraphs from the beginning of the article
    min_links: int = 4  # of a document
    usual: float = 0.1  # link probability from which on an unlinked span is left out of the loss
    later: float = 0.02  # link probability below which a later mention is left out instead of being labelled

    def __post_init__(self) -> None:
        if self.words < 10 or self.min_links < 1:
            raise EbertError("a document needs room for at least 10 words, and at least 1 link")


def documents(
    articles: Iterable[Article],
    generator: TableGenerator,
    resolver: Resolver,
    options: WikipediaOptions,
    *,
    as_linked: bool = False,
) -> Iterator[Document]:
    """Make documents of articles; those with too few links are passed over. `as_linked` takes the links as they are."""
    for article in articles:
        text, anchors = prose(article, options.words)
        document = _linked(article.title, text, anchors, resolver)
        if len(document.gold) >= options.min_links:
            yield document if as_linked else _labelled(document, generator, options)


def prose(article: Article, words: int) -> tuple[str, tuple[Anchor, ...]]:
    """Give the first paragraphs of an article that are prose, and the links in them."""
    lines: list[str] = []
    anchors: list[Anchor] = []
    start = done = length = 0
    links = iter(article.anchors)
    waiting = next(links, None)
    for line in article.text.split("\n"):
        end = start + len(line)
        inside: list[Anchor] = []
        while waiting is not None and waiting.start < end:
            if waiting.start >= start and waiting.end <= end:
                inside.append(waiting)
            waiting = next(links, None)
        size = len(line.split())
        crowded = sum(anchor.end - anchor.start for anchor in inside) > CROWDED * len(line)
        if size >= SHORT and not crowded and " ; " not in line:
            if lines and done + size > words:
                break
            line, size = _cut(line, words) if size > words else (line, size)
            shift = length - start
            kept = (anchor for anchor in inside if anchor.end - start <= len(line))
            anchors += [Anchor(anchor.start + shift, anchor.end + shift, anchor.title) for anchor in kept]
            lines.append(line)
            length += len(line) + 1
            done += size
        start = end + 1
    return "\n".join(lines), tuple(anchors)


def _cut(line: str, words: int) -> tuple[str, int]:
    """Cut a long paragraph behind a sentence, or behind a word where there are no sentences."""
    done = end = 0
    for begin, stop in pairwise([0, *(match.end() for match in _SENTENCE.finditer(line)), len(line)]):
        size = len(line[begin:stop].split())
        if done and done + size > words:
            break
        done, end = done + size, stop
    if done <= words:
        return line[:end].rstrip(), done
    cut = [match.end() for match in re.finditer(r"\S+", line)][words - 1]
    return line[:cut], words


def _linked(title: str, text: str, anchors: Iterable[Anchor], resolver: Resolver) -> Document:
    """Give a document with the links of an article but those to itself and those of dates."""
    own = resolver.same(title)
    gold, ignore, end = [], [], 0
    for anchor in anchors:
        surface = text[anchor.start : anchor.end]
        start = anchor.start + len(surface) - len(surface.lstrip())
        stop = start + len(surface.strip())
        if start < end or start >= stop:
            continue
        entity = resolver.same(anchor.title)
        if entity == own or is_date(words_of(surface)):
            ignore.append((start, stop))
        else:
            gold.append(Mention(start, stop, entity))
        end = stop
    return Document(title, text, tuple(gold), tuple(ignore))


def _labelled(document: Document, generator: TableGenerator, options: WikipediaOptions) -> Document:
    """Label later mentions, and leave out what Wikipedia's way of linking tells nothing about."""
    own = set(words_of(surface_of(document.id))) - _SMALL
    linked = sorted(document.gold, key=lambda mention: mention.start)
    first: dict[str, tuple[int, str]] = {}  # of each surface: where it was linked first, and to what
    for mention in linked:
        first.setdefault(_surface(document.text, mention.start, mention.end), (mention.start, mention.entity))
    taken = bytearray(len(document.text))  # by character
    for mention in document.gold:
        taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
    gold, ignore = list(document.gold), list(document.ignore)
    for span in _longest_first(generator(document)):
        surface = _surface(document.text, span.start, span.end)
        if taken.find(1, span.start, span.end) >= 0:
            continue  # in a link, around one, or in a longer span that was dealt with
        where, entity = first.get(surface, (len(document.text), ""))
        if set(surface.split()) <= own or (entity and (span.start < where or span.sure < options.later)):
            ignore.append((span.start, span.end))
        elif entity:
            gold.append(Mention(span.start, span.end, entity))
        elif span.sure >= options.usual:
            ignore.append((span.start, span.end))
        else:
            continue
        taken[span.start : span.end] = b"\1" * (span.end - span.start)
    return Document(document.id, document.text, tuple(gold), tuple(sorted(set(ignore))))


def _longest_first(spans: Iterable[Span]) -> list[Span]:
    return sorted(spans, key=lambda span: (span.start - span.end, span.start))


def _surface(text: str, start: int, end: int) -> str:
    return " ".join(words_of(text[start:end]))


_SMALL = frozenset(("of", "the", "and", "in", "a", "de", "la", "at", "on", "for", "to"))
