"""The injection modes: what the encoder is fed where a text mentions an entity (Section 3.2).

A mode is a template of the entity's vector and the words of the mention, its surface. A new mode is a line of `Mode`
and one of `_TEMPLATES`: sequences, commands, the service and the reports take the modes from here. Nothing heavy is
imported.
"""

from typing import Literal, get_args

from ebert.errors import EbertError

Mode = Literal["bert", "concat", "replace"]
MODES: tuple[Mode, ...] = get_args(Mode)

_TEMPLATES: dict[Mode, tuple[str, ...]] = {
    "bert": ("surface",),  # wordpieces only
    "concat": ("entity", " / ", "surface"),  # the entity, a slash and the wordpieces
    "replace": ("entity",),  # the entity in the place of the wordpieces
}


def template(mode: Mode) -> tuple[str, ...]:
    """Return what takes the place of a mention: "entity", "surface", and any other text as it is."""
    return _TEMPLATES[mode]


def feeds_entities(mode: Mode) -> bool:
    """Return whether a mode makes a difference between texts with and without mentions."""
    return "entity" in _TEMPLATES[mode]


def check(mode: str) -> None:
    """Raise `EbertError` if there is no such mode."""
    if mode not in MODES:
        raise EbertError(f"unknown mode {mode!r}; choose one of {', '.join(MODES)}")


def parse_modes(given: str | None, *, with_entities: bool) -> list[Mode]:
    """Read a list such as "bert,concat", or "all": all modes, or only `bert` without entities, as if none is given."""
    if not given or given == "all":
        return [mode for mode in MODES if with_entities or not feeds_entities(mode)]
    chosen: list[Mode] = []
    for name in given.split(","):
        mode = next((mode for mode in MODES if mode == name.strip()), None)
        if mode is None:
            raise EbertError(f"unknown mode {name.strip()!r}; choose from {', '.join(MODES)}")
        if feeds_entities(mode) and not with_entities:
            raise EbertError(f"the mode {mode} needs entity vectors: give a --model made by 'ebert align'")
        chosen.append(mode)
    return list(dict.fromkeys(chosen))
