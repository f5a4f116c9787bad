"""Long documents in chunks: split at the sentence boundary nearest the midpoint, and again, until all are short enough.

The appendix of the paper does so with documents of more than 512 wordpieces. A sentence that is itself too long is
split between words, if possible not inside a name, and a word that is too long between wordpieces.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence

_END = re.compile(r"""(?<![.!?…。！？])[.!?…。！？]++["'”’»)\]]*+\s++(?![a-z])|\n\s*""")


def sentence_starts(text: str) -> list[int]:
    """Find where sentences begin, the first one left out: after an end mark and a blank, and on new lines."""
    return [match.end() for match in _END.finditer(text) if 0 < match.end() < len(text)]


def split(
    offsets: Sequence[tuple[int, int]], boundaries: Sequence[int], most: int, *, inside: Collection[int] = ()
) -> list[tuple[int, int]]:
    """Split wordpieces, given by their characters, into runs of at most `most` pieces.

    `boundaries` are the characters where sentences begin, sorted, and `inside` the pieces that go on with a name: no
    run begins with one if it need not. The runs `(first, stop)` cover all pieces.
    """
    starts = [start for start, _ in offsets]
    sentences = sorted({bisect_left(starts, boundary) for boundary in boundaries})  # as numbers of pieces
    words = [number for number in range(1, len(offsets)) if offsets[number - 1][1] < offsets[number][0]]
    free = [number for number in words if number not in inside]
    runs: list[tuple[int, int]] = []
    waiting = [(0, len(offsets))]
    while waiting:
        first, stop = waiting.pop()
        if stop - first <= most:
            runs.append((first, stop))
            continue
        cuts = (_nearest(places, first, stop) for places in (sentences, free, words))
        cut = next(filter(None, cuts), (first + stop) // 2)
        waiting += [(cut, stop), (first, cut)]  # the earlier one is next
    return runs


def _nearest(places: Sequence[int], first: int, stop: int) -> int | None:
    """Give the place strictly inside a run that is nearest to its midpoint; of two the earlier one."""
    middle = (first + stop) / 2
    after = bisect_left(places, middle)
    near = [place for place in places[max(0, after - 1) : after + 1] if first < place < stop]
    return min(near, key=lambda place: abs(place - middle)) if near else None
