"""Links as spaCy's annotations: entities of whole tokens, beside those that earlier pipes found.

The linker counts characters and spaCy's entities are runs of tokens. A mention that begins or ends within a token is
moved to its border (`alignment_mode`), and what cannot be set is counted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Literal

from spacy.tokens import Doc, Span

from ebert.linking.document import LinkedMention

Alignment = Literal["strict", "contract", "expand"]
KbId = Literal["title", "wikidata"]

EXTENSIONS = (
    "ebert_probability", "ebert_null", "ebert_candidates", "ebert_url", "ebert_title", "ebert_wikidata", "ebert_id",
)  # fmt: skip
"""What a linked `Span` has after its underscore; None where nothing was linked."""

MOVED = "mentions that were moved to the borders of tokens"
BETWEEN = "mentions that are not whole tokens"
SHARED = "mentions in a token that a likelier one has"
OVERLAPPING = "mentions that overlap an entity of another pipe"
LINKED = "mentions that were linked already"
WITHOUT_ID = "links without a Wikidata id, whose kb_id_ is empty"
OVERWRITTEN = "entities of another pipe that were overwritten"


def register() -> None:
    """Register the extensions with spaCy, unless it knows them."""
    for name in EXTENSIONS:
        if not Span.has_extension(name):
            Span.set_extension(name, default=None)


def annotate(
    doc: Doc, mentions: Sequence[LinkedMention], *, label: str, overwrite: bool, alignment_mode: Alignment,
    kb_id: KbId = "title",
) -> Counter[str]:  # fmt: skip
    """Set the links of a document; count what was moved, left out or overwritten.

    A mention of the same tokens as an entity that is there already is a link of that entity, which keeps its label and
    id. Other mentions are new entities. Where they overlap one that is there, `overwrite` says which of the two stays.
    """
    counts: Counter[str] = Counter()
    there = {index: entity for entity in doc.ents for index in range(entity.start, entity.end)}
    new: list[Span] = []
    linked: list[tuple[Span, LinkedMention]] = []
    gone: dict[int, Span] = {}  # by first token
    for span, mention in _placed(doc, mentions, alignment_mode, counts):
        others = {entity.start: entity for index in range(span.start, span.end) if (entity := there.get(index))}
        same = others.get(span.start)
        if same is not None and same.end == span.end:
            if same.kb_id and not overwrite:
                counts[LINKED] += 1
                continue
        elif others and not overwrite:
            counts[OVERLAPPING] += 1
            continue
        else:
            gone |= others
            new.append(Span(doc, span.start, span.end, label=label))
        linked.append((span, mention))
    counts[OVERWRITTEN] += len(gone)
    for token in (token for entity in gone.values() for token in entity):  # spaCy leaves ids where an entity was
        token.ent_id_ = token.ent_kb_id_ = ""
    if new:
        doc.ents = [*(entity for entity in doc.ents if entity.start not in gone), *new]
    for span, mention in linked:
        identifier = mention.entity if kb_id == "title" else mention.wikidata_id or ""
        counts[WITHOUT_ID] += not identifier
        for token in span:
            token.ent_kb_id_ = identifier
        # Plain values, so that they survive Doc.to_bytes, and with it DocBin and nlp.pipe(n_process=...).
        candidates = [asdict(one) for one in mention.candidates]
        values = (
            mention.probability, mention.null, candidates, mention.url, mention.entity, mention.wikidata_id, mention.id,
        )  # fmt: skip
        for name, value in zip(EXTENSIONS, values, strict=True):
            span._.set(name, value)
    return +counts


def _placed(
    doc: Doc, mentions: Sequence[LinkedMention], mode: Alignment, counts: Counter[str]
) -> Iterator[tuple[Span, LinkedMention]]:
    """Yield the tokens of mentions, the most likely first: no token is in two of them."""
    taken: set[int] = set()
    for mention in sorted(mentions, key=lambda one: (-one.probability, one.start)):
        span = doc.char_span(mention.start, mention.end, alignment_mode=mode)
        if span is None or not len(span):
            counts[BETWEEN] += 1
        elif not taken.isdisjoint(range(span.start, span.end)):
            counts[SHARED] += 1
        else:
            counts[MOVED] += (span.start_char, span.end_char) != (mention.start, mention.end)
            taken.update(range(span.start, span.end))
            yield span, mention
