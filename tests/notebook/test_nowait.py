"""``%%distmat --nowait`` in a real kernel: the cell ends at once, an interrupt passes, the exit is clean."""

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
%config DistMat.display = 'live'
import numpy as np
import matnb as mn
A = mn.asarray(np.full((50, 50), 0.02), blocks=2)
"""
ENDLESS = """
%%distmat --nowait --out endless
x, n = mn.iterate(lambda x: A @ x, mn.ones(50), max_iterations=10**8)
x
"""
WAITS = "endless.result()"
AFTER = """
print(endless.state, endless.cancel())
try:
    endless.result(10)
except mn.CellCancelled:
    print("cancelled")
"""
AWAITED = """
%%distmat --nowait --out job
y = mn.ones(10) * 2
y.sum()
"""
ASKED = "value = await job\nprint(float(value), job.state)"
SHOWN = "job"


def printed(cell) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


def test_an_interrupt_ends_the_waiting_and_not_the_work_and_results_are_awaited(tmp_path):
    book = book_of(SETUP, ENDLESS, WAITS, AFTER, AWAITED, ASKED, SHOWN)
    client = client_of(book, tmp_path)

    async def scenario():
        async with client.async_setup_kernel():
            await client.async_execute_cell(book.cells[0], 0)
            begin = time.perf_counter()
            await client.async_execute_cell(book.cells[1], 1)
            seconds = time.perf_counter() - begin
            waiting = asyncio.ensure_future(client.async_execute_cell(book.cells[2], 2))
            await asyncio.sleep(1)
            assert not waiting.done()
            await client.km.interrupt_kernel()
            with pytest.raises(CellExecutionError):
                await waiting
            for place in range(3, 7):
                await client.async_execute_cell(book.cells[place], place)
            return seconds

    assert asyncio.run(scenario()) < 5
    (error,) = (output for output in book.cells[2].outputs if output.output_type == "error")
    assert error.ename == "KeyboardInterrupt"
    assert printed(book.cells[3]) == "running True\ncancelled\n"
    assert printed(book.cells[5]) == "20.0 done\n"
    (shown,) = book.cells[6].outputs
    assert re.fullmatch(r"done in \S+ m?s: 1 result, the last value", shown.data["text/plain"])
    assert [output for cell in book.cells for output in cell.outputs if output.get("name") == "stderr"] == []


def test_a_kernel_ends_while_work_is_under_way(tmp_path):
    book = book_of(SETUP, ENDLESS)
    begin = time.perf_counter()
    client_of(book, tmp_path).execute()
    assert time.perf_counter() - begin < 60
    assert [output for cell in book.cells for output in cell.outputs if output.get("name") == "stderr"] == []
