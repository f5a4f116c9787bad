"""``ebert vectors train``: from a corpus to a store of vectors."""

import os
from pathlib import Path
from typing import Any

import click

from ebert.cli.common import Command, json_option, overwrite_option, print_facts, print_json
from ebert.errors import EbertError

PRESETS = ("default", "paper")
# Name, default and meaning of the fields of VectorTrainingOptions.
OPTIONS: tuple[tuple[str, int | float | bool, str], ...] = (
    ("dim", 300, "Length of the vectors."),
    ("epochs", 6, "Passes over the text."),
    ("window", 5, "Words to each side that a word predicts."),
    ("anchor_window", 5, "Words to each side of an anchor that its entity predicts."),
    ("negative", 5, "Negatives for each positive."),
    ("shared", 16, "Negatives drawn for a block of inputs together."),
    ("sample", 1e-4, "Share of the text above which words are subsampled; 0 keeps all."),
    ("rate", 0.025, "Learning rate at the beginning."),
    ("min_rate", 0.0001, "Learning rate at the end."),
    ("word_power", 0.75, "Negative words are drawn by their count to this power."),
    ("entity_power", 0.0, "Negative entities are drawn by their count to this power."),
    ("min_word_count", 5, "Rarer words have no vector."),
    ("min_entity_count", 5, "Entities with fewer links to them have no vector ..."),
    ("min_opening", 5, "... unless their page opens with this many words; 0: even then."),
    ("openings", True, "Entities predict the words of their page's opening."),
    ("opening_words", 200, "Words of an opening that are used."),
    ("repeats", 4, "How often entities are trained in an epoch."),
    ("finish", 0, "Passes over the entities at the end, with the words fixed."),
    ("links", True, "Entities predict their neighbours in the link graph."),
    ("seed", 0, "With one thread, the same seed gives the same vectors."),
)


def training_options(command: Command) -> Command:
    """Add an option for each field. Their own default is None, so that a preset knows what was not given."""
    for name, default, meaning in reversed(OPTIONS):
        flag = name.replace("_", "-")
        if isinstance(default, bool):
            shown = f"{meaning}  [default: {'yes' if default else 'no'}]"
            command = click.option(f"--{flag}/--no-{flag}", name, default=None, help=shown)(command)
        else:
            shown = f"{meaning}  [default: {default:g}]"
            command = click.option(f"--{flag}", name, type=type(default), help=shown)(command)
    return command


@click.command("train")
@click.argument("corpus")
@click.option("--out", required=True, help="The folder of the new store.")
@click.option(
    "--preset",
    type=click.Choice(PRESETS),
    default="default",
    show_default=True,
    help="'paper': dimension 768, entities with 5 links, the three objectives of Section 2.3 only.",
)
@training_options
@click.option("--threads", type=click.IntRange(min=1), help="Cores to use.  [default: all]")
@click.option("--keep", type=click.Path(), help="A file of titles, one a line, that have vectors whatever their count.")
@click.option("--resume", is_flag=True, help="Go on with the last checkpoint, if there is one.")
@click.option("--checkpoint", type=float, default=600, show_default=True, help="Seconds between checkpoints.")
@click.option("--dtype", type=click.Choice(["float32", "float16"]), default="float32", show_default=True)
@overwrite_option
@json_option
def command(
    corpus: str,
    out: str,
    preset: str,
    threads: int | None,
    keep: str | None,
    resume: bool,
    checkpoint: float,
    dtype: str,
    overwrite: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Train vectors of words and entities in one space, from a corpus made by 'ebert corpus build'.

    Ctrl-C saves a checkpoint; the same command with --resume goes on. A kill loses what came after the last one.

    \b
    Example:
      ebert vectors train enwiki-corpus --out enwiki-vectors --dim 300 --epochs 5
    """
    try:
        import numba  # noqa: F401
        import scipy  # noqa: F401
        import threadpoolctl  # noqa: F401
    except ImportError as error:
        raise EbertError(f"training needs {error.name}: pip install 'ebert[train]'") from None
    from ebert.vectors.train.options import preset as make_options
    from ebert.vectors.train.run import train
    from ebert.wikipedia.corpus import Corpus

    options = make_options(preset, **{name: value for name, value in given.items() if value is not None})
    if checkpoint <= 0:
        raise EbertError(f"--checkpoint is {checkpoint:g}; it is a number of seconds above 0")
    report = train(
        Corpus.open(corpus), Path(out), options, threads=threads or os.cpu_count() or 1, keep=_titles(keep),
        resume=resume, overwrite=overwrite, every=checkpoint, dtype=dtype,
    )  # fmt: skip
    if as_json:
        print_json(report)
        return
    missing = report.pop("missing")
    print_facts({name.replace("_", " "): value for name, value in report.items()})
    if missing:
        some = ", ".join(map(repr, missing[:5]))
        click.echo(f"{len(missing):,} of the titles to keep are not in the corpus: {some}, ...", err=True)


def _titles(path: str | None) -> list[str]:
    if path is None:
        return []
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EbertError(f"{path} cannot be read as a list of titles: {error}") from None
    return [line.strip() for line in lines if line.strip()]
