"""A browser and two services: the tiny model for what people do, the real one where the answers matter."""

import pytest
import serve_world
from page_browser import browsing, opened, visited

from ebert.serve.work import load


@pytest.fixture(scope="module")  # not longer: while Playwright runs, no test of another module could use asyncio
def browser():
    with browsing() as started:
        yield started


@pytest.fixture(scope="module")
def tiny(tiny_folder):
    """A service with the tiny model, which may be taught entities."""
    with serve_world.live(serve_world.tiny(tiny_folder)) as service:
        yield service


@pytest.fixture(scope="session")
def url():
    """Where the page of a service with the real BERT and the starter's vectors is, with its token."""
    with serve_world.live(lambda: load("starter")) as service:
        yield service.page


@pytest.fixture(scope="module")
def window(browser, tiny):
    with opened(browser, tiny.page) as found:
        yield found


@pytest.fixture
def page(window, tiny):
    """The page of the tiny model; at the end, nothing may have gone wrong."""
    with visited(window, tiny.page) as found:
        yield found
