"""The same document in another style, so that a linker meets headlines and tweets when it is trained.

Labels stay: what a name means does not depend on how it is written.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import accumulate

from ebert.linking.document import Document
from ebert.text.passage import Mention

_MARK = re.compile(r"[^\w\s]")
_FIRST = re.compile(r".*?[.!?](?=\s)|.*", re.DOTALL)


def lower_case(document: Document) -> Document:
    """Return a document without capitals."""
    return replace(document, text=_cased(document.text, str.lower))


def headline(document: Document) -> Document:
    """Return a document whose first sentence is in capitals."""
    end = _FIRST.match(document.text).end()  # type: ignore[union-attr]
    return replace(document, text=_cased(document.text[:end], str.upper) + document.text[end:])


def bare(document: Document) -> Document:
    """Return a document without capitals and punctuation."""
    text = _cased(document.text, str.lower)
    kept = [not _MARK.match(letter) for letter in text]
    moved = [0, *accumulate(kept)]  # of each place of the text, where it is now
    gold = [replace(m, start=moved[m.start], end=moved[m.end]) for m in document.gold if moved[m.start] < moved[m.end]]
    ignore = [(moved[start], moved[end]) for start, end in document.ignore if moved[start] < moved[end]]
    sentences = sorted({moved[start] for start in document.sentences})
    text = "".join(letter for letter, stays in zip(text, kept, strict=True) if stays)
    return Document(document.id, text, _trimmed(text, gold), tuple(ignore), tuple(sentences))


STYLES: tuple[Callable[[Document], Document], ...] = (lower_case, bare, headline)


def in_styles(documents: Iterable[Document], share: float, seed: int) -> Iterator[Document]:
    """Yield documents, a share of them in another style; which ones depends on their ids and the seed only."""
    for document in documents:
        rng = random.Random(f"{seed}/{document.id}")  # noqa: S311 - no secret
        yield rng.choice(STYLES)(document) if rng.random() < share else document


def _cased(text: str, change: Callable[[str], str]) -> str:
    """Return a text with other letters, as long as it was."""
    changed = change(text)
    if len(changed) == len(text):
        return changed
    return "".join(other if len(other := change(letter)) == 1 else letter for letter in text)


def _trimmed(text: str, mentions: Iterable[Mention]) -> tuple[Mention, ...]:
    """Return mentions without the blanks that marks at their edges left behind."""
    found = []
    for mention in mentions:
        words = text[mention.start : mention.end]
        start = mention.start + len(words) - len(words.lstrip())
        found.append(replace(mention, start=start, end=start + len(words.strip())))
    return tuple(found)
