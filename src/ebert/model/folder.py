"""A model on disk: a folder that says which encoder and which store it belongs to, and holds W.

What is wrong with a name can be said without torch: `check_model` imports neither torch nor transformers.
"""

import os
from dataclasses import asdict, dataclass
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

    If not told otherwise (None), an encoder is copied that has no name but that of a folder of this machine.
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


def load(
    folder: Path, *, vectors: "Vectors | str | Path | None", encoder: str | Path | None, **placed: Any
) -> tuple["Encoder", "Vectors", "Alignment"]:
    """Read a model and open its parts, which are where the folder says or where they are given."""
    from ebert.model.encoder import Encoder

    info = ModelInfo.read(folder)
    alignment = load_alignment(folder, info)
    store = open_store(folder, vectors, info)
    name = str(encoder) if encoder else encoder_of(folder, info)
    # Only what the caller names, or what was found above, may be a folder.
    loaded = Encoder.load(name, local=bool(encoder) or Path(name).is_absolute(), **placed)
    if loaded.fingerprint != info.encoder.fingerprint:
        raise EbertError(
            f"{loaded.name} has other wordpieces or wordpiece vectors than the encoder {folder} was fitted on; "
            "give the right encoder (encoder=...) or fit the model again ('ebert align')"
        )
    return loaded, store, alignment


def open_store(folder: Path, vectors: "Vectors | str | Path | None" = None, info: ModelInfo | None = None) -> "Vectors":
    """Open the store of a model, without loading torch. Raise `EbertError` if it is not the one it was fitted to."""
    from ebert.vectors.store import reopen

    info = info or ModelInfo.read(folder)
    part, remedy = info.vectors, " or fit the model again ('ebert align')"
    return reopen(folder, part.name, part.fingerprint, vectors, ours=info.ours, remedy=remedy)


def check_model(name: str | Path, vectors: str | Path | None = None) -> str:
    """Raise `EbertError` if there is no such model, or if its store is not where it should be.

    Return the name or the folder of its encoder, which is not looked for. `vectors` is where the store is now.
    """
    folder = _names.resolve(name, "model")
    info = ModelInfo.read(folder)
    _names.store_of(folder, info.vectors.name, vectors, ours=info.ours)
    return encoder_of(folder, info)


def load_alignment(folder: Path, info: ModelInfo) -> "Alignment":
    """Read W and check that it is the one `ebert.json` speaks of."""
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
