"""Magics of IPython's and matnb's compose: what captures holds all that is shown, as of a plain cell."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cells import fail
from IPython.core.interactiveshell import InteractiveShell
from kernels import book_of, client_of, texts
from magics.conftest import new_shell

import matnb as mn

BEGIN = "%load_ext matnb\n%config DistMat.display = 'static'\nimport numpy as np, matnb as mn"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    """IPython with the magics, as the shell of this process, which is where its own magics look for it."""
    main, hook = sys.modules["__main__"], sys.excepthook
    shell = new_shell(tmp_path_factory.mktemp("ipython"))
    kinds = list(InteractiveShell._walk_mro())
    before = [kind._instance for kind in kinds]
    for kind in kinds:
        kind._instance = shell
    shell.run_cell(BEGIN).raise_error()
    shell.run_cell("from IPython.utils.capture import capture_output\nx = mn.arange(5.0)").raise_error()
    shell.run_cell("float(x.sum())").raise_error()  # plain cells show what is remembered
    yield shell
    for kind, instance in zip(kinds, before, strict=True):
        kind._instance = instance
    mn.unload_ipython_extension(shell)
    shell.atexit_operations()
    atexit.unregister(shell.atexit_operations)
    sys.modules["__main__"], sys.excepthook = main, hook
    mn.stop()


# Each takes a cell that shows the value 10, and leaves what was captured in ``held``.
CAPTURING = {
    "%%capture": "%%capture held\n%%distmat\nx.sum()",
    "%%capture over options": "%%capture held\n%%distmat --out total\nx.sum()\n",
    "%%capture over %%time": "%%capture held\n%%time\n%%distmat\nx.sum()",
    "%%time over %%capture": "%%time\n%%capture held\n%%distmat\nx.sum()",
    "%%capture of displays alone": "%%capture --no-stdout --no-stderr held\n%%distmat\nx.sum()",
    "capture_output": "with capture_output() as held:\n"
    "    get_ipython().run_cell_magic('distmat', '', 'x.sum()')",
    "capture_output of displays": "with capture_output(stdout=False) as held:\n"
    "    get_ipython().run_cell_magic('distmat', '', 'x.sum()')",
}


@pytest.mark.parametrize("way", CAPTURING)
def test_what_captures_holds_all_that_is_shown(
    way: str, here: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    here.display_pub.outputs.clear()
    here.run_cell(CAPTURING[way], store_history=True).raise_error()
    held = here.user_ns["held"]
    shown = [one.data["text/plain"] for one in held.outputs]
    if "--out" not in CAPTURING[way]:
        assert shown[0] == "10.0  (DistArray scalar float64)"
    assert "task" in shown[-1], "the line under the cell"
    assert "DistArray" not in held.stdout
    assert "Out[" not in capsys.readouterr().out
    assert here.display_pub.outputs == []


@pytest.mark.parametrize(
    "cell",
    ["x.sum()", "print('above')\nx.sum()", "x.sum()\n1", "display(3)\nx.sum()", "None", "y = x + 1"],
)
def test_a_captured_cell_shows_what_a_plain_one_shows(cell: str, here: InteractiveShell) -> None:
    held = []
    for magic in ("", "%%distmat\n"):
        here.run_cell(f"%%capture held\n{magic}{cell}", store_history=True).raise_error()
        captured = here.user_ns["held"]
        data = [one.data["text/plain"] for one in captured.outputs]
        held.append((captured.stdout, [one for one in data if " task" not in one and one != "nothing run"]))
    assert held[0] == held[1]


def test_what_is_not_captured_is_kept_as_ipython_does(here: InteractiveShell) -> None:
    def last(cell: str) -> object:
        here.run_cell(cell, store_history=True).raise_error()
        return here.user_ns["_"]

    assert float(last("%%distmat\nx.sum()")) == 10  # type: ignore[arg-type]  # an array
    assert here.user_ns["Out"][here.execution_count - 1] is here.user_ns["_"]
    assert float(last("%%distmat\nx.sum() + 1;")) == 10  # type: ignore[arg-type]  # the one before
    assert float(last("%%capture\n%%distmat\nx.sum() + 2")) == 10  # type: ignore[arg-type]  # the same
    assert float(last("%%time\n%%distmat\nx.sum() + 3")) == 13  # type: ignore[arg-type]  # of this one
    assert float(last("%%distmat\n%%time\nx.sum() + 4")) == 14  # type: ignore[arg-type]  # of this one
    assert float(last("%%distmat\n%time x.sum() + 5")) == 15  # type: ignore[arg-type]  # of this one
    for cell in ("%%timeit -n1 -r1\n%%distmat\nx.sum()", "%%distmat\n%timeit -n1 -r1 x.sum()"):
        here.run_cell(cell, store_history=True).raise_error()


def test_a_program_that_calls_the_magic_outside_of_a_cell_shows_the_value(
    here: InteractiveShell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "displayhook", sys.__displayhook__)
    here.run_cell_magic("distmat", "", "x.sum()")
    assert "10.0  (DistArray scalar float64)" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.notebook
def test_a_kernel_captures_too(tmp_path: Path) -> None:
    book = book_of(
        BEGIN,
        "%%capture held\n%%distmat\nx = mn.arange(5.0)\nx.sum()",
        "print([one.data['text/plain'] for one in held.outputs], repr(held.stdout))",
        "held()",
        "%%distmat\n!echo from the shell\nx.sum() + 1",
        "float(_)",
    )
    client_of(book, tmp_path).execute()
    assert book.cells[1].outputs == []
    assert texts(book)[0] == "['10.0  (DistArray scalar float64)', '1 task'] ''\n"
    assert texts(book)[1] == "10.0  (DistArray scalar float64)"
    assert "from the shell" in "".join(texts(book))
    assert book.cells[-1].outputs[0]["data"]["text/plain"] == "11.0"


# An error is as short whatever lies between the cell and matnb that is not the user's.


@pytest.mark.parametrize(
    "cell",
    [
        "mn.load('gone.mtx')",
        "mn.start(workers=0)",
        "mn.connect()",
        "mn.save(x, 'gone/x.unknown')",
        "mn.compute(x, 1, x.T @ mn.ones(3))",
        "from functools import reduce\nreduce(np.add, [mn.ones(3), mn.ones(4)])",
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(1) as pool:\n    list(pool.map(np.add, [mn.ones(3)], [mn.ones(4)]))",
        "import contextlib as c\nwith c.ExitStack() as stack:\n    stack.enter_context(mn.start(workers=0))",
        "sorted([3, 4], key=lambda n: mn.ones(n) + mn.ones(3))",
    ],
)
def test_an_error_is_short_through_functions_of_the_standard_library(
    cell: str, here: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    error, text = fail(here, capsys, cell)
    assert isinstance(error, Exception)
    assert len(text.splitlines()) <= 8, text
    assert f"{type(error).__name__} in Cell In[{here.execution_count - 1}], line " in text
