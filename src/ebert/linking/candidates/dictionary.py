"""A dictionary of names from outside: lines ``mention TAB Title_with_underscores TAB score``, plain or in gzip.

The score is the probability that the mention means the title. Compiled code reads the tens of millions of lines, many
of them scraped from web pages, block by block. It drops lines whose title the store does not have, then mentions that
are not names in running text. It counts what it drops, by reason.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io.compressed import limit, open_measured, too_much
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.linking.candidates.rows import TitleRows
from ebert.vectors.store import Vectors
from ebert.wikipedia.mentions import LONGEST
from ebert.wikipedia.names import NameList, Numbering, jit, scan
from ebert.wikipedia.tokens import lower, tokeniser

EXAMPLES = 5
BLOCK = 1 << 25  # bytes of lines that are worked on at a time
FEW = 0.01  # the least share of the smaller one's titles that store and dictionary must have in common
JUDGED = 1000  # lines or titles needed to tell what a file is

TAB, RETURN = ord("\t"), ord("\r")
LAYOUT = "'mention TAB Title_with_underscores TAB score'"
BROKEN = f"lines that are not {LAYOUT}"
EMPTY = "lines without a mention"
NO_SCORE = "scores that are no probability"
UNKNOWN = "lines with titles that the store does not have"
SCRIPTS = "mentions in another script than the title"
# What a mention in lower case contains if it is not a name. Plain letters at the beginning of a pattern make it fast.
BOILERPLATE: dict[str, tuple[bytes, ...]] = {
    "addresses of web pages": (rb"://", rb"www\.", rb"%[0-9a-f][0-9a-f]", rb"\.(?:com|org|net|html?|php)/", rb"_"),
    "headings of web pages": (
        rb"wikip", rb"\bwiki\b", rb"free encyclop", rb"\byago:", rb"\bdbpedia", rb"\bfreebase", rb" - the free ",
        rb"(?m)^[a-z][a-z][a-z]?:", rb"(?m)^(?:category|file|image|template|portal|talk|user|special|help):",
        rb"click here", rb"read more", rb"(?m)^(?:see|more on|more about|search for|images? of|images for|show) ",
    ),
    "mentions that are cut off": (rb"\.\.\.", "…".encode()),
    "mentions with a note in brackets": (rb"(?m)\)$", rb"(?m)\]$"),
}  # fmt: skip
# Letters that are not Latin, as UTF-8: Greek to Thaana, Indic and other scripts of Asia, CJK; not signs and marks.
_OTHER = re.compile(rb"[\xce-\xdf\xe0\xe3-\xed]|\xe1[^\xb4-\xbb]|\xcd[\xb0-\xbf]|\xef[\xac-\xbe]")

Array = NDArray[Any]


@dataclass
class DictionaryReport:
    """What became of the lines of a dictionary."""

    lines: int = 0
    titles: int = 0
    known: int = 0  # titles that the store has
    mentions: int = 0  # lines that are used
    dropped: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)  # titles that the store does not have


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Mentions whose titles a store has, as words."""

    words: NameList  # the given ones, then new ones
    tokens: Array  # numbers of the words of all mentions, concatenated
    lengths: Array  # (mentions) number of words of each
    rows: Array  # (mentions) row of the entity
    scores: Array  # (mentions) probability that the mention means the entity

    def sure(self, least: float, *, but: Collection[str] = ()) -> Iterator[tuple[str, int, float]]:
        """Yield the mentions that mean an entity with at least this score, except some: words, its row, the score."""
        starts = np.cumsum(self.lengths) - self.lengths
        for place in np.flatnonzero(self.scores >= least).tolist():
            words = self.tokens[starts[place] : starts[place] + self.lengths[place]].tolist()
            name = " ".join(map(self.words.__getitem__, words))
            if name not in but:
                yield name, int(self.rows[place]), float(self.scores[place])


def read(
    path: str | Path, vectors: Vectors, words: NameList, report: DictionaryReport, *, advance: Advance = silent
) -> Dictionary:
    """Read a dictionary. Its words get their numbers in `words`; new words get the next numbers.

    Raise `EbertError` if the file is damaged, has another layout, or is in another language than the store.
    """
    reader = _DictionaryReader(Path(path), vectors, words, report)
    parts = [reader.take(block) for block in _blocks(Path(path), advance)]
    reader.check()
    tokens, lengths, rows, scores = (np.concatenate(part) for part in zip(*parts, strict=True))
    report.mentions = len(rows)
    return Dictionary(reader.words.names, tokens, lengths, rows, scores)


class _DictionaryReader:
    """Reads block after block."""

    def __init__(self, path: Path, vectors: Vectors, words: NameList, report: DictionaryReport) -> None:
        self.path, self.vectors, self.report = path, vectors, report
        self.words, self.titles = Numbering(), Numbering()
        self.words.add(words.data)
        self._row_of = TitleRows(vectors)
        self._rows, self._foreign = np.zeros(0, np.int64), np.zeros(0, bool)  # (titles)

    def take(self, block: bytes) -> tuple[Array, Array, Array, Array]:
        """Return the usable part of some lines: tokens, and lengths, rows and scores of the mentions."""
        dropped = self.report.dropped
        data = np.frombuffer(block, np.uint8)
        lines = NameList.of(block)
        starts, first, second = lines.starts, np.empty(len(lines), np.int64), np.empty(len(lines), np.int64)
        scores = np.empty(len(lines), np.float64)
        _fields(data, starts, lines.ends, first, second, scores)
        whole = first >= 0
        if not self.report.lines and 2 * np.count_nonzero(whole[:JUDGED]) < len(whole[:JUDGED]):
            line = int(np.argmin(whole)) + 1
            raise EbertError(
                f"{self.path} is not a dictionary of names: line {line} is not {LAYOUT}, nor are most of the others"
            )
        self.report.lines += len(lines)
        dropped[BROKEN] += int(np.count_nonzero(first == -1))
        dropped[EMPTY] += int(np.count_nonzero(first == -2))
        right = whole & (scores > 0) & (scores <= 1)
        dropped[NO_SCORE] += int(np.count_nonzero(whole & ~right))
        kept = np.flatnonzero(right)
        title = self._numbers(NameList.cut(data, first[kept] + 1, second[kept]))
        rows = self._rows[title]
        dropped[UNKNOWN] += int(np.count_nonzero(rows < 0))
        kept, title, rows = kept[rows >= 0], title[rows >= 0], rows[rows >= 0]
        mentions = NameList.cut(data, starts[kept], first[kept])
        clean = self._clean(mentions, self._foreign[title])
        tokens, lengths, used = self._words(mentions.take(clean))
        kept, rows = kept[clean][used], rows[clean][used]
        return tokens, lengths, rows.astype(np.int32), scores[kept]

    def check(self) -> None:
        """Raise `EbertError` if nothing was read, or if it is in another language than the store."""
        report = self.report
        if not report.lines:
            raise EbertError(f"{self.path} is empty; it should have lines {LAYOUT}")
        report.titles, report.known = len(self.titles), len(np.unique(self._rows[self._rows >= 0]))
        smaller = min(report.titles, len(self.vectors))
        if not report.known or (report.titles >= JUDGED and report.known < FEW * smaller):
            names = ", ".join(report.examples)
            raise EbertError(
                f"{self.path} is not for this store: of its {report.titles:,} titles the store has {report.known:,} "
                f"(not {names}, for example). Is it in another language, or does its second column have other "
                f"names than Wikipedia titles?"
            )

    def _numbers(self, titles: NameList) -> Array:
        """Return the numbers of titles, and look up the new ones."""
        before = len(self.titles)
        numbers = self.titles.add(titles.data)
        names = self.titles.names
        begin = int(names.ends[before - 1]) + 1 if before else 0
        new = names.data[begin:].tobytes()
        written = new.decode("utf-8", "replace").split("\n")[:-1]
        rows = np.fromiter(map(self._row_of, written), np.int64, len(written))
        self._rows = np.concatenate([self._rows, rows])
        self._foreign = np.concatenate([self._foreign, _having(NameList.of(new), new, _OTHER)])
        if len(self.report.examples) < EXAMPLES:
            missing = [written[place] for place in np.flatnonzero(rows < 0)[:EXAMPLES]]
            self.report.examples = [*self.report.examples, *missing][:EXAMPLES]
        return numbers

    def _clean(self, mentions: NameList, foreign: Array) -> Array:
        """Return the places of the mentions that may be names in running text."""
        text = mentions.data.tobytes()
        small = text.lower()
        good = np.ones(len(mentions), bool)
        found = {reason: [_having(mentions, small, one) for one in marks] for reason, marks in _PATTERNS.items()}
        found[SCRIPTS] = [_having(mentions, text, _OTHER) & ~foreign]
        for reason, which in found.items():
            bad = good & np.logical_or.reduce(which)
            self.report.dropped[reason] += int(np.count_nonzero(bad))
            good &= ~bad
        return np.flatnonzero(good)

    def _words(self, mentions: NameList) -> tuple[Array, Array, Array]:
        """Return the words of mentions, how many each has, and the places of mentions with some, not too many."""
        text = mentions.data.tobytes().decode("utf-8", "replace")
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        if self.vectors.lowercase:
            text = lower(text)
        found = scan(text, tokeniser(self.vectors.tokeniser))
        line = np.searchsorted(found.lines, found.start)  # (tokens)
        lengths = np.bincount(line, minlength=len(mentions))
        used = (lengths > 0) & (lengths <= LONGEST)
        self.report.dropped["mentions without words"] += int(np.count_nonzero(lengths == 0))
        self.report.dropped[f"mentions of more than {LONGEST} words"] += int(np.count_nonzero(lengths > LONGEST))
        numbers = self.words.add(found.words.data)
        return numbers[found.tokens][used[line]], lengths[used].astype(np.int32), np.flatnonzero(used)


_PATTERNS = {reason: tuple(map(re.compile, marks)) for reason, marks in BOILERPLATE.items()}


def _having(names: NameList, text: bytes, pattern: re.Pattern[bytes]) -> Array:
    """Return which names a pattern matches; `text` is their letters."""
    places = np.fromiter((match.start() for match in pattern.finditer(text)), np.int64)
    found = np.zeros(len(names), bool)
    found[np.searchsorted(names.ends, places)] = True
    return found


def _blocks(path: Path, advance: Advance) -> Iterator[bytes]:
    """Yield the lines of a file in large blocks."""
    if path.is_dir():
        raise EbertError(f"{path} is a folder; give the dictionary in it")
    rest = b""
    with open_measured(path) as opened:
        while block := opened.stream.read(BLOCK):
            opened.report(advance)
            lines, end, after = (rest + block).rpartition(b"\n")
            if len(after) > limit():
                raise too_much(f"a line of {path}", limit())
            rest = after
            if end:
                yield lines + end
    if rest:
        yield rest + b"\n"


@jit
def _fields(data: Array, starts: Array, ends: Array, first: Array, second: Array, scores: Array) -> None:
    """Find the two tabs of each line and read the score: -1 if there are not two tabs, -2 if there is no mention."""
    for line in range(len(ends)):
        tabs = 0
        first[line] = second[line] = -1
        for place in range(starts[line], ends[line]):
            if data[place] == TAB:
                if tabs == 0:
                    first[line] = place
                elif tabs == 1:
                    second[line] = place
                tabs += 1
        if tabs != 2 or second[line] == first[line] + 1 or first[line] == starts[line]:
            first[line] = -2 if tabs == 2 and first[line] == starts[line] else -1
            continue
        end = ends[line]
        if data[end - 1] == RETURN:
            end -= 1
        scores[line] = _number(data, second[line] + 1, end)


@jit
def _number(data: Array, start: int, end: int) -> float:
    """Read a number such as 0.97, 1 or 2.5E-4; return -1 for anything else."""
    value, digits, divided, place = 0.0, 0, 1.0, start
    point = False
    while place < end and data[place] != 69 and data[place] != 101:  # E, e
        if data[place] == 46 and not point:  # .
            point = True
        elif 48 <= data[place] <= 57:  # digits
            value = value * 10.0 + (data[place] - 48)
            digits += 1
            if point:
                divided *= 10.0
        else:
            return -1.0
        place += 1
    if digits == 0 or digits > 18:
        return -1.0
    power, sign = 0, 1
    if place < end:
        place += 1
        if place < end and data[place] in (43, 45):  # + -
            sign = -1 if data[place] == 45 else 1
            place += 1
        if place == end or end - place > 3:
            return -1.0
        while place < end:
            if not 48 <= data[place] <= 57:
                return -1.0
            power = power * 10 + (data[place] - 48)
            place += 1
    return value / divided * 10.0 ** (sign * power)
