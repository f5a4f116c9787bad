"""Gets axe-core, which checks the page for accessibility, from npm (`python tests/get_axe.py`), once.

It is kept in EBERT_AXE, or in the cache of the user. That it cannot be had is said, and is no error: the tests that
need it are then skipped, or fail on CI.
"""

import os
import shutil
import subprocess
from pathlib import Path

import click

PACKAGE = "axe-core@4.14.0"


def axe() -> Path:
    """Return the path of the script, which is there or not."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = Path(os.environ.get("EBERT_AXE") or Path(cache, "ebert-tests", PACKAGE))
    return home / "node_modules" / "axe-core" / "axe.min.js"


def main() -> None:
    """Find it, or try to get it."""
    path = axe()
    if path.is_file():
        return
    npm = shutil.which("npm")
    if npm is not None:
        click.echo(f"no axe-core yet: npm install {PACKAGE}")
        home = path.parents[2]
        home.mkdir(parents=True, exist_ok=True)
        quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
        subprocess.run([npm, "install", "--prefix", str(home), *quiet, PACKAGE], check=False)
    if not path.is_file():
        click.echo("axe-core could not be had (npm gets it): tests of accessibility are skipped", err=True)


if __name__ == "__main__":
    main()
