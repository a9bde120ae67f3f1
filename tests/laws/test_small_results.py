"""What is small and cheap is shown with its values; what is not says how to get them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import matnb as mn
from matnb.errors import NotScalarError
from matnb.events import RunFinished
from matnb.lazy.evaluator import looking_only, shown
from matnb.lazy.recording import Recording, recording

WAY = "call .compute()"
LOOKS: tuple[Callable[[Any], object], ...] = (repr, str, format, lambda x: x._repr_mimebundle_())
KINDS = ["float64", "float32", "int64", "uint8", "bool", "complex128"]

pytestmark = pytest.mark.session("two workers")


@pytest.fixture
def runs(session: mn.session.Session) -> Iterator[list[RunFinished]]:
    """Return the runs of a test, as they finish."""
    seen: list[RunFinished] = []
    stop = session.subscribe(lambda event: isinstance(event, RunFinished) and seen.append(event))
    yield seen
    stop()


def _drawn(kind: str) -> st.SearchStrategy[np.ndarray]:
    shapes = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6)
    numbers = st.floats(-1e6, 1e6, width=32) if kind[0] == "f" else None
    if kind[0] == "c":
        numbers = st.complex_numbers(max_magnitude=1e6)
    return hnp.arrays(kind, shapes, elements=numbers)


def _times_one(values: Any) -> Any:
    # Something to compute that gives the same elements; of large complex numbers it overflows on the way.
    with np.errstate(over="ignore", invalid="ignore"):
        return values & True if values.dtype.kind == "b" else values * values.dtype.type(1)


@given(st.sampled_from(KINDS).flatmap(_drawn))
def test_an_array_is_written_as_numpy_writes_it(values: np.ndarray) -> None:
    expected = _times_one(values)
    for look in (str, format, "{}".format):
        assert look(_times_one(mn.asarray(values))) == str(expected)
    text = repr(_times_one(mn.asarray(values)))
    assert text.startswith(str(expected))
    bundle = _times_one(mn.asarray(values))._repr_mimebundle_()
    assert bundle["text/plain"] == text


@example(np.array(9e307 + 9e307j))
@example(np.array(1234567899.12))
@given(st.sampled_from(KINDS).flatmap(lambda kind: hnp.arrays(kind, ())))
def test_a_number_is_written_and_converted_as_numpys(value: np.ndarray) -> None:
    number = _times_one(value)[()]
    made = lambda: _times_one(mn.asarray(value))  # noqa: E731  a new expression each time
    assert str(made()) == f"{made()}" == str(number)
    assert repr(made()) == f"{number!s}  (DistArray scalar {number.dtype})"
    assert f">{number!s}</pre>" in made()._repr_mimebundle_()["text/html"]
    if number.dtype.kind != "c":
        assert float(made()) == float(number) or np.isnan(number)
        for spec in (".3f", "10.2e", ">12", "g"):
            if number.dtype.kind != "b":
                assert format(made(), spec) == format(number, spec)
        assert "%.2f" % made() == "%.2f" % number  # noqa: UP031  what people type
        if np.isfinite(number):
            assert "%d" % made() == "%d" % number  # noqa: UP031
            assert int(made()) == int(number)
            assert round(made(), 1) == round(number.item(), 1)
    assert complex(made()) == complex(number) or np.isnan(number)
    assert bool(made()) == bool(number)


@pytest.mark.parametrize("num_rows", [3, 40])
def test_what_dense_solvers_give_of_few_numbers_is_shown(num_rows: int) -> None:
    rng = np.random.default_rng(num_rows)
    A, b, x = rng.random((num_rows, 3)), rng.random(num_rows), np.arange(float(num_rows))
    P, q = mn.asarray(A), mn.asarray(b)
    wanted = [*np.linalg.lstsq(A, b), np.linalg.det(A.T @ A), np.polyfit(x, b, 2), np.linalg.pinv(A)]
    found = [
        *np.linalg.lstsq(P, q),
        np.linalg.det(P.T @ P),
        np.polyfit(mn.asarray(x), q, 2),
        np.linalg.pinv(P),
    ]
    for one, expected in zip(found, wanted, strict=True):
        text = repr((one,))  # as a cell shows a tuple
        assert "not computed" not in text
        np.testing.assert_allclose(one.to_numpy(), expected, atol=1e-9)


def test_what_dense_solvers_take_long_for_is_not_computed_to_be_shown() -> None:
    assert WAY in repr(np.linalg.det(mn.random.default_rng(0).random((900, 900))))


def test_a_format_of_many_numbers_is_refused_with_the_way() -> None:
    x = mn.arange(4.0) * 2
    with pytest.raises(NotScalarError, match=r"'\.2f' is for one number.*precision=3"):
        f"{x:.2f}"
    assert str(np.array2string(x.to_numpy(), precision=3)) == "[0. 2. 4. 6.]"  # the way that it says
    np.testing.assert_array_equal(round(x / 3, 1), np.round(np.arange(4.0) * 2 / 3, 1))


def test_what_broadcasts_selects_and_is_sparse_is_shown_too() -> None:
    values = np.arange(20.0).reshape(4, 5)
    x = mn.asarray(values)
    assert str(x[x > 12]) == str(values[values > 12])
    assert repr(x[x > 12]).startswith(str(values[values > 12]))
    assert x[x > 3]._repr_mimebundle_()["text/plain"].startswith(str(values[values > 3]))
    assert str(x[1]) == str(values[1])
    assert repr(x[1, 2]) == "7.0  (DistArray scalar float64)"
    A = mn.asarray(sp.csr_array(np.triu(values)))
    assert repr(A @ A.T).count("\n") >= 6
    assert "(0, 1)   2." in repr(A * 2)
    rank = mn.iterate(lambda x: x * 2, mn.ones(3), max_iterations=5)
    assert str(rank[0]) == "[32. 32. 32.]"


@pytest.mark.parametrize("look", LOOKS)
def test_what_is_large_or_long_is_not_computed_for_a_look(
    look: Callable[[Any], object], runs: list[RunFinished]
) -> None:
    x = mn.random.default_rng(0).random((4000, 4000))
    long = mn.random.default_rng(1).random((6000, 6000))
    large = [
        x + 1,  # 128 MB
        x[x > 0.5],  # nobody knows how many
        ((long @ long) @ long).sum(axis=0),  # small, but 430 GFLOP before it
        mn.iterate(lambda one: one @ x, x[0] * 1, max_iterations=10_000)[0],
        mn.map_blocks(lambda block: block, mn.ones(3) * 2, shape=(3,), dtype=float),  # a user's function
    ]
    for one in large:
        assert WAY in str(look(one))
    assert runs == []


@pytest.mark.parametrize("look", LOOKS)
def test_a_cell_that_is_recorded_shows_what_is_cheap_as_any_other(look: Callable[[Any], object]) -> None:
    values = np.arange(5.0) + 8.25
    with recording(Recording("a cell")):
        x = mn.arange(5.0) + 8.25
        assert str(values) in str(look(x))
        assert str(values[values > 9]) in str(look(x[x > 9]))
        assert str(values * 2) in f"{(x * 2, [x])}"
        assert str(values.sum()) in repr(x.sum())
        large = mn.ones((4000, 4000)) + 1
        assert "print(x.compute()) shows it" in str(look(large))
        assert "print(x.compute()) shows it" in str(look(large[large > 3]))


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_is_computed_where_one_only_looks(
    look: Callable[[Any], object], runs: list[RunFinished]
) -> None:
    x = mn.arange(5.0) + 7.5
    with looking_only():
        assert WAY in str(look(x))
    assert runs == []
    seen = []
    mn.iterate(lambda one: seen.append(look(one)) or one * 2, mn.ones(3), max_iterations=2)
    assert all("body of a loop" in str(one) for one in seen)


def test_files_are_not_read_for_a_look(
    session: mn.session.Session, tmp_path: Path, runs: list[RunFinished]
) -> None:
    np.save(tmp_path / "x.npy", np.arange(6.0))
    x = mn.load(tmp_path / "x.npy")
    session._store.clear()  # what was read is gone
    runs.clear()
    assert WAY in repr(x + 1)
    assert runs == []


def test_a_look_waits_for_nobody(session: mn.session.Session) -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with session._lock:
            held.set()
            done.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        held.wait(20)
        begin = time.monotonic()
        assert WAY in repr(mn.arange(7.0) * 3)
        assert time.monotonic() - begin < 5
    finally:
        done.set()
        holder.join()
    assert repr(mn.arange(7.0) * 3).startswith("[ 0.  3.")


def test_a_look_raises_nothing_though_the_value_does() -> None:
    x = mn.linalg.inv(mn.zeros((3, 3)) * 2)
    for look in LOOKS:
        assert "3 x 3" in str(look(x))
    assert shown(x.expression).value == ""


SCRIPT = """
import threading, matnb as mn
x = mn.arange(4.0) * 2
assert "not computed" in repr(x), repr(x)
assert threading.active_count() == 1, "a repr in a script starts no workers"
print(x, f"{x.sum():.2f}", x[1])
mn.stop()
print(repr(x + 1).splitlines()[-1][-18:])
print(threading.active_count())
"""


def test_a_script_prints_numbers_and_starts_no_session_for_a_repr() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["[0. 2. 4. 6.] 12.00 2.0", "d; call .compute()", "1"], done.stderr
