"""A part: what a worker made of a piece of a dump, words and links by numbers in dictionaries of its own, in one file.

Parts are small corpora. They are written while a build runs, so that a build that was stopped goes on with those it
has; merging puts them together.
"""

import json
import zipfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io import files
from ebert.errors import EbertError

EXAMPLES = 5  # of what was skipped for one reason

Array = NDArray[Any]


class Skipped:
    """What was left out: how often, by reason, and a few examples."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.examples: dict[str, list[str]] = {}

    def note(self, reason: str, example: str, count: int = 1) -> None:
        """Count something."""
        self.counts[reason] = self.counts.get(reason, 0) + count
        kept = self.examples.setdefault(reason, [])
        if example and len(kept) < EXAMPLES and example not in kept:
            kept.append(example)

    def add(self, value: dict[str, Any]) -> None:
        """Count what another counted."""
        for reason, (count, examples) in value.items():
            self.note(reason, "", count)
            for example in examples:
                self.note(reason, example, 0)

    def summary(self) -> str:
        """Say how much was left out for which reason."""
        return ", ".join(f"{self.counts[reason]:,} {reason}" for reason in sorted(self.counts)) or "nothing"

    def value(self) -> dict[str, Any]:
        """Give counts and examples by reason."""
        return {reason: [self.counts[reason], self.examples[reason]] for reason in sorted(self.counts)}


@dataclass
class Part:
    """Pages with their words and links, by numbers in `words` and `titles`."""

    words: Array  # bytes: UTF-8 with a line end behind each word
    titles: Array  # likewise
    tokens: Array
    paragraph_length: Array  # tokens
    page_title: Array
    page_paragraphs: Array  # how many
    page_opening: Array  # tokens
    page_anchors: Array  # how many
    anchor_start: Array  # tokens from the beginning of the part
    anchor_length: Array
    anchor_title: Array
    redirects: Array  # (redirects, 2): from, to
    info: dict[str, Any]  # pages read, skipped by reason, whether any page begins here, what cannot be read
    head: bytes  # the end of a page that began in the part before
    tail: bytes  # the beginning of a page that ends in the part after

    def save(self, path: Path) -> None:
        """Write the part; it is there when it is whole."""
        arrays: dict[str, Any] = vars(self) | {
            "info": _array(json.dumps(self.info, ensure_ascii=False).encode("utf-8", "replace")),
            "head": _array(self.head),
            "tail": _array(self.tail),
        }
        with files.replacing(path, sweep=False) as file:  # the workshop does, once for all parts
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: Path) -> "Part":
        """Read a part."""
        return cls(**_load(path, [field.name for field in fields(cls)]))


def load_ends(path: Path) -> tuple[dict[str, Any], bytes, bytes]:
    """Read what a part says of itself and the fragments at its two ends, and no more."""
    values = _load(path, ["info", "head", "tail"])
    return values["info"], values["head"], values["tail"]


def _load(path: Path, names: list[str]) -> dict[str, Any]:
    try:
        with path.open("rb") as file, np.load(file) as arrays:
            values = {name: arrays[name] for name in names}
        values["info"] = json.loads(values["info"].tobytes())
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise EbertError(f"{path} is damaged ({error}); remove it and run the same command again") from None
    for name in ("head", "tail"):
        values[name] = values[name].tobytes()
    return values


def _array(value: bytes) -> Array:
    return np.frombuffer(value, np.uint8)
