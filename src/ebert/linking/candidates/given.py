"""Candidates that somebody else found: one's own generator, or lists such as PPRforNED, as JSON, an object a line.

``{"id": document, "spans": [{"start", "end", "candidates": [...]}]}`` gives the spans of a document.
``{"surface": words, "candidates": [...]}`` gives what words mean wherever they stand, and with an ``id`` in that
document only, as lists that were made for every document do. A candidate is ``{"entity", "prior"}``, a pair of them, or
a title alone; or all of them are an object of priors by title. Priors are renormalised, and where none is given, or all
are 0, all are alike. What several lines give for the same words or the same place counts together.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from ebert._io import files
from ebert.errors import EbertError
from ebert.linking.candidates.generator import CandidateGenerator
from ebert.linking.candidates.words import known_words, places_of, runs, word_of
from ebert.linking.document import Choice, Document, Span
from ebert.linking.readers import jsonl
from ebert.linking.resolve import TitleResolver
from ebert.text import titles
from ebert.vectors.store import Vectors

Weights = dict[str, float]  # of candidates, by title
Choices = tuple[Choice, ...]


def recognises(line: str) -> bool:
    """Return whether a file that begins with this line has candidates as JSON."""
    return line.lstrip().startswith("{")


def read(path: Path, text: str, vectors: Vectors, candidates: int) -> "GivenCandidates":
    """Read a file, whose text is `text`."""
    return of_rows(jsonl.rows(text, path.name, "candidates"), path, vectors, candidates)


def of_rows(rows: Iterable[tuple[str, jsonl.Row]], path: Path, vectors: Vectors, candidates: int) -> "GivenCandidates":
    """Return the candidates in the rows of a file, or raise `EbertError` if the store has none of them."""
    made = GivenCandidates(rows, vectors, candidates=candidates)
    if made.empty:
        raise EbertError(f"{path} has no candidates that the store has; is it for this store?")
    made.source = {"file": path.name, "sha256": files.sha256(path)}
    return made


@dataclass(slots=True)
class _Node:
    """The surfaces that begin with some words, by the word that comes next; and what these mean, if they are one."""

    after: "dict[str, _Node]" = field(default_factory=dict)
    weights: Weights | None = None
    choices: Choices | None = None

    def ends(self) -> "Iterator[_Node]":
        """Yield the ends of all of them."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            waiting += node.after.values()
            if node.weights is not None:
                yield node


class GivenCandidates(CandidateGenerator):
    """Returns the spans that were given for a document. `dropped` counts candidates that the store does not have."""

    def __init__(self, rows: Iterable[tuple[str, jsonl.Row]], vectors: Vectors, *, candidates: int = 30) -> None:
        self.dropped: Counter[str] = Counter()
        self.source: dict[str, str] = {}
        self._resolver, self._most = TitleResolver(vectors), candidates
        places: dict[str, dict[tuple[int, int], Weights]] = {}
        self._surfaces: dict[str | None, _Node] = {}
        self._words: dict[str | None, set[str]] = {}
        for where, row in rows:
            try:
                self._add(row, places)
            except jsonl.UNREADABLE as error:
                raise EbertError(f"{where}: no spans or surface with candidates ({error!r})") from None
        ends = [node for own in self._surfaces.values() for node in own.ends()]
        for node in ends:
            node.choices = self._choices(node.weights or {})
        self._spans = {
            name: {place: self._choices(weights) for place, weights in own.items()} for name, own in places.items()
        }
        by_place = (choices for own in self._spans.values() for choices in own.values())
        self.empty = not any(node.choices for node in ends) and not any(by_place)

    def __call__(self, document: Document) -> list[Span]:
        """Return the spans of a document."""
        found = {(start, end): choices for start, end, choices in self._by_surface(document)}
        for (start, end), choices in self._spans.get(document.id, {}).items():
            if not 0 <= start < end <= len(document.text):
                raise EbertError(
                    f"the candidates for {start}:{end} of document {document.id!r} are not for this text, which has "
                    f"{len(document.text)} characters"
                )
            found[start, end] = choices  # given for the place: it goes before what was given for the words
        return [Span(start, end, choices) for (start, end), choices in sorted(found.items()) if choices]

    def describe(self) -> dict[str, Any]:
        """Return which file it is."""
        return {**self.source, "candidates": self._most}

    def _by_surface(self, document: Document) -> Iterable[tuple[int, int, Choices]]:
        names = [name for name in (document.id, None) if name in self._surfaces]
        if not names:
            return
        places = places_of(document.text, lambda word: any(word in self._words[name] for name in names))
        words = [word_of(document.text, *place) for place in places]
        for first, stop in enumerate(runs(document.text, places)):
            nodes = [self._surfaces[name] for name in names]  # those of the document go before those of all
            for last in range(first, stop):
                nodes = [node.after[words[last]] for node in nodes if words[last] in node.after]
                if not nodes:
                    break
                choices = next((node.choices for node in nodes if node.choices is not None), None)
                if choices:
                    yield places[first][0], places[last][1], choices

    def _add(self, row: Mapping[str, Any], places: dict[str, dict[tuple[int, int], Weights]]) -> None:
        name = titles.as_text(str(row["id"])) if row.get("id") is not None else None  # as documents are called
        if "surface" in row:
            words = known_words(jsonl.name_of(row["surface"]))
            self._words.setdefault(name, set()).update(words)
            node = self._surfaces.setdefault(name, _Node())
            for word in words:
                node = node.after.setdefault(word, _Node())
            node.weights = node.weights or {}
            self._weigh(row["candidates"], node.weights)
            return
        if name is None:
            raise KeyError("id")
        spans = places.setdefault(name, {})
        for span in row["spans"]:
            self._weigh(span["candidates"], spans.setdefault((int(span["start"]), int(span["end"])), {}))

    def _weigh(self, given: Iterable[Any], weights: Weights) -> None:
        """Add the weights of some candidates to those that there are."""
        if isinstance(given, str):
            raise TypeError(f"{given!r} is no list")
        for candidate in given.items() if isinstance(given, Mapping) else given:
            name, prior = _candidate(candidate)
            title = self._resolver.title((name,))
            if title is None:
                self.dropped["candidates that the store does not have"] += 1
            else:
                weights[title] = weights.get(title, 0.0) + prior

    def _choices(self, weights: Weights) -> Choices:
        best = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[: self._most]
        total = sum(weight for _, weight in best)
        if total == inf:
            raise EbertError(f"the priors of {best[0][0]!r} and others are too large; give them as shares of one")
        return tuple(Choice(title, weight / total if total else 1 / len(best)) for title, weight in best)


def _candidate(given: Any) -> tuple[str, float]:
    if isinstance(given, str):
        return given, 1.0
    if isinstance(given, Mapping):
        name, prior = given.get("entity", given.get("title")), given.get("prior", 1.0)
    else:
        name, prior = given
    value = float(prior)
    if not isinstance(name, str) or not 0 <= value < inf:
        raise ValueError(f"{given!r} is no candidate")
    return name, value
