"""All commands, their options and their help texts."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from golden_tools import DATA, WRITING, check_json, check_text

import ebert
from ebert.cli import cli

OPTIONS = "options.json"


def walk(command=cli, name="ebert", above=None):
    """Yield every command with its context."""
    settings = {**command.context_settings, "terminal_width": 100}
    context = click.Context(command, info_name=name.rsplit(" ", 1)[-1], parent=above, **settings)
    yield name, command, context
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            yield from walk(command.get_command(context, inner), f"{name} {inner}", context)


def described(option: click.Parameter) -> dict:
    """Describe an option or argument; click's versions differ in how they write that there is no default."""
    default = option.default() if callable(option.default) else option.default
    if default is False or not isinstance(default, bool | int | float | str | tuple | list):
        default = None
    kind = option.type
    about = {
        "names": sorted([*option.opts, *option.secondary_opts]),
        "type": kind.name,
        "default": (list(default) or None) if isinstance(default, tuple | list) else default,
        "required": option.required,
        "many": option.nargs == -1 or getattr(option, "multiple", False),
        "flag": getattr(option, "is_flag", False),
    }
    if isinstance(kind, click.Choice):
        about["choices"] = [str(one) for one in kind.choices]
    if isinstance(kind, click.IntRange | click.FloatRange):
        about["range"] = [kind.min, kind.max]
    return about


def options() -> dict:
    return {
        name: {max(option.opts, key=len): described(option) for option in command.params} for name, command, _ in walk()
    }


def test_no_option_is_lost_or_changed():
    """New ones may come."""
    now = options()
    if WRITING:
        check_json(OPTIONS, now)
    frozen = json.loads((DATA / OPTIONS).read_text("utf-8"))
    assert frozen.keys() - now.keys() == set()
    for name, wanted in frozen.items():
        assert {option: now[name].get(option) for option in wanted} == wanted, name


def help_texts() -> str:
    return "".join(f"\n##### {name} --help\n{command.get_help(context)}\n" for name, command, context in walk())


def test_help():
    """With another version of click, help is laid out in another way.

    The texts are made in a new process: a command keeps the names of the help option from its first use, and a test may
    have used it without the group that names them.
    """
    version = ".".join(click_version().split(".")[:2])
    command = [sys.executable, "-c", "from test_golden_help import help_texts; print(help_texts(), end='')"]
    run = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, encoding="utf-8", check=True)
    text = f"click {version}\n{run.stdout}"
    path = DATA / "help.txt"
    if not WRITING and path.read_text("utf-8").split("\n", 1)[0] != f"click {version}":
        pytest.skip(f"frozen with another version of click than {version}")
    check_text("help.txt", text)


def click_version() -> str:
    from importlib.metadata import version

    return version("click")


def test_public_names():
    """New ones may come."""
    if WRITING:
        check_json("names.json", sorted(ebert.__all__))
    assert set(json.loads((DATA / "names.json").read_text("utf-8"))) <= set(ebert.__all__)
