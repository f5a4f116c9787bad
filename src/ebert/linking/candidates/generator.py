"""The interface of candidate generators, which find the spans of a text that may name an entity (Section 5.2).

A generator is a subclass of `CandidateGenerator`, or any function from a document to its spans.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ebert.linking.document import Document, Span
from ebert.linking.options import CandidateOptions
from ebert.vectors.store import Vectors

FindSpans = Callable[[Document], list[Span]]


class CandidateGenerator(ABC):
    """Finds the potential spans of a document, sorted by (start, end). They may overlap."""

    settings: dict[str, Any] | None = None
    """What a saved linker needs to recreate the generator; None if it cannot be recreated."""

    dropped: Mapping[str, int] = MappingProxyType({})
    """How many of the candidates cannot be used, by reason."""

    @abstractmethod
    def __call__(self, document: Document) -> list[Span]:
        """Return the spans that may name an entity."""

    def describe(self) -> dict[str, Any]:
        """Return what a run or a linker reports about the source of its candidates."""
        return {"generator": type(self).__name__}

    def gold(self, document: Document) -> list[Span]:
        """Return the gold mentions of a document as spans, with their candidates, which may be none."""
        found = {(span.start, span.end): span for span in self(document)}
        places = [(mention.start, mention.end) for mention in document.gold]
        return [found.get(place) or Span(*place, (), 0.0) for place in places]

    def with_vectors(self, vectors: Vectors) -> "CandidateGenerator":  # noqa: ARG002
        """Return the same generator for another store."""
        return self


class _Function(CandidateGenerator):
    """A function as a generator."""

    def __init__(self, function: FindSpans) -> None:
        self.function = function

    def __call__(self, document: Document) -> list[Span]:
        return self.function(document)

    def describe(self) -> dict[str, Any]:
        return {"generator": type(self.function).__name__}


Given = CandidateGenerator | FindSpans | CandidateOptions | None


def generator_of(given: Given, vectors: Vectors) -> CandidateGenerator:
    """Return the generator for what is given: a generator, a function, or options of the store's mention table."""
    if isinstance(given, CandidateGenerator):
        return given
    if given is None or isinstance(given, CandidateOptions):
        from ebert.linking.candidates.table import MentionTable

        return MentionTable(vectors, given)
    return _Function(given)
