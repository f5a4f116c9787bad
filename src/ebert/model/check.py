"""What BERT says about an entity on a few templates, with its vector and without: whether teaching it worked."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ebert.errors import EbertError
from ebert.model.fill import Answer
from ebert.model.injection import NO_ENTITIES
from ebert.text.passage import Mention, Passage
from ebert.vectors.lookup import plain_name

if TYPE_CHECKING:
    from ebert.model.ebert import EBert

# Each begins or goes on with the name of the entity, {}.
TEMPLATES = (
    "{} is a [MASK].",
    "{} is located in [MASK].",
    "The native language of {} is [MASK].",
    "{} works as a [MASK].",
    "{} is made by [MASK].",
)
TOP = 3


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """The best answers for a template, the best first."""

    template: str  # with {} where the name of the entity goes
    before: tuple[Answer, ...]
    """From plain BERT (mode `bert`), which sees only the name."""
    after: tuple[Answer, ...]
    """From E-BERT (mode `concat`), which sees the entity's vector beside the name."""


def check_entity(model: "EBert", title: str, *, top: int = TOP) -> list[CheckedAnswer]:
    """Ask a model about an entity, with its vector and without, on each of `TEMPLATES`.

    Raise `UnknownNameError` if it has no vector. What is in brackets at the end of a title is not part of the name:
    the vector, not the text, should tell which Paris is meant.
    """
    if model.vectors is None:
        raise EbertError(NO_ENTITIES)
    entity = model.vectors.known(title)
    passages = [_passage(template, entity.title) for template in TEMPLATES]
    filled = model.fill_modes(passages, ["bert", "concat"], top=top)
    return [
        CheckedAnswer(template, row["bert"].answers, row["concat"].answers)
        for template, row in zip(TEMPLATES, filled, strict=True)
    ]


def _passage(template: str, title: str) -> Passage:
    name = plain_name(title)
    before, _, after = template.partition("{}")
    return Passage(f"{before}{name}{after}", (Mention(len(before), len(before) + len(name), title),))
