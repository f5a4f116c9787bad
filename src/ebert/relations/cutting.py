"""Sentences longer than the encoder, cut around their mentions and never through one."""

from collections.abc import Callable, Sequence

from ebert.errors import EbertError
from ebert.model.sequence import Pieces
from ebert.text import Passage

LONG_WORD = 16  # pieces: what has more between two blanks is no word but a text without blanks
Range = tuple[int, int]


def cut(passage: Passage, keep: Sequence[Range], cut_up: Callable[[Passage], Pieces], longest: int) -> Passage:
    """Shorten a passage to `longest` pieces: the characters of `keep` stay, and of the others the nearest to them."""
    pieces = cut_up(passage)
    budget = longest
    shorter = passage
    while len(cut_up(shorter)) > longest:
        if budget < 1:
            raise EbertError(f"the two mentions alone have more wordpieces than the encoder takes ({longest:,})")
        shorter = _shorten(passage, keep, pieces, budget)
        budget -= max(1, len(cut_up(shorter)) - longest)  # what was cut may be split in another way than before
    return shorter


def _shorten(passage: Passage, keep: Sequence[Range], pieces: Pieces, budget: int) -> Passage:
    units = _units(passage.text, pieces)
    distance = [min(max(start - end, first - last, 0) for first, last in keep) for start, end, _ in units]
    # Pieces that belong to no unit (markers of the sequence, entities, slashes) are always there.
    left = budget - (len(pieces) - sum(count for _, _, count in units))
    kept: set[int] = set()
    for index in sorted(range(len(units)), key=lambda index: (distance[index], index)):
        left -= units[index][2]
        if left < 0 and not _touches(units[index][:2], keep):
            break
        kept.add(index)
    edits = [(start, end, "") for i, (start, end, _) in enumerate(units) if i not in kept]
    return passage.replace_text(edits)  # blanks stay: they cost no pieces


def _units(text: str, pieces: Pieces) -> list[tuple[int, int, int]]:
    """Give the words between blanks, `(start, end, pieces)`; long ones are given piece by piece."""
    words: list[list[Range]] = []
    for place, (start, end) in enumerate(pieces.spans):
        if start == end or place in pieces.entities:
            continue
        if words and not any(letter.isspace() for letter in text[words[-1][-1][1] : start]):
            words[-1].append((start, end))
        else:
            words.append([(start, end)])
    units: list[tuple[int, int, int]] = []
    for word in words:
        if len(word) > LONG_WORD:
            units += [(start, end, 1) for start, end in word]
        else:
            units.append((word[0][0], word[-1][1], len(word)))
    return units


def _touches(unit: Range, keep: Sequence[Range]) -> bool:
    return any(unit[0] < end and start < unit[1] for start, end in keep)
