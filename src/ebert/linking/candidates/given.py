"""Candidates from elsewhere: your own generator, or lists such as PPRforNED, as JSON, one object per line.

``{"id": document, "spans": [{"start", "end", "candidates": [...]}]}`` gives the spans of a document.
``{"surface": words, "candidates": [...]}`` says what words mean wherever they stand. With an ``id`` it holds for that
document only, as in lists made per document. A candidate is ``{"entity", "prior"}``, a pair of the two, or a title
alone; the whole list may also be an object of priors by title. Priors are renormalised; if none is given, or all are 0,
they are equal. Lines for the same words or the same place are added up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from typing import Any

from ebert._io import files, records
from ebert.errors import EbertError
from ebert.linking.candidates import knowbert
from ebert.linking.candidates.generator import CandidateGenerator
from ebert.linking.candidates.words import known_words, places_of, runs, word_of
from ebert.linking.document import Choice, Document, Span
from ebert.linking.readers import jsonl
from ebert.linking.resolve import TitleResolver
from ebert.text import titles
from ebert.vectors.store import Vectors

Weights = dict[str, float]  # of candidates, by title
Choices = tuple[Choice, ...]
Node = dict[str | None, Any]  # surfaces by their next word; at None, what a surface that ends here means


def read_candidates(path: str | Path, vectors: Vectors, *, candidates: int = 30) -> "GivenCandidates":
    """Read a file of JSON or KnowBert's table. Raise `EbertError` if the store has none of its candidates.

    A span has at most `candidates`.
    """
    path = Path(path)
    text = records.read_text(path)
    first = next((line for line in text.split("\n", 100) if line.strip()), "")
    rows = knowbert.rows(text, path.name) if knowbert.recognises(first) else jsonl.rows(text, path.name, "candidates")
    made = GivenCandidates(rows, vectors, candidates=candidates)
    if made.empty:
        raise EbertError(f"{path} has no candidates that the store has; is it for this store?")
    made.source = {"file": path.name, "sha256": files.sha256(path)}
    return made


class GivenCandidates(CandidateGenerator):
    """Returns the given spans of a document. `dropped` counts candidates that the store does not have."""

    def __init__(self, rows: Iterable[tuple[str, jsonl.Row]], vectors: Vectors, *, candidates: int = 30) -> None:
        self.dropped: Counter[str] = Counter()
        self.source: dict[str, str] = {}
        self._resolver, self._most = TitleResolver(vectors), candidates
        # By document; None is for all documents.
        self._spans: dict[str, dict[tuple[int, int], Any]] = {}
        self._surfaces: dict[str | None, tuple[Node, set[str]]] = {}  # with all of their words
        meant: list[tuple[dict[Any, Any], Any]] = []  # dictionaries and their keys that have candidates
        for where, row in rows:
            try:
                for holder, key, given in self._read(row):
                    if key not in holder:
                        holder[key] = {}
                        meant.append((holder, key))
                    self._weigh(given, holder[key])
            except jsonl.UNREADABLE as error:
                raise EbertError(f"{where}: no spans or surface with candidates ({error!r})") from None
        for holder, key in meant:
            holder[key] = self._choices(holder[key])
        self.empty = not any(holder[key] for holder, key in meant)

    def __call__(self, document: Document) -> list[Span]:
        """Return the spans of a document."""
        text, found = document.text, dict[tuple[int, int], Choices]()
        given = [self._surfaces[name] for name in (document.id, None) if name in self._surfaces]
        places = places_of(text, lambda word: any(word in words for _, words in given)) if given else []
        words = [word_of(text, *place) for place in places]
        for first, stop in enumerate(runs(text, places)):
            nodes = [node for node, _ in given]  # the document's own go before those for all documents
            for last in range(first, stop):
                nodes = [node[words[last]] for node in nodes if words[last] in node]
                if not nodes:
                    break
                found[places[first][0], places[last][1]] = next((node[None] for node in nodes if None in node), ())
        for (start, end), choices in self._spans.get(document.id, {}).items():
            if not 0 <= start < end <= len(text):
                raise EbertError(
                    f"the candidates for {start}:{end} of document {document.id!r} are not for this text, which has "
                    f"{len(text)} characters"
                )
            found[start, end] = choices  # candidates given for the place go before those given for the words
        return [Span(start, end, choices) for (start, end), choices in sorted(found.items()) if choices]

    def describe(self) -> dict[str, Any]:
        """Return which file it is."""
        return {**self.source, "candidates": self._most}

    def _read(self, row: Mapping[str, Any]) -> Iterable[tuple[dict[Any, Any], Any, Any]]:
        """Yield the candidates of a row, each with the dictionary and the key to store it under."""
        name = titles.as_text(str(row["id"])) if row.get("id") is not None else None  # document ids are strings
        if "surface" in row:
            words = known_words(jsonl.name_of(row["surface"]))
            node, known = self._surfaces.setdefault(name, ({}, set()))
            known.update(words)
            for word in words:
                node = node.setdefault(word, {})
            yield node, None, row["candidates"]
        elif name is None:
            raise KeyError("id")
        else:
            for span in row["spans"]:
                yield self._spans.setdefault(name, {}), (int(span["start"]), int(span["end"])), span["candidates"]

    def _weigh(self, given: Iterable[Any], weights: Weights) -> None:
        """Add the weights of some candidates to the existing ones."""
        if isinstance(given, str):
            raise TypeError(f"{given!r} is no list")
        for candidate in given.items() if isinstance(given, Mapping) else given:
            name, prior = candidate, 1.0
            if isinstance(candidate, Mapping):
                name, prior = candidate.get("entity", candidate.get("title")), candidate.get("prior", 1.0)
            elif not isinstance(candidate, str):
                name, prior = candidate
            if not isinstance(name, str) or not 0 <= float(prior) < inf:
                raise ValueError(f"{candidate!r} is no candidate")
            title = self._resolver.title((name,))
            if title is None:
                self.dropped["candidates that the store does not have"] += 1
            else:
                weights[title] = weights.get(title, 0.0) + float(prior)

    def _choices(self, weights: Weights) -> Choices:
        best = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[: self._most]
        total = sum(weight for _, weight in best)
        if total == inf:
            raise EbertError(f"the priors of {best[0][0]!r} and others are too large; give them as shares of one")
        return tuple(Choice(title, weight / total if total else 1 / len(best)) for title, weight in best)
