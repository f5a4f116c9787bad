"""``ebert starter``: the small model that comes with the package."""

import click

from ebert.cli.common import json_option, print_json


@click.command("starter")
@json_option
def command(as_json: bool) -> None:
    """Unpack the model that comes with ebert (for bert-base-cased) and print its folder.

    Every command that takes a model or a store also accepts the word 'starter'.

    \b
    Example:
      ebert starter
      ebert fill --model starter "The native language of [[Natalia Lafourcade]] is [MASK]."
    """
    from ebert.model.folder import VECTORS
    from ebert.starter.get import get_starter

    folder = get_starter()
    if as_json:
        print_json({"model": str(folder), "vectors": str(folder / VECTORS)})
    else:
        click.echo(folder)
