"""The page of a report in a real browser: the conclusion comes first, and nothing is wider than the screen."""

import re
from pathlib import Path

import pytest
from fake_runs import make_run
from get_chromium import chromium
from playwright.sync_api import sync_playwright

from ebert.report.document import ReportDocument, ReportOptions, Section, Table, as_html
from ebert.report.lama import make_report

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report on two runs, whose tables have many columns."""
    folder = tmp_path_factory.mktemp("page")
    runs = [make_run(folder / name, size=40) for name in ("one", "a-run-with-a-long-name-that-nobody-shortened")]
    make_report(runs, folder / "report", ReportOptions(resamples=100))
    return folder / "report"


@pytest.fixture(params=["made", "lama", "fewrel"])
def folder(request, report):
    """The report that is made here, and those with the real results."""
    return report if request.param == "made" else RESULTS / request.param / "report"


@pytest.mark.parametrize("width", [1280, 390])
def test_no_table_is_wider_than_the_page(folder, width):
    with sync_playwright() as playwright:
        path = chromium(playwright.chromium.executable_path)
        if path is None:
            pytest.skip("there is no Chromium here; 'make test' gets one where it can")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto((folder / "index.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = page.eval_on_selector_all(".scroll", "all => all.map(one => [one.clientWidth, one.scrollWidth])")
        assert boxes
        assert [box for box in boxes if box[1] > box[0]] == []
        following = page.locator("h1 + p").inner_text()
        name = page.locator("td[data-name]").nth(1).evaluate("node => getComputedStyle(node, '::before').content")
        browser.close()
    assert ("gives the right answer to" in following) or ("macro F1" in following)
    assert following.endswith(".")
    assert (name != "none") == (width == 390)  # on a phone, the name of the column is beside the value


def test_a_table_with_many_columns_is_shown_in_parts():
    header = ("relation", *(f"run {run}{what}" for run in range(8) for what in ("", ": gained", ": lost")))
    rows = [(f"P{number}", *(100.0 + number for _ in header[1:])) for number in range(3)]
    table = Table("wide", "Wide", header, rows, note="All of them.")
    html = as_html(ReportDocument("t", "c.", [], [], [], [Section("s", "S", [], [table])]))
    heads = re.findall(r"<h3>(.*?)</h3>", html)
    columns = [re.findall(r"<button>(.*?)</button>", head) for head in re.findall(r"<thead>(.*?)</thead>", html)]
    assert heads == [f"Wide ({number} of {len(heads)})" for number in range(1, len(heads) + 1)]
    assert len(heads) > 1
    assert {part[0] for part in columns} == {"relation"}
    assert [name for part in columns for name in part[1:]] == list(header[1:])
    assert all(not part[1].endswith(("gained", "lost")) for part in columns)  # what belongs together is not cut
    assert html.count("All of them.") == 1
