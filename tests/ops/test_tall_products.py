"""Products of tall matrices' transposes: what is made at once, in plans and loops, from any cuts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from plan_runner import ONE, THREE, run_by_hand, whole
from sklearn.linear_model import LogisticRegression

import matnb as mn
from matnb.expr.nodes import MatMul
from matnb.expr.traverse import ExprGraph, topological
from matnb.ops.interpret import interpret
from matnb.ops.tall_products import TallProducts
from matnb.passes import optimize, tall_products
from matnb.plan.lower import lower
from matnb.plan.reproducibility import depends_on_layout

RNG = np.random.default_rng(0)
X, Y = RNG.integers(-4, 5, (70, 6)).astype(float), RNG.integers(-4, 5, (70, 3)).astype(float)
d, r = RNG.integers(-4, 5, 70).astype(float), RNG.integers(-4, 5, 70).astype(float)


@pytest.fixture(autouse=True)
def small_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tall_products, "_FEWEST_ROWS", 1)
    monkeypatch.setattr(tall_products, "_WORTH_TILES", 1)


def products_of(roots: dict) -> set[TallProducts]:
    return {one for one in topological(roots.values()) if isinstance(one, TallProducts)}


def passed(*arrays: mn.DistArray) -> set[TallProducts]:
    """Return what the passes make at once for some arrays that are wanted."""
    return products_of(optimize({str(place): one.expression for place, one in enumerate(arrays)}))


WORKS: dict[str, Callable] = {
    "weighted Gram": lambda X, Y, d, r: [X.T @ (d[:, None] * X)],
    "another matrix": lambda X, Y, d, r: [X.T @ np.maximum(Y - d[:, None], Y[0]) * 2],
    "a Gram matrix and a vector": lambda X, Y, d, r: [X.T @ X, X.T @ r],
    "two vectors": lambda X, Y, d, r: [X.T @ (r - d), X.T @ r],
    "all": lambda X, Y, d, r: [
        X.T @ (d[:, None] * X),
        X.T @ (r * d),
        X.T @ Y,
        X.T @ (Y * Y),
        Y.T @ (d[:, None] + X),
    ],
    "truths": lambda X, Y, d, r: [X.T @ (Y > 0).astype(float)],
    "single": lambda X, Y, d, r: [X.astype("f4").T @ (d.astype("f4")[:, None] * X.astype("f4"))],
    "a sum of it": lambda X, Y, d, r: [(X.T @ (d[:, None] * X)).sum(axis=0) + X.T @ r],
}  # fmt: skip


@pytest.mark.parametrize("name", WORKS)
@pytest.mark.parametrize("workers", [ONE, THREE], ids=["one", "three"])
@pytest.mark.parametrize("blocks", [((1, 1), 1), ((3, 1), 3), ((3, 2), 2), ((1, 1), 4)], ids=str)
def test_products_are_numpys_for_any_cuts(name, workers, blocks):
    matrices, vectors = blocks
    given = [mn.asarray(one, blocks=matrices if one.ndim == 2 else vectors) for one in (X, Y, d, r)]
    found = [one.expression for one in WORKS[name](*given)]
    roots = optimize({str(place): one for place, one in enumerate(found)})
    plan = lower(list(roots.values()), (), {}, workers)
    assert products_of(roots)
    assert not any(isinstance(stage.expression, MatMul) for stage in plan.stages)
    assert depends_on_layout(plan.stages, plan.tasks)
    values = run_by_hand(plan)
    for root, wanted in zip(roots.values(), WORKS[name](X, Y, d, r), strict=True):
        made = whole(root, plan.outputs[root], values)
        np.testing.assert_array_equal(made, wanted)
        assert made.dtype == wanted.dtype
        np.testing.assert_array_equal(interpret(root, {}), wanted)


def test_what_meets_one_transpose_is_multiplied_at_once():
    x, y, v, w = map(mn.asarray, (X, Y, d, r))
    (made,) = passed(x.T @ (v[:, None] * x), x.T @ w, x.T @ (w * v))
    assert made.widths == (6, 1, 1)
    assert len(passed(x.T @ (v[:, None] * x), y.T @ (v[:, None] * y))) == 2
    narrow, weights = x.astype("f4"), v.astype("f4")
    assert len(passed(x.T @ (v[:, None] * x), narrow.T @ (weights[:, None] * narrow))) == 2


def test_products_that_need_each_other_are_made_one_after_the_other():
    x, y, v, w = map(mn.asarray, (X, Y, d, r))
    first = x.T @ w
    second = x.T @ np.tanh(x @ first)
    assert passed(first, second) == set()
    third = x.T @ (np.tanh(x @ first)[:, None] * x)
    assert [one.widths for one in passed(first, second, third)] == [(1, 6)]
    # of two matrices, crosswise: all four cannot be two
    a, b = x.T @ w, y.T @ v
    crossed = [a, b, x.T @ (y @ b), y.T @ (x @ a)]
    roots = optimize({str(place): one.expression for place, one in enumerate(crossed)})
    wanted = [X.T @ r, Y.T @ d, X.T @ (Y @ (Y.T @ d)), Y.T @ (X @ (X.T @ r))]
    for root, value in zip(roots.values(), wanted, strict=True):
        np.testing.assert_array_equal(interpret(root, {}), value)


def test_the_pass_changes_nothing_twice():
    x, y, v, w = map(mn.asarray, (X, Y, d, r))
    gram = y.T @ (v[:, None] * y)
    roots = {
        "a": (x.T @ w).expression,
        "b": (x.T @ (y @ gram.sum(axis=0))).expression,
        "c": gram.expression,
    }
    after = tall_products.multiply_tall(ExprGraph(roots)).roots
    assert products_of(after)
    assert tall_products.multiply_tall(ExprGraph(after)).roots == after


def test_functions_that_something_else_reads_are_made():
    x, y, v, _ = map(mn.asarray, (X, Y, d, r))
    scaled = v[:, None] * x
    for others in ((scaled,), (scaled.sum(),), (y.T @ scaled,)):
        assert passed(x.T @ scaled, *others) == set()
    squared = np.square(y)
    (made,) = passed(x.T @ (squared * 2.0 + 1.0), squared)
    assert [link.name for link in made.factors[0].links] == ["multiply", "add"]
    assert made.inputs[0] is squared.expression


def test_small_matrices_and_other_operands_are_left(monkeypatch):
    x, y, v, w = map(mn.asarray, (X, Y, d, r))
    gram = x.T @ (v[:, None] * x)
    left = [
        x.T @ w,
        x.T @ x,
        x.T @ (v[:, None] * mn.ones(6)),  # no array of its size is read
        (x.astype(int)).T @ (v.astype(int)[:, None] * x.astype(int)),
        (x * 1j).T @ (v[:, None] * x * 1j),
        mn.matmul(x.T, y * 2.0, semiring="min_plus"),
    ]
    for one in left:
        assert passed(one) == set()
    for name, value in (
        ("_FEWEST_ROWS", 71),
        ("_WORTH_TILES", 421),
        ("_MOST_SUMS", 35),
        ("_MOST_COLUMNS", 5),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(tall_products, name, value)
            assert passed(gram) == set()
    assert passed(gram)


def test_what_has_a_value_is_read_and_nothing_below_it():
    x, y, v, w = map(mn.asarray, (X, Y, d, r))
    turned, scaled = (x + 1.0).T, v[:, None] * y
    product, other = turned @ (scaled * 2.0), turned @ w
    roots = {"product": product.expression, "other": other.expression}

    def made(*known: mn.DistArray) -> set[TallProducts]:
        graph = ExprGraph(roots, {one.expression for one in known})
        return products_of(tall_products.multiply_tall(graph).roots)

    (both,) = made()
    assert both.widths == (3, 1)
    assert [link.name for link in both.factors[0].links] == ["multiply", "multiply"]
    assert made(turned) == set()  # what was turned may be gone
    assert made(product) == made(product, scaled) == set()
    (both,) = made(scaled)
    assert scaled.expression in both.inputs


def newton(X, y, w, steps):
    penalty = np.eye(X.shape[1])

    def step(w):
        p = 1.0 / (1.0 + np.exp(-(X @ w)))
        hessian = X.T @ ((p * (1.0 - p))[:, None] * X) + penalty
        return w - np.linalg.solve(hessian, X.T @ (p - y) + w)

    return mn.iterate(step, w, until=None, max_iterations=steps)[0]


def test_newtons_method_in_a_loop_finds_what_scikit_learn_finds():
    y = (X[:, 0] + RNG.normal(size=70) > 0).astype(float)
    peer = LogisticRegression(C=1.0, fit_intercept=False, solver="newton-cholesky", tol=1e-10).fit(X, y)
    with mn.start(threads=2):
        found = newton(mn.asarray(X, blocks=(3, 1)), mn.asarray(y), mn.zeros(6), 12)
        computed, plan = found.compute(), str(found.explain(stage="plan"))
    mn.stop()
    np.testing.assert_allclose(computed, peer.coef_[0], rtol=1e-6)
    assert "by tiles of rows, 2 at once" in plan


def test_arrays_that_are_there_and_names_are_respected():
    with mn.start(threads=2):
        x, v = (mn.asarray(one, blocks=(3, 1) if one.ndim == 2 else 3).persist() for one in (X, d))
        turned = (x + 1.0).T
        scaled = (v[:, None] * x).persist()  # has a value: read, not made again
        np.testing.assert_array_equal((x.T @ (scaled + 1.0)).compute(), X.T @ (d[:, None] * X + 1.0))
        turned.persist()
        np.testing.assert_array_equal((turned @ (scaled * 2.0)).compute(), (X + 1).T @ (d[:, None] * X * 2))
        for factor in (3.0, 4.0):  # one plan
            np.testing.assert_array_equal((x.T @ (factor * x)).compute(), X.T @ (factor * X))
    mn.stop()
