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
    shorter, budget = passage, longest
    while (over := len(cut_up(shorter)) - longest) > 0:
        if shorter is not passage:
            budget -= over  # what is left was split in another way than before
        shorter = _shorten(passage, keep, pieces, budget)
    return shorter


def _shorten(passage: Passage, keep: Sequence[Range], pieces: Pieces, budget: int) -> Passage:
    units = _units(passage.text, pieces)
    far = [min(max(start - last, first - end, 0) for first, last in keep) for start, end, _ in units]
    fixed = [any(start < last and first < end for first, last in keep) for start, end, _ in units]
    # Pieces of no unit (the first and the last one, entities, slashes) are always there.
    left = budget - len(pieces) + sum(count for (_, _, count), stays in zip(units, fixed, strict=True) if not stays)
    if left < 0:
        raise EbertError("the two mentions alone have more wordpieces than the encoder takes; shorten them")
    edits = []
    for index in sorted(range(len(units)), key=lambda index: (far[index], index)):
        start, end, count = units[index]
        if not fixed[index]:
            left -= count
            if left < 0:  # and nothing further away either, as the text would have holes
                edits.append((start, end, ""))
    return passage.replace_text(sorted(edits))  # blanks stay: they cost no pieces


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
