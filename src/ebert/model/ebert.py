"""E-BERT: an unchanged encoder, a store of vectors and the W between them (Section 3)."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import torch
from huggingface_hub import ModelHubMixin
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ebert import _names
from ebert._io import files
from ebert.errors import EbertError
from ebert.model import folder as layout
from ebert.model.alignment import Alignment
from ebert.model.batching import budget_on, in_order, windows
from ebert.model.encode import Encoding
from ebert.model.encoder import Encoder, Vocabulary, fingerprint, save_encoder
from ebert.model.export import EntityCollator
from ebert.model.fill import Filled, Filler
from ebert.model.injection import Injector, Pieces
from ebert.model.modes import Mode, check
from ebert.model.options import AlignmentOptions
from ebert.text.passage import Passage
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors, reopen

CARD = """---
library_name: ebert
tags: [ebert, entity-embeddings]
---

An E-BERT model: entity vectors, carried into the input space of a pretrained masked language model.
Load it with `ebert.EBert.from_pretrained`.
"""

Text = str | Passage


class EBert(
    ModelHubMixin, library_name="ebert", tags=["entity-embeddings"], pipeline_tag="fill-mask", model_card_template=CARD
):
    """A masked language model that takes entities among its wordpieces.

    >>> model = EBert.fit("bert-base-cased", vectors)                         # doctest: +SKIP
    >>> model.fill("The native language of [[Jean Marais]] is [MASK].").best  # doctest: +SKIP
    'French'

    Three modes: `bert` feeds wordpieces only; `concat` feeds the entity, a slash and the wordpieces of its mention;
    `replace` feeds the entity instead of its mention. An entity without a vector is fed as its wordpieces, and results
    list it as missing.
    """

    def __init__(self, encoder: Encoder, vectors: Vectors | None = None, alignment: Alignment | None = None) -> None:
        if (vectors is None) != (alignment is None):
            raise EbertError("vectors and an alignment go together")
        if vectors is not None and alignment is not None and alignment.source != vectors.dimension:
            raise EbertError(
                f"the alignment is for vectors of dimension {alignment.source}, the store has {vectors.dimension}"
            )
        if alignment is not None and alignment.target != encoder.width:
            raise EbertError(
                f"the alignment is for an encoder of width {alignment.target}, {encoder.name} has {encoder.width}"
            )
        self.vectors, self.alignment = vectors, alignment
        self._encoder = encoder
        self._injector = Injector(encoder, vectors, alignment)
        self._included: tuple[bool | None, bool | None] = (None, None)
        self._hub_mixin_config = None  # everything is in ebert.json

    @classmethod
    def fit(
        cls,
        bert: str | Path | Encoder,
        vectors: Vectors | str | Path,
        *,
        options: AlignmentOptions | None = None,
        device: str | torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> "EBert":
        """Fit W between a store and an encoder, given by hub name, Maven artifact's name or local folder."""
        encoder = bert if isinstance(bert, Encoder) else Encoder.load(bert, device=device, dtype=dtype)
        store = vectors if isinstance(vectors, Vectors) else Vectors.open(vectors)
        words = Vocabulary(encoder.tokenizer).words_in(store.find_word)
        table = encoder.embedding.weight.detach().float().cpu().numpy()
        return cls(encoder, store, Alignment.fit(store, words, table, options))

    @classmethod
    def plain(
        cls, bert: str | Path, *, device: str | torch.device | None = None, dtype: torch.dtype | None = None
    ) -> "EBert":
        """Take an encoder without entity vectors: only the mode `bert` makes a difference."""
        return cls(Encoder.load(bert, device=device, dtype=dtype))

    def with_vectors(self, vectors: Vectors) -> "EBert":
        """Give the same model with another store of the same words: a copy that takes other entities, say."""
        if self.vectors is None or vectors.fingerprint != self.vectors.fingerprint:
            raise EbertError(f"{vectors.path} has other words than the store of the model; fit a model to it instead")
        return EBert(self._encoder, vectors, self.alignment)

    @property
    def encoder(self) -> PreTrainedModel:
        """The encoder itself, an ordinary `torch.nn.Module` of transformers."""
        return self._encoder.module

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The encoder's tokenizer."""
        return self._encoder.tokenizer

    @property
    def name(self) -> str:
        """What the encoder is called."""
        return self._encoder.name

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The encoder's wordpieces, seen as words."""
        return Vocabulary(self.tokenizer)

    def to(self, device: str | torch.device | None = None, dtype: torch.dtype | None = None) -> "EBert":
        """Move the encoder to another device or into another dtype."""
        torch.nn.Module.to(self.encoder, device=device, dtype=dtype)
        return self

    def pieces(self, passage: Text, *, mode: Mode = "concat") -> list[str]:
        """Show what the encoder sees of a passage: wordpieces, and entities as titles with underscores."""
        return self._injector.sequencer.show(self._injector.sequences([Passage.of(passage)], mode)[0])

    def missing(self, passages: Text | Iterable[Text]) -> list[str]:
        """Give the titles in passages that have no vector."""
        many = [passages] if isinstance(passages, str | Passage) else passages
        return self._injector.missing(Passage.of(passage) for passage in many)

    def carried(self, entities: Iterable[str | Entity]) -> torch.Tensor:
        """Give the vectors of entities as the encoder sees them, shape (entities, width)."""
        if self.vectors is None:
            raise EbertError("this model has no entity vectors; make one with EBert.fit or 'ebert align'")
        found = []
        for name in entities:
            entity = name if isinstance(name, Entity) else self.vectors.find(name)
            if entity is None:
                raise self.vectors.unknown(str(name))
            found.append(entity)
        return self._injector.carried(found)

    @overload
    def fill(  # type: ignore[overload-overlap]  # a str is an iterable of str, too
        self, passages: Text, *, mode: Mode = ..., top: int = ..., candidates: Iterable[str] | None = ...,
        budget: int | None = ...,
    ) -> Filled: ...  # fmt: skip

    @overload
    def fill(
        self, passages: Iterable[Text], *, mode: Mode = ..., top: int = ..., candidates: Iterable[str] | None = ...,
        budget: int | None = ...,
    ) -> Iterator[Filled]: ...  # fmt: skip

    def fill(
        self,
        passages: Text | Iterable[Text],
        *,
        mode: Mode = "concat",
        top: int = 5,
        candidates: Iterable[str] | None = None,
        budget: int | None = None,
    ) -> Filled | Iterator[Filled]:
        """Fill the masks of one passage, or of any iterable of them, one after the other.

        With `candidates` (words that are one wordpiece) answers come from these, and their probabilities sum to one.
        `budget` is how many tokens a batch may have; the default suits the device.
        """
        if top < 1:
            raise EbertError(f"top is {top}; at least one answer must be asked for")
        if isinstance(candidates, str):
            raise EbertError("candidates are words, not one string: give a list")
        ids = None if candidates is None else self.vocabulary.ids(candidates)
        filler = self.filler()
        results = self._run(passages, mode, budget, lambda batch: filler(batch, top=top, candidates=ids))
        return next(results) if isinstance(passages, str | Passage) else results

    def filler(self) -> Filler:
        """Give what fills batches, for those who make their own and want every logit."""
        return Filler(self._encoder, self._injector, self.vocabulary)

    @overload
    def encode(  # type: ignore[overload-overlap]
        self, passages: Text, *, mode: Mode = ..., layer: int = ..., budget: int | None = ...
    ) -> Encoding: ...

    @overload
    def encode(
        self, passages: Iterable[Text], *, mode: Mode = ..., layer: int = ..., budget: int | None = ...
    ) -> Iterator[Encoding]: ...

    def encode(
        self, passages: Text | Iterable[Text], *, mode: Mode = "concat", layer: int = -1, budget: int | None = None
    ) -> Encoding | Iterator[Encoding]:
        """Give the hidden states of one passage, or of any iterable of them; layer 0 is the embeddings, -1 the last."""

        def run(batch: list[Pieces]) -> list[Encoding]:
            states = self._encoder.hidden(self._injector.tensors(batch), layer)  # (batch, pieces, hidden)
            show, missing = self._injector.sequencer.show, self._injector.missing
            return [
                Encoding(p, tuple(show(p)), states[row, : len(p)].clone(), tuple(missing([p.passage])))
                for row, p in enumerate(batch)
            ]

        results = self._run(passages, mode, budget, run)
        return next(results) if isinstance(passages, str | Passage) else results

    def _run(self, passages: Text | Iterable[Text], mode: Mode, budget: int | None, run: Any) -> Iterator[Any]:
        check(mode)  # now, not when the first result is asked for
        if budget is not None and budget < 1:
            raise EbertError(f"budget is {budget}; a batch needs at least one token")
        size = budget or budget_on(self._encoder.device.type)
        many = [passages] if isinstance(passages, str | Passage) else passages
        return (
            result
            for window in windows(Passage.of(passage) for passage in many)
            for result in in_order(self._injector.sequences(window, mode), size, run)
        )

    def collator(self, *, mode: Mode = "concat") -> EntityCollator:
        """Give the collator for one's own fine-tuning of this encoder, or of any model with its wordpiece vectors."""
        return EntityCollator(self._injector, mode)

    # On disk and on the hub

    def export(
        self, entities: Iterable[str], out: str | Path, *, predict_entities: bool = False, overwrite: bool = False
    ) -> dict[str, str]:
        """Write a plain transformers checkpoint with these entities as added tokens; see `ebert.model.export`."""
        from ebert.model.export import export

        return export(self, entities, out, predict_entities=predict_entities, overwrite=overwrite)

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        include_vectors: bool | None = None,
        include_encoder: bool | None = None,
        **hub: Any,
    ) -> str | None:
        """Write a model folder; the store and the encoder are named in it, or copied into it on request.

        `push_to_hub=True` and further arguments are those of huggingface_hub's mixin.
        """
        with self._including(include_vectors, include_encoder):
            return super().save_pretrained(save_directory, **hub)

    def push_to_hub(
        self, repo_id: str, *, include_vectors: bool | None = None, include_encoder: bool | None = None, **hub: Any
    ) -> str:
        """Upload the model to the Hugging Face hub, with its store unless told otherwise."""
        with self._including(include_vectors, include_encoder), self._including(self._included[0] is not False, None):
            return super().push_to_hub(repo_id, **hub)

    @contextmanager
    def _including(self, vectors: bool | None, encoder: bool | None) -> Iterator[None]:
        """Note what is to come along. What is not given stays: the hub's mixin calls saving from pushing, and back."""
        before = self._included
        self._included = (before[0] if vectors is None else vectors, before[1] if encoder is None else encoder)
        try:
            yield
        finally:
            self._included = before

    def _save_pretrained(self, save_directory: Path) -> None:
        if self.vectors is None or self.alignment is None:
            raise EbertError("a plain encoder has nothing to save: fit it to a store of vectors first")
        include_vectors, include_encoder = self._included
        save_directory.mkdir(parents=True, exist_ok=True)
        store = str(self.vectors.path)
        if include_vectors or self.vectors.temporary:  # a folder that is about to vanish must come along
            store = layout.VECTORS
            if (save_directory / store).absolute() != self.vectors.path:
                self.vectors.save(save_directory / store, overwrite=True)
        encoder = self.name
        mark = self._encoder.fingerprint
        if include_encoder:
            encoder = layout.ENCODER
            mark = fingerprint(self.encoder, self.tokenizer)  # as it is now, perhaps in another dtype
            with files.replacing_folder(save_directory / encoder, overwrite=True, marker="config.json") as folder:
                save_encoder(self.encoder, self.tokenizer, folder)
        self.alignment.save(save_directory / layout.ALIGNMENT)
        layout.ModelInfo(
            encoder=layout.Part(encoder, mark),
            vectors=layout.Part(store, self.vectors.fingerprint),
            alignment_sha256=files.sha256(save_directory / layout.ALIGNMENT),
        ).write(save_directory)

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        vectors: Vectors | str | Path | None = None,
        encoder: str | Path | None = None,
        device: str | torch.device | None = None,
        dtype: torch.dtype | None = None,
        **hub: Any,
    ) -> "EBert":
        """Load a model by name: "starter", a folder, or an id on the hub, perhaps with a revision (`owner/model@v1`).

        `vectors` and `encoder` say where the store and the encoder are now, if not where they were.
        """
        folder = _names.resolve(pretrained_model_name_or_path, "model", **hub)
        info = layout.ModelInfo.read(folder)
        alignment = layout.load_alignment(folder, info)
        part, remedy = info.vectors, " or fit the model again ('ebert align')"
        store = reopen(folder, part.name, part.fingerprint, vectors, ours=info.ours, remedy=remedy)
        name = str(encoder) if encoder else layout.encoder_of(folder, info)
        # Only what the caller names, or what was found above, may be a folder.
        local = bool(encoder) or Path(name).is_absolute()
        loaded = Encoder.load(name, device=device, dtype=dtype, local=local)
        if loaded.fingerprint != info.encoder.fingerprint:
            raise EbertError(
                f"{loaded.name} has other wordpieces or wordpiece vectors than the encoder {folder} was fitted on; "
                "give the right encoder (encoder=...) or fit the model again ('ebert align')"
            )
        return cls(loaded, store, alignment)
