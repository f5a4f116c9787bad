"""`RelationClassifier`: an encoder and a softmax layer that find the relation between the two mentions of a passage.

On disk it is a folder with weights, tokenizer and W, and the name of the store that it belongs to.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast, overload

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ebert import _names
from ebert._io import files, trusted
from ebert._io.progress import Advance, silent
from ebert.bert.load import load_tokenizer
from ebert.errors import EbertError
from ebert.finetuning.folder import ALIGNMENT, load_module, of_run, read_info, writing
from ebert.finetuning.options import Say, split_options
from ebert.model.alignment import Alignment
from ebert.model.batching import budget_on, in_order, windows
from ebert.model.ebert import EBert, load_model
from ebert.model.encoder import Encoder, move
from ebert.model.folder import find_base
from ebert.model.injection import Injector, Pieces
from ebert.relations.data import Sample, SampleResolver, as_sample
from ebert.relations.inputs import Inputs, Prepared, alignment_for
from ebert.relations.options import RelationTrainingOptions, ResolvingOptions, variant
from ebert.text.passage import Passage
from ebert.vectors.store import Vectors, reopen
from ebert.vectors.wikidata_ids import read_ids

SPREAD = 0.02  # of the new layer's weights, where the encoder does not say how its own were drawn
INFO, IDS = "relations.json", "ids.json"

Text = str | Passage | Sample


@dataclass(frozen=True, slots=True)
class RelationPrediction:
    """What a classifier finds in one sample."""

    sample: Sample
    relations: tuple[tuple[str, float], ...]
    """The best relations with their probabilities, the most likely first."""
    entities: tuple[str | None, str | None] = (None, None)
    """The titles of subject and object, as far as they have vectors; in mode `bert` these are not used."""

    @property
    def relation(self) -> str:
        """The most likely relation."""
        return self.relations[0][0]

    @property
    def probability(self) -> float:
        """The probability of the most likely relation."""
        return self.relations[0][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The properties of a classifier besides its weights."""

    mode: str
    labels: tuple[str, ...]
    encoder: str
    resolving: ResolvingOptions = field(default_factory=ResolvingOptions)
    ids: Mapping[int, str] = field(default_factory=dict)
    """Wikidata ids and titles, for stores that know no ids."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What the relations are called, where that is known: ``{"P19": "place of birth", ...}``."""


class RelationModel(nn.Module):
    """An encoder (without its MLM head and without BERT's tanh pooler) and a linear layer on its first piece, [CLS]."""

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
        """Return the logits of the relations, shape (batch, relations), and the loss if there are labels."""
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


class RelationClassifier:
    """Finds the relation between the subject and the object of a passage.

    >>> classifier = RelationClassifier.from_pretrained("my-run")                         # doctest: +SKIP
    >>> classifier.predict("[[Jean Marais]] was born in [[Cherbourg]] .").relation        # doctest: +SKIP
    'P19'

    The first mention is the subject and the second the object; a `Sample` can have them in any order.
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
        self.labels, self.names, self.mode = setting.labels, setting.names, setting.mode
        injector = Injector(Encoder(module.encoder, tokenizer, setting.encoder), vectors, alignment)
        resolver = SampleResolver(vectors, setting.resolving, setting.ids)
        self.inputs = Inputs(injector, resolver, variant(setting.mode).mode)

    def __repr__(self) -> str:
        store = "no vectors" if self.vectors is None else f"vectors {self.vectors.path.name!r}"
        relations = f"{len(self.labels)} relations, mode {self.mode!r}"
        return f"RelationClassifier({self.setting.encoder!r}, {relations}, {store})"

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
        """Return a classifier with a new softmax layer on the encoder of a model, which is used, not copied."""
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

    @classmethod
    def train(
        cls,
        data: str | Path,
        model: EBert | str | Path,
        out: str | Path,
        *,
        mode: str = "concat",
        ids: str | Path | Mapping[int, str] | None = None,
        vectors: Vectors | str | Path | None = None,
        device: str | None = None,
        say: Say | None = None,
        **options: Any,
    ) -> "RelationClassifier":
        """Train a classifier on a folder with train and dev, or continue a training, and return the best one.

        `model` is an `EBert` or the name of one; with mode `bert` also of an encoder. `options` are those of
        ``ebert relations train``: the fields of `RelationTrainingOptions` and `ResolvingOptions`. The run in the folder
        `out` can be evaluated and reported on, and the same call continues it after an interruption.
        """
        from ebert.relations.train import train

        chosen, resolving = split_options(options, RelationTrainingOptions, ResolvingOptions)
        if not isinstance(model, EBert):
            model = load_model(find_base(model, vectors, mode=mode))
        train(
            Path(data), model, Path(out), mode=mode, options=chosen, resolving=resolving,
            ids=read_ids(Path(ids)) if isinstance(ids, str | Path) else ids, device=device, say=say or (lambda _: None),
        )  # fmt: skip
        return cls.from_pretrained(out, vectors=vectors, device=device)

    # Predicting

    @overload
    def predict(self, texts: Text, *, top: int = ..., budget: int | None = ...) -> RelationPrediction: ...  # type: ignore[overload-overlap]

    @overload
    def predict(
        self, texts: Iterable[Text], *, top: int = ..., budget: int | None = ...
    ) -> list[RelationPrediction]: ...

    def predict(
        self, texts: Text | Iterable[Text], *, top: int = 3, budget: int | None = None
    ) -> RelationPrediction | list[RelationPrediction]:
        """Classify one passage, or a list of them: one prediction, or a list."""
        if isinstance(texts, str | Passage | Sample):
            return next(self.stream([texts], top=top, budget=budget))
        return list(self.stream(texts, top=top, budget=budget))

    __call__ = predict

    def stream(self, texts: Iterable[Text], *, top: int = 3, budget: int | None = None) -> Iterator[RelationPrediction]:
        """Yield the predictions for any iterable of passages, one after the other."""
        if top < 1:
            raise EbertError(f"top is {top}; at least one relation must be asked for")
        for window in windows(as_sample(text, f"passage {n}") for n, text in enumerate(texts, 1)):
            prepared = self.inputs.prepare(window)
            for one, row in zip(prepared, self.probabilities(prepared, budget=budget), strict=True):
                best = row.topk(min(top, len(self.labels)))
                pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
                relations = tuple((self.labels[index], value) for index, value in pairs)
                yield RelationPrediction(one.sample, relations, one.entities)

    def probabilities(
        self, samples: Sequence[Prepared], *, budget: int | None = None, advance: Advance = silent
    ) -> list[Tensor]:
        """Return the probabilities of all relations for prepared samples, a row of shape (relations,) each."""
        device = self.module.device

        def run(batch: list[Pieces]) -> list[Tensor]:
            inputs = {name: tensor.to(device) for name, tensor in self.inputs.tensors(batch).items()}
            rows = self.module(**inputs)["logits"].float().softmax(-1).cpu()  # (batch, relations)
            advance(len(batch))
            return list(rows)

        self.module.eval()
        with torch.inference_mode():
            return in_order([one.pieces for one in samples], budget or budget_on(device.type), run)

    # On disk

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the classifier into a folder; the store is named in it, not copied."""
        setting, store = self.setting, self.vectors
        info = {
            "mode": setting.mode,
            "encoder": setting.encoder,
            "vectors": None if store is None else {"name": str(store.path), "fingerprint": store.fingerprint},
            "saved_here": "" if store is None else trusted.mark(str(store.path)),
            "resolving": asdict(setting.resolving),
            "labels": list(setting.labels),
            "names": dict(setting.names),
        }
        with writing(folder, INFO, info, self.module, self.tokenizer, self.alignment) as new:
            if setting.ids:
                files.write_json(new / IDS, {f"Q{number}": title for number, title in setting.ids.items()})

    @classmethod
    def from_pretrained(
        cls, name: str | Path, *, vectors: Vectors | str | Path | None = None, device: str | torch.device | None = None
    ) -> "RelationClassifier":
        """Load a classifier, or the best one of a run: a folder or a hub id.

        `vectors` is the new path of its store, if it has moved.
        """
        folder = of_run(_names.resolve(name, "classifier"), INFO)
        if not folder.is_dir():
            raise EbertError(f"there is no classifier at {folder}; make one with 'ebert relations train'")
        info = read_info(folder, INFO, "relation classifier")
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
        # As part of a masked LM the encoder has no pooler, whatever its kind.
        base = lambda masked_lm: RelationModel(masked_lm.base_model, len(setting.labels))  # noqa: E731
        module = load_module(folder, base, "classifier")
        move(module, device)
        return cls(module, load_tokenizer(folder), setting, store, alignment)
