"""Every example in a docstring of matnb runs and shows what it says."""

from __future__ import annotations

import builtins
import doctest
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import matnb as mn

MODULES = [importlib.import_module(found.name) for found in pkgutil.walk_packages(mn.__path__, "matnb.")]
EXAMPLES = [test for module in MODULES for test in doctest.DocTestFinder().find(module) if test.examples]


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start a session in an empty folder, where an example may write its file."""
    monkeypatch.chdir(tmp_path)
    mn.start(workers=1, threads=1)
    yield
    mn.stop()
    vars(builtins).pop("_", None)  # where Python keeps the last result shown, IPython shows none of its own


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("test", EXAMPLES, ids=[test.name for test in EXAMPLES])
def test_example(test: doctest.DocTest):
    assert not any(doctest.SKIP in example.options for example in test.examples), "an example has to run"
    said: list[str] = []
    failed, tried = doctest.DocTestRunner().run(test, out=said.append)
    assert not failed, "".join(said)
    assert tried == len(test.examples)


def test_examples_are_found():
    names = {test.name.removeprefix("matnb.") for test in EXAMPLES}
    assert {"session.current.start", "lazy.array.DistArray", "lazy.creation.asarray"} <= names
