"""Options and ways to print that several commands share."""

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from ebert._io.progress import say
from ebert.errors import EbertError
from ebert.linking.options import PRECISION_HELP, LinkPrecision

Command = TypeVar("Command", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
DTYPES = ("float32", "float16", "bfloat16")

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON for programs instead of text for people."
)
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace what is at --out.")
device_option = click.option("--device", help="Where the encoder runs: cpu, cuda, mps, ...")
precision_option = click.option(
    "--precision", type=click.Choice(get_args(LinkPrecision)), default="auto", show_default=True, help=PRECISION_HELP
)
dtype_option = click.option("--dtype", type=click.Choice(DTYPES), help="The encoder's number type.")
vectors_option = click.option("--vectors", help="The new path of the model's store, if it has moved.")
own_vectors_option = click.option("--vectors", help="A store to use instead of the model's, such as a copy of it.")


def options(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return one decorator that adds options in the order in which help lists them."""

    def add(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return add


def print_json(value: Any) -> None:
    """Print one JSON value on a line of stdout."""
    click.echo(json.dumps(value, ensure_ascii=False))


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one per line, aligned."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
        click.echo(f"{name:<{width}}  {shown}")


def print_table(rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows with their columns aligned."""
    lines = list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for row in lines:
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def print_result(value: Any, as_json: bool, show: Callable[[Any], None] = print_facts) -> None:
    """Print a result as JSON, or for people by `show`."""
    print_json(value) if as_json else show(value)


def print_search(result: dict[str, Any], size: str) -> None:
    """Print what a search found, a line for each learning rate and `size` of its grid."""
    rows = [("learning rate", size, "best epoch", "dev F1", "")]
    rows += [
        (f"{one['learning rate']:g}", f"{one[size]:g}", f"{one['best epoch']:g}", f"{one['dev']['f1']:.2f}",
         "best" if one["run"] == result["best"] else "")
        for one in result["configurations"]
    ]  # fmt: skip
    print_table(rows)


def print_report(folder: Path, summary: Mapping[str, Any]) -> None:
    """Print what a report found and where it is."""
    click.echo(summary["conclusion"])
    for line in summary["headlines"]:
        click.echo(line)
    for line in summary.get("warnings", ()):
        say(f"warning: {line}")
    click.echo(f"wrote {folder}: open {folder / 'index.html'}")


def command_line() -> str:
    """Return the command that runs, for the record of a run."""
    return shlex.join(["ebert", *sys.argv[1:]])


def standard_input() -> Iterable[str]:
    """Yield the lines of standard input."""
    try:
        yield from sys.stdin
    except UnicodeDecodeError as error:
        raise EbertError(f"standard input is not UTF-8 ({error})") from None


def size_of(*paths: str | Path) -> int | None:
    """Return the bytes of those paths that are files, for a progress bar, or None."""
    return sum(Path(path).stat().st_size for path in paths if Path(path).is_file()) or None
