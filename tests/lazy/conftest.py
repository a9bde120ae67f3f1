"""A session that evaluates in this process, for tests that ask handles for values."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import matnb as mn


@pytest.fixture(scope="module")
def interpreter() -> Iterator[None]:
    """Start a session whose engine is the reference evaluator."""
    with mn.start(workers=1, threads=1, engine="interpret"):
        yield
    mn.stop()
