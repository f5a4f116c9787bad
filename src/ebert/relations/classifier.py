"""`RelationClassifier`: tells the relation between the two mentions of a passage."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast, overload

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ebert import _names
from ebert._io.progress import Advance, silent
from ebert.alignment import Alignment
from ebert.errors import EbertError
from ebert.model import EBert
from ebert.model.batching import budget_on, in_order, windows
from ebert.model.encoder import Encoder
from ebert.model.injection import Injector
from ebert.model.sequence import Pieces
from ebert.relations.data import Sample, Span
from ebert.relations.inputs import Inputs, Prepared
from ebert.relations.model import RelationModel
from ebert.relations.resolving import Resolver, ResolvingOptions
from ebert.relations.variants import alignment_for, variant
from ebert.text import Passage
from ebert.vectors.store import Vectors

Text = str | Passage | Sample


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a classifier says about one sample."""

    sample: Sample
    relations: tuple[tuple[str, float], ...]
    """The likeliest relations with their probabilities, the likeliest first."""
    entities: tuple[str | None, str | None] = (None, None)
    """The titles of subject and object, as far as they have vectors; in mode `bert` these are not used."""

    @property
    def relation(self) -> str:
        """The likeliest relation."""
        return self.relations[0][0]

    @property
    def probability(self) -> float:
        """The probability of the likeliest relation."""
        return self.relations[0][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a classifier knows beside its weights."""

    mode: str
    labels: tuple[str, ...]
    encoder: str
    resolving: ResolvingOptions = field(default_factory=ResolvingOptions)
    ids: Mapping[int, str] = field(default_factory=dict)
    """Wikidata ids and titles, for stores that know no ids."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What the relations are called, where that is known: ``{"P19": "place of birth", ...}``."""


class RelationClassifier:
    """Tells the relation between the subject and the object of a passage.

    >>> classify = RelationClassifier.from_pretrained("my-run")                           # doctest: +SKIP
    >>> classify("[[Jean Marais]] was born in [[Cherbourg]] .").relation                  # doctest: +SKIP
    'P19'

    The first mention is the subject and the second the object; a `Sample` can say it otherwise.
    """

    def __init__(
        self,
        module: RelationModel,
        tokenizer: PreTrainedTokenizerBase,
        setting: Setting,
        vectors: Vectors | None = None,
        alignment: Alignment | None = None,
    ) -> None:
        self.module, self.tokenizer, self.setting = module, tokenizer, setting
        self.vectors, self.alignment = vectors, alignment
        injector = Injector(Encoder(module.encoder, tokenizer, setting.encoder), vectors, alignment)
        resolver = Resolver(vectors, setting.resolving, setting.ids)
        self.inputs = Inputs(injector, resolver, variant(setting.mode).mode)

    @classmethod
    def fresh(
        cls,
        model: EBert,
        *,
        mode: str,
        labels: Sequence[str],
        resolving: ResolvingOptions | None = None,
        ids: Mapping[int, str] | None = None,
        names: Mapping[str, str] | None = None,
        seed: int = 0,
    ) -> "RelationClassifier":
        """Put a new softmax layer on the encoder of a model. The encoder is taken, not copied."""
        alignment = alignment_for(model, mode)
        torch.manual_seed(seed)  # the new layer is the same in every variant
        module = RelationModel(cast("PreTrainedModel", model.encoder.base_model), len(labels))
        setting = Setting(
            mode=mode,
            labels=tuple(labels),
            encoder=model.name,
            resolving=resolving or ResolvingOptions(),
            ids=dict(ids or {}),
            names=dict(names or {}),
        )
        return cls(module, model.tokenizer, setting, model.vectors, alignment)

    @property
    def labels(self) -> tuple[str, ...]:
        """The relations it knows."""
        return self.setting.labels

    @property
    def names(self) -> Mapping[str, str]:
        """What they are called, where that is known."""
        return self.setting.names

    @property
    def mode(self) -> str:
        """Which variant it is: `bert`, `concat`, ..."""
        return self.setting.mode

    @overload
    def __call__(self, passages: Text, *, top: int = ..., budget: int | None = ...) -> Prediction: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(
        self, passages: Iterable[Text], *, top: int = ..., budget: int | None = ...
    ) -> Iterator[Prediction]: ...

    def __call__(
        self, passages: Text | Iterable[Text], *, top: int = 3, budget: int | None = None
    ) -> Prediction | Iterator[Prediction]:
        """Classify one passage, or any iterable of them one after the other."""
        if top < 1:
            raise EbertError(f"top is {top}; at least one relation must be asked for")
        if isinstance(passages, str | Passage | Sample):
            return next(self._predict([passages], top, budget))
        return self._predict(passages, top, budget)

    def _predict(self, passages: Iterable[Text], top: int, budget: int | None) -> Iterator[Prediction]:
        for window in windows(as_sample(passage, f"passage {n}") for n, passage in enumerate(passages, 1)):
            prepared = self.inputs.prepare(window)
            for one, row in zip(prepared, self.probabilities(prepared, budget=budget), strict=True):
                best = row.topk(min(top, len(self.labels)))
                pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
                relations = tuple((self.labels[index], value) for index, value in pairs)
                yield Prediction(one.sample, relations, one.entities)

    def probabilities(
        self, samples: Sequence[Prepared], *, budget: int | None = None, advance: Advance = silent
    ) -> list[Tensor]:
        """Give the probabilities of all relations for prepared samples, a row of shape (relations,) each."""
        device = self.module.device

        def run(batch: list[Pieces]) -> list[Tensor]:
            inputs = {name: tensor.to(device) for name, tensor in self.inputs.tensors(batch).items()}
            rows = self.module(**inputs)["logits"].float().softmax(-1).cpu()  # (batch, relations)
            advance(len(batch))
            return list(rows)

        self.module.eval()
        with torch.inference_mode():
            return in_order([one.pieces for one in samples], budget or budget_on(device.type), run)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the classifier into a folder; the store is named in it, not copied."""
        from ebert.relations.folder import save

        save(self, Path(folder))

    @classmethod
    def from_pretrained(
        cls, path: str | Path, *, vectors: Vectors | str | Path | None = None, device: str | torch.device | None = None
    ) -> "RelationClassifier":
        """Load a classifier, or the best one of a run. `vectors` says where its store is now, if not where it was."""
        from ebert.relations.folder import load

        return load(_names.resolve(path, "classifier"), vectors=vectors, device=device)


def as_sample(value: Text, where: str) -> Sample:
    """Take the first mention of a passage for the subject and the second for the object."""
    if isinstance(value, Sample):
        return value
    try:
        passage = Passage.of(value)
    except EbertError as error:
        raise EbertError(f"{where}: {error}") from None
    if len(passage.mentions) != 2:
        raise EbertError(
            f"{where}: it has {len(passage.mentions)} mentions; mark the subject and the object, and nothing else "
            "([[Title|surface]])"
        )
    subject, object_ = (Span(m.start, m.end, m.entity) for m in passage.mentions)
    return Sample(passage.text, subject, object_, where=where)


def swapped(sample: Sample) -> Sample:
    """Give the sample with subject and object exchanged."""
    return replace(sample, subject=sample.object, object=sample.subject)
