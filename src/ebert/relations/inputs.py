"""From samples to what the encoder sees: markers around the mentions, entities inside them (appendix of the paper).

``[CLS] ... classic $ World_War_II / World War II $ drama `` # Battleground_(film) / Battle ##ground # '' ... [SEP]``

Samples are cut into pieces once, and the vector of an entity is read and projected once; a batch then costs a look-up.
Sentences longer than the encoder are cut around their mentions, never through one.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ebert.errors import EbertError
from ebert.model.alignment import Alignment
from ebert.model.batching import windows
from ebert.model.ebert import EBert
from ebert.model.injection import Injector, Pieces
from ebert.model.options import AlignmentOptions, Mode
from ebert.relations.data import Sample, SampleResolver, naming
from ebert.relations.options import variant
from ebert.text.passage import Mention, Passage
from ebert.vectors.entity import Entity

SUBJECT, OBJECT = "#", "$"
NOBODY = "\ue000nobody"  # the entity of a mention without one: no title has this character
WINDOW = 1024  # samples cut at a time
LONG_WORD = 16  # pieces: what has more between two blanks is no word but a text without blanks

Range = tuple[int, int]


class CachedInjector(Injector):
    """Remembers entities and their projected vectors, which an epoch meets again and again."""

    def __init__(self, injector: Injector) -> None:
        """Take over another one's parts, with the wordpiece vectors on the CPU as a data loader needs them."""
        self.__dict__.update(injector.on_cpu().__dict__)
        self._found: dict[str, Entity | None] = {}
        self._known: dict[Entity, Tensor] = {}

    def find(self, mentions: Collection[Mention]) -> dict[Mention, Entity]:
        """Return the entities of mentions, from memory where they have been asked for."""
        new = {m.entity: m for m in mentions if m.entity not in self._found and m.entity != NOBODY}
        if new:
            found = super().find(list(new.values()))
            self._found.update({title: found.get(mention) for title, mention in new.items()})
        return {m: entity for m in mentions if (entity := self._found.get(m.entity)) is not None}

    def project(self, entities: Sequence[Entity]) -> Tensor:
        """Return projected vectors, from memory where they have been asked for."""
        for entity in entities:
            if entity not in self._known:
                # One by one: the last bit of a product depends on the size of the matrix, and with it on the batch in
                # which an entity is first met, which is another one after a resume.
                self._known[entity] = super().project([entity])[0]
        return torch.stack([self._known[entity] for entity in entities])


@dataclass(frozen=True, slots=True)
class Prepared:
    """A sample, cut into pieces."""

    sample: Sample
    pieces: Pieces
    entities: tuple[str | None, str | None]
    """The titles of subject and object, as far as they have vectors."""
    shortened: bool = False

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def covered(self) -> bool:
        """Whether both entities have vectors."""
        return None not in self.entities


class Inputs:
    """Prepares samples and collates them."""

    def __init__(self, injector: Injector, resolver: SampleResolver, mode: Mode) -> None:
        self._injector = CachedInjector(injector)
        self.resolver, self.mode = resolver, mode

    def prepare(self, samples: Sequence[Sample]) -> list[Prepared]:
        """Mark and cut samples."""
        prepared: list[Prepared] = []
        for window in windows(samples, WINDOW):
            marked = [self._mark(sample) for sample in window]
            cut_up = self._all(window, [passage for passage, _ in marked])
            for sample, (passage, entities), pieces in zip(window, marked, cut_up, strict=True):
                long = len(pieces) > self._injector.longest
                fitting = self._shortened(sample, passage) if long else pieces
                prepared.append(Prepared(sample, fitting, entities, shortened=long))
        return prepared

    def show(self, prepared: Prepared) -> list[str]:
        """Return what the encoder sees, written as in the paper."""
        return self._injector.sequencer.show(prepared.pieces)

    def tensors(self, batch: Sequence[Pieces]) -> dict[str, Tensor]:
        """Return the encoder's inputs for a batch, padded to its longest."""
        return self._injector.tensors(batch)

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate rows with the `pieces` of a sample and its `label`: the data collator of the Trainer."""
        batch = self.tensors([row["pieces"] for row in rows])
        batch["labels"] = torch.tensor([row["label"] for row in rows])
        return batch

    def _mark(self, sample: Sample) -> tuple[Passage, tuple[str | None, str | None]]:
        found = [self.resolver(sample, span)[1] for span in sample.spans]
        one, other = (entity.title if entity else None for entity in found)
        subject, object_ = (
            Mention(span.start, span.end, title or NOBODY)
            for span, title in zip(sample.spans, (one, other), strict=True)
        )
        passage = Passage(sample.text, (subject, object_)).mark({subject: SUBJECT, object_: OBJECT})
        return passage, (one, other)

    def _cut_up(self, passages: Sequence[Passage]) -> list[Pieces]:
        found = self._injector.find({mention for passage in passages for mention in passage.mentions})
        return self._injector.sequencer(
            [(p, {m: found[m] for m in p.mentions if m in found}) for p in passages], self.mode
        )

    def _all(self, samples: Sequence[Sample], passages: Sequence[Passage]) -> list[Pieces]:
        """Cut passages into pieces; the error names the sample that cannot be."""
        try:
            return self._cut_up(passages)
        except EbertError:
            for sample, passage in zip(samples, passages, strict=True):
                with naming(sample.where):
                    self._cut_up([passage])
            raise

    def _shortened(self, sample: Sample, passage: Passage) -> Pieces:
        keep = [(mention.start - 2, mention.end + 2) for mention in passage.mentions]  # with the marker and its blank
        with naming(sample.where):
            shorter = cut(passage, keep, lambda p: self._cut_up([p])[0], self._injector.longest)
        return self._cut_up([shorter])[0]


def padding(lengths: Iterable[Sequence[int]]) -> float:
    """Return the share of padding among the tokens of batches, given by the lengths of their sequences."""
    real = padded = 0
    for batch in lengths:
        real += sum(batch)
        padded += len(batch) * max(batch)
    return 1 - real / padded if padded else 0.0


def alignment_for(model: EBert, name: str) -> Alignment | None:
    """Return the alignment for the entities of a variant: W, or nothing for the paper's unaligned baselines.

    Where W scales its vectors to a length, the baselines' have it too, so that both differ in W only.
    """
    chosen = variant(name)
    if model.vectors is None or model.alignment is None:
        if chosen.mode != "bert":
            raise EbertError(
                f"the mode {name} needs entity vectors: give a model made by 'ebert align' instead of an encoder"
            )
        return None
    if chosen.aligned:
        return model.alignment
    width = model.alignment.target
    if model.vectors.dimension != width:
        raise EbertError(
            f"the mode {name} feeds vectors as they are, so they must have dimension {width}, like the wordpiece "
            f"vectors of {model.name}; those of {model.vectors.path} have {model.vectors.dimension}"
        )
    return Alignment.fit(model.vectors, {}, np.zeros((1, width), np.float32),
                         AlignmentOptions(method="none", length=model.alignment.options.length))  # fmt: skip


def cut(passage: Passage, keep: Sequence[Range], cut_up: Callable[[Passage], Pieces], longest: int) -> Passage:
    """Shorten a passage to `longest` pieces: the characters of `keep` stay, and of the others the nearest to them."""
    pieces = cut_up(passage)
    shorter, budget = passage, longest
    while (over := len(cut_up(shorter)) - longest) > 0:
        if shorter is not passage:
            budget -= over  # what is left was split in another way than before
        shorter = _shorten(passage, keep, pieces, budget)
    return shorter


def _shorten(passage: Passage, keep: Sequence[Range], pieces: Pieces, budget: int) -> Passage:
    units = _units(passage.text, pieces)
    far = [min(max(start - last, first - end, 0) for first, last in keep) for start, end, _ in units]
    fixed = [any(start < last and first < end for first, last in keep) for start, end, _ in units]
    # Pieces of no unit (the first and the last one, entities, slashes) are always there.
    left = budget - len(pieces) + sum(count for (_, _, count), stays in zip(units, fixed, strict=True) if not stays)
    if left < 0:
        raise EbertError("the two mentions alone have more wordpieces than the encoder takes; shorten them")
    edits = []
    for index in sorted(range(len(units)), key=lambda index: (far[index], index)):
        start, end, count = units[index]
        if not fixed[index]:
            left -= count
            if left < 0:  # and nothing further away either, as the text would have holes
                edits.append((start, end, ""))
    return passage.replace_text(sorted(edits))  # blanks stay: they cost no pieces


def _units(text: str, pieces: Pieces) -> list[tuple[int, int, int]]:
    """Return the words between blanks, `(start, end, pieces)`; long ones piece by piece."""
    words: list[list[Range]] = []
    for place, (start, end) in enumerate(pieces.spans):
        if start == end or place in pieces.entities:
            continue
        if words and not any(letter.isspace() for letter in text[words[-1][-1][1] : start]):
            words[-1].append((start, end))
        else:
            words.append([(start, end)])
    units: list[tuple[int, int, int]] = []
    for word in words:
        if len(word) > LONG_WORD:
            units += [(start, end, 1) for start, end in word]
        else:
            units.append((word[0][0], word[-1][1], len(word)))
    return units
