"""Errors show where the user called matnb, and the lines of functions that the user gave to it, alone."""

from __future__ import annotations

import contextlib
import inspect
import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.calls.boundary import guard, whole_traceback

pytestmark = pytest.mark.session("interpreter")


def frames(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def of_matnb(error: BaseException) -> list[str]:
    return [
        frame.f_code.co_name
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).startswith("matnb")
    ]


def wrong(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("of the user's")


def misfits(x: mn.DistArray, *_: object) -> object:
    return x @ np.ones((7, 7))


x = mn.ones(3)
CALLS: list[tuple[Callable[[Callable[..., object]], object], type[Exception]]] = [
    (lambda fn: mn.iterate(fn, x, max_iterations=2), ZeroDivisionError),
    (lambda fn: mn.iterate(lambda x: x, x, until=fn), ZeroDivisionError),
    (lambda fn: mn.iterate(lambda x: x, x, max_iterations=2, collect=fn), ZeroDivisionError),
    (lambda fn: mn.cond(x.sum() > 1, fn, lambda: x), ZeroDivisionError),
    (lambda fn: mn.cond(x.sum() > 1, lambda: x, fn), ZeroDivisionError),
    (lambda fn: mn.groupby(mn.asarray([1, 2, 1])).transform(x, fn), ZeroDivisionError),
    (lambda fn: mn.map_blocks(fn, x), mn.errors.OptionError),
    (lambda fn: mn.reduce_blocks(fn, x, combine=np.add), mn.errors.OptionError),
    (lambda fn: mn.replicated(fn, x), mn.errors.OptionError),
    (lambda fn: mn.associative_scan(fn, x), mn.errors.OptionError),
]


@pytest.mark.parametrize(("call", "kind"), CALLS)
def test_a_function_that_raises(call: Callable[..., object], kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        call(wrong)
    error: BaseException = caught.value
    assert of_matnb(error) == []
    if kind is ZeroDivisionError:
        assert frames(error)[-2:] == ["<lambda>", "wrong"]
    else:
        assert frames(error)[-1] == "<lambda>"
        assert isinstance(error.__cause__, ZeroDivisionError)
        assert frames(error.__cause__) == ["wrong"]


def test_an_operation_that_is_refused_ends_at_the_users_line() -> None:
    with pytest.raises(mn.errors.ShapeError, match=r"\(3,\)") as caught:
        mn.iterate(misfits, x, max_iterations=2)
    assert frames(caught.value)[-1] == "misfits"
    assert of_matnb(caught.value) == []


def test_loops_in_loops_show_every_function_of_the_users() -> None:
    def outer(x: mn.DistArray) -> mn.DistArray:
        return mn.iterate(wrong, x, max_iterations=2)[0]

    with pytest.raises(ZeroDivisionError) as caught:
        mn.iterate(outer, x, max_iterations=2)
    assert frames(caught.value)[1:] == ["outer", "wrong"]


def test_an_error_of_matnbs_own_ends_at_the_users_line_and_keeps_the_whole_for_who_asks() -> None:
    with pytest.raises(mn.errors.OptionError, match="this loop would never end") as caught:
        mn.iterate(lambda x: x, x)
    assert of_matnb(caught.value) == []
    whole = [frame.name for frame in traceback.extract_tb(whole_traceback(caught.value))]
    assert whole[0] == frames(caught.value)[0]
    assert {"iterate", "_limit"} <= set(whole)


def test_the_whole_of_an_error_that_went_through_a_users_function_is_whole() -> None:
    with pytest.raises(mn.errors.ShapeError) as caught:
        mn.iterate(misfits, x, max_iterations=2)
    whole = [frame.name for frame in traceback.extract_tb(whole_traceback(caught.value))]
    assert whole.index("iterate") < whole.index("misfits") < whole.index("__matmul__")
    assert whole.count("misfits") == 1


class Interrupted:
    """Of a user's: it is interrupted while matnb takes its values."""

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise KeyboardInterrupt


def num_entered(call: Callable[[], object], at: int) -> int:
    """Call something, interrupted when matnb enters its n-th function; how many it had entered then."""
    count = 0

    def enter(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        is_own = str(frame.f_globals.get("__name__")).startswith("matnb.")
        # At the boundary's own function the call has not begun.
        if event == "call" and is_own and not frame.f_code.co_filename.endswith("boundary.py"):
            count += 1
            if count == at:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)

    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


MATRIX = sp.csr_array(np.diag([1.0, 2.0, 3.0]))
INTERRUPTED = {
    "recording": lambda: np.sqrt(mn.asarray(MATRIX) * 2),
    "compute": lambda: (mn.asarray(MATRIX) * 2).compute(),
    "eigsh": lambda: mn.linalg.eigsh(mn.asarray(MATRIX), k=1),
    "repr": lambda: repr(mn.asarray(MATRIX)),
    "html": lambda: mn.asarray(MATRIX)._repr_mimebundle_(),
}


def test_an_interrupt_before_or_after_a_run_is_one_like_all_others() -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        mn.asarray(Interrupted())
    assert isinstance(caught.value, mn.CellCancelled)
    assert of_matnb(caught.value) == []
    cause = caught.value.__cause__
    assert cause is not None
    assert frames(cause) == ["__array__"]


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interrupt_at_any_moment_of_a_call_is_one_like_all_others(name: str) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    found: list[BaseException] = []
    try:
        num_moments = num_entered(INTERRUPTED[name], -1)
        for number in range(1, num_moments, max(1, num_moments // 40)):
            try:
                num_entered(INTERRUPTED[name], number)
            except KeyboardInterrupt as error:
                found.append(error)
            else:
                with contextlib.suppress(KeyboardInterrupt):
                    time.sleep(0.1)  # one that came in a destructor is sent again
        INTERRUPTED[name]()
    finally:
        signal.signal(signal.SIGINT, before)
    bare = [error for error in found if not isinstance(error, mn.CellCancelled)]
    assert not bare, traceback.extract_tb(whole_traceback(bare[0]))[-1]
    assert len(found) > 5


def test_an_error_goes_to_another_process_without_frames() -> None:
    with pytest.raises(mn.errors.ShapeError) as caught:
        x + mn.ones(4)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert whole_traceback(again) is None


def test_functions_are_pickled_inspected_and_named_as_they_were() -> None:
    for one in (mn.start, mn.graph.pagerank, mn.linalg.eigsh, mn.DistArray.sum, mn.Table.head):
        assert pickle.loads(pickle.dumps(one)) is one
        assert one.__doc__
        assert one.__code__.co_name == one.__name__
    assert [*inspect.signature(mn.graph.pagerank).parameters][:2] == ["A", "damping"]
    assert inspect.signature(mn.learn.KMeans).parameters["n_clusters"].default == 8
    assert inspect.getsource(mn.graph.pagerank).count("def pagerank(") == 1


def test_a_second_boundary_changes_nothing() -> None:
    before = mn.graph.pagerank, mn.DistArray.sum
    guard([vars(mn.graph)], [mn.DistArray])
    assert (mn.graph.pagerank, mn.DistArray.sum) == before


def test_whole_tracebacks_are_left_where_a_user_wants_them(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import matnb as mn\nmn.ones(3) + mn.ones(4)\n")
    variables = {**os.environ, "MATNB_FULL_TRACEBACK": "1"}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, env=variables
    )
    assert "ufuncs.py" in done.stderr


def test_a_fault_below_a_users_function_can_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matnb.lazy.creation.created", int)
    with pytest.raises(TypeError) as caught:
        mn.iterate(lambda x: x + mn.zeros(3), x, max_iterations=2)
    assert caught.value.__cause__ is not None
    assert "zeros" in of_matnb(caught.value.__cause__)
    assert "iterate" not in of_matnb(caught.value.__cause__)


def test_errors_in_a_ring_end() -> None:
    def ring(x: mn.DistArray) -> NoReturn:
        error = ValueError("one")
        error.__cause__ = error
        raise error

    with pytest.raises(ValueError, match="one"):
        mn.iterate(ring, x, max_iterations=2)


def test_what_python_prints_of_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import matnb as mn\n\n\ndef step(x):\n    return x / nothing\n\n\n"
        "mn.iterate(step, mn.ones(3), max_iterations=2)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if line.strip().startswith("File")]
    assert [line.partition(", line ")[2] for line in lines] == ["8, in <module>", "5, in step"]
    assert done.stderr.endswith("NameError: name 'nothing' is not defined\n")
