"""``ebert doctor``: what is wrong, and what to do."""

from dataclasses import asdict

import click

from ebert.cli.common import json_option, print_json

COLOURS = {"good": "green", "note": "yellow", "bad": "red"}


@click.command("doctor")
@click.argument("path", nargs=-1)
@json_option
def command(path: tuple[str, ...], as_json: bool) -> int:
    """Check the installation and the cache, or, given PATHs, stores, models and encoder folders.

    The exit code is 1 if something is wrong with the installation and 2 if it is with a PATH.

    \b
    Example:
      ebert doctor
      ebert doctor enwiki-vectors enwiki-ebert
    """
    from ebert import doctor

    checks = [*doctor.check_installation(), *doctor.check_cache()] if not path else []
    for each in path:
        checks += doctor.check_path(each)
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
