"""With memo="off" nothing is answered from what was computed, but for what a handle has kept alive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.events import LoopFinished, RunFinished

N = 4000

Make = Callable[[mn.DistArray, mn.DistArray], mn.DistArray]

EXPRESSIONS: dict[str, Make] = {
    "a small value": lambda x, A: (x @ x).sum(),
    "a small value of a part that lives": lambda x, A: x.sum() + 1,
    "an array": lambda x, A: np.sqrt(x) * 3,
    "a sparse array": lambda x, A: A * 3,
    "a product": lambda x, A: A @ x,
    "a transpose": lambda x, A: A.T * 2,
    "a loop": lambda x, A: mn.iterate(lambda y: 0.5 * (A @ y) + 1, x, max_iterations=3)[0],
    "a sort": lambda x, A: np.sort(x),
    "random numbers": lambda x, A: mn.random.default_rng(3).random(N),
}
REQUESTS: dict[str, Callable[[mn.DistArray], object]] = {
    "compute": lambda y: y.compute(),
    "mn.compute": lambda y: mn.compute(y, y * 2),
    "persist": lambda y: y.persist(),
    "sum": lambda y: float(y.sum()),
}

pytestmark = pytest.mark.session("two threads", memo="off")


@pytest.fixture
def num_tasks(session: mn.session.Session) -> Iterator[Callable[[], int]]:
    """Return what tells how many tasks ran since it was last called."""
    counts: list[int] = []

    def note(event: object) -> None:
        if isinstance(event, RunFinished | LoopFinished):
            counts.append(event.num_tasks)

    def since() -> int:
        total = sum(counts)
        counts.clear()
        return total

    end = session.subscribe(note)
    yield since
    end()


@pytest.fixture
def operands() -> tuple[mn.DistArray, mn.DistArray]:
    x = mn.asarray(np.arange(float(N)) / N, blocks=2).persist()
    A = mn.asarray(sp.random_array((N, N), density=1e-3, rng=1, format="csr"), blocks=2).persist()
    return x, A


@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_what_no_handle_kept_is_computed_again(
    name: str, request_name: str, operands: tuple[mn.DistArray, mn.DistArray], num_tasks: Callable[[], int]
) -> None:
    make, ask = EXPRESSIONS[name], REQUESTS[request_name]
    ask(make(*operands))  # a transpose stays with the handle of its operand
    num_tasks()
    counts = []
    for _ in range(2):
        ask(make(*operands))
        counts.append(num_tasks())
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_what_a_handle_kept_is_not(
    name: str, operands: tuple[mn.DistArray, mn.DistArray], num_tasks: Callable[[], int]
) -> None:
    handle = EXPRESSIONS[name](*operands)
    handle.persist()
    num_tasks()
    first = handle.compute()
    other = EXPRESSIONS[name](*operands)  # of the same expression
    second = other.compute()
    assert num_tasks() == 0
    assert np.array_equal(
        *(one if isinstance(one, np.ndarray | np.generic) else one.todense() for one in (first, second))
    )


def test_a_handle_that_became_another_version_keeps_the_older_one_no_more(
    operands: tuple[mn.DistArray, mn.DistArray], num_tasks: Callable[[], int]
) -> None:
    x, _ = operands
    y = x * 3
    y.persist()
    y[0] = 1.0
    y.compute()
    num_tasks()
    (x * 3).compute()
    assert num_tasks() > 0


def test_what_was_read_from_a_file_is_not_read_again(tmp_path: Path, num_tasks: Callable[[], int]) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(float(N)))
    float(mn.ones(3).sum())
    x = mn.load(path)  # its handle was made since the last request
    num_tasks()
    x.compute()
    assert num_tasks() == 0


def test_a_state_that_became_the_next_one_is_not_made_again(
    operands: tuple[mn.DistArray, mn.DistArray], num_tasks: Callable[[], int]
) -> None:
    x, A = operands
    counts = []
    for _ in range(6):
        x = 0.5 * (A @ x) + 1
        float(x.sum())
        counts.append(num_tasks())
    assert len(set(counts[1:])) == 1
    y = x
    for _ in range(3):  # two steps, and only then a value is asked for
        y = 0.5 * (A @ y) + 1
        y = 0.5 * (A @ y) + 1
        float(y.max())
        counts.append(num_tasks())
    assert counts[-1] == counts[-2]
