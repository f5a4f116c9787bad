"""The pipe ``ebert_linker``: how it links, and how it is saved with the pipeline it is part of.

Its settings are those of the pipeline's config. What it saves itself is where the linker was, or a copy of it; if
another config is given when the pipeline is loaded, that counts (as with spaCy's span ruler).
"""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import srsly
from spacy.language import Language
from spacy.pipeline.pipe import Pipe
from spacy.tokens import Doc
from spacy.util import minibatch

from ebert._io import files, trusted
from ebert.errors import EbertError
from ebert.linking.document import Document, LinkedMention
from ebert.spacy.annotating import EXTENSIONS, annotate, register
from ebert.spacy.options import FACTORY, PipeOptions
from ebert.text.passage import Mention

if TYPE_CHECKING:
    from ebert.linking.linker import Linker

FORMAT = 1
RECORD, LINKER, VECTORS = "pipe.json", "linker", "vectors"
WHAT = "a saved ebert_linker"

register()


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
            self._linker = self._load()
            self._process = os.getpid()
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

        A document that cannot be linked goes to the error handler, alone, and the others go on.
        """
        linker = self.linker  # what is wrong with it is no fault of a document
        handler: Callable[..., Any] = self.get_error_handler()
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
                    handler(self.name, self, [doc], error)
                else:
                    yield doc

    def predict(self, docs: Sequence[Doc]) -> list[tuple[LinkedMention, ...]]:
        """Link documents; nothing is set."""
        if self.options.mentions == "own":
            documents = [Document(str(number), doc.text) for number, doc in enumerate(docs, 1)]
            return [one.mentions for one in self.linker.link(documents, threshold=self.options.threshold)]
        documents = [Document(str(number), doc.text, _given(doc)) for number, doc in enumerate(docs, 1)]
        least = self.options.threshold or 0.0
        return [
            tuple(mention for mention in one.mentions if mention.probability >= least)
            for one in self.linker.disambiguate(documents)
        ]

    def set_annotations(self, docs: Sequence[Doc], found: Sequence[Sequence[LinkedMention]]) -> None:
        """Set what `predict` gave."""
        options = self.options
        for doc, mentions in zip(docs, found, strict=True):
            self.counts += annotate(
                doc, mentions, label=options.label, overwrite=options.overwrite, alignment_mode=options.alignment_mode
            )

    def _load(self) -> "Linker":
        from ebert.linking.linker import Linker

        options = self.options
        path, vectors = self._place or (str(options.linker), options.vectors)
        try:
            return Linker.from_pretrained(path, vectors=vectors, rounds=options.rounds, device=options.device)
        except EbertError as error:
            raise EbertError(f"the pipe {self.name!r} cannot load its linker: {error}") from None

    # Saving

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:  # noqa: ARG002
        """Write where the linker is, or a copy of it; there is nothing to `exclude`."""
        folder = Path(path)
        if self.options.copy_linker:
            self._copy(folder)
        files.write_json(folder / RECORD, self._record())

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "EbertLinker":  # noqa: ARG002
        """Take what `to_disk` wrote; the linker is loaded from there when the first document comes."""
        folder = Path(path).absolute()
        return self._restore(files.read_json(folder / RECORD, WHAT), folder)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:  # noqa: ARG002
        """Return what `to_disk` writes."""
        with tempfile.TemporaryDirectory(prefix="ebert-spacy-") as name:
            self.to_disk(name)
            paths = sorted(path for path in Path(name).rglob("*") if path.is_file())
            return srsly.msgpack_dumps({path.relative_to(name).as_posix(): path.read_bytes() for path in paths})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "EbertLinker":  # noqa: ARG002
        """Take what `to_bytes` gave; a copy of a linker stands in a temporary folder as long as the pipe is there."""
        from ebert._io.files import remove_with

        folder = Path(tempfile.mkdtemp(prefix="ebert-spacy-"))
        remove_with(self, folder)
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

    def _copy(self, folder: Path) -> None:
        linker = self.linker
        if linker.generator.settings is None:
            named = linker.generator.describe().get("generator", "a file")
            raise EbertError(
                f"the linker of the pipe {self.name!r} finds spans with {named}, which "
                "cannot be copied; set copy_linker to false, and its generator again after loading"
            )
        if linker.vectors.path.resolve() == (folder / VECTORS).resolve():
            return  # the pipeline was loaded from there: all is in its place
        linker.save_pretrained(folder / LINKER)
        linker.vectors.save(folder / VECTORS, overwrite=True).close()

    def _record(self) -> dict[str, Any]:
        options = self.options
        place = self._place or (_absolute(options.linker), _absolute(options.vectors))
        return {
            "format": FORMAT,
            "copy": options.copy_linker,
            "linker": options.linker,
            "vectors": options.vectors,
            "place": place,
            "saved_here": trusted.mark(options.linker, options.vectors, *place),
        }

    def _restore(self, record: dict[str, Any], folder: Path) -> "EbertLinker":
        """Take the saved linker, if the config has not been given another one since."""
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


def _given(doc: Doc) -> tuple[Mention, ...]:
    """Return the entities of earlier pipes; the linker asks where they stand and not what is said to be there."""
    return tuple(Mention(entity.start_char, entity.end_char, entity.label_) for entity in doc.ents)


def _absolute(path: str | None) -> str | None:
    """Return the absolute path of a folder; None if there is none of this name, such as 'starter'."""
    place = Path(path).expanduser().absolute() if path else None
    return str(place) if place is not None and place.is_dir() else None


def _again(
    name: str, options: PipeOptions, place: tuple[str, str | None] | None, handler: Callable[..., Any]
) -> EbertLinker:
    """Make a pipe again in another process."""
    pipe = EbertLinker(name, options=options)
    pipe._place = place
    pipe.set_error_handler(handler)
    return pipe


@Language.factory(
    FACTORY,
    assigns=["doc.ents", "token.ent_iob", "token.ent_type", "token.ent_kb_id", *(f"span._.{n}" for n in EXTENSIONS)],
    default_config={field.name: field.default for field in fields(PipeOptions)},
)
def make_ebert_linker(
    nlp: Language,  # noqa: ARG001
    name: str,
    linker: str | None,
    vectors: str | None,
    mentions: str,
    threshold: float | None,
    rounds: int | None,
    overwrite: bool,
    label: str,
    alignment_mode: str,
    device: str | None,
    copy_linker: bool,
) -> EbertLinker:
    """Make the pipe of a config: spaCy calls this, with the fields of `PipeOptions`."""
    given: dict[str, Any] = {
        "linker": linker, "vectors": vectors, "mentions": mentions, "threshold": threshold, "rounds": rounds,
        "overwrite": overwrite, "label": label, "alignment_mode": alignment_mode, "device": device,
        "copy_linker": copy_linker,
    }  # fmt: skip
    return EbertLinker(name, options=PipeOptions(**given))
