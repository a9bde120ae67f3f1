"""Which cuts new arrays get: a block a thread, of about equal entries where it is known where these are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.blocks.formats import to_scipy
from matnb.expr.nodes import Transpose
from matnb.io.rmat import Rmat
from matnb.io.source import ROW_ENTRIES
from matnb.ops.creation import read_here
from matnb.plan.lower import lower
from matnb.program.place import default_layout
from matnb.program.plan import Workers

FOUR = Workers((0, 1), 2, 0)


@pytest.mark.parametrize("machines", [(0, 0), (0, 0, 1, 1)])
def test_every_worker_has_a_machine_or_none_has(machines: tuple[int, ...]) -> None:
    assert not Workers((0, 1, 2), 1, 0).machines
    with pytest.raises(ValueError, match=f"{len(machines)} machines for 3 workers"):
        Workers((0, 1, 2), 1, 0, machines)


def test_given_sparse_arrays_are_cut_in_parts_of_equal_entries() -> None:
    rng = np.random.default_rng(0)
    rows = (2000 * rng.random(60_000) ** 3).astype(int)
    matrix = sp.csr_array((rng.random(60_000), (rows, rng.integers(0, 2000, 60_000))), shape=(2000, 2000))
    layout = default_layout(mn.asarray(matrix).expression, 10**6, FOUR)
    cuts = layout.grid.cuts[0]
    work = matrix.indptr + ROW_ENTRIES * np.arange(2001)
    shares = np.diff(work[list(cuts)]) / work[-1]
    assert len(shares) == 4
    assert shares.max() < 0.27
    assert cuts != (0, 500, 1000, 1500, 2000)
    assert layout.owners == (0, 0, 1, 1)


@pytest.mark.parametrize("row", [0, 1999])
def test_a_row_that_outweighs_all_others_gets_a_block_as_far_as_rows_go(row: int) -> None:
    matrix = sp.lil_array((2000, 4000))
    matrix[row, :] = 1.5
    layout = default_layout(mn.asarray(matrix.tocsr()).expression, 10**6, FOUR)
    cuts = layout.grid.cuts[0]
    assert cuts[0] == 0
    assert cuts[-1] == 2000
    assert all(low < high for low, high in pairwise(cuts))


def test_dense_and_small_arrays_are_cut_evenly() -> None:
    dense = mn.asarray(np.ones((2000, 10)))
    assert default_layout(dense.expression, 10**6, FOUR).grid.cuts[0] == (0, 500, 1000, 1500, 2000)
    assert default_layout(dense.expression, 1000, FOUR).grid.num_blocks == 1


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_a_generated_graph_is_cut_in_parts_of_about_equal_edges(count: int) -> None:
    source = Rmat(12, seed=1)
    cuts = source.row_cuts(count)
    assert cuts is not None
    assert (cuts[0], cuts[-1], len(cuts)) == (0, 4096, count + 1)
    graph = read_here(source)[1]
    work = graph.pointers + ROW_ENTRIES * np.arange(4097)
    shares = np.diff(work[list(cuts)]) / work[-1]
    assert shares.max() < 1.1 / count + 0.01
    assert Rmat(12, permute=True).row_cuts(count) is None


def test_a_graph_of_fewer_rows_than_blocks_is_cut_evenly() -> None:
    tiny = mn.random.rmat(1, edge_factor=2).expression
    layout = default_layout(tiny, 10**6, Workers(tuple(range(8)), 1, 0))
    assert layout.grid.cuts[0] == (0, 1, 2)


def test_a_cut_vector_is_put_together_by_each_of_few_products() -> None:
    A = mn.asarray(sp.random_array((40, 40), density=0.2, format="csr", rng=0), blocks=2)
    x = mn.asarray(np.ones(40), blocks=2)
    few = lower([(A @ x).expression], (), {}, Workers((0,), 2, 0))
    assert "gather" not in {task.kind.name for task in few.tasks}
    many = lower([(A @ x).expression], (), {}, Workers((0,), 1, 0))
    assert "gather" in {task.kind.name for task in many.tasks}


@pytest.mark.parametrize("kind", ["generated", "given"])
def test_a_transpose_is_cut_in_rows_of_equal_work(kind: str) -> None:
    if kind == "generated":
        source = Rmat(12, 16, 0.5, 0.3, 0.1, seed=3)
        node = mn.random.rmat(12, 16, 0.5, 0.3, 0.1, seed=3).expression
        matrix = to_scipy(read_here(source)[1])
    else:
        rng = np.random.default_rng(0)
        columns = (2000 * rng.random(60_000) ** 3).astype(int)
        matrix = sp.csr_array(
            (rng.random(60_000), (rng.integers(0, 1000, 60_000), columns)), shape=(1000, 2000)
        )
        node = mn.asarray(matrix).expression
    cuts = default_layout(Transpose(node, (1, 0)), 10**6, FOUR).grid.cuts[0]
    work = np.diff(sp.csr_array(matrix.T).indptr[list(cuts)]) + ROW_ENTRIES * np.diff(cuts)
    assert len(work) == 4
    assert work.max() < 1.1 * work.mean()
