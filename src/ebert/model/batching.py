"""Batches within a budget of tokens, over any iterable, with results in order.

Sequences of similar length are padded to the longest of their batch. Sequences of mixed lengths may share rows: each
sees only itself and has its own positions, so none is padded to another's length.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import accumulate, islice
from typing import TypeVar

import torch
from torch import Tensor

Result = TypeVar("Result")
Item = TypeVar("Item")
Cut = TypeVar("Cut", bound=Sized)

WINDOW = 1024  # passages looked at together: enough to sort by length, few enough to stream
# Tokens in a batch, padding included. Larger ones leave the caches of a CPU (4096: a tenth slower, 8192: half), and
# smaller ones leave a GPU idle.
BUDGETS = {"cpu": 1024}
BUDGET = 16384
ROW = 256  # pieces of a row: attention within it costs little beside the rest, and rows this long pad little


def budget_on(device: str) -> int:
    """Return the budget of tokens that suits a kind of device."""
    return BUDGETS.get(device, BUDGET)


def windows(items: Iterable[Item], size: int = WINDOW) -> Iterator[list[Item]]:
    """Cut an iterable into lists."""
    iterator = iter(items)
    while window := list(islice(iterator, size)):
        yield window


def plan(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group indices by length, so that no group needs more than `budget` tokens when padded to its longest.

    A sequence longer than the budget is a group of its own.
    """
    order = sorted(range(len(lengths)), key=lambda index: (lengths[index], index))
    groups: list[list[int]] = []
    for index in order:
        if groups and (len(groups[-1]) + 1) * lengths[index] <= budget:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def in_order(sequences: Sequence[Cut], budget: int, run: Callable[[list[Cut]], Sequence[Result]]) -> list[Result]:
    """Run batches of similar length and return the results in the order of the sequences."""
    results: dict[int, Result] = {}
    for group in plan(list(map(len, sequences)), budget):
        results.update(zip(group, run([sequences[index] for index in group]), strict=True))
    return [results[index] for index in range(len(sequences))]


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
    """Return, for each sequence, its row and the place in it where it begins."""
    found = {}
    for row, numbers in enumerate(rows):
        starts = accumulate((lengths[number] for number in numbers), initial=0)
        found.update({number: (row, start) for number, start in zip(numbers, starts, strict=False)})
    return [found[number] for number in range(len(lengths))]


def sight(lengths: Sequence[Sequence[int]], width: int) -> Tensor:
    """Return which pieces (rows) see which (columns), shape (batch, width, width); padding sees itself."""
    # Which sequence of its row a piece belongs to, shape (batch, width); padding is the last.
    owner = torch.stack([torch.repeat_interleave(torch.tensor([*own, width - sum(own)])) for own in lengths])
    return owner[:, :, None] == owner[:, None]


def additive(sees: Tensor, dtype: torch.dtype) -> Tensor:
    """Make the attention mask that is added to attention scores, shape (batch, 1, query, key).

    It must be of floats: attention that is not fused silently adds a boolean mask as zeros and ones.
    """
    mask = torch.zeros(sees.shape, dtype=dtype)
    return mask.masked_fill_(~sees, torch.finfo(dtype).min)[:, None]
