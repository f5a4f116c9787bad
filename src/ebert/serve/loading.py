"""What a service works with: a model, a linker if there is one, and stores that take additions."""

from dataclasses import dataclass
from pathlib import Path

from ebert.errors import EbertError
from ebert.linking.folder import zero_shot
from ebert.linking.linker import Linker
from ebert.model.ebert import EBert
from ebert.model.modes import MODES, Mode
from ebert.vectors.copies import copy_on_write
from ebert.vectors.store import Vectors


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model and a linker, ready to work."""

    name: str
    model: EBert
    linker: Linker | None
    linker_name: str | None
    keeps: bool = False  # whether added entities stay when the service ends

    @property
    def vectors(self) -> Vectors:
        """The model's store."""
        assert self.model.vectors is not None  # `load` takes no other models
        return self.model.vectors

    @property
    def stores(self) -> list[Vectors]:
        """All stores that an added entity goes to."""
        other = [] if self.linker is None or self.linker.vectors is self.vectors else [self.linker.vectors]
        return [self.vectors, *other]

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes that the model has."""
        return MODES


def load(
    model: str, linker: str | None = None, *, vectors: str | None = None, keep: bool = False, device: str | None = None
) -> Loaded:
    """Load a model folder or the starter, and a linker's folder.

    Without a linker the model itself links, without training, if its store has a mention table. With `keep`, entities
    that are added go into the stores themselves; otherwise into copies that vanish with the service.
    """
    ebert = EBert.from_pretrained(model, vectors=vectors, device=device)
    if ebert.vectors is None:
        raise EbertError(f"{model} has no entity vectors: give a model made by 'ebert align', or 'starter'")
    place = ebert.vectors.path.resolve()
    if not keep:
        ebert = ebert.with_vectors(copy_on_write(ebert.vectors))
    name = Path(model).name or model
    if linker is not None:
        moved = vectors is not None
        own = _linker(linker, ebert, place, moved=moved, keep=keep, device=device)
        return Loaded(name, ebert, own, Path(linker).name, keep)
    assert ebert.vectors is not None
    if not ebert.vectors.describe()["surfaces"]:
        return Loaded(name, ebert, None, None, keep)
    return Loaded(name, ebert, Linker.fresh(ebert, options=zero_shot(ebert)), f"{name} (not trained to link)", keep)


def _linker(linker: str, model: EBert, place: Path, *, moved: bool, keep: bool, device: str | None) -> Linker:
    """Load a linker; if it links to the model's store, with the same object, so that both know the same entities.

    If that store was `moved`, the linker names the place where it was, too.
    """
    try:
        loaded = Linker.from_pretrained(linker, device=device)
    except EbertError:
        if not moved:
            raise
        return Linker.from_pretrained(linker, vectors=model.vectors, device=device)
    own = loaded.vectors
    if own.path.resolve() == place:
        assert model.vectors is not None
        return loaded.with_vectors(model.vectors)
    return loaded if keep else loaded.with_vectors(copy_on_write(own))
