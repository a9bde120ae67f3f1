"""Every example in a docstring of matnb runs and shows what it says."""

from __future__ import annotations

import builtins
import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import matnb as mn

MODULES = [importlib.import_module(found.name) for found in pkgutil.walk_packages(mn.__path__, "matnb.")]
EXAMPLES = [test for module in MODULES for test in doctest.DocTestFinder().find(module) if test.examples]
EXAMPLES.sort(key=lambda test: test.name.endswith(".start"))  # last, since it ends the session of the others


@pytest.fixture(scope="module")
def cluster() -> Iterator[mn.session.Session]:
    """Start the session of all examples; the one that starts its own is the last."""
    with mn.start(workers=1, threads=1) as session:
        yield session
    mn.stop()


@pytest.fixture
def session(cluster: mn.session.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a session and an empty folder, where an example may write its file."""
    monkeypatch.chdir(tmp_path)
    assert mn.active_session() is cluster
    yield
    if mn.active_session() is not cluster:
        mn.stop()
    vars(builtins).pop("_", None)  # where Python keeps the last result shown, IPython shows none of its own
    cluster.memo.clear()  # what an example shows does not depend on those before it


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


def test_every_public_function_says_what_it_is():
    namespaces = (mn, mn.graph, mn.linalg, mn.learn, mn.sources)
    public = [getattr(space, name) for space in namespaces for name in dir(space) if not name.startswith("_")]
    silent = [one.__qualname__ for one in public if callable(one) and not one.__doc__]
    assert not silent


@pytest.mark.parametrize("room", [mn, mn.graph, mn.linalg, mn.learn], ids=lambda room: room.__name__)
def test_signatures_say_what_is_an_array(room: ModuleType):
    for name in room.__all__:
        function = getattr(room, name)
        if not getattr(function, "__module__", "").startswith("matnb") or not inspect.isfunction(function):
            continue
        shown = [str(one) for one in inspect.signature(function).parameters.values()]
        assert not {"A: 'object'", "X: 'object'", "a: 'object'", "x: 'object'", "obj: 'object'"} & set(
            shown
        ), name
