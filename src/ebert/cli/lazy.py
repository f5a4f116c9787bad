"""Groups of commands: the file of a command is imported when it is asked for, and no summary is cut off."""

from collections import UserDict
from importlib import import_module
from typing import Any

import click


class LazyCommands(UserDict[str, Any]):
    """Commands by name. A command that was not used yet is given by its place: "align:command"."""

    def __getitem__(self, name: str) -> click.Command:
        """Return a command."""
        found = self.data[name]
        if isinstance(found, str):
            module, _, attribute = found.partition(":")
            found = self.data[name] = getattr(import_module(f"ebert.cli.{module}"), attribute)
        return found


class Group(click.Group):
    """A group whose commands are listed with whole sentences."""

    def __init__(self, name: str | None = None, commands: dict[str, str] | None = None, **settings: Any) -> None:
        super().__init__(name, LazyCommands(commands or {}), **settings)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with the first sentence of each, on as many lines as it takes."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, one.get_short_help_str(limit=1000)) for name, one in found if one and not one.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)
