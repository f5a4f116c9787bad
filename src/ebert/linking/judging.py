"""Linking a set of documents and judging the links, for a trained linker and for the prior alone."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.linking.document import Document, Generator, Span
from ebert.linking.evaluating import Counts, DocumentScore, Evaluation, score
from ebert.linking.generator import gold_spans
from ebert.linking.linked import Linked
from ebert.linking.resolve import Resolver
from ebert.text import Mention


class Links(Protocol):
    """What can be judged: a `Linker`, a `PriorLinker`."""

    generator: Generator

    def link(self, documents: Iterable[Document]) -> Iterator[Linked]:
        """Find and link entities."""
        ...

    def disambiguate(self, documents: Iterable[Document], spans: Sequence[Sequence[Span]]) -> Iterator[Linked]:
        """Link given spans."""
        ...


def judge(
    linker: Links,
    documents: Sequence[Document],
    resolver: Resolver,
    *,
    given_mentions: bool = False,
    link: Callable[[Iterable[Document]], Iterator[Linked]] | None = None,
    advance: Advance = silent,
) -> Evaluation:
    """Link documents and judge the links; with `given_mentions`, the gold's spans are given and only disambiguated.

    `link` finds links in another way than `linker.link`, with a threshold, say.
    """
    if given_mentions:
        spans = [gold_spans(linker.generator, document) for document in documents]
        linked = linker.disambiguate(documents, [[span for span in own if span.choices] for own in spans])
        found: Iterator[Sequence[Span]] = iter(spans)
    else:
        linked = (link or linker.link)(documents)
        found = map(linker.generator, documents)
    scores = []
    for document, one, own in zip(documents, linked, found, strict=True):
        links = [Mention(mention.start, mention.end, mention.entity) for mention in one.mentions]
        scores.append(score(document, links, same=resolver.same, known=resolver.known, spans=own))
        advance(1)
    return Evaluation(tuple(scores))


def read_scores(value: dict[str, Any], name: str) -> Evaluation:
    """Read what `Evaluation.value(per_document=True)` gave, to compare with it."""
    try:
        rows = value["per_document"]
        counts = [Counts(int(row["gold"]), int(row["predicted"]), int(row["correct"])) for row in rows]
        return Evaluation(tuple(DocumentScore(row["id"], own, own) for row, own in zip(rows, counts, strict=True)))
    except (KeyError, TypeError, ValueError) as error:
        raise EbertError(f"{name} has no figures per document ({error!r}); write them with --out") from None


def load_scores(path: str) -> Evaluation:
    """Read figures from a file that `ebert link evaluate --out` wrote."""
    if not Path(path).is_file():
        raise EbertError(f"there is no file {path}; 'ebert link evaluate --out' writes one")
    return read_scores(files.read_json(Path(path), "a result of 'ebert link evaluate --out'"), path)
