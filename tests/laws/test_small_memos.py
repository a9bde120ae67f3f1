"""Whatever the memo has room for, what loops and branches gave is there for the rest of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

N = 400
A = sp.random_array((N, N), density=0.02, rng=1, format="csr") + sp.eye_array(N, format="csr")
X = np.arange(float(N)) / N

Loop = Callable[..., tuple[object, ...]]


@pytest.fixture(scope="module", params=["off", 0, 1000], ids=["off", "no room", "room for little"])
def session(request: pytest.FixtureRequest) -> Iterator[mn.session.Session]:
    with mn.start(workers=1, threads=2, memo=request.param) as session:
        yield session
    mn.stop()


def in_python(step: Callable[..., object], start: object, max_iterations: int) -> tuple[object, int]:
    """Return what ``mn.iterate`` gives for a loop of so many iterations."""
    state = start
    for _ in range(max_iterations):
        state = step(state)
    return state, max_iterations


def one_after_another(A: object, x: object, iterate: Loop, choose: Loop) -> object:
    """A loop starts from what another gave, of which other results are asked for at the end."""
    start = x, 0.0
    (y, total), count = iterate(lambda s: (A @ s[0] / 4 + 1, s[1] + s[0].sum()), start, max_iterations=3)
    z, _ = iterate(lambda z: z * 0.5 + (A @ y) / N, y, max_iterations=2)
    return z / z.max() + total + count


def side_by_side(A: object, x: object, iterate: Loop, choose: Loop) -> object:
    """Three loops that do not know each other."""
    found = [iterate(lambda y, by=by: A @ y / (4 + by), x + by, max_iterations=3)[0] for by in range(3)]
    return found[0] + found[1] * found[2]


def branch_between(A: object, x: object, iterate: Loop, choose: Loop) -> object:
    """A branch looks at what a loop gave, and a loop starts from what the branch gave."""
    (y, low), _ = iterate(lambda s: (A @ s[0] / 4, s[1] - 1.0), (x, 0.0), max_iterations=3)
    chosen = choose(y.sum() > 0, lambda: y * 2, lambda: y - 1)
    z, _ = iterate(lambda z: A @ z / 4, chosen, max_iterations=2)
    return z + low + y


def inside_another(A: object, x: object, iterate: Loop, choose: Loop) -> object:
    """A loop of loops, and its second result after another loop."""
    (y, seen), _ = iterate(
        lambda s: (iterate(lambda y: A @ y / 4, s[0], max_iterations=2)[0], s[1] + 1.0),
        (x, 0.0),
        max_iterations=2,
    )
    z, _ = iterate(lambda z: A @ z / 4, y, max_iterations=2)
    return z + seen


PROGRAMS = [one_after_another, side_by_side, branch_between, inside_another]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("ask", ["compute", "persist", "several"])
def test_programs_of_several_loops_need_no_memo(
    session: mn.session.Session, program: Callable[..., object], ask: str
) -> None:
    def chosen(condition: bool, yes: Callable[[], object], no: Callable[[], object]) -> object:
        return yes() if condition else no()

    expected = program(A, X, in_python, chosen)
    y = program(mn.asarray(A), mn.asarray(X, blocks=2), mn.iterate, mn.cond)
    if ask == "several":
        twice, found, least = mn.compute(y * 2, y, y.min())
        np.testing.assert_allclose(twice, np.multiply(expected, 2))
        np.testing.assert_allclose(least, np.min(expected))
    else:
        found = y.compute() if ask == "compute" else y.persist().compute()
    np.testing.assert_allclose(found, expected)


def test_topics_are_learned_without_a_memo(session: mn.session.Session) -> None:
    counts = sp.random_array((120, 60), density=0.1, rng=0, format="csr")
    counts.data = np.ceil(counts.data * 5)
    options = {"n_components": 4, "max_iter": 3, "random_state": 0}
    found = mn.learn.LatentDirichletAllocation(**options).fit(mn.asarray(counts))
    assert np.isfinite(found.bound_)
    assert np.asarray(found.components_).min() > 0
