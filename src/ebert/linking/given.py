"""Candidates that somebody else found: one's own generator, or lists such as PPRforNED, as JSON, an object a line.

``{"id": document, "spans": [{"start", "end", "candidates": [...]}]}`` gives the spans of a document.
``{"surface": words, "candidates": [...]}`` gives what words mean wherever they stand, and with an ``id`` in that
document only, as lists that were made for every document do. A candidate is ``{"entity", "prior"}``, a pair of them, or
a title alone; priors are renormalised, and where none is given, or all are 0, all are alike.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ebert import files
from ebert.errors import EbertError
from ebert.linking.document import Choice, Document, Span
from ebert.linking.readers import jsonl
from ebert.linking.readers.reading import contents
from ebert.linking.resolve import Resolver
from ebert.linking.words import known_words, places_of, word_of
from ebert.vectors import Vectors

LAYOUT = "candidates"

Words = tuple[str, ...]


class GivenGenerator:
    """Gives the spans that a file has for a document. `dropped` counts candidates that the store does not have."""

    def __init__(self, rows: Iterable[jsonl.Row], vectors: Vectors, *, candidates: int = 30) -> None:
        """Read the objects of a file."""
        self.dropped: Counter[str] = Counter()
        self._source: dict[str, str] = {}
        self._resolver, self._most = Resolver(vectors), candidates
        self._spans: dict[str, list[tuple[int, int, tuple[Choice, ...]]]] = {}
        self._surfaces: dict[str | None, dict[Words, tuple[Choice, ...]]] = {}
        for where, row in rows:
            try:
                self._add(row)
            except (KeyError, TypeError, ValueError) as error:
                raise EbertError(f"{where}: no spans or surface with candidates ({error!r})") from None
        self._words = {
            name: frozenset(word for words in group for word in words) for name, group in self._surfaces.items()
        }
        self._longest = max((len(words) for group in self._surfaces.values() for words in group), default=0)

    @classmethod
    def read(cls, path: str | Path, vectors: Vectors, *, candidates: int = 30) -> "GivenGenerator":
        """Read a file."""
        file = Path(path)
        rows = jsonl.rows(contents(file).split("\n"), file.name, LAYOUT)
        made = cls(rows, vectors, candidates=candidates)
        made._source = {"file": file.name, "sha256": files.sha256(file)}
        return made

    def __call__(self, document: Document) -> list[Span]:
        """Give the spans of a document."""
        found = {(start, end): choices for start, end, choices in self._by_surface(document)}
        for start, end, choices in self._spans.get(document.id, ()):
            if not 0 <= start < end <= len(document.text):
                raise EbertError(
                    f"the candidates for {start}:{end} of document {document.id!r} are not for this text, which has "
                    f"{len(document.text)} characters"
                )
            found[start, end] = choices  # given for the place: it goes before what was given for the words
        return [Span(start, end, choices) for (start, end), choices in sorted(found.items()) if choices]

    def __bool__(self) -> bool:
        """Tell whether there is any candidate."""
        groups = [own.values() for own in self._surfaces.values()]
        return any(choices for own in groups for choices in own) or any(
            choices for spans in self._spans.values() for _, _, choices in spans
        )

    def describe(self) -> dict[str, Any]:
        """Say which file it is, for a run's description."""
        return {**self._source, "candidates": self._most}

    def _by_surface(self, document: Document) -> Iterable[tuple[int, int, tuple[Choice, ...]]]:
        names = [name for name in (document.id, None) if name in self._surfaces]
        if not names:
            return
        groups = [self._surfaces[name] for name in names]
        places = places_of(document.text, lambda word: any(word in self._words[name] for name in names))
        words = [word_of(document.text, *place) for place in places]
        for first in range(len(words)):
            for last in range(first, min(first + self._longest, len(words))):
                surface = tuple(words[first : last + 1])
                choices = next((group[surface] for group in groups if surface in group), None)
                if choices:
                    yield places[first][0], places[last][1], choices

    def _add(self, row: Mapping[str, Any]) -> None:
        name = str(row["id"]) if "id" in row else None
        if "surface" in row:
            group = self._surfaces.setdefault(name, {})
            group[known_words(str(row["surface"]))] = self._choices(row["candidates"])
            return
        if name is None:
            raise KeyError("id")
        spans = self._spans.setdefault(name, [])
        for span in row["spans"]:
            spans.append((int(span["start"]), int(span["end"]), self._choices(span["candidates"])))

    def _choices(self, given: Iterable[Any]) -> tuple[Choice, ...]:
        if isinstance(given, str):
            raise TypeError(f"{given!r} is no list")
        weights: dict[str, float] = {}
        for candidate in given:
            name, prior = _candidate(candidate)
            title = self._resolver.title((name,))
            if title is None:
                self.dropped["candidates that the store does not have"] += 1
            else:
                weights[title] = weights.get(title, 0.0) + prior
        best = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[: self._most]
        total = sum(weight for _, weight in best)
        return tuple(Choice(title, weight / total if total else 1 / len(best)) for title, weight in best)


def _candidate(given: Any) -> tuple[str, float]:
    if isinstance(given, str):
        return given, 1.0
    if isinstance(given, Mapping):
        name, prior = given.get("entity", given.get("title")), given.get("prior", 1.0)
    else:
        name, prior = given
    value = float(prior)
    if not isinstance(name, str) or not 0 <= value < float("inf"):
        raise ValueError(f"{given!r} is no candidate")
    return name, value
