"""Searches of a product's rows: in plans and loops, from any cuts, without an array of the product's size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from plan_runner import ONE, THREE, run_by_hand, whole

import matnb as mn
from matnb.expr.nodes import MatMul
from matnb.ops.row_extremes import RowExtremes
from matnb.passes import optimize, row_searches
from matnb.plan.lower import lower
from matnb.plan.reproducibility import depends_on_layout

RNG = np.random.default_rng(0)
X, C = RNG.integers(-4, 5, (70, 6)).astype(float), RNG.integers(-4, 5, (40, 6)).astype(float)


@pytest.fixture(autouse=True)
def small_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_searches, "_WORTH_TILES", 1)


def distances(X, C):
    return (X * X).sum(axis=1)[:, None] - 2.0 * (X @ C.T) + (C * C).sum(axis=1)


def firsts(d, k, largest):
    if isinstance(d, np.ndarray):
        places = np.argsort(-d if largest else d, axis=1, kind="stable")[:, :k]
        return [np.take_along_axis(d, places, axis=1), places]
    return list(mn.topk(d, k, largest=largest))


SEARCHES: dict[str, Callable] = {
    "argmin": lambda d: [d.argmin(axis=1)],
    "argmax": lambda d: [d.argmax(axis=1, keepdims=True)],
    "min and argmin": lambda d: [d.min(axis=1), d.argmin(axis=1)],
    "max": lambda d: [d.max(axis=1, keepdims=True)],
    "smallest": lambda d: firsts(d, 5, False),
    "largest": lambda d: firsts(d, 3, True),
    "sorted": lambda d: [np.sort(d, axis=1)[:, :4]],
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("workers", [ONE, THREE], ids=["one", "three"])
@pytest.mark.parametrize("blocks", [(1, 1), ((3, 1), (2, 2)), ((3, 2), (4, 1))], ids=str)
def test_searches_of_rows_are_those_of_the_whole_product(name, workers, blocks):
    x, c = (mn.asarray(one, blocks=cut) for one, cut in zip((X, C), blocks, strict=True))
    found = [one.expression for one in SEARCHES[name](distances(x, c))]
    roots = optimize({str(place): one for place, one in enumerate(found)})
    plan = lower(list(roots.values()), (), {}, workers)
    assert any(isinstance(one, RowExtremes) for one in roots.values())
    assert not any(isinstance(stage.expression, MatMul) for stage in plan.stages)
    values = run_by_hand(plan)
    for root, wanted in zip(roots.values(), SEARCHES[name](distances(X, C)), strict=True):
        made = whole(root, plan.outputs[root], values)
        np.testing.assert_array_equal(made, wanted)
        assert made.dtype == wanted.dtype
    assert depends_on_layout(plan.stages, plan.tasks)


def test_places_and_values_are_found_by_the_same_tasks():
    d = distances(mn.asarray(X), mn.asarray(C))
    roots = optimize({"values": mn.topk(d, 3).values.expression, "places": mn.topk(d, 3).places.expression})
    plan = lower(list(roots.values()), (), {}, ONE)
    searches = [
        step
        for task in plan.tasks
        for step in task.steps
        if getattr(getattr(step.operator, "kernel", None), "__name__", "") == "row_extremes"
    ]
    assert len(searches) == ONE.slots


def test_a_product_that_something_else_reads_is_made():
    x, c = mn.asarray(X), mn.asarray(C)
    d = distances(x, c)
    for roots in (
        {"places": d.argmin(axis=1), "d": d},
        {"places": d.argmin(axis=1), "total": d.sum()},
        {"places": d.argmin(axis=1), "columns": d.min(axis=0)},
        {"places": d.argmin(axis=1), "product": x @ c.T},
    ):
        found = optimize({name: one.expression for name, one in roots.items()})
        assert not any(isinstance(one, RowExtremes) for one in found.values())


def test_small_products_and_other_operands_are_left(monkeypatch):
    x, c = mn.asarray(X), mn.asarray(C)
    there = mn.asarray(RNG.random((70, 40)))
    left = [
        distances(x, c) + there,  # an array of the product's size is there
        (x.astype(int) @ c.T.astype(int)),
        (mn.asarray(X.T.copy()).T @ c.T),
        distances(x[:9], c),
    ]
    for one in left:
        assert not isinstance(optimize({"x": one.argmin(axis=1).expression})["x"], RowExtremes)
    monkeypatch.setattr(row_searches, "_WORTH_TILES", 70 * 40 + 1)
    assert not isinstance(optimize({"x": distances(x, c).argmin(axis=1).expression})["x"], RowExtremes)


def nearest_means(X, C):
    nearest = distances(X, C).argmin(axis=1)
    members = (nearest[:, None] == np.arange(len(C))).astype(float)
    return (members.T @ X) / np.maximum(members.sum(axis=0), 1.0)[:, None]


def test_the_centers_of_a_loop_are_searched_by_tiles():
    wanted = X[:7]
    for _ in range(3):
        wanted = nearest_means(X, wanted)
    with mn.start(threads=2):
        x = mn.asarray(X, blocks=(3, 1))
        found, _ = mn.iterate(lambda c: nearest_means(x, c), mn.asarray(X[:7]), until=None, max_iterations=3)
        computed = found.compute()
        plan = str(found.explain(stage="plan"))
    mn.stop()
    np.testing.assert_allclose(computed, wanted)
    assert "search of rows" in plan


@pytest.mark.parametrize(("memo", "is_made"), [("1GB", True), ("10kB", False)])
def test_distances_that_a_name_stands_for_are_made_only_if_they_can_stay(memo, is_made):
    with mn.start(threads=2, memo=memo) as session:
        d = distances(mn.asarray(X), mn.asarray(C))
        root = d.argmin(axis=1)
        plan = session._runner.planner.planned({"root": root.expression}, {d.expression}).plan
        np.testing.assert_array_equal(root.compute(), distances(X, C).argmin(axis=1))
    mn.stop()
    assert any(isinstance(stage.expression, RowExtremes) for stage in plan.stages) is not is_made


def test_other_constants_are_other_results_of_one_plan():
    with mn.start(threads=2):
        x, c = (mn.asarray(one, blocks=(2, 1)).persist() for one in (X, C))
        for factor in (3.7, 4.1, 0.3):
            found = (x @ c.T * -factor + factor).argmin(axis=1).compute()
            np.testing.assert_array_equal(found, (X @ C.T * -factor + factor).argmin(axis=1))
    mn.stop()


@pytest.mark.parametrize(
    ("k", "axis", "kind", "words"),
    [
        (5, -1, mn.errors.ShapeError, "k=5 of an axis of length 4; give 0 to 4"),
        (-1, 0, mn.errors.ShapeError, "give 0 to 3"),
        (1.5, -1, mn.errors.DTypeError, "give an integer"),
        (1, 2, mn.errors.AxisError, "axis 2"),
    ],
)
def test_what_topk_cannot_give_is_refused_as_it_is_written(k, axis, kind, words):
    with pytest.raises(kind, match=words):
        mn.topk(mn.ones((3, 4)), k, axis)
