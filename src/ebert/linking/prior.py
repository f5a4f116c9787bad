"""The baseline without context: every span means what it means most often, if it usually means anything.

A span is linked if its link probability reaches a threshold; of overlapping spans, the longest or the most probable one
is linked. The threshold and this rule are tuned on held-out Wikipedia articles, so that the baseline is fair.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from ebert.linking.candidates.generator import CandidateGenerator
from ebert.linking.document import Document, Linked, LinkedMention, Scored, Span
from ebert.linking.evaluate import Counts, Same, score
from ebert.linking.options import PriorOptions, Rule
from ebert.text.passage import Mention

THRESHOLDS = (
    0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TunedPrior:
    """The best options on held-out documents, and the results of all others."""

    options: PriorOptions
    f1: float  # micro, in percent
    tried: tuple[tuple[PriorOptions, float], ...]


class PriorLinker:
    """Links by priors alone. It returns what a trained linker returns, so both can be evaluated in the same way."""

    def __init__(self, generator: CandidateGenerator, options: PriorOptions | None = None) -> None:
        self.generator, self.options = generator, options or PriorOptions()

    def stream(self, texts: Iterable[Document], *, threshold: float | None = None) -> Iterator[Linked]:
        """Find and link entities; `threshold` replaces that of the options."""
        least = self.options.threshold if threshold is None else threshold
        for document in texts:
            yield _linked(document, chosen(self.generator(document), least, self.options.rule))

    def disambiguate(self, documents: Iterable[Document], spans: Iterable[Sequence[Span]]) -> Iterator[Linked]:
        """Link given spans, all of them."""
        for document, given in zip(documents, spans, strict=True):
            yield _linked(document, [span for span in given if span.choices])


def chosen(spans: Iterable[Span], threshold: float, rule: Rule) -> list[Span]:
    """Return the spans that are links often enough, in order; of overlapping ones, the rule picks one."""
    likely = [span for span in spans if span.choices and span.sure >= threshold]
    if rule == "longest":
        order = sorted(likely, key=lambda span: (span.start - span.end, -span.sure, span.start))
    else:
        order = sorted(likely, key=lambda span: (-span.sure, span.start - span.end, span.start))
    taken: set[int] = set()
    kept = []
    for span in order:
        if taken.isdisjoint(range(span.start, span.end)):
            taken.update(range(span.start, span.end))
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)


def tune(generator: CandidateGenerator, documents: Sequence[Document], *, same: Same = str) -> TunedPrior:
    """Find the threshold and the rule that give the best micro F1."""
    found = [(document, generator(document)) for document in documents]
    tried: list[tuple[PriorOptions, float]] = []
    for rule in get_args(Rule):
        for threshold in THRESHOLDS:
            counts = Counts()
            for document, spans in found:
                kept = chosen(spans, threshold, rule)
                links = [Mention(span.start, span.end, span.choices[0].title) for span in kept]
                counts += score(document, links, same=same).counts
            tried.append((PriorOptions(threshold=threshold, rule=rule), 100 * counts.f1))
    return TunedPrior(*max(tried, key=lambda item: item[1]), tuple(tried))


def _linked(document: Document, spans: Iterable[Span]) -> Linked:
    mentions = []
    for span in spans:
        scored = tuple(Scored(one.title, one.prior, 0.0, span.sure * one.prior) for one in span.choices)
        text, best = document.text[span.start : span.end], scored[0]
        mentions.append(LinkedMention(span.start, span.end, text, best.title, best.probability, 1 - span.sure, scored))
    return Linked(document, tuple(mentions))
