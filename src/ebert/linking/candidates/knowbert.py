"""KnowBert's candidate table into a store: lines of ``mention TAB frequency TAB id,probability,Title TAB ...``.

The probabilities of a line were put together from several sources and need not add up to one; they become counts by the
frequency. Counts are whole numbers, so those of a rare mention are multiplied, and its occurrences with them: priors
stay right to three digits. The table does not know how often a mention's words stand unlinked. Where the store knows,
its number is kept; elsewhere every occurrence counts as a link, as in KnowBert, whose generator has no threshold.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.linking.candidates.words import known_words
from ebert.vectors.catalogue import Surface
from ebert.vectors.store import Vectors

EXAMPLES = 5
FACTORS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # the smallest will do: spellings are counted together
NEAR = 0.0005  # how far a prior may be off
DIGITS = 12  # of a frequency, at most
MOST = 1000.0  # a "probability" may be several, added up, but not this many
CLOSE = 0.005  # how far a link probability may be off, as a share of it


@dataclass
class TableReport:
    """What became of the lines of a table."""

    mentions: int = 0
    surfaces: int = 0
    candidates: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)  # titles that the store does not have


def surfaces(
    path: str | Path, vectors: Vectors, report: TableReport, *, advance: Advance = silent
) -> Iterator[Surface]:
    """Give the surfaces of a table for `with_surfaces`, all spellings that are the same words together."""
    found: dict[str, dict[int, float]] = {}
    rows: dict[str, int | None] = {}
    for where, mention, frequency, candidates in _lines(Path(path), report, advance):
        surface = " ".join(known_words(mention, vectors.words_of))
        if not surface:
            report.dropped["mentions without words"] += 1
            continue
        report.mentions += 1
        meant = found.setdefault(surface, {})
        for candidate in candidates:
            share, title = _candidate(candidate, where)
            row = _row(title, vectors, rows)
            if row is None:
                report.dropped["candidates that the store does not have"] += 1
                if len(report.examples) < EXAMPLES:
                    report.examples.append(title)
            else:
                meant[row] = meant.get(row, 0.0) + max(1, frequency) * share
    for surface, meant in found.items():
        if not meant:
            report.dropped["surfaces without a candidate"] += 1
            continue
        report.surfaces += 1
        report.candidates += len(meant)
        occurrences, counts = whole(meant, vectors.occurrences(surface))
        yield surface, occurrences, sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def whole(weights: Mapping[int, float], occurrences: int) -> tuple[int, dict[int, int]]:
    """Give weights as whole numbers, and occurrences that fit: all of them are multiplied if rounding tells too much.

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


def _lines(path: Path, report: TableReport, advance: Advance) -> Iterator[tuple[str, str, int, list[str]]]:
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                advance(len(raw))
                where = f"{path.name}, line {number}"
                line = raw.decode("utf-8").rstrip("\r\n")
                if not line.strip():
                    continue
                mention, *rest = line.split("\t")
                if not rest or not rest[0].strip().isdecimal():
                    raise EbertError(f"{where}: no 'mention TAB frequency TAB id,probability,Title ...'")
                if len(rest[0].strip()) > DIGITS:
                    raise EbertError(f"{where}: the frequency has more than {DIGITS} digits; correct or remove it")
                yield where, mention, int(rest[0]), [field for field in rest[1:] if field.strip()]
    except FileNotFoundError:
        raise EbertError(f"there is no table at {path}") from None
    except IsADirectoryError:
        raise EbertError(f"{path} is a folder; give the table in it") from None
    except UnicodeDecodeError as error:
        raise EbertError(f"{path} is not UTF-8 ({error}); convert it") from None
    if report.mentions + report.dropped.total() == 0:
        raise EbertError(f"{path} has no mentions")


def _candidate(given: str, where: str) -> tuple[float, str]:
    number, _, rest = given.partition(",")
    share, comma, title = rest.partition(",")
    try:
        value = float(share)
    except ValueError:
        comma = ""
    if not comma or not title.strip():
        raise EbertError(f"{where}: {given[:60]!r} is not 'id,probability,Title' ({number[:20]!r} read)")
    if not 0 <= value <= MOST:
        raise EbertError(f"{where}: {share!r} in {given[:60]!r} is no probability; correct or remove it")
    return value, title.strip()


def _row(title: str, vectors: Vectors, rows: dict[str, int | None]) -> int | None:
    if title not in rows:
        found = vectors.find(title)
        rows[title] = found.row if found is not None and not found.added else None
    return rows[title]
