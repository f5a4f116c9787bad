"""What several commands share: options and ways to print."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from ebert.finetuning.options import Precision

if TYPE_CHECKING:
    import torch

Command = TypeVar("Command", bound=Callable[..., Any])

DTYPES = ("float32", "float16", "bfloat16")


def json_option(command: Command) -> Command:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs instead of text for people.")(
        command
    )


def overwrite_option(command: Command) -> Command:
    """Add ``--overwrite``."""
    return click.option("--overwrite", is_flag=True, help="Replace what is at --out.")(command)


def device_options(command: Command) -> Command:
    """Add ``--device`` and ``--dtype``."""
    command = click.option("--dtype", type=click.Choice(DTYPES), help="What the encoder computes in.")(command)
    return click.option("--device", help="Where the encoder runs: cpu, cuda, mps, ...")(command)


def schedule_options(*, checkpoint_steps: int) -> Callable[[Command], Command]:
    """Add what every fine-tuning can be told of its schedule, its checkpoints and its precision."""

    def add(command: Command) -> Command:
        for option in reversed((
            click.option("--warmup", type=float, default=0.1, show_default=True,
                         help="Share of the steps in which the learning rate rises."),
            click.option("--weight-decay", type=float, default=0.01, show_default=True, help="AdamW's weight decay."),
            click.option("--checkpoint-steps", type=int, default=checkpoint_steps, show_default=True,
                         help="Steps between two states on disk, from which a killed run goes on."),
            click.option("--precision", type=click.Choice(get_args(Precision)), default="fp32", show_default=True,
                         help="The mixed ones are for GPUs."),
        )):  # fmt: skip
            command = option(command)
        return command

    return add


def torch_dtype(name: str | None) -> "torch.dtype | None":
    """Return the torch dtype of a ``--dtype``."""
    if name is None:
        return None
    import torch

    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def print_json(value: Any) -> None:
    """Print one JSON value on a line of stdout."""
    click.echo(json.dumps(value, ensure_ascii=False))


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one a line, aligned."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
        click.echo(f"{name:<{width}}  {shown}")


def print_table(rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows with their columns aligned."""
    lines = list(rows)
    widths = [max(len(row[column]) for row in lines) for column in range(len(lines[0]))] if lines else []
    for row in lines:
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def print_search(result: dict[str, Any], size: str) -> None:
    """Print what a search found, a line for each learning rate and `size` of its grid."""
    rows = [("learning rate", size, "best epoch", "dev F1", "")]
    rows += [
        (f"{one['learning rate']:g}", f"{one[size]:g}", f"{one['best epoch']:g}", f"{one['dev']['f1']:.2f}",
         "best" if one["run"] == result["best"] else "")
        for one in result["configurations"]
    ]  # fmt: skip
    print_table(rows)
