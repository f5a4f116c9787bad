"""KnowBert's candidate table: lines of ``mention TAB frequency TAB id,probability,Title TAB ...``.

It can become the mention table of a store, or serve directly as given candidates. For a store, the probabilities of a
line are turned into counts with the frequency; they come from several sources and need not add up to one. Counts are
whole numbers, so those of a rare mention are multiplied, and its occurrences too: priors stay right to three digits.
The table does not know how often a mention's words stand unlinked. Where the store knows, its number is kept; elsewhere
every occurrence counts as a link, as in KnowBert, whose generator has no threshold.
"""

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.linking.candidates.rows import TitleRows, occurrences_of
from ebert.linking.candidates.words import known_words
from ebert.vectors.catalogue import Surface
from ebert.vectors.store import Vectors

EXAMPLES = 5
FACTORS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # the smallest will do: spellings are counted together
NEAR = 0.0005  # how far a prior may be off
DIGITS = 12  # of a frequency, at most
MOST = 1000.0  # a "probability" may be several, added up, but not this many
CLOSE = 0.005  # how far a link probability may be off, as a share of it

Line = tuple[str, str, int, list[tuple[str, float]]]  # location, mention, frequency, titles with their shares


@dataclass
class TableReport:
    """What became of the lines of a table."""

    mentions: int = 0
    surfaces: int = 0
    candidates: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)  # titles that the store does not have


def recognises(line: str) -> bool:
    """Return whether a file that begins with this line is such a table."""
    return re.match(r"[^\t{]+\t\d+\t\d+,", line) is not None


def rows(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lines of a table as given candidates, each with its location."""
    for where, mention, _, found in _lines(io.StringIO(text), name):
        yield where, {"surface": mention, "candidates": found}


def surfaces(
    path: str | Path, vectors: Vectors, report: TableReport, *, advance: Advance = silent
) -> Iterator[Surface]:
    """Yield the surfaces of a table for `with_surfaces`, all spellings that are the same words together."""
    row_of, occurrences_in = TitleRows(vectors), occurrences_of(vectors)
    found: dict[str, dict[int, float]] = {}
    for _, mention, frequency, candidates in _lines(_decoded(Path(path), advance), Path(path).name):
        surface = " ".join(known_words(mention, vectors.words_of))
        if not surface:
            report.dropped["mentions without words"] += 1
            continue
        report.mentions += 1
        meant = found.setdefault(surface, {})
        for title, share in candidates:
            row = row_of(title)
            if row >= 0:
                meant[row] = meant.get(row, 0.0) + max(1, frequency) * share
                continue
            report.dropped["candidates that the store does not have"] += 1
            if len(report.examples) < EXAMPLES:
                report.examples.append(title)
    if report.mentions + report.dropped.total() == 0:
        raise EbertError(f"{path} has no mentions")
    for surface, meant in found.items():
        if not meant:
            report.dropped["surfaces without a candidate"] += 1
            continue
        report.surfaces += 1
        report.candidates += len(meant)
        occurrences, counts = whole(meant, occurrences_in(surface))
        yield surface, occurrences, sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def whole(weights: Mapping[int, float], occurrences: int) -> tuple[int, dict[int, int]]:
    """Return occurrences and weights as whole numbers; multiply all of them if rounding would change too much.

    >>> whole({7: 1.8, 8: 0.2}, 0)
    (10, {7: 9, 8: 1})
    """
    total = sum(weights.values()) or 1.0
    for factor in FACTORS:
        counts = {row: max(1, round(weight * factor)) for row, weight in weights.items()}
        links = sum(counts.values())
        near = all(abs(counts[row] / links - weight / total) <= NEAR for row, weight in weights.items())
        if near and (not occurrences or abs(links / (total * factor) - 1) <= CLOSE):
            break
    return max(occurrences * factor, links), counts


def _decoded(path: Path, advance: Advance) -> Iterator[str]:
    try:
        with path.open("rb") as file:
            for line in file:
                advance(len(line))
                yield line.decode()
    except FileNotFoundError:
        raise EbertError(f"there is no table at {path}") from None
    except IsADirectoryError:
        raise EbertError(f"{path} is a folder; give the table in it") from None
    except UnicodeDecodeError as error:
        raise EbertError(f"{path} is not UTF-8 ({error}); convert it") from None


def _lines(lines: Iterable[str], name: str) -> Iterator[Line]:
    for number, line in enumerate(lines, 1):
        where = f"{name}, line {number}"
        mention, frequency, *rest = (*line.split("\t"), "")
        if not line.strip():
            continue
        if not frequency.strip().isdecimal():
            raise EbertError(f"{where}: no 'mention TAB frequency TAB id,probability,Title ...'")
        if len(frequency.strip()) > DIGITS:
            raise EbertError(f"{where}: the frequency has more than {DIGITS} digits; correct or remove it")
        yield where, mention, int(frequency), [_candidate(one.strip(), where) for one in rest if one.strip()]


def _candidate(given: str, where: str) -> tuple[str, float]:
    _, share, title = (*given.split(",", 2), "", "")[:3]
    try:
        value = float(share)
    except ValueError:
        title = ""
    if not title.strip():
        raise EbertError(f"{where}: {given[:60]!r} is not 'id,probability,Title'")
    if not 0 <= value <= MOST:
        raise EbertError(f"{where}: {share!r} in {given[:60]!r} is no probability; correct or remove it")
    return title.strip(), value
