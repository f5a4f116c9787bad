"""Merge parts into a corpus, in memory that is bounded by the dictionaries, not by the text."""

import gzip
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ebert._io.progress import Advance, silent
from ebert.wikipedia.build_part import EXAMPLES, CorpusPart, Skipped
from ebert.wikipedia.corpus import ARRAYS, ENTITIES, REDIRECTS, WORDS, array_writer, write_array
from ebert.wikipedia.names import NameList, Numbering
from ebert.wikipedia.passages import FILE as PASSAGES

Array = NDArray[Any]
PACKING = 5  # level of gzip: a higher one takes twice the time for a twentieth of the size


def merge(paths: list[Path], folder: Path, skipped: Skipped, advance: Advance = silent) -> dict[str, Any]:
    """Put parts together, in the given order: dictionaries first, then the text with the new numbers.

    Return the size of everything, under the names of `CorpusInfo`.
    """
    words, titles = _Counted(), _Counted()
    redirects = [np.zeros((0, 2), np.int32)]  # pairs of titles, by number
    has_text = np.zeros(0, bool)  # of each title
    with tempfile.TemporaryFile(dir=folder) as numbers:  # of the names of each part, too many for memory
        for path in paths:
            part = CorpusPart.load(path)
            np.save(numbers, words.add(part.words, part.tokens))
            np.save(numbers, title := titles.add(part.titles, part.anchor_title))
            has_text = _longer(has_text, len(titles.numbering))
            has_text[title[part.page_title]] = True
            redirects.append(title[part.redirects])
            skipped.add(part.info["skipped"])
            advance(1)
        word = _write_words(folder, words)
        names, has_text = titles.numbering.names, has_text[: len(titles.numbering)]
        target = _follow(np.concatenate(redirects), names, has_text, skipped)
        place, entities, written = _write_entities(folder, names, titles.counts, target, has_text, skipped)
        numbers.seek(0)
        counts = _write_text(paths, folder, numbers, word, place[target], advance)
    return counts | {"vocabulary": len(word), "entities": entities, "redirects": written}


class _Counted:
    """Names that are numbered and counted."""

    def __init__(self) -> None:
        self.numbering, self.counts = Numbering(), np.zeros(0, np.int64)

    def add(self, lines: Array, uses: Array) -> Array:
        """Return the numbers of the names of a part, and count how often it uses them."""
        numbers = self.numbering.add(lines)
        self.counts = _longer(self.counts, len(self.numbering))
        self.counts[numbers] += np.bincount(uses, minlength=len(numbers))
        return numbers


def _write_words(folder: Path, words: _Counted) -> Array:
    """Write the dictionary of words; return the new number of each word of the parts."""
    names, counts = words.numbering.names, words.counts[: len(words.numbering)]
    order = names.by_count(counts)
    names.take(order).write(folder / WORDS)
    write_array(folder, "word_counts", counts[order])
    return _inverse(order, len(order))


def _follow(redirects: Array, names: NameList, has_text: Array, skipped: Skipped) -> Array:
    """Return the title where the redirects from each title end: the title itself if no redirect counts.

    Redirects are pairs of titles, by number. Of two redirects of one title the first counts.
    """
    source, target = redirects.T
    here = np.arange(len(names), dtype=np.int32)
    leads = here.copy()
    leads[source[::-1]] = target[::-1]
    _note(skipped, "second redirect of one title", names, source[leads[source] != target])
    # A page with text in another dump is not a redirect.
    _note(skipped, "redirect of a title that has text", names, np.flatnonzero(has_text & (leads != here)))
    leads = np.where(has_text, here, leads)
    # Each pass doubles the steps, and so the length of chains that are followed to their ends.
    ends, steps = leads, 1
    while steps <= len(source):
        ends, steps = ends[ends], 2 * steps
    circle = leads[ends] != ends
    circle |= (leads == here) & np.isin(here, source) & ~has_text  # a title that redirects to itself
    _note(skipped, "redirect into a circle", names, np.flatnonzero(circle))
    return np.where(circle, here, ends)


def _write_entities(
    folder: Path, names: NameList, links: Array, target: Array, has_text: Array, skipped: Skipped
) -> tuple[Array, int, int]:
    """Write entities and the redirects that lead to them.

    Return the entity of each title (-1: none), and the numbers of entities and redirects.
    """
    counts = np.zeros(len(names), np.int64)
    np.add.at(counts, target, links[: len(names)])
    exists = has_text | (counts > 0)
    kept = np.flatnonzero(exists)
    order = kept[names.take(kept).by_count(counts[kept])]
    names.take(order).write(folder / ENTITIES)
    write_array(folder, "entity_counts", counts[order])
    source = np.flatnonzero(target != np.arange(len(target)))
    _note(skipped, "redirect to a page that is not there", names, source[~exists[target[source]]])
    source = source[exists[target[source]]]
    source = source[names.take(source).by_count(np.zeros(len(source), np.int64))]
    with (folder / REDIRECTS).open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{names[number]}\t{names[target[number]]}\n" for number in source.tolist())
    return _inverse(order, len(names)), len(order), len(source)


def _note(skipped: Skipped, reason: str, names: NameList, numbers: Array) -> None:
    if len(numbers):
        skipped.note(reason, *(names[number] for number in numbers[:EXAMPLES].tolist()), count=len(numbers))


def _write_text(
    paths: list[Path], folder: Path, numbers: IO[bytes], word_of: Array, entity_of: Array, advance: Advance
) -> dict[str, int]:
    """Write text and links; `word_of` and `entity_of` map the words and titles of the parts to their new numbers."""
    names = [name for name in ARRAYS if name.startswith(("tokens", "paragraphs", "page_", "anchor_"))]
    with ExitStack() as opened:
        out = {name: opened.enter_context(array_writer(folder, name)) for name in names}
        # The same bytes each time: without a date.
        packed = opened.enter_context(gzip.GzipFile(folder / PASSAGES, "wb", PACKING, mtime=0))
        pages = tokens = paragraphs = anchors = 0
        for name in ("paragraphs", "page_paragraphs", "page_anchors"):
            out[name](np.zeros(1, np.int64))
        for path in paths:
            part = CorpusPart.load(path)
            word = word_of[np.load(numbers)]  # (words of the part)
            entity = entity_of[np.load(numbers)]  # (titles of the part)
            out["tokens"](word[part.tokens])
            out["paragraphs"](tokens + np.cumsum(part.paragraph_length, dtype=np.int64))
            out["page_entity"](entity[part.page_title])
            out["page_paragraphs"](paragraphs + np.cumsum(part.page_paragraphs, dtype=np.int64))
            out["page_opening"](part.page_opening)
            out["page_anchors"](anchors + np.cumsum(part.page_anchors, dtype=np.int64))
            out["anchor_start"](tokens + part.anchor_start.astype(np.int64))
            out["anchor_length"](part.anchor_length)
            out["anchor_entity"](entity[part.anchor_title])
            pages += len(part.page_title)
            tokens += len(part.tokens)
            paragraphs += len(part.paragraph_length)
            anchors += len(part.anchor_title)
            packed.write(part.passages.data)
            advance(1)
    return {"pages": pages, "words": tokens, "links": anchors}


def _longer(array: Array, needed: int) -> Array:
    """Return an array with room for so many values; new ones are zero."""
    if needed <= len(array):
        return array
    return np.concatenate([array, np.zeros(max(needed, len(array) * 3 // 2) - len(array), array.dtype)])


def _inverse(order: Array, length: int) -> Array:
    """Return the place of each number in an order, -1 for missing ones."""
    inverse = np.full(length, -1, np.int32)
    inverse[order] = np.arange(len(order), dtype=np.int32)
    return inverse
