"""Redirects: where they lead when chains are followed, and which lead nowhere."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert.wikipedia.names import Names
from ebert.wikipedia.parts import EXAMPLES, Skipped

Array = NDArray[Any]


class Redirects:
    """Pairs of titles, by number. Of two redirects of one title the first counts."""

    def __init__(self) -> None:
        self._pairs: list[Array] = []

    def add(self, pairs: Array) -> None:
        """Add redirects, shape (redirects, 2)."""
        self._pairs.append(pairs)

    def follow(self, names: Names, has_text: Array, skipped: Skipped) -> Array:
        """Give the title at which one ends that begins at each title: itself, if it is no redirect that counts."""
        source, target = np.concatenate([np.zeros((0, 2), np.int32), *self._pairs]).T
        here = np.arange(len(names), dtype=np.int32)
        leads = here.copy()
        leads[source[::-1]] = target[::-1]
        _note(skipped, "second redirect of one title", names, source[leads[source] != target])
        # What another dump has as text is no redirect.
        _note(skipped, "redirect of a title that has text", names, np.flatnonzero(has_text & (leads != here)))
        leads = np.where(has_text, here, leads)
        # Going two steps at once where there was one doubles the length of chains that are followed to their ends.
        ends, steps = leads, 1
        while steps <= len(source):
            ends, steps = ends[ends], 2 * steps
        circle = leads[ends] != ends
        circle |= (leads == here) & np.isin(here, source) & ~has_text  # a title that redirects to itself
        _note(skipped, "redirect into a circle", names, np.flatnonzero(circle))
        return np.where(circle, here, ends)

    def write(self, path: Path, names: Names, target: Array, exists: Array, skipped: Skipped) -> int:
        """Write the redirects that lead to entities, as `follow` gave them; give how many there are."""
        source = np.flatnonzero(target != np.arange(len(target)))
        _note(skipped, "redirect to a page that is not there", names, source[~exists[target[source]]])
        source = source[exists[target[source]]]
        source = source[names.take(source).by_count(np.zeros(len(source), np.int64))]
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{names[number]}\t{names[target[number]]}\n" for number in source.tolist())
        return len(source)


def _note(skipped: Skipped, reason: str, names: Names, numbers: Array) -> None:
    if len(numbers):
        skipped.note(reason, "", len(numbers))
    for number in numbers[:EXAMPLES].tolist():
        skipped.note(reason, names[number], 0)
