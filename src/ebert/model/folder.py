"""A model on disk: a folder that says which encoder and which store it belongs to, and holds W.

A model is looked up once (`find`, `find_model`), which reports problems with its name and its parts before torch is
loaded. `load` then loads what was found.
"""

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebert import __version__, _names
from ebert._io import files, trusted
from ebert.errors import EbertError

if TYPE_CHECKING:
    from ebert.model.alignment import Alignment
    from ebert.model.encoder import Encoder
    from ebert.vectors.store import Vectors

FORMAT = 1
INFO, ALIGNMENT, VECTORS, ENCODER = "ebert.json", "alignment.safetensors", "vectors", "encoder"


@dataclass(frozen=True, slots=True)
class Part:
    """An encoder or a store that a model belongs to."""

    name: str  # a hub name or a path; relative paths are inside the model's folder
    fingerprint: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not isinstance(self.fingerprint, str):
            raise TypeError(f"{self.name!r:.60} is not a name, or {self.fingerprint!r:.60} no fingerprint")


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The contents of `ebert.json`."""

    encoder: Part
    vectors: Part
    alignment_sha256: str
    format: int = FORMAT
    saved_here: str = ""  # the mark of paths outside the folder: see `ebert._io.trusted`

    @property
    def ours(self) -> bool:
        """Whether this machine wrote the names of the parts."""
        return trusted.known(self.saved_here, self.encoder.name, self.vectors.name)

    @classmethod
    def read(cls, folder: Path) -> "ModelInfo":
        """Read `ebert.json`, or raise an error that says why `folder` is not a model that this version can load."""
        if not folder.is_dir():
            raise EbertError(f"there is no model at {folder}; make one with 'ebert align'")
        value: dict[str, Any] = files.read_json(folder / INFO, "a model")
        version = value.get("format")
        if not isinstance(version, int) or version > FORMAT:
            raise EbertError(
                f"{folder} has model format {version}; this version of ebert reads up to {FORMAT}: upgrade ebert"
            )
        try:
            parts = Part(**value["encoder"]), Part(**value["vectors"])
            return cls(*parts, value["alignment_sha256"], version, value.get("saved_here", ""))
        except (KeyError, TypeError) as error:
            raise EbertError(f"{folder / INFO} is damaged ({error}); make the model again with 'ebert align'") from None


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model, or an encoder without entities, that was found; it is not loaded yet."""

    name: str
    """What it was asked for by."""
    encoder: str
    """The encoder's name, or the path of its folder."""
    local: bool = True
    """Whether the encoder may be a folder: only if the caller named it, or it was found to be one."""
    encoder_folder: Path | None = None
    """Where the encoder's files are, once it was looked for."""
    folder: Path | None = None
    """The model's folder, which an encoder alone does not have; it comes with the two below."""
    info: ModelInfo | None = None
    store: "Vectors | Path | None" = None


def save(
    folder: Path,
    encoder: "Encoder",
    vectors: "Vectors",
    alignment: "Alignment",
    *,
    include_vectors: bool,
    include_encoder: bool | None,
) -> None:
    """Write a model; the store and the encoder are copied into its folder, or the folder says where they are.

    By default (None), an encoder is copied if its only name is a folder on this machine.
    """
    from ebert.model.encoder import fingerprint, save_encoder

    folder.mkdir(parents=True, exist_ok=True)
    store, name, mark = str(vectors.path), encoder.name, encoder.fingerprint
    if include_vectors or vectors.temporary:  # a folder that is about to vanish must come along
        store = VECTORS
        if (folder / store).absolute() != vectors.path:
            vectors.save(folder / store, overwrite=True).close()
    if include_encoder or (include_encoder is None and Path(name).is_absolute()):
        name = ENCODER
        mark = fingerprint(encoder.module, encoder.tokenizer)  # as it is now, perhaps in another dtype
        with files.replacing_folder(folder / name, overwrite=True, marker="config.json") as new:
            save_encoder(encoder.module, encoder.tokenizer, new)
    alignment.save(folder / ALIGNMENT)
    saved_here = trusted.mark(name, store) if Path(name).is_absolute() or Path(store).is_absolute() else ""
    parts = Part(name, mark), Part(store, vectors.fingerprint)
    info = ModelInfo(*parts, files.sha256(folder / ALIGNMENT), saved_here=saved_here)
    files.write_json(folder / INFO, {"ebert": __version__, **asdict(info)})


def find(
    model: str | Path | None, bert: str | Path | None, vectors: "Vectors | str | Path | None" = None
) -> FoundModel:
    """Find a model, or an encoder without entities; fetch the encoder if necessary.

    Raise `EbertError` if there is none. `vectors` is the new path of the model's store. Imports no torch.
    """
    from ebert.bert.get import get_bert

    if bool(model) == bool(bert):
        raise EbertError("give --model or --bert: a model (with entities) or an encoder (without)")
    if vectors and not model:
        raise EbertError("--vectors goes with --model")
    found = find_model(model, vectors) if model else FoundModel(str(bert), str(bert))
    return replace(found, encoder_folder=get_bert(found.encoder, local=found.local))


def find_base(name: str | Path, vectors: "Vectors | str | Path | None" = None, *, mode: str) -> FoundModel:
    """Find what to fine-tune: a model, or in mode `bert` also an encoder."""
    folder = _names.find_local(name, "model")
    if mode != "bert" or (folder is not None and (folder / INFO).is_file()):
        return find(name, None, vectors)
    return find(None, name, vectors)


def find_model(
    name: str | Path, vectors: "Vectors | str | Path | None" = None, encoder: str | Path | None = None, **hub: Any
) -> FoundModel:
    """Find a model and its store, but not its encoder.

    Raise `EbertError` if there is no such model, or if its store is not where it should be. `vectors` and `encoder`
    are what is given instead of what the model names.
    """
    folder = _names.resolve(name, "model", **hub)
    info = ModelInfo.read(folder)
    if vectors is None or isinstance(vectors, str | Path):
        vectors = _names.store_of(folder, info.vectors.name, vectors, ours=info.ours)
    own = str(encoder) if encoder else encoder_of(folder, info)
    local = bool(encoder) or Path(own).is_absolute()
    return FoundModel(str(name), own, local, None, folder, info, vectors)


def load(
    found: FoundModel, vectors: "Vectors | None" = None, **placed: Any
) -> tuple["Encoder", "Vectors | None", "Alignment | None"]:
    """Load what was found; `vectors` is the store if it is open already."""
    from ebert.model.encoder import Encoder

    if found.folder is None or found.info is None:
        return Encoder.load(found.encoder, folder=found.encoder_folder, **placed), None, None
    alignment = load_alignment(found.folder, found.info)
    store = open_store(found) if vectors is None else vectors
    loaded = Encoder.load(found.encoder, local=found.local, folder=found.encoder_folder, **placed)
    if loaded.fingerprint != found.info.encoder.fingerprint:
        raise EbertError(
            f"{loaded.name} has other wordpieces or wordpiece vectors than the encoder {found.folder} was fitted on; "
            "give the right encoder (encoder=...) or fit the model again ('ebert align')"
        )
    return loaded, store, alignment


def open_store(found: FoundModel) -> "Vectors":
    """Open the store of a model, without loading torch. Raise `EbertError` if it is not the one it was fitted to."""
    from ebert.vectors.store import Vectors, reopen

    if found.folder is None or found.info is None or found.store is None:
        raise EbertError(f"{found.name} is an encoder without entities: it has no store")
    store = Vectors.open(found.store) if isinstance(found.store, Path) else found.store
    part, remedy = found.info.vectors, " or fit the model again ('ebert align')"
    return reopen(found.folder, part.name, part.fingerprint, store, ours=True, remedy=remedy)


def load_alignment(folder: Path, info: ModelInfo) -> "Alignment":
    """Read W and check that it is the one that `ebert.json` names."""
    from ebert.model.alignment import Alignment

    alignment = Alignment.load(folder / ALIGNMENT)
    if files.sha256(folder / ALIGNMENT) != info.alignment_sha256:
        raise EbertError(
            f"{folder / ALIGNMENT} is not the one that {INFO} belongs to; make the model again with 'ebert align'"
        )
    return alignment


def encoder_of(folder: Path, info: ModelInfo) -> str:
    """Return the path of the model's encoder, or its name if it is not in a folder of its own."""
    name = info.encoder.name
    if Path(name).is_absolute() or os.path.isdir(folder / name):  # noqa: PTH112 - which takes any name
        return str(trusted.locate(folder, name, ours=info.ours, give="encoder=...").absolute())
    return name
