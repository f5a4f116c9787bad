"""KnowBert's candidate table into a store: lines of ``mention TAB frequency TAB id,probability,Title TAB ...``.

The probabilities of a line were put together from several sources and need not add up to one; they become counts by the
frequency. The table does not know how often a mention's words stand unlinked. Where the store knows, its number is
kept; elsewhere every occurrence counts as a link, as in KnowBert, whose generator has no threshold.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ebert.errors import EbertError
from ebert.progress import Advance, silent
from ebert.vectors import Vectors
from ebert.vectors.catalogue import Surface
from ebert.wikipedia.tokens import words_of

EXAMPLES = 5


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
    """Give the surfaces of a table for `retable`, all spellings that are the same words together."""
    found: dict[str, dict[int, int]] = {}
    rows: dict[str, int | None] = {}
    for where, mention, frequency, candidates in _lines(Path(path), report, advance):
        surface = " ".join(words_of(mention, lowercase=vectors.lowercase))
        if not surface:
            report.dropped["mentions without words"] += 1
            continue
        report.mentions += 1
        meant = found.setdefault(surface, {})
        for candidate in candidates:
            number, comma, rest = candidate.partition(",")
            share, comma, title = rest.partition(",")
            try:
                count = max(1, round(frequency * float(share)))
            except ValueError:
                comma = ""
            if not comma or not title.strip():
                raise EbertError(f"{where}: {candidate[:60]!r} is not 'id,probability,Title' ({number[:20]!r} read)")
            row = _row(title.strip(), vectors, rows)
            if row is None:
                report.dropped["candidates that the store does not have"] += 1
                if len(report.examples) < EXAMPLES:
                    report.examples.append(title.strip())
            else:
                meant[row] = meant.get(row, 0) + count
    for surface, meant in found.items():
        if not meant:
            report.dropped["surfaces without a candidate"] += 1
            continue
        report.surfaces += 1
        report.candidates += len(meant)
        pairs = sorted(meant.items(), key=lambda pair: (-pair[1], pair[0]))
        yield surface, max(vectors.occurrences(surface), sum(meant.values())), pairs


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
                if not rest or not rest[0].strip().isdigit():
                    raise EbertError(f"{where}: no 'mention TAB frequency TAB id,probability,Title ...'")
                yield where, mention, int(rest[0]), [field for field in rest[1:] if field.strip()]
    except FileNotFoundError:
        raise EbertError(f"there is no table at {path}") from None
    except UnicodeDecodeError as error:
        raise EbertError(f"{path} is not UTF-8 ({error}); convert it") from None
    if report.mentions + report.dropped.total() == 0:
        raise EbertError(f"{path} has no mentions")


def _row(title: str, vectors: Vectors, rows: dict[str, int | None]) -> int | None:
    if title not in rows:
        found = vectors.find(title)
        rows[title] = found.row if found is not None and not found.added else None
    return rows[title]
