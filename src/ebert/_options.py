"""Options: frozen dataclasses that check themselves, and the command-line options that are made of their fields.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class AlignmentOptions(Options):
        ridge: float = option(0.0, "Penalty on the size of W.", low=0)

    @click.command("align")
    @cli_options(AlignmentOptions)
    def command(options: AlignmentOptions) -> None: ...

Name, default, bounds and help of an option stand in one place. Nothing heavy is imported, so that ``--help`` answers
at once; modules that define options must not import torch or numpy either.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from ebert.errors import EbertError

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class _Facts:
    """The properties of an option besides its type and its default."""

    help: str
    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    metavar: str | None = None
    cli: bool = True

    def allows(self, value: float) -> bool:
        return math.isfinite(value) and not (
            (self.low is not None and value < self.low)
            or (self.high is not None and value > self.high)
            or (self.above is not None and value <= self.above)
            or (self.below is not None and value >= self.below)
        )

    def bounds(self) -> str:
        """Return the bounds in words."""
        named = {"at least": self.low, "above": self.above, "at most": self.high, "below": self.below}
        given = [f"{words} {value:,}" for words, value in named.items() if value is not None]
        return " and ".join(given) or "a finite number"


def option(default: Any, help: str, **facts: Any) -> Any:  # noqa: A002
    """Return a dataclass field for an option.

    `low` and `high` are the bounds of a number, `above` and `below` the bounds that it must not reach. With
    ``cli=False`` the field has no command-line option.
    """
    return dataclasses.field(default=default, metadata={"option": _Facts(help, **facts)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Base class of options: every value is checked against its type and its bounds."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise `EbertError` if a value is not of its type or is out of bounds."""
        for field, kind, facts in _options(cast("Any", type(self))):
            _check(field.name, getattr(self, field.name), kind, facts)


def cli_options(
    cls: type[Options],
    *,
    into: str = "options",
    without: Collection[str] = (),
    defaults: Mapping[str, Any] | None = None,
    given_only: bool = False,
) -> Callable[[Command], Command]:
    """Add a command-line option for each field of `cls`, and hand the command an instance as the argument `into`.

    Fields in `without` have no option; `defaults` replaces defaults of the class. With `given_only` the command gets
    a dict of just those values that the user gave, for presets.
    """
    import click

    fields = [one for one in _options(cast("Any", cls)) if one[2].cli and one[0].name not in without]
    names = [field.name for field, _, _ in fields]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(*args: Any, **values: Any) -> Any:
            given = {name: values.pop(name) for name in names}
            if given_only:
                values[into] = {name: value for name, value in given.items() if value is not None}
            else:
                values[into] = cls(**given)
            return command(*args, **values)

        wrapped: Any = run
        for field, kind, facts in reversed(fields):
            default = (defaults or {}).get(field.name, field.default)
            flag = "--" + field.name.replace("_", "-")
            text, shown = facts.help, {"default": default, "show_default": default is not None}
            if given_only:
                worded = f"{default:g}" if isinstance(default, float) else default
                worded = ("yes" if default else "no") if kind is bool else worded
                text = text if default is None else f"{text}  [default: {worded}]"
                shown = {"default": None}
            if kind is bool and (default or given_only):
                flag = f"{flag}/--no-{flag[2:]}"
            elif kind is bool:
                shown = {"is_flag": True, "default": False}
            wrapped = click.option(
                flag, field.name, type=_click_type(kind, facts), help=text, metavar=facts.metavar, **shown
            )(wrapped)
        return wrapped

    return decorate


@functools.cache
def _options(cls: Any, /) -> tuple[tuple["dataclasses.Field[Any]", Any, _Facts], ...]:
    """Return the fields of a class that are options, each with its type and what else is known."""
    hints = get_type_hints(cls)
    known = ((field, hints[field.name], field.metadata.get("option")) for field in dataclasses.fields(cls))
    return tuple((field, kind, facts) for field, kind, facts in known if facts is not None)


def _plain(kind: Any) -> tuple[Any, bool]:
    """Return a type without None, and whether it may be None."""
    if get_origin(kind) not in (Union, UnionType):
        return kind, False
    rest = [one for one in get_args(kind) if one is not NoneType]
    return (rest[0] if len(rest) == 1 else kind), True


def _check(name: str, value: Any, kind: Any, facts: _Facts) -> None:
    kind, optional = _plain(kind)
    if value is None and optional:
        return
    shown = name.replace("_", "-")
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise EbertError(f"unknown {shown} {value!r}; choose one of {', '.join(get_args(kind))}")
    elif kind is bool or (kind is str and not isinstance(value, str)):
        if not isinstance(value, kind):
            raise EbertError(f"{shown} is {value!r}; it must be {'yes or no' if kind is bool else 'text'}")
    elif kind in (int, float):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not (whole or (kind is float and isinstance(value, float))):
            raise EbertError(f"{shown} is {value!r}; it must be a {'whole ' if kind is int else ''}number")
        if not facts.allows(value):
            raise EbertError(f"{shown} is {value}; it must be {facts.bounds()}")


def _click_type(kind: Any, facts: _Facts) -> Any:
    import click

    kind, _ = _plain(kind)
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    low, high = (facts.low, facts.above), (facts.high, facts.below)
    if kind in (int, float) and any(bound is not None for bound in low + high):
        range_: Any = click.IntRange if kind is int else click.FloatRange
        return range_(
            min=low[0] if low[0] is not None else low[1],
            max=high[0] if high[0] is not None else high[1],
            min_open=low[0] is None and low[1] is not None,
            max_open=high[0] is None and high[1] is not None,
        )
    return kind if kind in (int, float, bool, str) else None
