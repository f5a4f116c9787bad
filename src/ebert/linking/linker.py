"""`Linker`: finds the entities in a text and links them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import torch
from transformers import PreTrainedTokenizerBase

from ebert import _names
from ebert.errors import EbertError
from ebert.linking import sequences
from ebert.linking.candidates.table import GeneratorOptions, TableGenerator, gold_spans
from ebert.linking.document import Document, Generator, Linked, LinkedMention, Scored, Span
from ebert.linking.options import LinkerOptions, Mask, Variant
from ebert.linking.refine import Judge, Judged, State, refine
from ebert.linking.scorer import Batcher, Entities, LinkingModel, unaligned
from ebert.linking.sequences import NO_CHOICE, OVERLAPPING, Chunk, Cutter, Laid, lay_packed, lay_paper
from ebert.model.alignment import Alignment
from ebert.model.batching import budget_on, plan, windows
from ebert.model.ebert import EBert
from ebert.model.encoder import Encoder, evaluating
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors

WINDOW = 16  # documents looked at together: enough to fill batches, few enough to stream
WIKIPEDIA = "https://{language}.wikipedia.org/wiki/{title}"

Text = str | Document


class Linker:
    """Finds the entities in a text and links them.

    >>> linker = Linker.from_pretrained("enwiki-linker")                                    # doctest: +SKIP
    >>> for mention in linker("Adams and Platt are both injured."):                         # doctest: +SKIP
    ...     print(mention.text, mention.entity, mention.probability, mention.candidates)

    `dropped` counts what could not be asked about so far: spans that a split cuts, candidates without a vector, ...
    """

    def __init__(
        self,
        module: LinkingModel,
        encoder: Encoder,
        vectors: Vectors,
        alignment: Alignment,
        *,
        options: LinkerOptions,
        generator: Generator | GeneratorOptions | None = None,
    ) -> None:
        if options.strategy == "packed":
            sequences.check(encoder)
        self.module, self.vectors, self.alignment, self.options = module, vectors, alignment, options
        if generator is None or isinstance(generator, GeneratorOptions):
            generator = TableGenerator(vectors, generator)
        self.generator: Generator = generator
        self.threshold = 0.0
        self.null_shift = 0.0  # added to the null entity's score; see `ebert.linking.train`
        self.trained_with: dict[str, Any] | None = None  # the candidates, if not those of the mention table
        self.dropped: Counter[str] = Counter()
        self._encoder = encoder
        self._entities = Entities(vectors, alignment)
        self._cutter = Cutter(encoder.tokenizer, most=min(options.chunk, encoder.longest))
        assert options.mask is not None  # the options choose one
        self.batcher = Batcher(
            encoder, self._cutter, self._entities, module, mask=options.mask, link_prior=options.link_prior
        )

    @classmethod
    def fresh(
        cls,
        model: EBert,
        *,
        options: LinkerOptions | None = None,
        generator: Generator | GeneratorOptions | None = None,
        seed: int = 0,
    ) -> "Linker":
        """Make a linker that was not trained: the null entity's vector and bias are zero (zero-shot).

        The model's encoder is used, not copied: training the linker trains it.
        """
        options = options or LinkerOptions()
        if model.vectors is None or model.alignment is None:
            raise EbertError("a linker needs entity vectors: give a model made by 'ebert align' instead of an encoder")
        alignment = model.alignment
        if not options.aligned:
            alignment = unaligned(model.vectors, alignment.target, length=alignment.options.length)
        torch.manual_seed(seed)
        module = LinkingModel(model.encoder, new_head=options.variant == "wikipedia2vec-bert-random").to(
            model.encoder.device
        )
        encoder = Encoder(model.encoder, model.tokenizer, model.name)
        return cls(module, encoder, model.vectors, alignment, options=options, generator=generator)

    @classmethod
    def from_pretrained(
        cls,
        path: str | Path,
        *,
        vectors: Vectors | str | Path | None = None,
        generator: Generator | GeneratorOptions | None = None,
        rounds: int | None = None,
        variant: Variant | None = None,
        mask: Mask | None = None,
        device: str | torch.device | None = None,
    ) -> "Linker":
        """Load a linker, the best one of a training run, or a model of `ebert align` (zero-shot, one round), by name.

        `vectors` says where the store is now, if not where it was; `generator` finds spans in another way. A model can
        link in another `variant` or with another `mask`; a linker was trained for its own.
        """
        from ebert.linking.folder import load

        folder = _names.resolve(path, "linker")
        linker = load(folder, vectors=vectors, generator=generator, variant=variant, mask=mask, device=device)
        if rounds is not None:
            linker.options = replace(linker.options, rounds=rounds)
        return linker

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the linker into a folder; the store is named in it, not copied."""
        from ebert.linking.folder import save

        save(self, Path(folder))

    def with_vectors(self, vectors: Vectors) -> "Linker":
        """Give the same linker with another store of the same words: a copy that takes other entities, say."""
        if vectors.fingerprint != self.vectors.fingerprint:
            raise EbertError(f"{vectors.path} has other words than the store of the linker; train a linker with it")
        spans = self.generator.options if isinstance(self.generator, TableGenerator) else self.generator
        linker = Linker(self.module, self._encoder, vectors, self.alignment, options=self.options, generator=spans)
        linker.threshold, linker.null_shift = self.threshold, self.null_shift
        linker.trained_with = self.trained_with
        return linker

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The encoder's tokenizer."""
        return self._encoder.tokenizer

    @property
    def name(self) -> str:
        """What the encoder is called."""
        return self._encoder.name

    # Linking

    @overload
    def __call__(self, texts: Text, *, threshold: float | None = ...) -> tuple[LinkedMention, ...]: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, texts: Iterable[Text], *, threshold: float | None = ...) -> Iterator[Linked]: ...

    def __call__(
        self, texts: Text | Iterable[Text], *, threshold: float | None = None
    ) -> tuple[LinkedMention, ...] | Iterator[Linked]:
        """Give the mentions of one text, or the linked documents of any iterable of texts, one after the other."""
        if isinstance(texts, str | Document):
            return next(self.link([_document(texts, 1)], threshold=threshold)).mentions
        return self.link((_document(text, n) for n, text in enumerate(texts, 1)), threshold=threshold)

    def link(
        self,
        documents: Iterable[Document],
        *,
        threshold: float | None = None,
        rounds: int | None = None,
        budget: int | None = None,
    ) -> Iterator[Linked]:
        """Find and link the entities of documents, one after the other.

        Mentions less likely than `threshold` are left out. `rounds` are those of refinement, `budget` is how many
        tokens a batch may have.
        """
        least, judge, rounds = self._least(threshold), self._judge(budget), self._rounds(rounds)
        for window in windows(documents, WINDOW):
            states = refine(self.chunks(window), judge, rounds=rounds)
            yield from self._linked(window, states, least)

    def trace(
        self,
        documents: Iterable[Document],
        *,
        threshold: float | None = None,
        rounds: int | None = None,
        budget: int | None = None,
        between: Callable[[], None] | None = None,
    ) -> Iterator[tuple[Linked, ...]]:
        """Do as `link` does, and give for each document what was linked after each round of refinement.

        `between` is called before each batch of each round; what it raises ends the linking.
        """
        least, judge, rounds = self._least(threshold), self._judge(budget, between), self._rounds(rounds)
        for window in windows(documents, WINDOW):
            steps = _Steps()
            states = refine(self.chunks(window), judge, rounds=rounds, watch=steps.add)
            linked = [list(self._linked(window, step, least)) for step in steps.all or [states]]
            yield from zip(*linked, strict=True)

    def disambiguate(
        self,
        documents: Iterable[Document],
        spans: Iterable[Sequence[Span]] | None = None,
        *,
        rounds: int | None = None,
        budget: int | None = None,
        between: Callable[[], None] | None = None,
    ) -> Iterator[Linked]:
        """Link given mentions, each to its likeliest candidate: the documents' gold spans, or those of `spans`.

        `between` is called before each batch of each round; what it raises ends the linking.
        """
        judge = self._judge(budget, between)
        rounds = self._rounds(rounds)
        pairs = ((d, self.given(d)) for d in documents) if spans is None else zip(documents, spans, strict=True)
        for window in windows(pairs, WINDOW):
            chunks = self.chunks([document for document, _ in window], [own for _, own in window])
            states = refine(chunks, judge, rounds=rounds, always=True)
            if shared := sum(len(state.chunk.spans) - len(state.decoded) for state in states):
                self.dropped[OVERLAPPING] += shared
            yield from self._linked([document for document, _ in window], states, 0.0)

    def given(self, document: Document) -> list[Span]:
        """Give the candidates of a document's gold spans; those without any are counted."""
        spans = [span for span in gold_spans(self.generator, document) if span.choices]
        self.dropped[NO_CHOICE] += len(document.gold) - len(spans)
        return spans

    def chunks(self, documents: Sequence[Document], spans: Sequence[Sequence[Span]] | None = None) -> list[Chunk]:
        """Cut documents into chunks, with the spans that are given or those that the generator finds."""
        self._entities.refresh()
        found = [self.generator(document) for document in documents] if spans is None else spans
        chunks, dropped = self._cutter(
            list(zip(documents, found, strict=True)), has_vector=lambda title: self._entities.find(title) is not None
        )
        self.dropped += dropped
        return chunks

    def lay(self, state: State) -> list[Laid]:
        """Lay out what the encoder is to see of a chunk's open spans, by the linker's strategy."""
        if self.options.strategy == "paper":
            return lay_paper(self._cutter, state.chunk, state.open, state.titles)
        return lay_packed(self._cutter, state.chunk, state.open, state.titles, block=self.options.block)

    def judge(
        self,
        states: Sequence[State],
        budget: int | None = None,
        *,
        shift: float | None = None,
        between: Callable[[], None] | None = None,
    ) -> list[list[Judged]]:
        """Score all open spans of chunks; `shift` is added to the null entity's score, the linker's own by default."""
        shift = self.null_shift if shift is None else shift
        laid = [(number, one) for number, state in enumerate(states) for one in self.lay(state)]
        judged: list[list[tuple[int, Judged]]] = [[] for _ in states]
        for group in plan([len(one) for _, one in laid], budget or budget_on(self.module.device.type)):
            if between is not None:
                between()
            verdicts = iter(self._scored([laid[index][1] for index in group], shift))
            for index in group:
                number, one = laid[index]
                judged[number] += [(index, next(verdicts)) for _ in one.spans]
        return [[verdict for _, verdict in sorted(found, key=lambda pair: pair[0])] for found in judged]

    def _scored(self, batch: Sequence[Laid], shift: float) -> list[Judged]:
        with evaluating(self.module):
            scores = self.module(**self.batcher(batch))["scores"]  # (spans, 1 + choices)
            scores[:, 0] += shift
            probabilities = scores.softmax(-1)
        rows = zip(scores.tolist(), probabilities.tolist(), strict=True)
        judged = []
        for placed, (score, probability) in zip([s for laid in batch for s in laid.spans], rows, strict=True):
            size = 1 + len(placed.span.choices)
            judged.append(Judged(placed, tuple(score[:size]), tuple(probability[:size])))
        return judged

    def _judge(self, budget: int | None, between: Callable[[], None] | None = None) -> Judge:
        if budget is not None and budget < 1:
            raise EbertError(f"budget is {budget}; a batch needs at least one token")
        return lambda states: self.judge(states, budget, between=between)

    def _least(self, given: float | None) -> float:
        least = self.threshold if given is None else given
        if not 0 <= least <= 1:
            raise EbertError(f"threshold is {least}; it is a probability, from 0 to 1")
        return least

    def _rounds(self, given: int | None) -> int:
        if given is not None and given < 1:
            raise EbertError(f"rounds is {given}; it must be at least 1 (which is no refinement)")
        return given or self.options.rounds

    def _linked(self, documents: Sequence[Document], states: Sequence[State], least: float) -> Iterator[Linked]:
        mentions: list[list[LinkedMention]] = [[] for _ in documents]
        for state in states:
            text = documents[state.chunk.document].text
            mentions[state.chunk.document] += [self._mention(text, judged) for judged in state.decoded.values()]
        for document, own in zip(documents, mentions, strict=True):
            kept = [mention for mention in own if mention.probability >= least]
            yield Linked(document, tuple(sorted(kept, key=lambda mention: mention.start)))

    def _mention(self, text: str, judged: Judged) -> LinkedMention:
        span = judged.placed.span
        candidates = [
            Scored(choice.title, choice.prior, score, probability)
            for choice, score, probability in zip(
                span.choices, judged.scores[1:], judged.probabilities[1:], strict=True
            )
        ]
        return LinkedMention(
            span.start,
            span.end,
            text[span.start : span.end],
            judged.entity,
            judged.probabilities[1 + judged.best],
            judged.null,
            tuple(sorted(candidates, key=lambda one: -one.probability)),
            self.url(judged.entity),
        )

    # Entities

    def url(self, title: str) -> str | None:
        """Give the address of an entity's Wikipedia page, or None for one of your own."""
        from urllib.parse import quote

        entity = self._entities.find(title)
        if entity is None or (entity.added and entity.wikidata is None):
            return None
        made = self.vectors.info.made.get("corpus")
        language = made.get("language", "en") if isinstance(made, dict) else "en"
        return WIKIPEDIA.format(language=language, title=quote(title.replace(" ", "_"), safe="/:(),!'*@"))

    def add(
        self,
        title: str,
        vector: Any = None,
        *,
        surfaces: Iterable[str] = (),
        description: str | None = None,
        **more: Any,
    ) -> Entity:
        """Add an entity of your own to the store, with the surfaces that may name it; it can be linked at once.

        Give its vector or a description, as for `Vectors.add`; a surface may mean other entities too.
        """
        names = [surfaces] if isinstance(surfaces, str) else list(surfaces)
        row = {"title": title, "aliases": names, "vector": vector, "description": description, **more}
        report = self.vectors.add_many([{key: value for key, value in row.items() if value is not None}])
        if report.bad:
            raise EbertError(f"{title!r} was not added: {report.bad[0].reason}")
        self._entities.refresh()
        found = self._entities.find(title)
        assert found is not None  # it has just been added
        return found


class _Steps:
    """Keeps what is linked after each round: the states themselves go on."""

    def __init__(self) -> None:
        self.all: list[list[State]] = []

    def add(self, states: Sequence[State]) -> None:
        self.all.append([State(state.chunk, dict(state.decoded)) for state in states])


def _document(text: Text, number: int) -> Document:
    return text if isinstance(text, Document) else Document(str(number), text)
