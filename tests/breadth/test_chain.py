"""One chain through every family, on workers that are processes of their own."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

RNG = np.random.default_rng(3)
VALUES, KEYS = RNG.normal(size=3000), RNG.integers(0, 40, 3000)
VALUES[::50] = np.nan
GRAPH = sp.random_array((40, 40), density=0.2, format="csr", rng=1)


def chain(xp, values, keys, graph):
    """Return what a table's day gives, of NumPy's arrays or of matnb's."""
    present = ~np.isnan(values)
    values, keys = values[present], keys[present]  # masks
    order = np.argsort(values, stable=True)
    ranked, named = values[order], keys[order]  # indices
    running = np.cumsum(ranked)
    distinct, counts = np.unique(named, return_counts=True)
    table = xp.zeros((40, 8))
    np.add.at(table, (named, np.digitize(ranked, [-2.0, -1, -0.5, 0, 0.5, 1, 2])), 1)
    joined = np.concatenate([table, np.flip(table, axis=0)], axis=1).reshape(80, 8)
    lanes = np.apply_along_axis(lambda lane: np.sort(lane)[-2:], 1, joined)
    moved = np.einsum("ij,ik->jk", table, table)
    graph = graph.copy()
    graph[[3, 5], [1, 2]] = 4.0
    picked = graph[[5, 3, 9]].sum(axis=1)
    quantiles, (histogram, _) = np.quantile(ranked, [0.1, 0.5]), np.histogram(ranked, bins=9, range=(-3, 3))
    return running, distinct, counts, table, lanes, moved, picked, quantiles, histogram


def test_a_chain_of_all_families_on_three_processes() -> None:
    expected = chain(np, VALUES, KEYS, GRAPH.toarray())
    with mn.start(workers=3, threads=1, processes=True):
        given = mn.asarray(VALUES, blocks=5), mn.asarray(KEYS, blocks=3), mn.asarray(GRAPH, blocks=[3, 2])
        found = mn.compute(*chain(mn, *given))
        groups = mn.groupby(given[1])
        sums = groups.sum(np.where(np.isnan(given[0]), 0, given[0])).compute()
        doubled = mn.map_blocks(lambda block: block * 2, given[0]).compute()
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sums, np.bincount(KEYS, np.nan_to_num(VALUES)), rtol=1e-12)
    np.testing.assert_array_equal(doubled, VALUES * 2)
