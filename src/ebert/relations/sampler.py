"""The order of the training samples: at random, but with those of like length in a batch."""

from collections.abc import Iterator, Sequence

import torch
from torch.utils.data import Sampler

POOL = 50  # batches whose samples are sorted together: little padding, and still another mixture every epoch


class LengthSampler(Sampler[int]):
    """Gives indices so that consecutive batches of `batch` hold sequences of like length.

    The order depends on the seed and the epoch only, so that a run that goes on later sees what it would have seen.
    """

    def __init__(self, lengths: Sequence[int], *, batch: int, seed: int) -> None:
        self._lengths, self._batch, self._seed = lengths, batch, seed
        self.epoch = 0

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        for batch in self.batches(self.epoch):
            yield from batch

    def batches(self, epoch: int) -> list[list[int]]:
        """Give the batches of an epoch."""
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + epoch)
        order = torch.randperm(len(self._lengths), generator=generator).tolist()
        pool = POOL * self._batch
        groups: list[list[int]] = []
        for start in range(0, len(order), pool):
            alike = sorted(order[start : start + pool], key=lambda index: self._lengths[index])
            groups += [alike[at : at + self._batch] for at in range(0, len(alike), self._batch)]
        # A short batch must be the last one: a data loader cuts the indices every `batch`.
        last = [group for group in groups if len(group) < self._batch]
        full = [group for group in groups if len(group) == self._batch]
        shuffled = torch.randperm(len(full), generator=generator).tolist()
        return [full[index] for index in shuffled] + last


class FixedSampler(Sampler[int]):
    """Gives indices in a fixed order."""

    def __init__(self, order: Sequence[int]) -> None:
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[int]:
        return iter(self._order)
