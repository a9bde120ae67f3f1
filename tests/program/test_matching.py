"""Which products are made where, and as what: recognized as they are written."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from plan_runner import multiplies

import matnb as mn
from matnb.expr.nodes import Expr, MatMul, Transpose
from matnb.expr.traverse import topological
from matnb.plan.lower import lower
from matnb.plan.transposes import prefers_scatter, wished
from matnb.program.matching import Product, match_products
from matnb.program.operators import Accumulate, FusedKernel, MaskedMultiply, MaskedSum, Multiply
from matnb.program.plan import Plan, Task, Workers

FLOAT = np.dtype(np.float64)
WORKERS = Workers((0, 1), 2, 0)
S = mn.asarray(sp.random_array((40, 40), density=0.2, format="csr", rng=0), blocks=4)
U, V = mn.asarray(np.ones((40, 3)), blocks=4), mn.asarray(np.ones((3, 40)))
X = mn.asarray(np.ones(40))


def products_of(*roots: mn.DistArray, scatters: bool = False) -> list[Product]:
    nodes = [root.expression for root in roots]
    wiring = match_products(topological(nodes), set(nodes), (), lambda transpose, right: scatters)
    return list(wiring.products.values())


def plan_of(*roots: mn.DistArray, keep: tuple[Expr, ...] = (), scatters: bool = False) -> Plan:
    nodes = [root.expression for root in roots]
    return lower(nodes, keep, {}, WORKERS, scatters=lambda transpose, right: scatters)


def operators(plan: Plan) -> list[object]:
    return [step.operator for task in plan.tasks for step in task.steps]


def passes(task: Task) -> list[FusedKernel]:
    return [step.operator for step in task.steps if isinstance(step.operator, FusedKernel)]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_product_times_a_sparse_array_is_made_where_that_has_entries(swapped: bool) -> None:
    for left, right in [(U, V), (S, S), (S, mn.asarray(np.ones((40, 40))))]:
        sampled = S * (left @ right) if swapped else (left @ right) * S
        (product,) = products_of(sampled)
        assert product.mask is S.expression
        assert product.scaled == FLOAT
        assert (product.left, product.right) == (left.expression, right.expression)
    (product,) = products_of((U.astype(complex) @ V) * S)
    assert (product.mask, product.scaled) == (S.expression, np.dtype(complex))
    made = operators(plan_of(S * (U @ V)))
    assert sum(isinstance(one, MaskedMultiply) for one in made) == 4
    assert not any(isinstance(one, Multiply | FusedKernel) for one in made)


def test_a_product_that_is_needed_itself_is_made() -> None:
    product = S @ S
    for roots in [(product * S, product), (product * S, product.sum()), (product * product,)]:
        assert all(one.mask is None for one in products_of(*roots))
    # A factor of another shape, or of a dtype that no sparse kernel has, changes nothing.
    assert all(one.mask is None for one in products_of((S @ S) * mn.asarray(np.ones((40, 40)))))
    assert all(one.mask is None for one in products_of((U.astype(np.float16) @ V) * S))


def test_a_product_that_only_a_stored_array_was_made_of_is_not_needed() -> None:
    product = S @ S
    total = product.sum()
    nodes, stored = [(product * S).expression, (total + 1).expression], {total.expression}
    wiring = match_products(topological(nodes, stored), set(nodes), stored, lambda transpose, right: False)
    (made,) = wiring.products.values()
    assert made.mask is S.expression


def test_a_named_product_is_not_made_when_only_its_sampled_form_is_asked_for() -> None:
    product = S @ S
    total = (product * S).sum()
    plan = plan_of(total, keep=(product.expression,))
    assert product.expression not in plan.outputs
    assert not any(isinstance(one, Multiply) for one in operators(plan))


def test_a_sum_of_a_sampled_product_never_stores_it() -> None:
    for total in [((S @ S) * S).sum(), (S * (U @ V)).sum(axis=1)]:
        made = operators(plan_of(total))
        assert sum(isinstance(one, MaskedSum) for one in made) == 4
        assert not any(isinstance(one, MaskedMultiply) for one in made)
    sampled = (S @ S) * S
    for other in [sampled.sum(axis=0), sampled.max(), (sampled + 1.0).sum(), abs(sampled).sum()]:
        assert not any(isinstance(one, MaskedSum) for one in operators(plan_of(other)))


def test_a_mask_and_its_complement() -> None:
    inside = mn.matmul(S, S, mask=S)
    outside = mn.matmul(S, S, mask=~(S != 0))
    dense = mn.matmul(U, V, mask=np.ones((40, 40)))
    assert (inside.sparse, outside.sparse, dense.sparse) == (True, True, False)
    assert [one.complement for one in products_of(inside, outside, dense)] == [False, True, False]
    assert all(one.scaled is None for one in products_of(inside, outside, dense))


@pytest.mark.parametrize("scatters", [False, True])
def test_a_sparse_transpose_is_made_when_it_pays(scatters: bool) -> None:
    (product,) = products_of(S.T @ X, scatters=scatters)
    assert product.transposed == scatters
    plan = plan_of(S.T @ X, scatters=scatters)
    assert plan.scattered == ((S.expression,) if scatters else ())
    assert ("transpose" in [stage.kind.name for stage in plan.stages]) != scatters
    # Where the transpose is needed anyway, it is used.
    both = products_of(S.T @ X, S.T @ S, scatters=scatters)
    assert not any(one.transposed for one in both)
    assert not any(one.transposed for one in products_of(S.T @ X, S.T, scatters=scatters))


def test_a_sampled_product_reads_a_transpose_that_is_made() -> None:
    for left in (S.T, mn.asarray(np.ones((3, 40))).T):
        right = S if left.sparse else V
        (product,) = products_of(S * (left @ right), scatters=True)
        assert product.mask is S.expression
        assert product.left is left.expression
        assert not product.transposed


def test_a_sampled_product_with_a_dense_transpose_reads_its_rows() -> None:
    (product,) = products_of(S * (U @ U.T))
    assert product.turned
    assert product.right is U.expression
    assert "transpose" not in [stage.kind.name for stage in plan_of(S * (U @ U.T)).stages]
    assert not any(one.turned for one in products_of(S * (U @ U.T), U.T))
    assert not any(one.turned for one in products_of(S * (S @ S.T)))


def test_a_dense_transpose_is_never_made_for_a_product() -> None:
    plan = plan_of(U.T @ U)
    assert "transpose" not in [stage.kind.name for stage in plan.stages]
    multiplied = [one for one in operators(plan) if isinstance(one, Multiply)]
    assert all(one.transposed for one in multiplied)
    assert len(multiplied) == 4
    assert sum(isinstance(one, Accumulate) for one in operators(plan)) == 1


def test_the_price_of_a_transpose_is_paid_at_most_twice() -> None:
    counts = {"num_entries": 10**6, "num_columns": 10**5, "num_blocks": 2, "width": 1}
    decisions = [prefers_scatter(**counts, num_uses=uses) for uses in range(40)]
    assert decisions[0]
    assert not decisions[-1]
    assert sorted(decisions, reverse=True) == decisions
    wide = [prefers_scatter(**{**counts, "width": 100}, num_uses=uses) for uses in range(40)]
    assert not any(wide)


def test_wishes_about_a_transpose() -> None:
    assert wished(S.expression) == "auto"
    graph = mn.random.rmat(4, blocks=2)
    assert wished(graph.expression) == "auto"


def test_a_product_is_fused_with_what_is_done_to_it() -> None:
    plan = plan_of(0.85 * (S @ X) + X)
    made = [task for task in plan.tasks if multiplies(task)]
    assert len(made) == 4
    assert all([len(one.links) for one in passes(task)] == [2] for task in made)
    assert all(one.product is not None for task in made for one in passes(task))
    total = plan_of(abs(S @ X - X).sum())
    assert len([stage for stage in total.stages if stage.kind.name == "product"]) == 0
    one_pass = [one for task in total.tasks for one in passes(task)]
    assert [(one.product is not None, len(one.links), len(one.shares)) for one in one_pass] == [
        (True, 2, 1)
    ] * 4


def test_a_product_is_an_array_of_its_own_where_it_must_be() -> None:
    def stages_with_products(*roots: mn.DistArray) -> int:
        return sum(any(isinstance(one, MatMul) for one in stage.inside) for stage in plan_of(*roots).stages)

    assert stages_with_products((S @ X) + (S @ (X + 1))) == 2  # one product a stage
    stretched = plan_of(mn.asarray(np.ones((40, 40))) * (S @ X))  # the vector is stretched over rows
    assert [stage.kind.name for stage in stretched.stages].count("product") == 1
    cut_inside = mn.asarray(np.ones((40, 40)), blocks=[1, 4])
    plan = plan_of(2.0 * (cut_inside @ X))
    assert any(isinstance(one, Accumulate) for one in operators(plan))
    assert [stage.kind.name for stage in plan.stages][-2:] == ["product", "map"]
    shared = S @ X
    assert stages_with_products(shared + 1, shared + 2) == 1


def test_products_of_large_sparse_arrays_are_cut_finer_than_their_operands() -> None:
    graph = mn.random.rmat(14)
    plan = plan_of(graph @ graph)
    (made,) = [stage for stage in plan.stages if stage.kind.name == "product"]
    assert made.layout.grid.num_blocks > 2 * WORKERS.slots
    small = [stage for stage in plan_of(S @ S).stages if stage.kind.name == "product"]
    assert small[0].layout.grid.num_blocks == 4


def test_a_transpose_of_other_axes_is_left_alone() -> None:
    cube = mn.asarray(np.ones((2, 3, 4)))
    assert not any(one.transposed for one in products_of(np.transpose(cube, (0, 2, 1)) @ np.ones((3, 2))))
    assert isinstance((S.T).expression, Transpose)


def test_products_whose_bits_differ_are_made_in_other_ways() -> None:
    A = mn.asarray(sp.random_array((40, 40), density=0.2, format="csr", rng=0))
    for root in (A.T @ X, 2.0 * (A.T @ X), (A.T @ X).sum()):
        made, scattered = (
            {one.way for one in plan_of(root, scatters=scatters).stages if one.expression is root.expression}
            for scatters in (False, True)
        )
        assert made
        assert scattered
        assert not made & scattered


def test_a_dense_factor_is_turned_once_for_each_worker() -> None:
    plan = plan_of(S * (U @ V))
    turned = [task for task in plan.tasks if task.kind.name == "transpose"]
    assert sorted(task.owner for task in turned) == [0, 1]
    assert not [task for task in plan_of(S * (U @ U.T)).tasks if task.kind.name == "transpose"]


def test_what_a_chain_holds_to_its_end_is_counted() -> None:
    # A pass holds the product that it reads, and where it cannot run by tiles two of its values.
    D = mn.asarray(np.ones((100, 100)))
    plan = plan_of(np.sqrt(np.exp(-(D @ D)) + D))
    (task,) = [task for task in plan.tasks if passes(task)]
    assert task.working_bytes == 3 * D.size * 8
