"""The command line: one file a command group, thin: parse, call, print.

Nothing heavy is imported before a command runs, so that ``ebert --help`` answers at once.
"""

import os
import sys

import click

from ebert import __version__
from ebert._io import compressed
from ebert.cli import (
    align,
    bert,
    bulk,
    corpus,
    doctor,
    export,
    fill,
    lama,
    link,
    probe,
    relations,
    report,
    serve,
    starter,
    train,
    vectors,
)  # fmt: skip
from ebert.errors import EbertError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ebert")
@click.option(
    "--max-unpacked",
    metavar="SIZE",
    help="What a compressed file may unpack to, such as 2G; for a dump, one page of it. "
    f"{compressed.VARIABLE} sets it too."
    "  [default: 100 times its size, at least 4M and at most 1G; one line or page: 16M]",
)
def cli(max_unpacked: str | None) -> None:
    """Give a pretrained language model factual knowledge about entities, without retraining it.

    \b
    Example:
      ebert bert get bert-base-cased
      ebert vectors import enwiki.txt --out enwiki-vectors
      ebert align enwiki-vectors --bert bert-base-cased --out enwiki-ebert
      ebert fill --model enwiki-ebert "The native language of [[Jean Marais]] is [MASK]."
    """
    if max_unpacked is not None:
        compressed.in_bytes(max_unpacked)
        os.environ[compressed.VARIABLE] = max_unpacked  # worker processes have it too


for command in (
    bert.group, corpus.group, vectors.group, align.command, fill.command, bulk.encode_group, probe.group, lama.group,
    report.command, relations.group, link.group, serve.command, export.command, starter.command, doctor.command,
):  # fmt: skip
    cli.add_command(command)
vectors.group.add_command(train.command)
link.group.add_command(bulk.link)
probe.group.add_command(bulk.probe)


def main() -> None:
    """Run a command: exit code 2 for bad input, 1 for a failure, 130 for Ctrl-C."""
    try:
        result = cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted")
        sys.exit(130)
    except EbertError as error:
        _complain(str(error))
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        _complain(str(error))
        sys.exit(1)
    sys.exit(result if isinstance(result, int) else 0)


def _complain(message: str) -> None:
    click.echo(f"{click.style('error', fg='red', bold=True)}: {message}", err=True)
