"""E-BERT: an unchanged encoder, a store of vectors and the W between them (Section 3)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ebert.errors import EbertError
from ebert.model import folder as layout
from ebert.model.alignment import Alignment
from ebert.model.batching import budget_on, in_order, windows
from ebert.model.encode import Encoding, Pooling
from ebert.model.encoder import Device, Encoder, Vocabulary, move
from ebert.model.export import EntityCollator
from ebert.model.export import export as export_model
from ebert.model.fill import Filled, Filler
from ebert.model.injection import NO_ENTITIES, Injector, Pieces, Text, marked
from ebert.model.options import AlignmentOptions, LearningOptions, Mode
from ebert.text.passage import Passage
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors

if TYPE_CHECKING:
    from ebert.model.hub import ModelOnHub
    from ebert.model.passages import Passages
    from ebert.model.refine import Refiner

Task = Literal["fill", "encode"]


class EBert:
    """A masked language model that takes entities among its wordpieces.

    >>> model = EBert.from_pretrained("starter")                              # doctest: +SKIP
    >>> model.fill("The native language of [[Jean Marais]] is [MASK].").best  # doctest: +SKIP
    'French'

    Three modes: `bert` feeds wordpieces only; `concat` feeds the entity, a slash and the wordpieces of its mention;
    `replace` feeds the entity instead of its mention. The default is `concat`, or `bert` for an encoder without
    entities. An entity without a vector is fed as its wordpieces, and results list it as missing.

    One text gives one result, a list gives a list, and `stream` takes any iterable. Entities stand in the text's markup
    or are given as `entities` with their `spans` (without spans, titles are looked for in the text); for a list of
    texts, both are lists of lists.
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

    def __repr__(self) -> str:
        entities = "no entities" if self.vectors is None else f"{len(self.vectors):,} entities"
        return f"EBert({self.name}, {entities}, on {self._encoder.device})"

    @classmethod
    def fit(
        cls,
        bert: str | Path | Encoder,
        vectors: Vectors | str | Path,
        *,
        options: AlignmentOptions | None = None,
        learn: "Passages | None" = None,
        learning: LearningOptions | None = None,
        work: str | Path | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
        **shown: Any,
    ) -> "EBert":
        """Fit W between a store and an encoder, named by hub name, Maven artifact's name or local folder.

        With `learn`, W is then improved on passages, through the encoder (`ebert.model.learning`). The folder `work`
        keeps checkpoints, from which the same call continues; `say` and `watch` get the progress.
        """
        encoder = bert if isinstance(bert, Encoder) else Encoder.load(bert, device=device, dtype=dtype)
        store = vectors if isinstance(vectors, Vectors) else Vectors.open(vectors)
        words = Vocabulary(encoder.tokenizer).words_in(store.find_word)
        table = encoder.embedding.weight.detach().float().cpu().numpy()
        alignment = Alignment.fit(store, words, table, options)
        if learn is not None:
            from ebert.model.learning import learn as learn_on

            with nullcontext(work) if work else TemporaryDirectory(prefix="ebert-") as folder:
                place = Path(folder) / "learning" if not work else Path(folder)
                chosen = learning or LearningOptions()
                alignment = learn_on(encoder, store, alignment, learn, chosen, folder=place, **shown)
        return cls(encoder, store, alignment)

    @classmethod
    def plain(cls, bert: str | Path, *, device: Device = None, dtype: torch.dtype | None = None) -> "EBert":
        """Load an encoder without entity vectors, which has only the mode `bert`."""
        return cls(Encoder.load(bert, device=device, dtype=dtype))

    def with_vectors(self, vectors: Vectors) -> "EBert":
        """Return the same model with another store with the same words, such as a copy that gets other entities."""
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
        """The name of the encoder."""
        return self._encoder.name

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The encoder's wordpieces, seen as words."""
        return Vocabulary(self.tokenizer)

    def to(self, device: Device = None, dtype: torch.dtype | None = None) -> "EBert":
        """Move the encoder to another device or into another dtype."""
        move(self.encoder, device, dtype)
        return self

    def pieces(self, passage: Text, *, mode: Mode | None = None) -> list[str]:
        """Return what the encoder sees of a passage: wordpieces, and entities as titles with underscores."""
        return self._injector.sequencer.show(self._injector.sequences([Passage.of(passage)], self._mode(mode))[0])

    def missing(self, passages: Text | Iterable[Text]) -> list[str]:
        """Return the titles in passages that have no vector."""
        many = [Passage.of(one) for one in ([passages] if isinstance(passages, str | Passage) else passages)]
        found = self._injector.find_all(many)
        return list(dict.fromkeys(m.entity for passage in many for m in passage.mentions if m not in found))

    def project(self, entities: Iterable[str | Entity]) -> torch.Tensor:
        """Return the vectors of entities in the encoder's space, shape (entities, width)."""
        if self.vectors is None:
            raise EbertError(NO_ENTITIES)
        return self._injector.project([e if isinstance(e, Entity) else self.vectors.known(e) for e in entities])

    def refine(self, title: str, description: str) -> NDArray[np.float32]:
        """Return a vector from which this encoder predicts the words of an entity's description, for `Vectors.add`.

        `Vectors.add(title, description=...)` takes milliseconds and no encoder; this takes seconds. See
        `ebert.model.refine`.
        """
        return self._refiner(title, description)

    @cached_property
    def _refiner(self) -> "Refiner":
        from ebert.model.refine import Refiner

        if self.vectors is None or self.alignment is None:
            raise EbertError(NO_ENTITIES)
        return Refiner(self._encoder, self.vectors, self.alignment)

    @overload
    def fill(self, texts: Text, **options: Any) -> Filled: ...

    @overload
    def fill(self, texts: Sequence[Text], **options: Any) -> list[Filled]: ...

    def fill(
        self,
        texts: Text | Sequence[Text],
        *,
        entities: Sequence[Any] | None = None,
        spans: Sequence[Any] | None = None,
        **options: Any,
    ) -> Filled | list[Filled]:
        """Fill the masks of a text or of a list of texts; `options` are those of `fill_modes`, and the `mode`."""
        found: list[Filled] = list(self.stream(marked(texts, entities, spans), task="fill", **options))
        return found[0] if isinstance(texts, str | Passage) else found

    def fill_modes(
        self,
        texts: Iterable[Text],
        modes: Sequence[Mode],
        *,
        top: int = 5,
        candidates: Iterable[str] | None = None,
        budget: int | None = None,
    ) -> Iterator[dict[Mode, Filled]]:
        """Fill the masks of texts in several modes side by side; every mention is looked up once.

        With `candidates` (words that are one wordpiece) answers come from these, and their probabilities sum to one.
        `budget` is how many tokens a batch may have; the default suits the device.
        """
        if top < 1:
            raise EbertError(f"top is {top}; at least one answer must be asked for")
        if isinstance(candidates, str):
            raise EbertError("candidates are words, not one string: give a list")
        ids = None if candidates is None else self.vocabulary.ids(candidates)
        filler = self.filler()
        return self._run(texts, modes, budget, lambda batch: filler(batch, top=top, candidates=ids))

    def filler(self) -> Filler:
        """Return the object that fills batches, for callers who make their own batches and want every logit."""
        return Filler(self._encoder, self._injector, self.vocabulary)

    @overload
    def encode(self, texts: Text, *, pooling: None = ..., **options: Any) -> Encoding: ...

    @overload
    def encode(self, texts: Sequence[Text], *, pooling: None = ..., **options: Any) -> list[Encoding]: ...

    @overload
    def encode(self, texts: Text, *, pooling: Pooling, **options: Any) -> NDArray[np.float32]: ...

    @overload
    def encode(self, texts: Sequence[Text], *, pooling: Pooling, **options: Any) -> list[NDArray[np.float32]]: ...

    def encode(
        self,
        texts: Text | Sequence[Text],
        *,
        pooling: Pooling | None = None,
        entities: Sequence[Any] | None = None,
        spans: Sequence[Any] | None = None,
        **options: Any,
    ) -> Any:
        """Return the hidden states of a text or of a list of texts.

        With a `pooling` (see `Encoding.pooled`) they are numpy arrays, without one `Encoding` objects, which know the
        words and entities of the text. Options: `mode`, `layer` (0 is the embeddings, -1 the last) and `budget`.
        """
        found = list(self.stream(marked(texts, entities, spans), task="encode", pooling=pooling, **options))
        return found[0] if isinstance(texts, str | Passage) else found

    def stream(
        self, texts: Iterable[Text], *, task: Task = "fill", mode: Mode | None = None, **options: Any
    ) -> Iterator[Any]:
        """Fill or encode the texts of any iterable, however long; results come one after the other, in order."""
        if task not in get_args(Task):
            raise EbertError(f"unknown task {task!r}; choose one of fill, encode")
        chosen = self._mode(mode)
        run: Callable[..., Iterator[dict[Mode, Any]]] = self.fill_modes if task == "fill" else self._encode_modes
        return (result[chosen] for result in run(texts, [chosen], **options))

    def _encode_modes(
        self,
        texts: Iterable[Text],
        modes: Sequence[Mode],
        *,
        layer: int = -1,
        pooling: Pooling | None = None,
        budget: int | None = None,
    ) -> Iterator[dict[Mode, Any]]:
        def run(batch: list[Pieces]) -> list[Any]:
            states = self._encoder.hidden(self._injector.tensors(batch), layer)  # (batch, pieces, hidden)
            show = self._injector.sequencer.show
            found = [Encoding(p, tuple(show(p)), states[row, : len(p)].clone()) for row, p in enumerate(batch)]
            return [one.pooled(pooling) for one in found] if pooling else found

        return self._run(texts, modes, budget, run)

    def _run(
        self, texts: Iterable[Text], modes: Sequence[Mode], budget: int | None, run: Callable[[list[Pieces]], list[Any]]
    ) -> Iterator[dict[Mode, Any]]:
        for mode in modes:
            self._mode(mode)  # now, not when the first result is asked for
        if budget is not None and budget < 1:
            raise EbertError(f"budget is {budget}; a batch needs at least one token")
        size = budget or budget_on(self._encoder.device.type)

        def results() -> Iterator[dict[Mode, Any]]:
            for window in windows(map(Passage.of, texts)):
                found = self._injector.find_all(window)
                columns = [in_order(self._injector.sequences(window, mode, found), size, run) for mode in modes]
                for row in zip(*columns, strict=True):
                    yield dict(zip(modes, row, strict=True))

        return results()

    def _mode(self, mode: Mode | None) -> Mode:
        if mode is None:
            return "bert" if self.vectors is None else "concat"
        self._injector.check(mode)
        return mode

    def collator(self, *, mode: Mode | None = None) -> EntityCollator:
        """Return the collator for your own fine-tuning of this encoder, or of any model with its wordpiece vectors."""
        return EntityCollator(self._injector, self._mode(mode))

    # On disk and on the hub

    def export(
        self, entities: Iterable[str], out: str | Path, *, predict_entities: bool = False, overwrite: bool = False
    ) -> dict[str, str]:
        """Write a plain transformers checkpoint with these entities as added tokens; see `ebert.model.export`."""
        return export_model(self, entities, out, predict_entities=predict_entities, overwrite=overwrite)

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        include_vectors: bool | None = None,
        include_encoder: bool | None = None,
        **hub: Any,
    ) -> str | None:
        """Write a model folder that can be moved and copied: its store comes along, and an encoder that has no name.

        With ``include_vectors=False`` or ``include_encoder=False`` the folder says where they are, for this machine
        only. `push_to_hub=True` and further arguments are those of huggingface_hub's mixin.
        """
        return self._on_hub(include_vectors, include_encoder).save_pretrained(save_directory, **hub)

    def push_to_hub(
        self, repo_id: str, *, include_vectors: bool | None = None, include_encoder: bool | None = None, **hub: Any
    ) -> str:
        """Upload the model to the Hugging Face hub, by default with its store."""
        return self._on_hub(include_vectors, include_encoder).push_to_hub(repo_id, **hub)

    def _on_hub(self, include_vectors: bool | None, include_encoder: bool | None) -> "ModelOnHub":
        from ebert.model.hub import ModelOnHub

        if self.vectors is None or self.alignment is None:
            raise EbertError("a plain encoder has nothing to save: fit it to a store of vectors first")
        save = partial(
            layout.save, encoder=self._encoder, vectors=self.vectors, alignment=self.alignment,
            include_vectors=include_vectors is not False, include_encoder=include_encoder,
        )  # fmt: skip
        return ModelOnHub(save)

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        vectors: Vectors | str | Path | None = None,
        encoder: str | Path | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
        **hub: Any,
    ) -> "EBert":
        """Load a model by name: "starter", a folder, or an id on the hub, perhaps with a revision (`owner/model@v1`).

        `vectors` and `encoder` are the new paths of the store and the encoder, if they are not where they were.
        """
        found = layout.find_model(pretrained_model_name_or_path, vectors, encoder, **hub)
        return cls(*layout.load(found, device=device, dtype=dtype))


def load_model(
    found: layout.FoundModel, vectors: Vectors | None = None, device: Device = None, precision: str | None = None
) -> EBert:
    """Load a model, or an encoder without entities; `vectors` is its store if that is open already.

    `precision` is the name of a dtype, or "int8", which is for CPUs: see `ebert.model.int8`.
    """
    dtype = None if precision in (None, "int8") else getattr(torch, str(precision), precision)
    if not isinstance(dtype, torch.dtype | None):
        raise EbertError(f"unknown dtype {precision!r}")
    loaded = EBert(*layout.load(found, vectors, device=device, dtype=dtype))
    if precision == "int8":
        from ebert.model.int8 import quantize

        return quantize(loaded)
    return loaded
