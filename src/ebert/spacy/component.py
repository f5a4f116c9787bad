"""The pipe ``ebert_linker``: its settings, how it links, and how it is saved with the pipeline it is part of.

Its settings are those of the pipeline's config. What it saves itself is where the linker was, or a copy of it; if
another config is given when the pipeline is loaded, that counts (as with spaCy's span ruler).
"""

import inspect
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_origin

import srsly
from spacy.language import Language
from spacy.pipeline.pipe import Pipe
from spacy.tokens import Doc
from spacy.util import minibatch

from ebert._io import files, trusted
from ebert._options import Options, option
from ebert.errors import EbertError
from ebert.linking.document import Document, LinkedMention
from ebert.linking.options import PRECISION_HELP, LinkPrecision
from ebert.spacy.annotating import EXTENSIONS, Alignment, KbId, annotate, register
from ebert.text.passage import Mention

if TYPE_CHECKING:
    from ebert.linking.linker import Linker

FACTORY = "ebert_linker"
FORMAT = 1
RECORD, LINKER, VECTORS = "pipe.json", "linker", "vectors"
WHAT = "a saved ebert_linker"

Mentions = Literal["own", "doc.ents"]

register()


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeOptions(Options):
    """The settings of the pipe: the keys of its part of a pipeline's config."""

    linker: str | None = option(None, "A folder of `ebert link train` or `ebert align`, or `starter`; no default.")
    vectors: str | None = option(None, "The new path of the linker's store, if it has moved.")
    mentions: Mentions = option(
        "own", "`own`: find and link entities; `doc.ents`: link those that earlier pipes found."
    )
    threshold: float | None = option(
        None,
        "Leave out links that are less probable; if not given, what the linker was saved with (own mentions) or 0.",
        low=0,
        high=1,
    )
    rounds: int | None = option(None, "Rounds of refinement, if not those of the linker; 1 means no refinement.", low=1)
    overwrite: bool = option(
        False,
        "Whether own mentions take the place of entities they overlap, and links that of a `kb_id` that is there.",
    )
    label: str = option("ENTITY", "The label of entities that no earlier pipe found.")
    alignment_mode: Alignment = option(
        "expand", "A mention that is not whole tokens: `expand` or `contract` it, or leave it out (`strict`)."
    )
    kb_id: KbId = option("title", "What `kb_id_` is: the `title` of an entity, or its `wikidata` id, if it is known.")
    precision: LinkPrecision = option("auto", PRECISION_HELP)
    device: str | None = option(None, "Where the encoder runs: cpu, cuda, mps, ...")
    copy_linker: bool = option(
        False, "Whether `to_disk` and `to_bytes` write a copy of the linker and its store, not just where they are."
    )

    def __post_init__(self) -> None:
        if not self.linker:
            raise EbertError(
                f"{FACTORY} needs a linker: nlp.add_pipe('{FACTORY}', config={{'linker': ...}}) "
                "with a folder of 'ebert link train' or 'ebert align', or 'starter'"
            )
        if not self.label:
            raise EbertError("label is empty; spaCy drops entities without a label")
        self.check()


class EbertLinker(Pipe):
    """Links the entities of documents and sets `doc.ents`, `kb_id_` and the extensions.

    `linker` is loaded when the first document comes. `dropped` counts what was not linked or not set so far.
    """

    def __init__(self, name: str = FACTORY, *, options: PipeOptions) -> None:
        self.name, self.options = name, options
        self.counts: Counter[str] = Counter()
        self._linker: Linker | None = None
        self._process = os.getpid()
        self._place: tuple[str, str | None] | None = None  # linker and store of a pipeline that was saved

    @property
    def linker(self) -> "Linker":
        """The linker, which is loaded on first use."""
        if self._linker is None:
            from ebert.linking.linker import Linker

            options = self.options
            path, vectors = self._place or (str(options.linker), options.vectors)
            try:
                self._linker = Linker.from_pretrained(
                    path, vectors=vectors, rounds=options.rounds, precision=options.precision, device=options.device
                )
            except EbertError as error:
                raise EbertError(f"the pipe {self.name!r} cannot load its linker: {error}") from None
        elif self._process != os.getpid():
            import torch

            # The threads of torch did not come along when this process was forked: waiting for them would be for ever.
            torch.set_num_threads(1)
        self._process = os.getpid()
        return self._linker

    @property
    def labels(self) -> tuple[str, ...]:
        """The label that it gives to entities."""
        return (self.options.label,) if self.options.mentions == "own" else ()

    @property
    def dropped(self) -> Counter[str]:
        """What was moved, left out or overwritten so far, and what the linker could not be asked about."""
        return self.counts + (Counter() if self._linker is None else self._linker.dropped)

    # Linking

    def __call__(self, doc: Doc) -> Doc:
        """Link one document."""
        self.set_annotations([doc], self.predict([doc]))
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Link a stream of documents, a batch of them in one call of the linker.

        A document that cannot be linked goes to the error handler, alone, and the others are processed.
        """
        linker = self.linker  # what is wrong with it is no fault of a document
        for docs in minibatch(stream, batch_size):  # type: ignore[no-untyped-call]
            dropped = linker.dropped.copy()
            found: list[tuple[LinkedMention, ...]] | None = None
            try:
                found = self.predict(docs)
            except Exception:  # whatever it is: one by one it comes again, from the document that it is about
                linker.dropped = dropped
            for number, doc in enumerate(docs):
                try:
                    self.set_annotations([doc], self.predict([doc]) if found is None else [found[number]])
                except Exception as error:
                    self.get_error_handler()(self.name, self, [doc], error)
                else:
                    yield doc

    def predict(self, docs: Sequence[Doc]) -> list[tuple[LinkedMention, ...]]:
        """Link documents; nothing is set."""
        threshold, own = self.options.threshold, self.options.mentions == "own"
        documents = []
        for number, doc in enumerate(docs, 1):
            # The linker asks where the entities of earlier pipes stand and not what is said to be there.
            given = [Mention(one.start_char, one.end_char, one.label_) for one in doc.ents if not own]
            documents.append(Document(str(number), doc.text, tuple(given)))
        if own:
            return [one.mentions for one in self.linker.link(documents, threshold=threshold)]
        linked = self.linker.disambiguate(documents)
        return [tuple(mention for mention in one if mention.probability >= (threshold or 0.0)) for one in linked]

    def set_annotations(self, docs: Sequence[Doc], found: Sequence[Sequence[LinkedMention]]) -> None:
        """Set what `predict` gave."""
        options = self.options
        for doc, mentions in zip(docs, found, strict=True):
            self.counts += annotate(
                doc, mentions, label=options.label, overwrite=options.overwrite,
                alignment_mode=options.alignment_mode, kb_id=options.kb_id,
            )  # fmt: skip

    # Saving

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:  # noqa: ARG002
        """Write where the linker is, or a copy of it; there is nothing to `exclude`."""
        folder, options = Path(path), self.options
        if options.copy_linker:
            self._copy(folder)
        place = self._place or (_absolute(options.linker), _absolute(options.vectors))
        record = {
            "format": FORMAT, "copy": options.copy_linker, "linker": options.linker, "vectors": options.vectors,
            "place": place, "saved_here": trusted.mark(options.linker, options.vectors, *place),
        }  # fmt: skip
        files.write_json(folder / RECORD, record)

    def _copy(self, folder: Path) -> None:
        linker = self.linker
        if linker.generator.settings is None:
            named = linker.generator.describe().get("generator", "a file")
            raise EbertError(
                f"the linker of the pipe {self.name!r} finds spans with {named}, which "
                "cannot be copied; set copy_linker to false, and set its generator again after loading"
            )
        if linker.vectors.path.resolve() != (folder / VECTORS).resolve():  # else the pipeline was loaded from there
            linker.save_pretrained(folder / LINKER)
            linker.vectors.save(folder / VECTORS, overwrite=True).close()

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "EbertLinker":  # noqa: ARG002
        """Take what `to_disk` wrote, if the config has not been given another linker since.

        The linker is loaded from there when the first document comes.
        """
        folder = Path(path).absolute()
        record = files.read_json(folder / RECORD, WHAT)
        if record.get("format") != FORMAT:
            raise EbertError(
                f"{folder} has format {record.get('format')}; this version of ebert reads {FORMAT}: upgrade ebert"
            )
        try:
            copied, named, store, (linker, vectors) = (record[key] for key in ("copy", "linker", "vectors", "place"))
        except (KeyError, TypeError, ValueError) as error:
            raise EbertError(f"{folder / RECORD} is damaged ({error!r}); save the pipeline again") from None
        self._linker = self._place = None
        if named != self.options.linker:
            return self
        names = named, store, linker, vectors
        if copied:
            linker, vectors = (
                str(trusted.locate(folder, part, ours=False, give="in a config")) for part in (LINKER, VECTORS)
            )
        elif names != ("starter", None, None, None) and not trusted.known(record.get("saved_here"), *names):
            raise EbertError(
                f"{folder} names the linker {named}, and has no mark of being saved on this machine; "
                "give its linker in the config (spacy.load(..., config=...)), or save it with copy_linker"
            )
        if linker is not None and Path(linker).is_dir():
            self._place = linker, vectors if store == self.options.vectors else self.options.vectors
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:  # noqa: ARG002
        """Return what `to_disk` writes."""
        with tempfile.TemporaryDirectory(prefix="ebert-spacy-") as name:
            self.to_disk(name)
            paths = sorted(path for path in Path(name).rglob("*") if path.is_file())
            return srsly.msgpack_dumps({path.relative_to(name).as_posix(): path.read_bytes() for path in paths})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "EbertLinker":  # noqa: ARG002
        """Take what `to_bytes` gave; a copy of a linker stands in a temporary folder as long as the pipe is there."""
        folder = Path(tempfile.mkdtemp(prefix="ebert-spacy-"))
        files.remove_with(self, folder)
        for name, content in srsly.msgpack_loads(data).items():
            path = folder / name
            if not path.resolve().is_relative_to(folder.resolve()):
                raise EbertError(f"these bytes are not {WHAT}: they have a file {name!r} outside their folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return self.from_disk(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let other processes load the same linker: what is sent to them is where it is."""
        return _again, (self.name, self.options, self._place, self.get_error_handler())


def _absolute(path: str | None) -> str | None:
    """Return the absolute path of a folder; None if there is none of this name, such as 'starter'."""
    place = Path(path).expanduser().absolute() if path else None
    return str(place) if place is not None and place.is_dir() else None


def _again(name: str, options: PipeOptions, place: tuple[str, str | None] | None, handler: Any) -> EbertLinker:
    """Make a pipe again in another process."""
    pipe = EbertLinker(name, options=options)
    pipe._place = place
    pipe.set_error_handler(handler)
    return pipe


def make_ebert_linker(nlp: Language, name: str, **settings: Any) -> EbertLinker:  # noqa: ARG001
    """Make the pipe of a config: spaCy calls this, with the fields of `PipeOptions`."""
    return EbertLinker(name, options=PipeOptions(**settings))


# spaCy checks a config against the signature of the factory. What is one of several words is checked by the options.
make_ebert_linker.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
    *list(inspect.signature(make_ebert_linker).parameters.values())[:2],
    *(
        one.replace(annotation=str if get_origin(one.annotation) is Literal else one.annotation, default=one.empty)
        for one in inspect.signature(PipeOptions).parameters.values()
    ),
])  # fmt: skip
Language.factory(
    FACTORY,
    assigns=["doc.ents", "token.ent_iob", "token.ent_type", "token.ent_kb_id", *(f"span._.{n}" for n in EXTENSIONS)],
    default_config={field.name: field.default for field in fields(PipeOptions)},
    func=make_ebert_linker,
)
