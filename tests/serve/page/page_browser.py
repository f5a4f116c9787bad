"""A real Chromium on the page of a service: starting it, and watching that nothing goes wrong unseen."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from get_axe import axe
from get_chromium import chromium
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

SHOTS = Path(__file__).parents[3] / "build" / "screenshots"
SIZES = {"desk": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
PATIENCE = 60_000  # milliseconds until something that does not come counts as missing, also on a busy machine
REFUSED = "Failed to load resource"  # Chromium's words for an answer of 400 and more, and for none

# The problems that axe-core finds: [rule, what it asks for, where].
AXE = """async (rules) => {
    const some = rules.length ? { runOnly: rules } : {};
    const { violations, passes } = await axe.run(document, { resultTypes: ["violations"], ...some });
    if (passes.length < (rules.length || 10)) throw new Error("axe-core did not look at the page");
    return violations.filter((one) => ["serious", "critical"].includes(one.impact))
        .flatMap((one) => one.nodes.map((node) => [one.id, one.help, node.html.slice(0, 200)]));
}"""

expect.set_options(timeout=PATIENCE)


def missing(why: str) -> None:
    """Skip a test for something that cannot be had; on CI, fail."""
    pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)


@contextmanager
def browsing() -> Iterator[Browser]:
    """Start Chromium; without one the tests are skipped, but on CI they fail."""
    with sync_playwright() as playwright:
        path = chromium(playwright.chromium.executable_path)
        if path is None:
            missing("there is no Chromium here; 'make test' gets one where it can")
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
        if not request.url.startswith((self._origin, "about:blank")):
            self.faults.append(f"asked elsewhere: {request.url}")


@contextmanager
def opened(
    browser: Browser, url: str, *, fragment: str | None = None, size: str | None = None, **options
) -> Iterator[Page]:
    """Open the page in a context of its own; at the end, nothing may have gone wrong. `page.watch` is what watches it.

    `fragment` is a view to begin with; the token comes in as the printed URL has it all the same. Of `size`, a phone
    has a screen to touch.
    """
    if size is not None:
        options = {"viewport": SIZES[size], "has_touch": size == "phone", "reduced_motion": "reduce", **options}
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


@contextmanager
def visited(page: Page, url: str) -> Iterator[Page]:
    """Open the page anew in a window that other tests share, which is quicker than another window."""
    page.watch.faults.clear()
    page.watch.expected.clear()
    page.goto("about:blank")
    page.goto(url)
    ready(page)
    yield page
    assert not page.watch.faults, page.watch.faults


def ready(page: Page) -> None:
    """Wait until the page knows its model."""
    page.wait_for_selector("html[data-ready]", state="attached")


def best(page: Page, view: str) -> list[str]:
    """Return the best answers of the columns, once the view has done what it was asked to."""
    settled(page, view)
    return [one.get_attribute("data-best") for one in page.locator(f"#{view}-results .best").all()]


def settled(page: Page, view: str) -> None:
    """Wait until a view is not busy."""
    ready(page)
    expect(page.locator(f"#view-{view} .status")).not_to_have_class("status busy")


def shot(page: Page, name: str) -> Path:
    """Take a picture of the whole page, for people to look at."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png", full_page=True)
    return SHOTS / f"{name}.png"


def fits(page: Page) -> None:
    """Nothing makes the page wider than its window."""
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def accessible(page: Page, *rules: str) -> None:
    """axe-core finds no serious and no critical problem, by all of its rules or by some."""
    script = axe()
    if not script.is_file():
        missing("there is no axe-core here; 'make test' gets it where it can")
    if not page.evaluate("'axe' in window"):
        page.evaluate(script.read_text("utf-8"))
    assert page.evaluate(AXE, list(rules)) == []
