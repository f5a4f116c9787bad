"""``ebert vectors train``: from a corpus to a store of vectors."""

from typing import Any, get_args

import click

from ebert._options import cli_options
from ebert.cli.common import json_option, overwrite_option, print_facts, print_json
from ebert.vectors.layout import StorageDtype
from ebert.vectors.train.options import PRESETS, VectorTrainingOptions


@click.command("train")
@click.argument("corpus")
@click.option("--out", required=True, help="The folder of the new store.")
@click.option("--preset", type=click.Choice(list(PRESETS)), default="default", show_default=True,
              help="'paper': dimension 768, entities with 5 links, only the three "
              "objectives of Section 2.3.")  # fmt: skip
@cli_options(VectorTrainingOptions, into="given", given_only=True)
@click.option("--threads", type=click.IntRange(min=1), help="Cores to use.  [default: all]")
@click.option("--keep", type=click.Path(), help="A file of titles, one per line, that always get a vector.")
@click.option("--resume", is_flag=True, help="Continue from the last checkpoint, if there is one.")
@click.option("--checkpoint", type=float, default=600, show_default=True, help="Seconds between checkpoints.")
@click.option("--dtype", type=click.Choice(get_args(StorageDtype)), default="float32", show_default=True)
@overwrite_option
@json_option
def command(
    corpus: str, out: str, given: dict[str, Any], keep: str | None, checkpoint: float, as_json: bool, **how: Any
) -> None:
    """Train vectors of words and entities in one space, from a corpus made by 'ebert corpus build'.

    Ctrl-C saves a checkpoint. To continue, run the same command with --resume. If the training is killed, the work
    after the last checkpoint is lost.

    \b
    Example:
      ebert vectors train enwiki-corpus --out enwiki-vectors --dim 300 --epochs 5
    """
    from ebert._io.records import read_list
    from ebert.vectors.train.run import train

    titles = read_list(keep) if keep else []
    report = train(corpus, out, keep=titles, checkpoint_seconds=checkpoint, **how, **given)
    if as_json:
        print_json(report)
        return
    missing = report.pop("missing")
    print_facts({name.replace("_", " "): value for name, value in report.items()})
    if missing:
        some = ", ".join(map(repr, missing[:5]))
        click.echo(f"{len(missing):,} of the titles to keep are not in the corpus: {some}, ...", err=True)
