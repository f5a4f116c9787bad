"""A real Chromium on the page of a real service: starting both, and watching that nothing goes wrong unseen."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest
from get_chromium import chromium
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

SHOTS = Path(__file__).parents[3] / "build" / "screenshots"
PATIENCE = 60_000  # milliseconds until something that does not come counts as missing, also on a busy machine
REFUSED = "Failed to load resource"  # Chromium's words for an answer of 400 and more, and for none

expect.set_options(timeout=PATIENCE)


@contextmanager
def serving(log: Path) -> Iterator[str]:
    """Run ``ebert serve starter`` as a person would; give the URL that it prints, with its token."""
    environment = {name: value for name, value in os.environ.items() if name != "EBERT_TOKEN"}
    command = [sys.executable, "-m", "ebert", "serve", "starter", "--port", "0", "--json"]
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        try:
            line = process.stdout.readline()
            assert line, log.read_text(encoding="utf-8")
            url = json.loads(line)["url"]
            while not _ready(url.partition("#")[0] + "ready"):
                assert process.poll() is None, log.read_text(encoding="utf-8")
                time.sleep(0.1)
            yield url
        finally:
            process.terminate()
            process.communicate()


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status == 200
    except HTTPError as error:
        error.close()
        return False
    except URLError:
        return False


@contextmanager
def browsing() -> Iterator[Browser]:
    """Start Chromium; without one the tests are skipped, but on CI they fail."""
    with sync_playwright() as playwright:
        path = chromium(playwright.chromium.executable_path)
        if path is None:
            why = "there is no Chromium here; 'make test' gets one where it can"
            pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watch:
    """What a page did that it must not do: errors on its console, or requests to elsewhere."""

    def __init__(self, page: Page, origin: str) -> None:
        """Begin to watch."""
        self.expected: list[str] = []  # parts of URLs that are refused on purpose
        self.faults: list[str] = []
        self._origin = origin
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("request", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        where = message.location["url"]
        refused = message.text.startswith(REFUSED) and any(part in where for part in self.expected)
        if message.type in ("error", "warning") and not refused:
            self.faults.append(f"{message.type}: {message.text} ({where})")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith(self._origin):
            self.faults.append(f"asked elsewhere: {request.url}")


@contextmanager
def opened(browser: Browser, url: str, *, fragment: str | None = None, **options) -> Iterator[Page]:
    """Open the page in a context of its own; at the end, nothing may have gone wrong. `page.watch` is what watches it.

    `fragment` is a view to begin with; the token comes in as the printed URL has it all the same.
    """
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.watch = Watch(page, url.partition("#")[0])
    address = url if fragment is None else url.replace("#", f"#{fragment}&")
    page.goto(address)
    yield page
    context.close()
    assert not page.watch.faults, page.watch.faults


def ready(page: Page) -> None:
    """Wait until the page knows its model."""
    page.wait_for_selector("html[data-ready]", state="attached")


def best(page: Page, view: str) -> list[str]:
    """Give the best answers of the columns, once the view has done what it was asked to."""
    settled(page, view)
    return [one.get_attribute("data-best") for one in page.locator(f"#{view}-results .best").all()]


def settled(page: Page, view: str) -> None:
    """Wait until a view is not busy."""
    ready(page)
    expect(page.locator(f"#view-{view} .status")).not_to_have_class("status busy")
