"""Calls during which machine code is made or read are told apart: they say little of their kernels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.events import RunFinished, TaskTimed


@pytest.mark.cluster
def test_the_first_call_of_a_kernel_in_a_process_is_marked() -> None:
    with mn.start(workers=1, threads=1, processes=True) as session:
        timed: list[TaskTimed] = []
        finished: list[RunFinished] = []
        session.subscribe(lambda event: timed.extend(getattr(event, "tasks", ())))
        session.subscribe(lambda event: finished.append(event) if isinstance(event, RunFinished) else None)
        A = mn.asarray(sp.random_array((1000, 1000), density=0.5, format="csr", rng=0)).persist()
        marks = []
        for number in range(100):
            timed.clear()
            (A @ np.arange(number, number + 1000.0)).compute()
            marks.append([task.compiled for task in timed if task.kind == "product"])
        # SciPy does the first ones, until it had as much to do as the compiler has.
        assert (marks[0], marks[-1]) == ([True], [False])
        assert finished[-1].imbalance == 1.0
    mn.stop()
