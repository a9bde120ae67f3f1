"""An interrupt sent to a real kernel stops the cell within two seconds, and the kernel goes on."""

from __future__ import annotations

import asyncio
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


@pytest.mark.parametrize("endless", [LOOP, ONE_RUN], ids=["loop", "one run"])
def test_an_interrupt_cancels_the_cell_and_the_next_one_runs(tmp_path, endless):
    book = book_of(SETUP, endless, AFTER)
    client = client_of(book, tmp_path)

    async def scenario():
        async with client.async_setup_kernel():
            await client.async_execute_cell(book.cells[0], 0)
            running = asyncio.ensure_future(client.async_execute_cell(book.cells[1], 1))
            await asyncio.sleep(2)
            assert not running.done()
            await client.km.interrupt_kernel()
            begin = time.perf_counter()
            with pytest.raises(CellExecutionError):
                await running
            seconds = time.perf_counter() - begin
            await client.async_execute_cell(book.cells[2], 2)
            return seconds

    seconds = asyncio.run(scenario())
    assert seconds < 2
    (error,) = (output for output in book.cells[1].outputs if output.output_type == "error")
    assert error.ename == "CellCancelled"
    assert len(error.traceback) == 1
    assert error.traceback[0].startswith("CellCancelled: ")
    assert "kept" in error.traceback[0] or "no task was running" in error.traceback[0]
    results = [output for output in book.cells[2].outputs if output.output_type == "execute_result"]
    assert results[0].data["text/plain"] == "20.0"
