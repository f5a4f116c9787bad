"""The page of a report in a real browser: the conclusion comes first, and nothing is wider than the screen."""

import pytest
from fake_runs import make_run
from get_chromium import chromium
from playwright.sync_api import sync_playwright

from ebert.report.document import ReportOptions
from ebert.report.lama import make_report


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report on two runs, whose tables have many columns."""
    folder = tmp_path_factory.mktemp("page")
    runs = [make_run(folder / name, size=40) for name in ("one", "a-run-with-a-long-name-that-nobody-shortened")]
    make_report(runs, folder / "report", ReportOptions(resamples=100))
    return folder / "report"


@pytest.mark.parametrize("width", [1280, 390])
def test_no_table_is_wider_than_the_page(report, width):
    with sync_playwright() as playwright:
        path = chromium(playwright.chromium.executable_path)
        if path is None:
            pytest.skip("there is no Chromium here; 'make test' gets one where it can")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto((report / "index.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = page.eval_on_selector_all(".scroll", "all => all.map(one => [one.clientWidth, one.scrollWidth])")
        assert all(shown < width for shown, _ in boxes)
        assert any(whole > shown for shown, whole in boxes), "a wide table scrolls inside"
        following = page.locator("h1 + p").inner_text()
        browser.close()
    assert "gives the right answer to" in following
    assert following.endswith(".")
