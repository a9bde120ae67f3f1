"""What the author of a loop or branch does wrong is told at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import matnb as mn
from matnb.errors import DTypeError, KernelError, LoopBodyError, OptionError, ShapeError
from matnb.session.current import active_session

WAYS_OUT: dict[str, Callable[[mn.DistArray], object]] = {
    "compute": lambda x: x.compute(),
    "mn.compute": mn.compute,
    "mn.compute beside another": lambda x: mn.compute(mn.ones(2), x),
    "np.asarray": np.asarray,
    "np.from_dlpack": np.from_dlpack,
    "tolist": lambda x: x.tolist(),
    "tobytes": lambda x: x.tobytes(),
    "float": lambda x: float(x[0]),
    "in": lambda x: 3.0 in x,
    "a length": lambda x: np.repeat(np.arange(3), x.astype(int)),
    "persist": lambda x: x.persist(),
    "explain": lambda x: x.explain(),
    "mn.visualize": mn.visualize,
    "mn.save": lambda x: mn.save(x, "never.npy"),
    "mn.repartition": lambda x: mn.repartition(x, 2),
    "mn.align": lambda x: mn.align(x, x),
}


def test_truth_of_an_array() -> None:
    with pytest.raises(LoopBodyError, match=r"until=.*mn\.cond"):
        mn.iterate(lambda x: x if x.sum() > 0 else -x, mn.ones(3), max_iterations=3)


def test_value_of_an_array() -> None:
    with pytest.raises(LoopBodyError):
        mn.iterate(lambda x: x * float(x[0]), mn.ones(3), max_iterations=3)


@pytest.mark.parametrize("way", WAYS_OUT.values(), ids=WAYS_OUT)
def test_a_leaked_variable(way: Callable[[mn.DistArray], object]) -> None:
    leaked = []
    mn.iterate(lambda x: leaked.append(x * 2) or x, mn.ones(3), max_iterations=3)
    with pytest.raises(LoopBodyError):
        way(leaked[0])
    assert active_session() is None  # no cluster is started for what has no value


def test_no_end() -> None:
    with pytest.raises(OptionError, match="this loop would never end"):
        mn.iterate(lambda x: x, mn.ones(3))


def test_another_shape() -> None:
    with pytest.raises(ShapeError, match=r"state\[1\] has shape \(3,\) and the step gives shape \(2,\)"):
        mn.iterate(lambda s: (s[0], s[1][:2]), (mn.ones(2), mn.ones(3)), max_iterations=2)


def test_another_nesting() -> None:
    with pytest.raises(ShapeError, match=r"the step returns list\(array\), but the state is tuple"):
        mn.iterate(lambda s: [s[0]], (mn.ones(2), mn.ones(3)), max_iterations=2)


def test_until_of_many() -> None:
    with pytest.raises(ShapeError, match="one truth value"):
        mn.iterate(lambda x: x, mn.ones(3), until=lambda old, new: new > old)


@pytest.mark.parametrize("limit", [-1, 2.5, True, "3"])
def test_bounds(limit: object) -> None:
    with pytest.raises(OptionError, match="max_iterations"):
        mn.iterate(lambda x: x, mn.ones(3), max_iterations=limit)


def test_collecting_without_a_bound() -> None:
    with pytest.raises(OptionError, match="collect="):
        mn.iterate(lambda x: x, mn.ones(3), until=lambda old, new: True, collect=lambda x: x)


def test_lengths_of_over() -> None:
    with pytest.raises(ShapeError, match=r"lengths \[3, 4\]"):
        mn.iterate(lambda x, item: x, mn.ones(3), over=(mn.ones(3), mn.ones(4)))


def test_sides_of_a_branch() -> None:
    with pytest.raises(ShapeError, match="on one side"):
        mn.cond(True, lambda: mn.ones(3), lambda: mn.ones(4))
    with pytest.raises(ShapeError, match="on one side"):
        mn.cond(True, lambda: mn.ones(3), lambda: (mn.ones(3),))


def test_iteration_outside() -> None:
    with pytest.raises(OptionError, match="outside of a loop"):
        mn.iteration()


def test_sparse_collected() -> None:
    with pytest.raises(DTypeError, match="collect is sparse"):
        mn.iterate(lambda x: x, mn.eye(3), max_iterations=2, collect=lambda x: x)


def test_nothing_returned() -> None:
    with pytest.raises(DTypeError, match="the step returns None"):
        mn.iterate(lambda x: None, mn.ones(3), max_iterations=2)


def test_an_array_of_numpy_indexed_by_the_iteration() -> None:
    with pytest.raises(LoopBodyError, match=r"b in b\[mn.iteration\(\)\], with mn.asarray"):
        mn.iterate(lambda x: x + np.arange(3.0)[mn.iteration()], mn.ones(3), max_iterations=2)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_function_that_would_end_the_process(error: type[BaseException]) -> None:
    def leave(a: np.ndarray) -> np.ndarray:
        if a[0] > 3:
            raise error
        return a + 1

    with mn.start(workers=1, threads=2):
        x, _ = mn.iterate(lambda x: mn.replicated(leave, x), mn.zeros(2), max_iterations=9)
        with pytest.raises(KernelError, match=f"leave raised {error.__name__}"):
            x.compute()
    mn.stop()


def test_a_function_that_asks_its_own_worker() -> None:
    with mn.start(workers=1, threads=2):
        x, _ = mn.iterate(
            lambda x: mn.replicated(lambda a: mn.asarray(a).sum().compute(), x, like=np.zeros(())),
            mn.asarray(1.0),
            max_iterations=2,
        )
        with pytest.raises(KernelError, match="works on NumPy arrays"):
            x.compute()
    mn.stop()
