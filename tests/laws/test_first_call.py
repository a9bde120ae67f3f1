"""An interrupt at any moment of the first call in a fresh process is a CellCancelled and breaks nothing.

``MATNB_TEST_MOMENTS`` says at how many moments each function is interrupted, one if it says nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import matnb as mn
from laws.first_call import AIMED_SECONDS, CALLS

SCRIPT = Path(__file__).with_name("first_call.py")
NUM_MOMENTS = int(os.environ.get("MATNB_TEST_MOMENTS", "1"))
OBEYED_SECONDS = 2.0


def check(name: str, num_moments: int) -> None:
    path = os.pathsep.join([str(SCRIPT.parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), name, str(num_moments)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    undisturbed, *interrupted = (json.loads(line) for line in ran.stdout.splitlines())
    assert (undisturbed["outcome"], undisturbed["right"]) == ("returned", True), undisturbed
    assert len(interrupted) == num_moments or undisturbed["seconds"] <= AIMED_SECONDS
    for found in interrupted:
        # One that comes when the call has just returned has nothing to end, nor one between calls: it strikes
        # what the test itself does to a value.
        assert found["outcome"] in ("CellCancelled", "returned", "between calls"), found
        assert found["right"], found
        assert found["seconds"] < found["moment"] + OBEYED_SECONDS, found


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("name", [name for name in CALLS if name != "compute, sparse"])
def test_the_same_call_again_is_right(name: str) -> None:
    check(name, NUM_MOMENTS)


def test_the_same_call_again_is_right_of_a_sparse_array() -> None:
    check("compute, sparse", 1)


def test_an_interrupt_of_a_function_that_is_tried_is_one_like_all_others() -> None:
    def interrupted(block: object) -> object:
        raise KeyboardInterrupt

    with pytest.raises(mn.CellCancelled, match="interrupted was tried on ones"):
        mn.map_blocks(interrupted, mn.ones(4))
