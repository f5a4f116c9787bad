"""``ebert starter``: the small model that comes with the package, and a large one made from dumps."""

from typing import Any

import click

from ebert._options import cli_options
from ebert.cli.common import device_option, json_option, overwrite_option, print_json
from ebert.starter.recipe import FullOptions


@click.command("starter")
@click.option("--build", type=click.Choice(("full",)), help="Make the full store and linker from dumps instead.")
@click.option("--dump", multiple=True, help="A dump of Wikipedia, or several of one language.")
@click.option("--out", help="The folder; the model with its linker is in OUT/linker.")
@click.option("--leave-out", multiple=True, metavar="FILE",
              help="Articles to keep out of tables and training: test data, a list of titles, or LAMA, "
              "which is kept out of the learning of W only.")  # fmt: skip
@cli_options(FullOptions, into="given", given_only=True)
@click.option("--threads", type=click.IntRange(1), help="Cores to use.  [default: all]")
@device_option
@overwrite_option
@json_option
def command(
    build: str | None, dump: tuple[str, ...], out: str | None, given: dict[str, Any], as_json: bool, **how: Any
) -> None:
    """Unpack the model that comes with ebert (for bert-base-cased) and print its folder.

    Every command that takes a model or a store also accepts the word 'starter'.

    With --build full, make a larger one instead: a store of every entity that is linked in the dumps, W learned through
    the encoder, and a linker. This takes hours. If it is stopped, give the same command again: it continues. All
    options but --json go with --build.

    \b
    Example:
      ebert starter
      ebert fill --model starter "The native language of [[Natalia Lafourcade]] is [MASK]."
      ebert starter --build full --dump enwiki-latest-pages-articles.xml.bz2 --out enwiki
    """
    from ebert.model.folder import VECTORS

    if build is None:
        if more := [name for name, value in {"dump": dump, "out": out, **given, **how}.items() if value]:
            raise click.UsageError(f"--{more[0].replace('_', '-')} goes with --build full")
        from ebert.starter.get import get_starter

        folder = get_starter()
    else:
        if not dump or not out:
            raise click.UsageError(f"--build {build} needs {'--out' if dump else '--dump'}")
        options = FullOptions(**given)
        from ebert.cli.starter_full import build_full

        folder = build_full(dump, out, options, **how)
    if as_json:
        print_json({"model": str(folder), "vectors": str(folder / VECTORS)})
    else:
        click.echo(folder)
