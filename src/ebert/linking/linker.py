"""`Linker`: finds the entities in a text and links them."""

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast, overload
from urllib.parse import quote

import torch

from ebert import _names
from ebert.errors import EbertError
from ebert.finetuning.folder import no_linker, of_run
from ebert.finetuning.options import split_options
from ebert.linking import folder as folders
from ebert.linking.candidates.generator import CandidateGenerator, Given, generator_of
from ebert.linking.candidates.given import read_candidates
from ebert.linking.document import Document, Linked, LinkedMention, Scored, Span
from ebert.linking.folder import INFO
from ebert.linking.options import CandidateOptions, LinkerOptions, LinkPrecision, LinkTrainingOptions, Mask, Variant
from ebert.linking.precision import computing, suited
from ebert.linking.refine import ChunkState, Verdict, refine
from ebert.linking.scorer import Batcher, EntityVectors, LinkingModel, unaligned
from ebert.linking.sequences import OVERLAPPING, Chunk, Chunker, LinkSequence
from ebert.model import folder as models
from ebert.model.alignment import Alignment
from ebert.model.batching import budget_on, in_order, windows
from ebert.model.ebert import EBert
from ebert.model.encoder import Encoder, evaluating
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors

WINDOW = 16  # documents processed together: enough to fill batches, few enough to stream
NO_VECTORS = "a linker needs entity vectors: give a model made by 'ebert align' instead of an encoder"

Text = str | Document


class Linker:
    """Finds the entities in a text and links them.

    >>> linker = Linker.from_pretrained("starter")                                          # doctest: +SKIP
    >>> for mention in linker("Adams and Platt are both injured.").mentions:                # doctest: +SKIP
    ...     print(mention.text, mention.entity, mention.probability, mention.candidates)

    `dropped` counts what could not be scored so far: spans that a split cuts, candidates without a vector, ...
    """

    def __init__(
        self, module: LinkingModel, encoder: Encoder, vectors: Vectors, alignment: Alignment, *,
        options: LinkerOptions, generator: Given = None, threshold: float = 0.0, null_shift: float = 0.0,
        trained_with: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        if options.strategy == "packed" and not encoder.only_absolute_positions:
            raise EbertError(
                f"{encoder.name} ({type(encoder.module).__name__}) does not use absolute positions only, so spans "
                f"cannot share the positions of their text: the strategy packed does not work with it; use the "
                "strategy paper, or an encoder like BERT, RoBERTa, DistilBERT, ELECTRA or ALBERT"
            )
        self.module, self.vectors, self.alignment, self.options = module, vectors, alignment, options
        self.generator = generator
        self.threshold = threshold
        self.null_shift = null_shift  # added to the null entity's score; see `ebert.linking.train.tune`
        self.trained_with = trained_with  # the candidates, if not those of the mention table
        self.dropped: Counter[str] = Counter()
        self.tokenizer, self.name, self.encoder = encoder.tokenizer, encoder.name, encoder
        self._entities = EntityVectors(vectors, alignment)
        self._chunker = Chunker(encoder.tokenizer, most=min(options.chunk, encoder.longest))
        self.batcher = Batcher(encoder, self._entities, options)
        self.precision: LinkPrecision = "fp32"
        self._computing = module  # the module that replaces this one in another precision

    def __repr__(self) -> str:
        own, store = self.options, str(self.vectors.path)
        return f"Linker({self.name!r}, {own.variant}, {own.strategy}, rounds={own.rounds}, vectors={store!r})"

    @classmethod
    def fresh(
        cls, model: EBert, *, options: LinkerOptions | None = None, generator: Given = None, seed: int = 0,
        dtype: torch.dtype | None = None, **more: Any,
    ) -> "Linker":  # fmt: skip
        """Return an untrained linker: the null entity's vector and bias are zero (zero-shot).

        The model's encoder is used, not copied: training the linker trains it too, except with an adapter. With an
        adapter it can compute in another dtype.
        """
        options = options or LinkerOptions()
        if model.vectors is None or model.alignment is None:
            raise EbertError(NO_VECTORS)
        alignment = model.alignment
        if not options.aligned:
            alignment = unaligned(model.vectors, alignment.target, length=alignment.options.length)
        torch.manual_seed(seed)
        rank = options.rank if options.adapter else None
        module = LinkingModel(model.encoder, new_head=options.new_head, adapter=rank, dtype=dtype)
        module.to(model.encoder.device)
        encoder = Encoder(model.encoder, model.tokenizer, model.name)
        return cls(module, encoder, model.vectors, alignment, options=options, generator=generator, **more)

    @classmethod
    def zero_shot(
        cls, model: EBert, *, variant: Variant = "e-bert-mlm", mask: Mask | None = None, generator: Given = None
    ) -> "Linker":
        """Return a linker as in the paper's Table 6: no training, no refinement, and no prior of "no entity"."""
        encoder = Encoder(model.encoder, model.tokenizer, model.name)
        options = LinkerOptions(
            variant=variant, mask=mask, rounds=1, link_prior=False,
            strategy="packed" if encoder.only_absolute_positions else "paper",
        )  # fmt: skip
        return cls.fresh(model, options=options, generator=generator)

    @classmethod
    def from_pretrained(
        cls, name: str | Path, *, vectors: Vectors | str | Path | None = None, generator: Given = None,
        rounds: int | None = None, variant: Variant | None = None, mask: Mask | None = None,
        precision: LinkPrecision = "auto", device: str | torch.device | None = None, model: EBert | None = None,
        **hub: Any,
    ) -> "Linker":  # fmt: skip
        """Load a linker, the best one of a training run, or a model of `ebert align` (zero-shot, one round).

        The name is "starter", a folder or a hub id. `vectors` is the place of the store, if it was moved; `generator`
        finds spans in another way. A model can link in another `variant` or with another `mask`; a linker keeps those
        that it was trained for. An already loaded `model` is used if the linker is an adapter to it. The linker
        computes in fp32, bf16 or int8. `auto` is what suits the processor for an adapter, and fp32 for other linkers.
        """
        folder = of_run(_names.resolve(name, "linker", **hub), INFO)
        if (folder / INFO).is_file():
            if variant or mask:
                raise EbertError(
                    f"{folder} is a trained linker, so its variant and mask are fixed; you can choose them only "
                    f"for models"
                )
            linker = folders.load(cls, folder, vectors=vectors, generator=generator, device=device, model=model)
        elif (folder / models.INFO).is_file():
            model = model or EBert.from_pretrained(folder, vectors=vectors, device=device)
            linker = cls.zero_shot(model, variant=variant or "e-bert-mlm", mask=mask, generator=generator)
        else:
            raise no_linker(folder)
        if rounds is not None:
            linker.options = replace(linker.options, rounds=rounds)
        linker.compute_in(precision)
        return linker

    @classmethod
    def train(
        cls, data: str | Path | Sequence[Document], model: EBert | str | Path, out: str | Path, *,
        dev: str | Path | Sequence[Document] | None = None, vectors: Vectors | str | Path | None = None,
        layout: str | None = None, ids: str | Path | None = None, given: str | Path | None = None,
        generator: Given = None, device: str | None = None, say: Callable[[str], None] | None = None,
        **options: Any,
    ) -> "Linker":  # fmt: skip
        """Train a linker into the folder `out`, or continue a training that was stopped there; return the best linker.

        `data` is a folder of `ebert link wikipedia`, a file of any layout, or documents with gold links (and `dev` more
        of them). All options of `ebert link train` can be given: the fields of `LinkerOptions`, `LinkTrainingOptions`
        and `CandidateOptions`. `generator` finds spans in another way, `given` is a file of candidates, and `say` is
        called with each line of progress.
        """
        from ebert.linking import train as training

        spans, linker_options, own = split_options(options, CandidateOptions, LinkerOptions, LinkTrainingOptions)
        loaded = model if isinstance(model, EBert) else EBert.from_pretrained(model, vectors=vectors, device=device)
        if loaded.vectors is None:
            raise EbertError(NO_VECTORS)
        say = say or (lambda _line: None)
        sources: dict[str, Any] | None = None
        if isinstance(data, str | Path):
            assert dev is None or isinstance(dev, str | Path), "dev data is a file where the data is one"
            data, dev, sources = training.read_data(data, dev, loaded.vectors, layout=layout, ids=ids, say=say)
        if given is not None:
            generator = read_candidates(given, loaded.vectors, candidates=spans.candidates)
        training.train(
            data, cast("Sequence[Document]", dev or ()), loaded, Path(out), linker_options=linker_options, options=own,
            generator=generator or spans, data=sources, device=device, say=say,
        )  # fmt: skip
        return cls.from_pretrained(Path(out), vectors=loaded.vectors, generator=generator, device=device)

    def save_pretrained(self, folder: str | Path, *, include_vectors: bool = False) -> None:
        """Write the linker into a folder, with the name of the store or a copy of it (`include_vectors`)."""
        folders.save(self, Path(folder), include_vectors=include_vectors)

    def with_vectors(self, vectors: Vectors) -> "Linker":
        """Return the same linker with another store with the same words, such as a copy that gets other entities."""
        if vectors.fingerprint != self.vectors.fingerprint:
            raise EbertError(f"{vectors.path} has other words than the store of the linker; train a linker with it")
        twin = copy.copy(self)
        twin.vectors, twin.dropped, twin._entities = vectors, Counter(), EntityVectors(vectors, self.alignment)
        twin.generator = self.generator.with_vectors(vectors)
        twin.batcher = Batcher(self.encoder, twin._entities, self.options)
        return twin

    def compute_in(self, precision: LinkPrecision) -> None:
        """Compute in another precision from now on; `auto` is what suits the processor. Trained weights stay."""
        self.precision = suited(precision, self.module.device, adapter=self.options.adapter)
        self._computing = computing(self.module, self.precision)

    @property
    def generator(self) -> CandidateGenerator:
        """The candidate generator. You can set a function, or options of the mention table."""
        return self._generator

    @generator.setter
    def generator(self, given: Given) -> None:
        self._generator = generator_of(given, self.vectors)

    # Linking

    @overload
    def link(self, texts: Text, **how: Any) -> Linked: ...

    @overload
    def link(self, texts: Iterable[Text], **how: Any) -> list[Linked]: ...

    def link(self, texts: Text | Iterable[Text], **how: Any) -> Linked | list[Linked]:
        """Find and link the entities of a text, or of several; the options are those of `stream`."""
        if isinstance(texts, str | Document):
            return next(self.stream([texts], **how))
        return list(self.stream(texts, **how))

    __call__ = link

    def stream(self, texts: Iterable[Text], *, threshold: float | None = None, **how: Any) -> Iterator[Linked]:
        """Find and link the entities of any number of texts, one after the other.

        Mentions less likely than `threshold` are left out. `rounds` is the number of refinement rounds, `budget` the
        number of tokens a batch may have. `before_batch` is called before each batch: an exception from it ends the
        linking.
        """
        return (steps[-1] for steps in self.trace(texts, threshold=threshold, **how))

    def trace(
        self, texts: Iterable[Text], *, threshold: float | None = None, **how: Any
    ) -> Iterator[tuple[Linked, ...]]:
        """Do the same as `stream`, but yield for each text the links after each round of refinement."""
        least = self.threshold if threshold is None else threshold
        if not 0 <= least <= 1:
            raise EbertError(f"threshold is {least}; it is a probability, from 0 to 1")
        numbered = enumerate(texts, 1)
        documents = (text if isinstance(text, Document) else Document(str(number), text) for number, text in numbered)
        return self._rounds(((document, None) for document in documents), least=least, **how)

    def disambiguate(
        self, documents: Iterable[Document], spans: Iterable[Sequence[Span]] | None = None, **how: Any
    ) -> Iterator[Linked]:
        """Link given mentions, each to its most likely candidate: the documents' gold spans, or those of `spans`.

        The options are those of `stream`, except for the threshold.
        """
        pairs: Iterable[tuple[Document, Sequence[Span]]]
        gold = self.generator.gold
        pairs = ((d, gold(d)) for d in documents) if spans is None else zip(documents, spans, strict=True)
        return (steps[-1] for steps in self._rounds(pairs, always=True, **how))

    def _rounds(
        self, pairs: Iterable[tuple[Document, Sequence[Span] | None]], *, least: float = 0.0, always: bool = False,
        rounds: int | None = None, budget: int | None = None, before_batch: Callable[[], None] | None = None,
    ) -> Iterator[tuple[Linked, ...]]:  # fmt: skip
        """Link documents. Yield for each the links after each round; with `always`, link all given spans."""
        if rounds is not None and rounds < 1:
            raise EbertError(f"rounds is {rounds}; it must be at least 1 (no refinement)")
        if budget is not None and budget < 1:
            raise EbertError(f"budget is {budget}; a batch needs at least one token")
        judge = partial(self.judge, budget=budget, before_batch=before_batch)
        for window in windows(pairs, WINDOW):
            documents = [document for document, _ in window]
            chunks = self.chunks(documents, [own for _, own in window])
            steps = refine(
                chunks, judge, rounds=rounds or self.options.rounds or 1, always=always, together=self.together
            )
            if always and (shared := sum(len(state.chunk.spans) - len(state.decoded) for state in steps[-1])):
                self.dropped[OVERLAPPING] += shared
            yield from zip(*(self._linked(documents, step, least) for step in steps), strict=True)

    @property
    def together(self) -> bool:
        """Whether overlapping spans are decided together: see `ebert.linking.refine.choose`."""
        return self.options.overlaps == "together"

    def chunks(
        self, documents: Sequence[Document], spans: Sequence[Sequence[Span] | None] | None = None
    ) -> list[Chunk]:
        """Cut documents into chunks, with the spans that are given or those that the generator finds."""
        self._entities.refresh()
        pairs = zip(documents, spans or [None] * len(documents), strict=True)
        found = [(document, self.generator(document) if own is None else own) for document, own in pairs]
        chunks, dropped = self._chunker(found, has_vector=lambda title: self._entities.find(title) is not None)
        self.dropped += dropped
        return chunks

    def sequences(self, state: ChunkState) -> list[LinkSequence]:
        """Return the encoder's input for a chunk's open spans, by the linker's strategy."""
        if self.options.strategy == "paper":
            return self._chunker.paper(state.chunk, state.open, state.titles)
        return self._chunker.packed(state.chunk, state.open, state.titles, block=self.options.block or "markers")

    def judge(
        self, states: Sequence[ChunkState], budget: int | None = None, *, shift: float | None = None,
        before_batch: Callable[[], None] | None = None,
    ) -> list[list[Verdict]]:  # fmt: skip
        """Score all open spans of chunks; `shift` is added to the null entity's score, the linker's own by default."""

        def run(batch: Sequence[LinkSequence]) -> list[list[Verdict]]:
            if before_batch is not None:
                before_batch()
            with evaluating(self._computing):
                scores = self._computing(**self.batcher(batch))["scores"]  # (spans, 1 + choices)
                scores[:, 0] += self.null_shift if shift is None else shift
                rows = zip(scores.tolist(), scores.softmax(-1).tolist(), strict=True)
            return [[Verdict.of(placed, *next(rows)) for placed in one.spans] for one in batch]

        laid = [self.sequences(state) for state in states]
        budget = budget or budget_on(self.module.device.type)
        judged = iter(in_order([one for own in laid for one in own], budget, run))
        return [[verdict for _ in own for verdict in next(judged)] for own in laid]

    def _linked(self, documents: Sequence[Document], states: Sequence[ChunkState], least: float) -> list[Linked]:
        mentions: list[list[LinkedMention]] = [[] for _ in documents]
        for state in states:
            text = documents[state.chunk.document].text
            found = (self._mention(text, verdict) for verdict in state.decoded.values())
            mentions[state.chunk.document] += [mention for mention in found if mention.probability >= least]
        return [
            Linked(document, tuple(sorted(own, key=lambda mention: mention.start)))
            for document, own in zip(documents, mentions, strict=True)
        ]

    def _mention(self, text: str, verdict: Verdict) -> LinkedMention:
        span, entity = verdict.placed.span, self._entities.find(verdict.entity)
        shares = zip(span.choices, verdict.scores[1:], verdict.probabilities[1:], strict=True)
        candidates = [Scored(choice.title, choice.prior, score, share) for choice, score, share in shares]
        return LinkedMention(
            span.start, span.end, text[span.start : span.end], verdict.entity, verdict.probabilities[1 + verdict.best],
            verdict.null, tuple(sorted(candidates, key=lambda one: -one.probability)), self.url(verdict.entity),
            entity.qid if entity is not None else None, self._entities.id_of(verdict.entity),
        )  # fmt: skip

    # Entities

    def url(self, title: str) -> str | None:
        """Return the URL of an entity's Wikipedia page; for your own entity, its id if that is a URL, else None."""
        entity, own = self._entities.find(title), self._entities.id_of(title)
        if own is not None and own.startswith(("https://", "http://")):
            return own
        if entity is None or ((entity.added or own is not None) and entity.wikidata is None):
            return None
        made = self.vectors.info.made.get("corpus")
        language = made.get("language", "en") if isinstance(made, dict) else "en"
        page = quote(title.replace(" ", "_"), safe="/:(),!'*@")
        return f"https://{language}.wikipedia.org/wiki/{page}"

    def add(
        self, title: str, vector: Any = None, *, surfaces: Iterable[str] = (), description: str | None = None,
        **more: Any,
    ) -> Entity:  # fmt: skip
        """Add your own entity to the store, with the surfaces that may name it. It can be linked at once.

        Pass its vector or a description, as for `Vectors.add`. A surface may mean other entities too.
        """
        names = [surfaces] if isinstance(surfaces, str) else list(surfaces)
        row = {"title": title, "aliases": names, "vector": vector, "description": description, **more}
        report = self.vectors.add_many([{key: value for key, value in row.items() if value is not None}])
        if report.bad:
            raise EbertError(f"{title!r} was not added: {report.bad[0].reason}")
        return self.vectors.known(title)
