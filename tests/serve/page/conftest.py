"""A service and a browser, started once for all tests of the page."""

import pytest
from page_browser import browsing, opened, ready, serving


@pytest.fixture(scope="session")
def url(tmp_path_factory):
    """Where the page of a running service is, with its token."""
    with serving(tmp_path_factory.mktemp("serve") / "log.txt") as found:
        yield found


@pytest.fixture(scope="module")  # not longer: while Playwright runs, no test of another module could use asyncio
def browser():
    with browsing() as started:
        yield started


@pytest.fixture
def page(browser, url):
    """The page as somebody sees it who opens the printed URL; at the end, nothing may have gone wrong."""
    with opened(browser, url) as found:
        ready(found)
        yield found
