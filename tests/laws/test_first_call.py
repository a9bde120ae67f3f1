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
from laws.first_call import CALLS

SCRIPT = Path(__file__).with_name("first_call.py")
NUM_MOMENTS = int(os.environ.get("MATNB_TEST_MOMENTS", "1"))
OBEYED_SECONDS = 2.0
AIMED_SECONDS = 5e-3  # an interrupt of less may strike the timer's own start


def child(name: str, *seconds: float) -> dict[str, object]:
    path = os.pathsep.join([str(SCRIPT.parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, str(SCRIPT), name, *map(str, seconds)]
    ran = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    found: dict[str, object] = json.loads(ran.stdout.splitlines()[-1])
    return found


def check(name: str, num_moments: int) -> None:
    undisturbed = child(name)
    assert (undisturbed["outcome"], undisturbed["right"]) == ("returned", True), undisturbed
    taken = float(undisturbed["seconds"])  # type: ignore[arg-type]
    for number in range(num_moments if taken > AIMED_SECONDS else 0):
        moment = taken * (number + 0.5) / num_moments
        found = child(name, moment)
        # One that comes when the call has just returned has nothing to end.
        assert found["outcome"] in ("CellCancelled", "returned"), (moment, found)
        assert found["right"], (moment, found)
        assert float(found["seconds"]) < moment + OBEYED_SECONDS, (moment, found)  # type: ignore[arg-type]


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
