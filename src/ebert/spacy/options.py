"""What the pipe is told: the keys of its part of a pipeline's config."""

from dataclasses import dataclass
from typing import Literal, get_args

from ebert.errors import EbertError

FACTORY = "ebert_linker"

Mentions = Literal["own", "doc.ents"]
Alignment = Literal["strict", "contract", "expand"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeOptions:
    """The settings of the pipe."""

    linker: str | None = None
    """A folder of `ebert link train` or `ebert align`, or `starter`. There is no default."""
    vectors: str | None = None
    """Where the linker's store is now, if not where it was."""
    mentions: Mentions = "own"
    """`own`: find and link entities; `doc.ents`: link the entities that earlier pipes found."""
    threshold: float | None = None
    """Leave out links that are less probable; if not given, what the linker was saved with (own mentions) or 0."""
    rounds: int | None = None
    """Iterations of refinement, if not those of the linker; 1 is none."""
    overwrite: bool = False
    """Whether own mentions take the place of entities they overlap, and links that of a `kb_id` that is there."""
    label: str = "ENTITY"
    """The label of entities that no earlier pipe found."""
    alignment_mode: Alignment = "expand"
    """A mention that is not whole tokens: `expand` or `contract` it, or leave it out (`strict`)."""
    device: str | None = None
    """Where the encoder runs: cpu, cuda, mps, ..."""
    copy_linker: bool = False
    """Whether `to_disk` and `to_bytes` write a copy of the linker and its store, not just where they are."""

    def __post_init__(self) -> None:
        if not self.linker:
            raise EbertError(
                f"{FACTORY} needs a linker: nlp.add_pipe('{FACTORY}', config={{'linker': ...}}) "
                "with a folder of 'ebert link train' or 'ebert align', or 'starter'"
            )
        for name, kind in (("mentions", Mentions), ("alignment_mode", Alignment)):
            if getattr(self, name) not in get_args(kind):
                raise EbertError(f"unknown {name} {getattr(self, name)!r}; choose one of {', '.join(get_args(kind))}")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise EbertError(f"threshold is {self.threshold}; it is a probability, from 0 to 1")
        if self.rounds is not None and self.rounds < 1:
            raise EbertError(f"rounds is {self.rounds}; it must be at least 1 (which is no refinement)")
        if not self.label:
            raise EbertError("label is empty; spaCy drops entities without a label")
