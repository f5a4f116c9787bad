"""The classifier's network: an encoder, and a softmax layer on the last hidden state of its first piece, [CLS]."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast, overload

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ebert import __version__, _names
from ebert._io import files, trusted
from ebert._io.progress import Advance, silent
from ebert.bert.load import load_tokenizer, quiet
from ebert.errors import EbertError
from ebert.model.alignment import Alignment
from ebert.model.batching import budget_on, in_order, windows
from ebert.model.ebert import EBert
from ebert.model.encoder import Encoder, move
from ebert.model.injection import Injector, Pieces
from ebert.relations.data import Resolver, ResolvingOptions, Sample, Span
from ebert.relations.inputs import Inputs, Prepared, alignment_for, variant
from ebert.text.passage import Passage
from ebert.vectors.store import Vectors, reopen
from ebert.vectors.wikidata_ids import read_ids

SPREAD = 0.02  # of the new layer's weights, where the encoder does not say how its own were drawn


class RelationModel(nn.Module):
    """An encoder (without its MLM head and without BERT's tanh pooler) and a new linear layer."""

    def __init__(self, encoder: PreTrainedModel, relations: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.encoder.get_input_embeddings().requires_grad_(False)
        self.classifier = nn.Linear(encoder.config.hidden_size, relations)
        nn.init.normal_(self.classifier.weight, std=getattr(encoder.config, "initializer_range", None) or SPREAD)
        nn.init.zeros_(self.classifier.bias)

    def forward(
        self,
        inputs_embeds: Tensor,  # (batch, pieces, width)
        attention_mask: Tensor,  # (batch, pieces)
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,  # (batch,)
    ) -> dict[str, Tensor]:
        """Give the logits of the relations, shape (batch, relations), and the loss if there are labels."""
        inputs = {"inputs_embeds": inputs_embeds, "attention_mask": attention_mask}
        if position_ids is not None:
            inputs["position_ids"] = position_ids
        first = self.encoder(**inputs).last_hidden_state[:, 0]  # (batch, hidden)
        logits = self.classifier(first)
        if labels is None:
            return {"logits": logits}
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.classifier.weight.device


Text = str | Passage | Sample


@dataclass(frozen=True, slots=True)
class RelationPrediction:
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
    def __call__(self, passages: Text, *, top: int = ..., budget: int | None = ...) -> RelationPrediction: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(
        self, passages: Iterable[Text], *, top: int = ..., budget: int | None = ...
    ) -> Iterator[RelationPrediction]: ...

    def __call__(
        self, passages: Text | Iterable[Text], *, top: int = 3, budget: int | None = None
    ) -> RelationPrediction | Iterator[RelationPrediction]:
        """Classify one passage, or any iterable of them one after the other."""
        if top < 1:
            raise EbertError(f"top is {top}; at least one relation must be asked for")
        if isinstance(passages, str | Passage | Sample):
            return next(self._predict([passages], top, budget))
        return self._predict(passages, top, budget)

    def _predict(self, passages: Iterable[Text], top: int, budget: int | None) -> Iterator[RelationPrediction]:
        for window in windows(as_sample(passage, f"passage {n}") for n, passage in enumerate(passages, 1)):
            prepared = self.inputs.prepare(window)
            for one, row in zip(prepared, self.probabilities(prepared, budget=budget), strict=True):
                best = row.topk(min(top, len(self.labels)))
                pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
                relations = tuple((self.labels[index], value) for index, value in pairs)
                yield RelationPrediction(one.sample, relations, one.entities)

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
        from ebert.relations.classifier import save

        save(self, Path(folder))

    @classmethod
    def from_pretrained(
        cls, path: str | Path, *, vectors: Vectors | str | Path | None = None, device: str | torch.device | None = None
    ) -> "RelationClassifier":
        """Load a classifier, or the best one of a run. `vectors` says where its store is now, if not where it was."""
        from ebert.relations.classifier import load

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


FORMAT = 1
INFO, WEIGHTS, ALIGNMENT, IDS = "relations.json", "weights.safetensors", "alignment.safetensors", "ids.json"
MODEL = "model"  # the classifier's folder in a run


def save(classifier: RelationClassifier, folder: Path) -> None:
    """Write a classifier, in the place of an older one if there is one."""
    from safetensors.torch import save_file

    setting, module = classifier.setting, classifier.module
    with files.replacing_folder(folder, overwrite=True, marker=INFO) as new, quiet():
        module.encoder.config.save_pretrained(new)
        classifier.tokenizer.save_pretrained(new)
        save_file({name: tensor.contiguous() for name, tensor in module.state_dict().items()}, new / WEIGHTS)
        (new / WEIGHTS).chmod((new / "config.json").stat().st_mode)  # safetensors makes it readable to its owner only
        if classifier.alignment is not None:
            classifier.alignment.save(new / ALIGNMENT)
        if setting.ids:
            files.write_json(new / IDS, {f"Q{number}": title for number, title in setting.ids.items()})
        store = classifier.vectors
        files.write_json(
            new / INFO,
            {
                "ebert": __version__,
                "format": FORMAT,
                "mode": setting.mode,
                "encoder": setting.encoder,
                "vectors": None if store is None else {"name": str(store.path), "fingerprint": store.fingerprint},
                "saved_here": "" if store is None else trusted.mark(str(store.path)),
                "resolving": asdict(setting.resolving),
                "labels": list(setting.labels),
                "names": dict(setting.names),
            },
        )


def load(
    folder: Path, *, vectors: Vectors | str | Path | None = None, device: str | torch.device | None = None
) -> RelationClassifier:
    """Read what `save` wrote; `folder` may also be the run that it is in."""
    if not (folder / INFO).is_file() and (folder / MODEL / INFO).is_file():
        folder = folder / MODEL
    if not folder.is_dir():
        raise EbertError(f"there is no classifier at {folder}; make one with 'ebert relations train'")
    info = files.read_json(folder / INFO, "a relation classifier")
    version = info.get("format")
    if not isinstance(version, int) or version > FORMAT:
        raise EbertError(
            f"{folder} has classifier format {version}; this version of ebert reads up to {FORMAT}: upgrade ebert"
        )
    try:
        setting = Setting(
            mode=str(info["mode"]),
            labels=tuple(info["labels"]),
            encoder=info["encoder"],
            resolving=ResolvingOptions(**info["resolving"]),
            ids=read_ids(folder / IDS) if (folder / IDS).is_file() else {},
            names=info.get("names", {}),
        )
        part = info["vectors"]
        ours = part is not None and trusted.known(info.get("saved_here"), part["name"])
        store = None if part is None else reopen(folder, part["name"], part["fingerprint"], vectors, ours=ours)
    except (KeyError, TypeError) as error:
        raise EbertError(f"{folder / INFO} is damaged ({error}); train the classifier again") from None
    alignment = Alignment.load(folder / ALIGNMENT) if (folder / ALIGNMENT).is_file() else None
    module = _module(folder, len(setting.labels))
    move(module, device)
    return RelationClassifier(module, load_tokenizer(folder), setting, store, alignment)


def _module(folder: Path, relations: int) -> RelationModel:
    from safetensors import SafetensorError
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoModelForMaskedLM

    try:
        with quiet():
            config = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
            # As part of a masked LM the encoder has no pooler, whatever its kind.
            auto: Any = AutoModelForMaskedLM  # its from_config has no types
            encoder = auto.from_config(config).base_model
        module = RelationModel(encoder, relations)
        module.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise EbertError(f"the weights in {folder} cannot be loaded ({error}); train the classifier again") from None
    return module.eval()
