"""Nothing is ever stale: what is read after a change is new, and what was read before is what it was."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from stale_cases import CASES

import matnb as mn
from matnb.errors import KernelError, MatnbError

NUMPY = {name: list(map(np.array, function(np.array))) for name, function in CASES.items()}


@pytest.fixture(
    scope="module",
    params=["threads", pytest.param("processes", marks=[pytest.mark.cluster, pytest.mark.slow])],
)
def session(request: pytest.FixtureRequest) -> Iterator[mn.session.Session]:
    with mn.start(workers=2, threads=1, processes=request.param == "processes") as session:
        yield session
    mn.stop()


def looked_at(name: str, at_once: bool) -> list[np.ndarray]:
    found = []
    for value in CASES[name](lambda data: mn.asarray(np.asarray(data), blocks=2 if np.ndim(data) else None)):
        assert isinstance(value, mn.DistArray)
        found.append(value.compute() if at_once else value.copy())
    return found if at_once else list(mn.compute(*found))


def test_every_case_gives_what_numpy_gives(session: mn.session.Session) -> None:
    # In one session, so that a case could be given what another left, and all again what is there.
    for at_once in (False,) if session.config.processes else (False, True):
        for name, expected in NUMPY.items():
            found = looked_at(name, at_once)
            assert len(found) == len(expected)
            for place, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
                where = f"{name}, value {place}, at once: {at_once}"
                assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), where
                if mine.dtype.kind == "f" and name not in ("bits_of_nan", "literals"):
                    np.testing.assert_allclose(mine, theirs, rtol=1e-12, err_msg=where)
                else:
                    assert mine.tobytes() == theirs.tobytes(), where


def values(*arrays: mn.DistArray) -> list[list[float]]:
    return [np.asarray(one).tolist() for one in mn.compute(*arrays)]


def test_products_differ_by_semiring_and_mask(session: mn.session.Session) -> None:
    A = mn.asarray(sp.csr_array(np.array([[0.0, 2, 0], [1, 0, 3], [0, 4, 0]])), blocks=2)
    x, mask = mn.asarray([1.0, 5, 2]), mn.asarray(np.array([True, False, True]))
    found = values(
        A @ x, mn.matmul(A, x), mn.matmul(A, x, semiring="min_plus"), mn.matmul(A, x, semiring="min_first"),
        mn.matmul(A, x, semiring="min_second"), mn.matmul(A, x, semiring="plus_pair"), mn.matmul(x, A),
        mn.matmul(A, x, mask=mask), mn.matmul(A, x, mask=~mask), A.T @ x,
    )  # fmt: skip
    assert found == [
        [10, 7, 20], [10, 7, 20], [7, 2, 9], [2, 1, 4],
        [5, 1, 5], [1, 2, 1], [5, 10, 15],
        [10, 0, 20], [0, 7, 0], [5, 10, 15],
    ]  # fmt: skip
    A[A > 3] = 9
    assert values(A @ x, A.T @ x) == [[10, 7, 45], [5, 20, 15]]


FACTOR = 2


def test_a_function_is_told_apart_by_what_it_uses(session: mn.session.Session) -> None:
    x = mn.asarray([1.0, 2.0])

    def scaling(by: float) -> Callable[..., object]:
        return lambda values: values * by

    def with_default(by: float) -> Callable[..., object]:
        return lambda values, by=by: values * by

    def with_global(by: float) -> Callable[..., object]:
        return eval("lambda values: values * FACTOR", {"FACTOR": by})

    for make in (scaling, with_default, with_global):
        assert values(*(mn.replicated(make(by), x) for by in (2.0, 3.0, 2.0))) == [[2, 4], [3, 6], [2, 4]]
    held = {"by": 2.0}
    changing = lambda values: values * held["by"]  # noqa: E731  as people write it
    first = mn.replicated(changing, x)
    held["by"] = 5.0
    assert values(first, mn.replicated(changing, x)) == [[2, 4], [5, 10]]


def test_draws_differ_by_their_place_and_repeat_by_their_seed(session: mn.session.Session) -> None:
    def draws(seed: int) -> list[mn.DistArray]:
        rng = mn.random.default_rng(seed)
        return [
            rng.random(4),
            rng.random(4),
            rng.normal(size=4),
            rng.random((2, 2)),
            rng.integers(0, 2**40, 4),
        ]

    first, again, other = (values(*draws(seed)) for seed in (1, 1, 2))
    assert first == again
    texts = [str(one) for one in (*first, *other)]
    assert len(set(texts)) == len(texts)
    rng = mn.random.default_rng(1)
    x = rng.random(4)
    x += rng.random(4)
    assert values(x) == [[a + b for a, b in zip(first[0], first[1], strict=True)]]


def test_a_file_that_was_changed_is_read_again(session: mn.session.Session, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"

    def write(numbers: list[float], seconds: int) -> float:
        beside = tmp_path / "beside.npy"
        np.save(beside, np.array(numbers))
        os.utime(beside, (seconds, seconds))
        beside.rename(path)
        return float(mn.load(path).sum())

    assert write([1, 2, 3], 1000) == 6
    assert write([1, 2, 3, 4], 1000) == 10  # as old, but longer
    assert write([1, 2, 3, 5], 2000) == 11  # as long, but newer
    old = mn.load(path)
    total = old.sum()
    np.save(path, np.array([7.0, 7, 7, 7]))  # in its place
    assert float(mn.load(path).sum()) == 28
    try:
        found: object = float(total)
    except MatnbError as error:
        found = str(error)
    assert found == 11 or "x.npy" in str(found)  # what was loaded: remembered, or known to be gone
    path.unlink()
    with pytest.raises(FileNotFoundError):
        mn.load(path)
    assert write([2, 2], 3000) == 4


def test_what_failed_or_was_dropped_is_made_again(session: mn.session.Session) -> None:
    x = mn.asarray([1.0, 2.0, 3.0], blocks=2)
    singular = mn.asarray(np.zeros((2, 2)))

    def inverse(A: np.ndarray) -> np.ndarray:
        return np.linalg.inv(A)

    y = x * 2
    with pytest.raises(KernelError, match="Singular"):
        mn.compute(y, mn.replicated(inverse, singular))
    assert values(y, x) == [[2, 4, 6], [1, 2, 3]]
    singular[...] = mn.asarray(np.eye(2)) * 2
    assert values(mn.replicated(inverse, singular)) == [[[0.5, 0], [0, 0.5]]]
    y.persist()
    x += 1
    z = x * 2
    del y
    gc.collect()
    assert values(z, x * 2) == [[4, 6, 8], [4, 6, 8]]
    mn.memo.clear()
    assert values(z, x * 2) == [[4, 6, 8], [4, 6, 8]]
    y = mn.asarray([1.0, 2.0, 3.0], blocks=2) * 2
    assert values(y) == [[2, 4, 6]]


def test_a_new_session_finds_nothing_of_the_old_one() -> None:
    before = mn.asarray(np.arange(100.0)) + 1
    for engine in ("auto", "interpret", "dask"):
        with mn.start(workers=1, threads=1, engine=engine):
            total = before.sum()
            assert float(total) == 5050
            before[0] = float(before[0]) + 1
            assert float(before.sum()) == 5051
            before[0] -= 1
            assert float(before.sum()) == 5050
        mn.stop()
