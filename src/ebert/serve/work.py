"""The heavy part of the service: a loaded model and linker, what they do with requests, and the queues for that work.

Texts of many clients go through the encoder together. This module imports torch; the server loads it last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ebert import _names
from ebert.errors import EbertError
from ebert.linking.document import Document, Linked, LinkedMention
from ebert.linking.folder import INFO
from ebert.linking.linker import Linker
from ebert.linking.options import LinkPrecision
from ebert.linking.output import mention_value
from ebert.model.batching import budget_on, plan
from ebert.model.ebert import EBert
from ebert.model.fill import Answer
from ebert.model.injection import Pieces
from ebert.model.options import MODES, Mode
from ebert.serve.batch_queue import BatchQueue, Pause, QueueOptions
from ebert.serve.explore import Explorer, suited
from ebert.serve.metrics import Metrics
from ebert.serve.options import Limits, ServeOptions
from ebert.text.passage import Passage
from ebert.vectors.copies import copy_on_write
from ebert.vectors.store import Vectors


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model and a linker, ready to work."""

    name: str
    model: EBert
    linker: Linker | None
    linker_name: str | None
    keeps: bool = False  # whether added entities stay when the service ends
    store: str = ""  # what the store is called on the command line, where the model's folder is

    @property
    def vectors(self) -> Vectors:
        """The model's store."""
        assert self.model.vectors is not None  # `load` takes no other models
        return self.model.vectors

    @property
    def stores(self) -> list[Vectors]:
        """All stores that an added entity goes to."""
        other = [] if self.linker is None or self.linker.vectors is self.vectors else [self.linker.vectors]
        return [self.vectors, *other]

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes that the model has."""
        return MODES


def load(
    model: str, linker: str | None = None, *, vectors: str | None = None, keep: bool = False,
    device: str | None = None, precision: LinkPrecision = "auto",
) -> Loaded:  # fmt: skip
    """Load a model folder or the starter, and a linker's folder.

    Without a linker the model links by the one in its folder, or without training if its store has a mention table.
    With `keep`, entities that are added go into the stores themselves; otherwise into copies that are gone with it.
    The linker computes in a `precision`.
    """
    ebert = EBert.from_pretrained(model, vectors=vectors, device=device)
    if ebert.vectors is None:
        raise EbertError(f"{model} has no entity vectors: give a model made by 'ebert align', or 'starter'")
    place = ebert.vectors.path.resolve()
    if not keep:
        ebert = ebert.with_vectors(copy_on_write(ebert.vectors))
    name = Path(model).name or model
    store = name if model == "starter" and vectors is None else place.name
    if linker is not None:
        moved = vectors is not None
        own = _linker(linker, ebert, place, moved=moved, keep=keep, device=device, precision=precision)
        return Loaded(name, ebert, own, Path(linker).name, keep, store)
    assert ebert.vectors is not None
    folder = _names.resolve(model, "model")
    if (folder / INFO).is_file():  # it has a trained linker with it
        return Loaded(name, ebert, Linker.from_pretrained(folder, model=ebert, precision=precision), name, keep, store)
    if not ebert.vectors.describe()["surfaces"]:
        return Loaded(name, ebert, None, None, keep, store)
    untrained = Linker.zero_shot(ebert)
    untrained.compute_in(precision)
    return Loaded(name, ebert, untrained, f"{name} (not trained to link)", keep, store)


def _linker(linker: str, model: EBert, place: Path, *, moved: bool, keep: bool, **how: Any) -> Linker:
    """Load a linker; if it links to the model's store, with the same object, so that both know the same entities.

    If that store was `moved`, the linker names the place where it was, too.
    """
    try:
        loaded = Linker.from_pretrained(linker, **how)
    except EbertError:
        if not moved:
            raise
        return Linker.from_pretrained(linker, vectors=model.vectors, **how)
    own = loaded.vectors
    if own.path.resolve() == place:
        assert model.vectors is not None
        return loaded.with_vectors(model.vectors)
    return loaded if keep else loaded.with_vectors(copy_on_write(own))


PIECE = 3  # letters of a wordpiece, about


@dataclass(frozen=True, slots=True)
class TextToLink:
    """A text to link. If mentions are `given`, these are linked, each to its most likely candidate."""

    document: Document
    rounds: int  # of refinement
    given: bool = False

    @property
    def tokens(self) -> int:
        """The approximate cost of the job: there are about as many blocks for spans as words."""
        return self.rounds * (2 * (len(self.document.text) // PIECE) + 2)


Steps = tuple[Linked, ...]  # what was linked after each round of refinement


class LinkWork:
    """Links texts and writes down what was found."""

    def __init__(self, linker: Linker, *, budget: int | None = None) -> None:
        self.linker, self._budget = linker, budget

    @property
    def rounds(self) -> int:
        """The linker's own rounds of refinement."""
        return self.linker.options.rounds or 1

    def run(self, jobs: Sequence[TextToLink], pause: Pause) -> list[Steps]:
        """Link texts; return for each what was linked after each round. `pause` is called between batches."""
        groups: dict[tuple[int, bool], list[int]] = {}
        for number, job in enumerate(jobs):
            groups.setdefault((job.rounds, job.given), []).append(number)
        results: dict[int, Steps] = {}
        for (rounds, given), numbers in groups.items():
            documents = [jobs[number].document for number in numbers]
            results.update(zip(numbers, self._together(documents, rounds, pause, given=given), strict=True))
        return [results[number] for number in range(len(jobs))]

    def _together(self, documents: list[Document], rounds: int, pause: Pause, *, given: bool) -> list[Steps]:
        how: dict[str, Any] = {"rounds": rounds, "budget": self._budget, "before_batch": pause}
        if not given:
            return list(self.linker.trace(documents, threshold=0.0, **how))
        return [(linked,) for linked in self.linker.disambiguate(documents, **how)]

    def sure(self, linked: Linked, threshold: float | None = None) -> list[LinkedMention]:
        """Return the mentions that are probable enough."""
        least = self.linker.threshold if threshold is None else threshold
        return [mention for mention in linked.mentions if mention.probability >= least]

    def write(self, steps: Steps, *, threshold: float | None, trace: bool) -> dict[str, Any]:
        """Return what the client gets."""
        rounds = [[mention_value(one) for one in self.sure(step, threshold)] for step in steps]
        value: dict[str, Any] = {"text": steps[-1].document.text, "mentions": rounds[-1]}
        if trace:
            value["rounds"] = rounds
        return value


@dataclass(frozen=True, slots=True)
class TextToFill:
    """A text to fill: a sequence for each mode, cut and checked."""

    passage: Passage
    sequences: tuple[Pieces, ...]
    missing: tuple[str, ...]
    top: int
    candidates: tuple[int, ...] | None  # wordpieces to choose from

    @property
    def tokens(self) -> int:
        """What the job costs."""
        return sum(map(len, self.sequences))


Masks = list[tuple[Answer, ...]]  # the answers for each mask of a sequence


class FillWork:
    """Prepares texts, fills them and writes the answers down."""

    def __init__(self, model: EBert, *, budget: int | None = None) -> None:
        self._model, self._filler = model, model.filler()
        self.budget = budget or budget_on(model.encoder.device.type)

    def prepare(
        self, passage: Passage, modes: Sequence[Mode], *, top: int, candidates: Sequence[str] | None
    ) -> TextToFill:
        """Cut a text into wordpieces, and raise all errors now that would come later."""
        sequences = tuple(self._filler.sequences([passage], mode)[0] for mode in modes)
        if not sequences[0].masks:
            raise EbertError(f"the text has no mask; write [MASK] where the answer goes: {passage.text[:60]!r}")
        chosen = None if candidates is None else tuple(self._model.vocabulary.ids(candidates))
        return TextToFill(passage, sequences, tuple(self._model.missing(passage)), top, chosen)

    def run(self, jobs: Sequence[TextToFill], pause: Pause = lambda: None) -> list[list[Masks]]:
        """Fill the masks of jobs; return for each the answers of its sequences. `pause` is called between batches."""
        sequences = [(number, pieces) for number, job in enumerate(jobs) for pieces in job.sequences]
        found: dict[int, Masks] = {}
        for group in self._groups([len(pieces) for _, pieces in sequences]):
            pause()
            logits = self._filler.logits([sequences[index][1] for index in group], packed=True)  # (masks, vocabulary)
            row = 0
            for index in group:
                number, pieces = sequences[index]
                own = logits[row : row + len(pieces.masks)]
                row += len(pieces.masks)
                found[index] = self._filler.answers(own, top=jobs[number].top, candidates=jobs[number].candidates)
        results: list[list[Masks]] = [[] for _ in jobs]
        for index, (number, _) in enumerate(sequences):
            results[number].append(found[index])
        return results

    def _groups(self, lengths: list[int]) -> list[list[int]]:
        """Cut sequences into batches: in order if rows are shared, else with similar lengths together."""
        if not self._filler.packs:
            return plan(lengths, self.budget)
        groups: list[list[int]] = []
        room = 0
        for index, length in enumerate(lengths):
            if length > room:
                groups.append([])
                room = self.budget
            groups[-1].append(index)
            room -= length
        return groups

    def write(self, job: TextToFill, answers: list[Masks]) -> dict[str, Any]:
        """Return what the client gets."""
        show = self._filler.show
        return {
            "text": job.passage.text,
            "mentions": [
                {"start": m.start, "end": m.end, "text": job.passage.surface(m), "entity": m.entity}
                for m in job.passage.mentions
            ],
            "missing": list(job.missing),
            "results": [
                {
                    "mode": pieces.mode,
                    "pieces": show(pieces),
                    "entities": sorted(pieces.entities),
                    "masks": [[{"token": a.token, "probability": a.probability} for a in mask] for mask in masks],
                }
                for pieces, masks in zip(job.sequences, answers, strict=True)
            ],
        }


def warm_up(work: FillWork) -> None:
    """Fill a mask, so that the first client does not have to wait for one-time work."""
    with torch.inference_mode():
        work.run([work.prepare(Passage("[MASK]"), ["bert"], top=1, candidates=None)])


Task = Callable[[], Any]


class Working:
    """What a service has as soon as its model is loaded.

    Filling and linking each have a thread of their own, so that a long text that is linked holds nobody up who fills
    masks, and others who link for one batch only; looking something up, and looking at all vectors of a store, have
    others.
    """

    def __init__(self, loaded: Loaded, options: ServeOptions, metrics: Metrics) -> None:
        self.loaded, self._metrics, self._seconds = loaded, metrics, options.limits.seconds
        self.fill = FillWork(loaded.model, budget=options.budget)
        self.link = None if loaded.linker is None else LinkWork(loaded.linker, budget=options.budget)
        self.explorer = Explorer(loaded, most_added=options.limits.added)
        warm_up(self.fill)
        self.explorer.prepare()
        self._examples = suited(loaded.vectors)
        common = QueueOptions(waiting=options.limits.waiting, patience=options.limits.seconds)
        batched = replace(
            common,
            together=options.limits.waiting if options.batching else 1,
            budget=self.fill.budget,
            window=options.window if options.batching else 0.0,
        )
        self._queues: list[BatchQueue[Any, Any]] = []
        self.quick: BatchQueue[Task, Any] = self._queue("lookup", _each, replace(common, threads=2))
        self.slow: BatchQueue[Task, Any] = self._queue("explore", _each, common)
        self.filling: BatchQueue[TextToFill, list[Masks]] = self._queue("fill", self.fill.run, batched)
        self.linking: BatchQueue[TextToLink, Steps] | None = None
        if self.link is not None:  # a text costs its tokens in every round, and is in a batch with all of them
            self.linking = self._queue(
                "link", self.link.run, replace(batched, budget=batched.budget * self.link.rounds)
            )

    def describe(self, limits: Limits) -> dict[str, Any]:
        """Return what clients can learn about the model."""
        loaded, linker = self.loaded, None
        if loaded.linker is not None:
            options = loaded.linker.options
            linker = {"name": loaded.linker_name, "rounds": options.rounds, "strategy": options.strategy}
            linker["precision"] = loaded.linker.precision
        encoder = Path(loaded.model.name)
        return {
            "name": loaded.name,
            "encoder": encoder.name if encoder.is_absolute() else loaded.model.name,  # nobody's folders are told
            "mask": "[MASK]",
            "modes": list(loaded.modes),
            "entities": len(loaded.vectors),
            "words": loaded.vectors.info.words,
            "dimension": loaded.vectors.dimension,
            "store": loaded.store,
            "linker": linker,
            "keeps": loaded.keeps,
            "limits": {"characters": limits.characters, "body": limits.body, "top": limits.top},
            "examples": self._examples,
        }

    def close(self) -> None:
        """Finish waiting jobs, as long as a client waits for them."""
        for queue in reversed(self._queues):
            queue.close(self._seconds)

    def _queue(self, name: str, run: Any, options: QueueOptions) -> "BatchQueue[Any, Any]":
        queue: BatchQueue[Any, Any] = BatchQueue(name, run, options, watch=lambda ran: self._metrics.ran(name, ran))
        self._metrics.watch(queue)
        self._queues.append(queue)
        return queue


def _each(tasks: Sequence[Task], _: Pause) -> list[Any]:
    return [task() for task in tasks]
