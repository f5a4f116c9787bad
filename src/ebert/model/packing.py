"""Several sequences in one row of a batch, each of which sees nothing but itself: none is padded to another's length.

Texts of several people differ in length, and padding them to the longest of a batch can cost as much as batching them
saves. Sequences that stand side by side need no padding; attention among them is masked, and each has positions of its
own from the first on.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

ROW = 256  # pieces of a row: attention within it costs little beside the rest, and rows this long pad little


def fill_rows(lengths: Sequence[int], size: int = ROW) -> list[list[int]]:
    """Spread sequences over rows that are about equally long, `size` at most if no sequence is longer."""
    count = max(1, -(-sum(lengths) // max([size, *lengths])))
    rows: list[list[int]] = [[] for _ in range(count)]
    used = [0] * count
    for number in sorted(range(len(lengths)), key=lambda number: (-lengths[number], number)):
        row = min(range(count), key=used.__getitem__)
        rows[row].append(number)
        used[row] += lengths[number]
    return [row for row in rows if row]


def begins(rows: Sequence[Sequence[int]], lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Give, for each sequence, its row and the place in it where it begins."""
    found = {}
    for row, numbers in enumerate(rows):
        start = 0
        for number in numbers:
            found[number] = row, start
            start += lengths[number]
    return [found[number] for number in range(len(lengths))]


def sight(lengths: Sequence[Sequence[int]], width: int) -> Tensor:
    """Tell which pieces (rows) see which (columns), shape (batch, width, width); padding sees itself."""
    sees = torch.zeros((len(lengths), width, width), dtype=torch.bool)
    for row, own in enumerate(lengths):
        start = 0
        for length in (*own, width - sum(own)):
            sees[row, start : start + length, start : start + length] = True
            start += length
    return sees


def additive(sees: Tensor, dtype: torch.dtype) -> Tensor:
    """Make the mask that is added to attention scores, shape (batch, 1, query, key).

    It must be of floats: attention that is not fused adds a boolean one as zeros and ones, without a word.
    """
    mask = torch.zeros(sees.shape, dtype=dtype)
    return mask.masked_fill_(~sees, torch.finfo(dtype).min)[:, None]
