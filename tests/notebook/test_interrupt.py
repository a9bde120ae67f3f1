"""An interrupt sent to a real kernel stops the cell within two seconds, and the kernel goes on."""

from __future__ import annotations

import asyncio
import re
import time

import pytest
from kernels import book_of, client_of
from nbclient.exceptions import CellExecutionError

pytestmark = pytest.mark.notebook

SETUP = """
%load_ext matnb
import numpy as np
import matnb as mn
A = mn.asarray(np.random.default_rng(0).random((1500, 1500))).persist()
"""
LOOP = """
%%distmat
x = A
while True:
    x = A @ x / 1000
    float(x.sum())
"""
ONE_RUN = """
%%distmat
x = A
for _ in range(200):
    x = A @ x / 1000
x
"""
AFTER = "%%distmat\ny = mn.ones(10) * 2\nfloat(y.sum())"


ITERATE = """
%%distmat
x, _ = mn.iterate(lambda x: A @ x / 1000, mn.ones(1500), max_iterations=10**8)
x
"""


def interrupted(book, folder, times=1):
    """Run a notebook whose second cell is interrupted; return how soon it ended, and its text before."""
    client = client_of(book, folder)

    async def scenario():
        async with client.async_setup_kernel():
            await client.async_execute_cell(book.cells[0], 0)
            running = asyncio.ensure_future(client.async_execute_cell(book.cells[1], 1))
            await asyncio.sleep(2)
            assert not running.done()
            shown = [output.data["text/plain"] for output in book.cells[1].outputs]
            begin = time.perf_counter()
            for number in range(times):
                if number:
                    # A product takes longer, so the cell has not ended yet. asyncio's may take a second on a
                    # busy machine: then the kernel itself is interrupted, and its reply lost.
                    time.sleep(0.01)
                await client.km.interrupt_kernel()
            with pytest.raises(CellExecutionError):
                await running
            seconds = time.perf_counter() - begin
            await client.async_execute_cell(book.cells[2], 2)
            return seconds, shown

    found = asyncio.run(scenario())
    (error,) = (output for output in book.cells[1].outputs if output.output_type == "error")
    assert error.ename == "CellCancelled"
    (text,) = error.traceback
    assert text.startswith("CellCancelled: ")
    results = [output for output in book.cells[2].outputs if output.output_type == "execute_result"]
    assert results[0].data["text/plain"] == "20.0"
    return *found, text


def test_who_interrupts_twice_is_told_what_was_cancelled(tmp_path):
    *_, text = interrupted(book_of(SETUP, ONE_RUN, AFTER), tmp_path, times=2)
    assert re.match(r"CellCancelled: cancelled \d+ ", text)


@pytest.mark.parametrize("endless", [LOOP, ONE_RUN], ids=["loop", "one run"])
def test_an_interrupt_cancels_the_cell_and_the_next_one_runs(tmp_path, endless):
    seconds, shown, text = interrupted(book_of(SETUP, endless, AFTER), tmp_path)
    assert seconds < 2
    assert shown == []
    assert "kept" in text or "no task was running" in text


@pytest.mark.parametrize(("engine", "display"), [("gang", "live"), ("dask", "live"), ("gang", "static")])
def test_a_loop_shows_how_far_it_is_and_an_interrupt_ends_it(tmp_path, engine, display):
    setup = f"import matnb as mn\nmn.start(engine={engine!r})\n{SETUP}\n%config DistMat.display = {display!r}"
    book = book_of(setup, ITERATE, AFTER)
    seconds, shown, text = interrupted(book, tmp_path)
    assert seconds < 2
    progress = r"loop: [\d,]+ of 100,000,000 iterations, \S+ .?s each, (?:.+, )?\S+ .?s so far, .+ left"
    assert [bool(re.fullmatch(progress, one)) for one in shown] == ([True] if display == "live" else [])
    (done,) = re.findall(r"after at least ([\d,]+) iterations of a loop, whose state is not kept", text)
    assert int(done.replace(",", "")) > 0
    left = [one.data["text/plain"] for one in book.cells[1].outputs if one.output_type == "display_data"]
    assert left == ([""] if display == "live" else [])
