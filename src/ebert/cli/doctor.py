"""``ebert doctor``: find what is wrong, and what to do."""

from dataclasses import asdict
from pathlib import Path

import click

from ebert.cli.common import json_option, print_json

COLOURS = {"good": "green", "note": "yellow", "bad": "red"}


@click.command("doctor")
@click.argument("path", nargs=-1)
@click.option(
    "--clean",
    is_flag=True,
    help="Check nothing; remove what killed commands left behind in the cache and at the PATHs.",
)
@click.option("--quick", is_flag=True, help="Load no encoder and read no whole files: compare names and sizes only.")
@json_option
def command(path: tuple[str, ...], clean: bool, quick: bool, as_json: bool) -> int:
    """Check the installation and the cache, or the stores, models and encoders at the PATHs.

    A PATH may also be 'starter'. The exit code is 1 if something is wrong with the installation, and 2 if something is
    wrong with a PATH.

    With --clean, the command checks nothing. Instead, it removes the hidden folders that killed commands left behind:
    those in EBERT_HOME, in each PATH, and beside it. Folders that a running process uses stay.

    \b
    Example:
      ebert doctor
      ebert doctor enwiki-vectors enwiki-ebert
      ebert doctor --quick starter
      ebert doctor --clean .
    """
    if clean:
        _clean(path, as_json)
        return 0
    from ebert import doctor

    checks = [*doctor.check_installation(), *doctor.check_cache(quick=quick)] if not path else []
    for each in path:
        checks += doctor.check_path(each, quick=quick)
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        width = max(len(check.what) for check in checks)
        for check in checks:
            click.echo(
                f"{click.style(f'{check.state:<4}', fg=COLOURS[check.state])}  {check.what:<{width}}  {check.detail}"
            )
    if all(check.state != "bad" for check in checks):
        return 0
    return 2 if path else 1


def _clean(paths: tuple[str, ...], as_json: bool) -> None:
    from ebert._io.home import home
    from ebert._io.staging import clean

    removed, kept = {}, []
    for path in (home(), *map(Path, paths)):
        for place, size in clean(path):
            if size is None:
                kept.append(str(place))
            else:
                removed[str(place)] = size
    if as_json:
        print_json({"removed": removed, "in use": kept})
        return
    for name, size in removed.items():
        click.echo(f"removed {name}, {size / 1e6:.1f} MB")
    for name in kept:
        click.echo(f"kept    {name}: a process uses it, or it has other files in it")
    click.echo(f"{len(removed):,} removed, {sum(removed.values()) / 1e6:.1f} MB in total")
