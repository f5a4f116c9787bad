"""The command line: one file a command group, thin: parse, call, print.

The file of a command is imported when the command is asked for, and nothing heavy before it runs, so that
``ebert --help`` answers at once.
"""

import os
import platform
import sys

import click

from ebert import __version__
from ebert._io import compressed
from ebert.cli.lazy import Group
from ebert.errors import EbertError

COMMANDS = {
    "align": "align:command", "bert": "bert:group", "corpus": "corpus:group", "demo": "demo:command",
    "doctor": "doctor:command", "encode": "bulk:encode_group", "export": "export:command", "fill": "fill:command",
    "lama": "lama:group", "link": "link:group", "probe": "probe:group", "relations": "relations:group",
    "report": "report:command", "serve": "serve:command", "starter": "starter:command", "vectors": "vectors:group",
}  # fmt: skip
VERSIONS = ("torch", "transformers")  # that decide what comes out, beside our own and Python's


def _print_versions(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        click.echo(f"ebert {__version__}\npython {platform.python_version()}")
        for name in VERSIONS:
            try:
                click.echo(f"{name} {version(name)}")
            except PackageNotFoundError:
                click.echo(f"{name} is not installed: pip install {name}")
        context.exit()


@click.group(cls=Group, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_versions,
              help="Print the versions of ebert, Python, torch and transformers.")  # fmt: skip
@click.option(
    "--max-unpacked",
    metavar="SIZE",
    help="The largest size that a compressed file may unpack to, such as 2G; in a dump, the limit for one page. "
    f"{compressed.VARIABLE} sets it too."
    "  [default: 100 times its size, at least 4M and at most 1G; one line or page: 16M]",
)
def cli(max_unpacked: str | None) -> None:
    """Give a pretrained language model factual knowledge about entities, without retraining it.

    \b
    Example:
      ebert demo
      ebert fill --model starter "The native language of [[Natalia Lafourcade]] is [MASK]."
      ebert vectors import enwiki.txt --out enwiki-vectors
      ebert align enwiki-vectors --bert bert-base-cased --out enwiki-ebert
      ebert fill --model enwiki-ebert "The native language of [[Jean Marais]] is [MASK]."
    """
    if max_unpacked is not None:
        compressed.in_bytes(max_unpacked)
        os.environ[compressed.VARIABLE] = max_unpacked  # worker processes have it too


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
