"""The baseline that reads no context: every span means what it means most often, if it usually means anything.

A span is linked if its link probability reaches a threshold; of overlapping ones the longest is, or the most probable.
Both are tuned on documents of held-out Wikipedia articles, so that the baseline is a fair one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

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
    """The best options on held-out documents, and what all others gave."""

    options: PriorOptions
    f1: float  # micro, in percent
    tried: tuple[tuple[PriorOptions, float], ...]

    def value(self) -> dict[str, Any]:
        """Return it for programs."""
        return {**asdict(self.options), "f1": self.f1, "tried": [{**asdict(o), "f1": f1} for o, f1 in self.tried]}


class PriorLinker:
    """Links by priors alone. It gives what a trained linker gives, so that both can be judged alike."""

    def __init__(self, generator: CandidateGenerator, options: PriorOptions | None = None) -> None:
        self.generator, self.options = generator, options or PriorOptions()

    def stream(self, texts: Iterable[Document], *, threshold: float | None = None) -> Iterator[Linked]:
        """Find and link entities; `threshold` takes the place of that of the options."""
        least = self.options.threshold if threshold is None else threshold
        for document in texts:
            likely = [span for span in self.generator(document) if span.choices and span.sure >= least]
            yield self._linked(document, not_overlapping(likely, self.options.rule))

    def disambiguate(self, documents: Iterable[Document], spans: Iterable[Sequence[Span]]) -> Iterator[Linked]:
        """Link given spans, all of them."""
        for document, given in zip(documents, spans, strict=True):
            yield self._linked(document, [span for span in given if span.choices])

    def _linked(self, document: Document, spans: Iterable[Span]) -> Linked:
        return Linked(document, tuple(_mention(document, span) for span in spans))


def not_overlapping(spans: list[Span], rule: Rule) -> list[Span]:
    """Choose among overlapping spans; return the chosen ones in the order of the text."""
    if rule == "longest":
        order = sorted(spans, key=lambda span: (span.start - span.end, -span.sure, span.start))
    else:
        order = sorted(spans, key=lambda span: (-span.sure, span.start - span.end, span.start))
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
                likely = [span for span in spans if span.choices and span.sure >= threshold]
                links = [Mention(span.start, span.end, span.choices[0].title) for span in not_overlapping(likely, rule)]
                counts += score(document, links, same=same).counts
            tried.append((PriorOptions(threshold=threshold, rule=rule), 100 * counts.f1))
    best = max(tried, key=lambda item: item[1])
    return TunedPrior(best[0], best[1], tuple(tried))


def _mention(document: Document, span: Span) -> LinkedMention:
    sure = span.sure
    scored = tuple(Scored(choice.title, choice.prior, 0.0, sure * choice.prior) for choice in span.choices)
    best = scored[0]
    text = document.text[span.start : span.end]
    return LinkedMention(span.start, span.end, text, best.title, best.probability, 1 - sure, scored)
