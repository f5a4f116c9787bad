"""Passages that an alignment learns from: sentences with mentions, from a corpus or from your own file."""

import hashlib
import random
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebert._io import files, records
from ebert._io.compressed import open_measured
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.text.passage import Mention, Passage
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors
from ebert.wikipedia.passages import FILE

SPARE = 4  # passages looked at for each that is used: not every title has a vector
CHUNK = 4096  # passages whose titles are looked up together


@dataclass(frozen=True, slots=True)
class KnownPassage:
    """A passage and those of its mentions whose entities have a vector."""

    page: str
    passage: Passage
    found: Mapping[Mention, Entity]


@dataclass(frozen=True)
class Passages:
    """A corpus with passages, or a file of JSON lines: text, mentions (start, end, entity) and perhaps a page.

    Passages of pages named in `leave_out` are not used, and neither are mentions of them.
    """

    path: Path
    leave_out: frozenset[str] = frozenset()

    @classmethod
    def of(cls, path: str | Path, leave_out: Collection[str] = ()) -> "Passages":
        """Return the passages of a corpus folder or a file; raise `EbertError` if there are none."""
        place = Path(path)
        if place.is_dir():
            if not (place / "corpus.json").is_file():
                raise EbertError(f"{place} is neither a corpus nor a file of passages")
            if not (place / FILE).is_file():
                raise EbertError(f"{place} was built without passages; build the corpus again ('ebert corpus build')")
            place = place / FILE
        elif not place.is_file():
            raise EbertError(f"there is no corpus and no file {place}")
        return cls(place, frozenset(leave_out))

    def identity(self) -> dict[str, Any]:
        """Return what the choice of passages depends on."""
        left_out = hashlib.sha256("\n".join(sorted(self.leave_out)).encode()).hexdigest()
        return {"sha256": files.sha256(self.path), "left out": left_out if self.leave_out else None}

    def choose(self, vectors: Vectors, count: int, seed: int, advance: Advance = silent) -> list[KnownPassage]:
        """Return so many passages with entities that have vectors, drawn at random, always the same for a seed."""
        out = {name.replace("_", " ") for name in self.leave_out}
        out |= {entity.title for entity in vectors.find_many(sorted(out)).values()}
        lines = self._draw(SPARE * count, seed, advance)
        chosen: list[KnownPassage] = []
        for start in range(0, len(lines), CHUNK):
            rows = [self._read(*line) for line in lines[start : start + CHUNK]]
            kept = [(page, passage) for page, passage in rows if page not in out]
            names = {mention.entity for _, passage in kept for mention in passage.mentions} - out
            known = {name: e for name, e in vectors.find_many(sorted(names)).items() if e.title not in out}
            for page, passage in kept:
                found = {m: known[m.entity] for m in passage.mentions if m.entity in known}
                if found:
                    chosen.append(KnownPassage(page, passage, found))
            if len(chosen) >= count:
                break
        return chosen[:count]

    def _draw(self, count: int, seed: int, advance: Advance) -> list[tuple[int, bytes]]:
        """Return `count` lines in random order, with their numbers: a reservoir, as files may be large."""
        rng = random.Random(seed)  # noqa: S311 - a choice, no secret
        drawn: list[tuple[int, bytes]] = []
        with open_measured(self.path) as opened:
            for number, line in enumerate(opened.stream, 1):
                place = number - 1 if number <= count else rng.randrange(number)
                if place < count:
                    drawn[place : place + 1] = [(number, line)]
                if number % CHUNK == 0:
                    opened.report(advance)
        rng.shuffle(drawn)
        return drawn

    def _read(self, number: int, line: bytes) -> tuple[str, Passage]:
        try:
            row = records.parse_object(line)
            mentions = tuple(Mention(m["start"], m["end"], m["entity"]) for m in row["mentions"])
            return str(row.get("page", "")), Passage(row["text"], mentions)
        except (EbertError, KeyError, TypeError, AttributeError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else error
            raise EbertError(f"{self.path}, line {number}: {why}; a passage has text and mentions") from None

    def __iter__(self) -> Iterator[tuple[str, Passage]]:
        """Yield all passages with their pages."""
        with open_measured(self.path) as opened:
            yield from (self._read(number, line) for number, line in enumerate(opened.stream, 1))
