"""Evaluate links by strong match: the same start, the same end and the same entity as the gold.

Redirects to an entity count as that entity, and so do spellings of its title. Micro figures count mentions; macro
figures are means over documents, where a document without gold and without links counts as perfect. Links inside a span
that the document ignores are not judged.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ebert._bootstrap import SEED, Interval, bounds
from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.linking.document import Document, Span
from ebert.linking.resolve import TitleResolver
from ebert.text.passage import Mention

if TYPE_CHECKING:
    from ebert.linking.linker import Linker
    from ebert.linking.prior import PriorLinker

RESAMPLES = 3000

Same = Callable[[str], str]  # gives one spelling for all names of an entity
Links: TypeAlias = "Linker | PriorLinker"  # everything that can be judged


@dataclass(frozen=True, slots=True)
class Counts:
    """How many mentions the gold has, how many were linked, and how many links are right."""

    gold: int = 0
    predicted: int = 0
    correct: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.gold + other.gold, self.predicted + other.predicted, self.correct + other.correct)

    @property
    def precision(self) -> float:
        """The share of the links that are right, from 0 to 1."""
        return self.correct / self.predicted if self.predicted else float(not self.gold)

    @property
    def recall(self) -> float:
        """The share of the gold that was found."""
        return self.correct / self.gold if self.gold else float(not self.predicted)

    @property
    def f1(self) -> float:
        """Their harmonic mean."""
        whole = self.gold + self.predicted
        return 2 * self.correct / whole if whole else 1.0


@dataclass(frozen=True, slots=True)
class DocumentScore:
    """The figures of a document."""

    id: str
    counts: Counts
    known: Counts  # of entities that the store has: without other gold and the links at its places
    reachable: int | None = None  # gold mentions that are among the potential spans, with the entity among the choices
    spans: int | None = None  # potential spans


@dataclass(frozen=True, slots=True)
class LinkEvaluation:
    """The figures of a set of documents."""

    documents: tuple[DocumentScore, ...]

    @property
    def counts(self) -> Counts:
        """All mentions together."""
        return sum((document.counts for document in self.documents), Counts())

    @property
    def known(self) -> Counts:
        """All mentions of entities that the store has."""
        return sum((document.known for document in self.documents), Counts())

    @property
    def candidate_recall(self) -> float | None:
        """The share of the gold that the candidate generator offers: the ceiling of every recall."""
        found = [document.reachable for document in self.documents if document.reachable is not None]
        return sum(found) / self.counts.gold if found and self.counts.gold else None

    def value(self, *, per_document: bool = False) -> dict[str, Any]:
        """Return everything for programs; shares are in percent."""
        whole, known, recall = self.counts, self.known, self.candidate_recall
        spans = [document.spans for document in self.documents if document.spans is not None]
        single = [percent(document.counts) for document in self.documents] or [dict.fromkeys(percent(whole), 0.0)]
        value = {
            "micro": percent(whole),
            "macro": {name: sum(figures[name] for figures in single) / len(single) for name in single[0]},
            **asdict(whole), "documents": len(self.documents),
            "candidate_recall": None if recall is None else 100 * recall,
            "spans": sum(spans) if spans else None,
            "in_vocabulary": {"micro": percent(known), "gold": known.gold},
        }  # fmt: skip
        if per_document:
            value["per_document"] = [
                {"id": document.id, **asdict(document.counts), "reachable": document.reachable, "spans": document.spans}
                for document in self.documents
            ]
        return value


def percent(counts: Counts) -> dict[str, float]:
    """Return precision, recall and F1 in percent."""
    return {"precision": 100 * counts.precision, "recall": 100 * counts.recall, "f1": 100 * counts.f1}


def score(
    document: Document, predicted: Sequence[Mention], *, same: Same = str,
    known: Callable[[str], bool] = lambda _name: True, spans: Iterable[Span] | None = None,
) -> DocumentScore:  # fmt: skip
    """Evaluate the links of a document. `known` says which entities the store has, `spans` are the possible choices."""
    gold = {(mention.start, mention.end): same(mention.entity) for mention in document.gold}
    links = {(link.start, link.end): same(link.entity) for link in predicted}
    if len(links) != len(predicted):
        raise EbertError(f"document {document.id!r} has two links at the same place")
    ignored = document.ignoring()
    judged = {place for place in links if not ignored(*place)}
    right = {place for place in judged if gold.get(place) == links[place]}
    aside = {(mention.start, mention.end) for mention in document.gold if not known(mention.entity)}
    inside = Counts(len(gold.keys() - aside), len(judged - aside), len(right - aside))
    reachable = number = None
    if spans is not None:
        choices = {(span.start, span.end): {same(choice.title) for choice in span.choices} for span in spans}
        reachable = sum(entity in choices.get(place, ()) for place, entity in gold.items())
        number = len(choices)
    return DocumentScore(document.id, Counts(len(gold), len(judged), len(right)), inside, reachable, number)


@dataclass(frozen=True, slots=True)
class F1Difference(Interval):
    """The difference of two linkers in micro F1, in points, with the interval of a paired bootstrap."""

    documents: int


def difference(
    one: LinkEvaluation, other: LinkEvaluation, *, resamples: int = RESAMPLES, seed: int = SEED
) -> F1Difference:
    """Compare two linkers on the same documents: documents are resampled, the same for both sides."""
    if [document.id for document in one.documents] != [document.id for document in other.documents]:
        raise EbertError("two evaluations can be compared only if they have the same documents in the same order")
    if not one.documents:
        raise EbertError("there are no documents to compare")
    sides = [np.array([[*asdict(document.counts).values()] for document in side.documents]) for side in (one, other)]
    random, number = np.random.default_rng(seed), len(one.documents)

    def points(weight: Any) -> float:
        ours, theirs = (100 * Counts(*(weight @ side).tolist()).f1 for side in sides)  # a side is (documents, 3)
        return ours - theirs

    drawn = (random.integers(0, number, number) for _ in range(resamples))
    low, high = bounds([points(np.bincount(draw, minlength=number)) for draw in drawn])
    return F1Difference(points(np.ones(number, int)), low, high, number)


def judge(
    linker: Links, documents: Sequence[Document], resolver: TitleResolver, *, given_mentions: bool = False,
    threshold: float | None = None, advance: Advance = silent,
) -> LinkEvaluation:  # fmt: skip
    """Link documents and evaluate the links; with `given_mentions`, only disambiguate the gold spans."""
    if given_mentions:
        spans = [linker.generator.gold(document) for document in documents]
        linked = linker.disambiguate(documents, [[span for span in own if span.choices] for own in spans])
        found: Iterator[Sequence[Span]] = iter(spans)
    else:
        linked = linker.stream(documents, threshold=threshold)
        found = map(linker.generator, documents)
    scores = []
    for document, one, own in zip(documents, linked, found, strict=True):
        links = [Mention(mention.start, mention.end, mention.entity) for mention in one.mentions]
        scores.append(score(document, links, same=resolver.same, known=resolver.known, spans=own))
        advance(1)
    return LinkEvaluation(tuple(scores))


def read_scores(value: dict[str, Any], name: str) -> LinkEvaluation:
    """Read the output of `LinkEvaluation.value(per_document=True)`, for a comparison."""
    try:
        rows = value["per_document"]
        counts = [Counts(int(row["gold"]), int(row["predicted"]), int(row["correct"])) for row in rows]
        return LinkEvaluation(tuple(DocumentScore(row["id"], own, own) for row, own in zip(rows, counts, strict=True)))
    except (KeyError, TypeError, ValueError) as error:
        raise EbertError(f"{name} has no figures per document ({error!r}); write them with --out") from None


def load_scores(path: str) -> LinkEvaluation:
    """Read figures from a file that `ebert link evaluate --out` wrote."""
    if not Path(path).is_file():
        raise EbertError(f"there is no file {path}; 'ebert link evaluate --out' writes one")
    return read_scores(files.read_json(Path(path), "a result of 'ebert link evaluate --out'"), path)
