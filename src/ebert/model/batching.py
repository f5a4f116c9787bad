"""Batches of sequences of like length within a budget of tokens, streaming over any iterable, results in order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from ebert.model.sequence import Pieces

Result = TypeVar("Result")
Item = TypeVar("Item")

WINDOW = 1024  # passages looked at together: enough to sort by length, few enough to stream
# Tokens in a batch, padding included. Larger ones leave the caches of a CPU (4096: a tenth slower, 8192: half), and
# smaller ones leave a GPU idle.
BUDGETS = {"cpu": 1024}
BUDGET = 16384


def budget_on(device: str) -> int:
    """Give the budget of tokens that suits a kind of device."""
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


def in_order(sequences: Sequence[Pieces], budget: int, run: Callable[[list[Pieces]], Sequence[Result]]) -> list[Result]:
    """Run batches of like length and give the results in the order of the sequences."""
    results: dict[int, Result] = {}
    for group in plan([len(pieces) for pieces in sequences], budget):
        results.update(zip(group, run([sequences[index] for index in group]), strict=True))
    return [results[index] for index in range(len(sequences))]
