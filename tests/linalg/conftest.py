"""What the tests of linear algebra share: a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import matnb as mn


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    with mn.start(workers=2, threads=1):
        yield
    mn.stop()
