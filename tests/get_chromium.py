"""Finds a Chromium for the browser tests, and gets one where that is possible (`python tests/get_chromium.py`).

It is looked for in EBERT_CHROMIUM, on the PATH and where Playwright keeps its own; then Playwright is asked to fetch
its own, and the system's packages are tried by those who may install some. That none can be had is said, and is no
error: the tests of the page are then skipped, or fail on CI.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def chromium(own: str | None = None) -> str | None:
    """Return the path of a Chromium, or None; `own` is where Playwright's would be."""
    given = os.environ.get("EBERT_CHROMIUM")
    if given:
        return given
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    return found or (own if own and Path(own).is_file() else None)


def _own() -> str | None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        return playwright.chromium.executable_path


def _attempts() -> list[list[str]]:
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    apt = [["apt-get", "update", "-qq"], ["apt-get", "install", "-qq", "-y", "chromium"]]
    return [
        [sys.executable, "-m", "playwright", "install", *(["--with-deps"] if root else []), "chromium"],
        *(apt if root and shutil.which("apt-get") else []),
    ]


def main() -> None:
    """Find it, or try to get it."""
    if chromium() or chromium(_own()):
        return
    for command in _attempts():
        click.echo(f"no Chromium yet: {' '.join(command)}")
        subprocess.run(command, check=False)
        if chromium() or chromium(_own()):
            return
    click.echo("no Chromium could be had: tests of the page are skipped; install one, or set EBERT_CHROMIUM", err=True)


if __name__ == "__main__":
    main()
