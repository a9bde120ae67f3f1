"""One JupyterLab for all these tests, and one window for each file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import Lab, launched
from playwright.sync_api import BrowserContext, sync_playwright


@pytest.fixture(scope="session")
def lab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Return a server that runs."""
    with Lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


# Not wider: while it is open an event loop counts as running, which other files' tests do not like.
@pytest.fixture(scope="module")
def window(chromium: str) -> Iterator[BrowserContext]:
    """Return a browser's window, in which pages are loaded from its cache the second time."""
    with sync_playwright() as playwright:
        browser = launched(playwright, chromium)
        try:
            yield browser.new_context()
        finally:
            browser.close()
